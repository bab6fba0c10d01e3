//! *Probes*: what breakpoints on functions counted, second by second: calls, how long they
//! took, with which values, from where and by which threads.
//!
//! Samples say where time goes, probes how often and how long. Both are kept side by side in
//! a store and in a recording, and neither needs the other.
//!
//! - [`about`]: what a probe was, and where
//! - [`tally`]: what was counted in some time
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
