//! Everything in proftop that calls the kernel.
//!
//! The output is plain data: a [`Source`] returns [`Batch`]es of [`Sample`]s. Their user addresses
//! are already converted to `(module, file offset)` by the mappings that the process had at that
//! moment, so that they can be named after the process has ended.
//!
//! The path of a sample through this crate: something happens to a thread (one of the [`events`],
//! for example a clock of [`clocks`] ticks) and runs the event's program of `probe-ebpf`, which
//! [`loader`] has loaded. [`decode`] reads its record from the ring. [`process`] keeps, from the
//! [`sideband`], the mappings of each process. [`timeline`] and [`resolve`] combine both. [`bpf`]
//! and [`perf`] are the main loops.

#![warn(missing_docs)]

pub mod alarm;
mod aside;
pub mod ask_kernel;
pub mod bpf;
mod bpf_call;
mod bpf_programs;
mod btf;
mod bytes;
pub mod cgroup;
pub mod channel;
pub mod child;
mod clocks;
pub mod confine;
pub mod cpus;
mod decode;
mod drain;
mod error;
mod events;
mod exec;
mod family;
pub mod features;
pub mod files;
mod first_record;
pub mod haste;
pub mod helper;
mod idle;
mod ids;
pub mod kernel_symbols;
mod lineage;
mod loader;
pub mod machine;
mod mappings;
pub mod memory;
mod modules;
mod native;
mod open_files;
mod open_waits;
mod owner;
pub mod perf;
mod perf_event;
mod plain;
pub mod privilege;
pub mod proc_maps;
mod proc_stat;
mod process;
mod python;
mod random;
mod resolve;
mod ring;
pub mod sample;
mod scans;
mod shared;
pub mod shares;
mod short_lived;
mod sideband;
pub mod source;
mod stack;
mod startup;
pub mod tables;
pub mod target;
mod targets;
mod thread_names;
mod time;
mod timeline;
mod titles;
mod unwinding;
mod wakeup;

pub use bpf::{BpfSource, Config};
pub use bpf_programs::BpfPrograms;
pub use clocks::SETTLED_NS;
pub use error::Error;
pub use events::happening::{Happened, Happening};
pub use events::wait::{
    DELAY_SLOTS, ENDS_AT as WAKES_AT, RawWait, ThreadTotals, WaitCounters, WaitState, Waker,
    delay_end_ns,
};
pub use events::{Event, call};
pub use family::descendants_of;
pub use ids::{ModuleId, ProcessId};
pub use lineage::Ancestor;
pub use owner::{Owner, inner_tid};
pub use perf::PerfSource;
pub use probe_ebpf::calls as call_orders;
pub use sample::{
    Batch, Counters, Ending, Frame, KeptWalk, Missing, Module, ModuleKind, OverShare, ProcessInfo,
    PythonName, PythonNames, PythonStats, Sample, Scarce, TableStats, WalkCheck,
};
pub use source::{DRAIN, EngineKind, RateError, Source, SourceError, SourceInfo};
pub use target::{CgroupTarget, Target};
pub use time::now_ns;

/// Starts the processes that open and parse files from now on. Has to be called before anything
/// else, while there is only one thread, because it forks. `read_recording` is what a parser does
/// with an order for a recording.
pub fn start_readers(read_recording: files::Maker) -> std::io::Result<()> {
    files::start_readers(files::Makers {
        table: tables::make_for_another,
        recording: read_recording,
    })
}

/// For fuzzers: decodes bytes as a record of each of the rings.
#[doc(hidden)]
pub fn decode_anything(bytes: &[u8]) {
    _ = decode::decode(bytes);
    _ = sideband::record::parse(bytes);
    for has_cgroup in [false, true] {
        _ = perf::record::parse(bytes, has_cgroup);
    }
}

/// For fuzzers: decodes bytes as memory with frames and tasks of Python.
#[doc(hidden)]
pub fn walk_python_anywhere(bytes: &[u8]) {
    _ = python::walk_anything(bytes);
}
