//! A CPU profile as data.
//!
//! A *profile* here is a bounded history of samples. Each sample records one event, usually a clock
//! tick that found a thread on a CPU, with the stack of the thread and how the walk of that stack
//! ended. Frames, stacks, names, processes and threads are interned, and samples are kept in
//! one-second buckets. A [`View`] is an immutable copy of the store's contents at one moment and
//! can be queried on any thread. A [`Query`] (scope, window, filter) gives a [`Selection`] of
//! samples, from which functions, call trees, flame graphs and all other results are computed,
//! together with an account of everything that is missing.
//!
//! The crate does not depend on the kernel, on ELF or on a terminal: its input and output are
//! numbers and strings.

#![warn(missing_docs)]

mod anonymous;
pub mod band;
mod bare;
pub mod cohort;
pub mod diff;
pub mod ending;
mod family;
pub mod few;
pub mod filter;
mod fnv;
pub mod formats;
pub mod frame;
mod function;

mod growth;
mod hash;
mod index;
mod info;
mod intern;
pub mod machines;
pub mod merge;
mod no_name;
mod pieces;
pub mod probes;
pub mod query;
mod rates;
pub mod report;
mod shards;
mod states;
pub mod store;
mod tables;
mod time;
mod view;
mod wait;

pub use band::{band_points, percent, percent_digits};
pub use cohort::Cohort;
pub use ending::Ending;
pub use family::Family;
pub use filter::Filter;
pub use fnv::fnv1a;
pub use frame::{
    Frame, FrameId, FrameKind, ModuleId, NameState, ProcessDetails, ProcessId, SourceFrame,
};
pub use function::{Function, FunctionId, Role, RowName, short_module};
pub use info::{Busy, Host, Info, Metric, RateChange, Rates};
pub use intern::STACK_DEPTH_MAX;
pub use no_name::NoName;
pub use pieces::Pieces;
pub use query::{Cancel, Cancelled, Query, Scope, Selection};
pub use rates::Reweighed;
pub use report::{
    Completeness, CpuRow, FunctionRow, Health, LanguageStacks, OwnMemory, ProcessRow, Report, Stop,
    TREND_LEN, ThreadRow, TrendPeaks,
};
pub use states::{DoingThen, Held, HeldBy, StateLog, StateStretch, StateThread, ThreadDid};
pub use store::{Limits, NewSample, Store, StoreStats};
pub use tables::EventId;
pub use time::{Pause, TimeRange, Window};
pub use view::View;
pub use wait::{
    Activity, DELAY_SLOTS, Delay, Delays, Now, STATE_COUNT, STATES, WAITING_MODULE, WaitPart,
    Waits, waiting_name,
};
