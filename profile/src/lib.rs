//! A CPU profile as data.
//!
//! A *profile* here is a bounded history of samples. Each sample is one tick of
//! a clock that found a thread on a CPU, with the stack it had and how the walk
//! of that stack ended. Frames, stacks, names, processes and threads are
//! interned, samples are kept in one-second buckets, and a [`Report`] is what a
//! query over a window of time gives: functions, processes and threads with
//! their counts, and an account of everything that is missing.
//!
//! The crate knows no kernel, no ELF and no terminal: what goes in are numbers
//! and strings, what comes out are numbers and strings.

pub mod band;
pub mod ending;
pub mod frame;
mod growth;
mod hash;
mod index;
mod intern;
mod names;
mod query;
pub mod report;
mod sources;
pub mod store;

pub use band::{band_points, percent, percent_digits};
pub use ending::Ending;
pub use frame::{Frame, FrameId, FrameKind, ModuleId, NameState, ProcessId, SourceFrame};
pub use report::{
    Completeness, FunctionId, FunctionRow, Health, ProcessRow, Report, RowName, Stop, TREND_LEN,
    ThreadRow, Window,
};
pub use store::{Limits, NewSample, STACK_DEPTH_MAX, Store, StoreStats};
