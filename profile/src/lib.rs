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

pub mod ending;
pub mod frame;
pub mod report;

pub use ending::Ending;
pub use frame::{Frame, FrameId, FrameKind, ModuleId, NameState, ProcessId};
pub use report::{
    Completeness, FunctionId, FunctionRow, Health, ProcessRow, Report, RowName, TREND_LEN,
    ThreadRow, Window,
};
