//! *Probes* of functions: from the text that the user typed to places in files, and from counts to
//! a report.
//!
//! | module | holds |
//! |---|---|
//! | `wanted` | parses what was typed: names, patterns, places |
//! | `expression` | values of a call, from text to steps that the kernel takes |
//! | `typed` | values by the names and types of debug information |
//! | `modules` | the files with code that processes have mapped |
//! | `needed` | the files with code that a command will map |
//! | `find` | finds the matching functions in them, and the sites of each |
//! | `guard` | decides when a probe costs too much |
//! | `reach` | in which processes probes are placed |
//! | `suggest` | suggests names while the user types |
//! | `order` | commands about the probes of a run |
//! | `no_code` | why a known name has no code, and what to probe instead |
//! | `shown` | the probes as contained in snapshots |
//! | `recorder` | converts readings to counts of each second, for recordings |
//! | `cut` | stacks of calls that do not reach their thread's first function |
//! | `recorded` | the probes of a recording, in the form of snapshots |
//! | `finder` | the thread that looks up functions in files, and names callers |
//! | `keeper` | the thread that owns the probes of a run |

mod cut;
pub mod expression;
mod find;
mod finder;
mod guard;
mod keeper;
pub mod modules;
pub mod needed;
pub mod no_code;
mod order;
mod reach;
mod recorded;
mod recorder;
mod shown;
mod suggest;
mod typed;
mod wanted;

pub use cut::{FrameKey, cut_of, cut_stacks};
pub use find::{
    Extent, Found, NotFound, RUNNERS_MAX, Refused, Search, check_point, find, runner_code,
};
pub use guard::{Guard, ProbeLimits, TooMuch};
pub use keeper::{Asked, Counted, Keeper, Message, News, Stack};
pub use order::{ProbeOrder, ProbedFunction, Sampled, Which, Whose};
pub use reach::Reach;
pub use recorded::{callers, latency, recorded, top_values};
pub use recorder::{Placing, Recorder, Track};
pub use shown::{
    Latency, OnCpu, Probe, ProbeCost, ProbeValue, Probes, Seen, Shares, Site, Stage, TREND_MAX,
    Word,
};
pub use suggest::{Suggested, guess};
pub use typed::TypesFile;
pub use wanted::{Wanted, What, split};
