//! Everything in proftop that speaks to the kernel.
//!
//! What comes out is plain data: a [`Source`] gives [`Batch`]es of [`Sample`]s
//! whose user addresses have already become `(module, file offset)` by the
//! mappings that the process had at that moment, so that they can be named
//! after it is gone.

pub mod sample;
pub mod source;

pub use sample::{
    Batch, Counters, Frame, Module, ModuleId, ModuleKind, ProcessId, ProcessInfo, Sample,
};
pub use source::{Source, SourceError, SourceInfo};
