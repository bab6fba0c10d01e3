//! *Probes*: counts from breakpoints on functions, second by second: calls, their durations, values
//! that were read, callers and threads.
//!
//! Samples show where time goes, probes how often and how long a function runs. Both are stored
//! side by side in a store and in a recording, and are independent of each other.
//!
//! - [`about`]: the description of a probe
//! - [`tally`]: the counts of some period
//! - [`log`]: all probes of a run, with the counts of each second

mod about;
mod log;
mod tally;

pub use about::{ProbeAbout, ValueAbout};
pub use log::{
    FRAMES_MAX, PROBES_MAX, ProbeEnd, ProbeFrame, ProbeLog, ProbeRecord, ProbeThread, STACKS_MAX,
    TEXTS_MAX, THREADS_MAX,
};
pub use tally::{CallTally, ValueTally};
