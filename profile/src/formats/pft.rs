//! `.pft`, our own format: everything a store has, written while it records,
//! readable up to the last whole block whatever happened to the writer.
//! `docs/pft.md` describes the bytes.
//!
//! - [`block`]: blocks, packed and checked
//! - [`columns`]: what is in them and comes once
//! - [`writer`]: what a view has that the file has not yet
//! - [`reader`]: block by block into a store
//! - [`place`]: a store of its own, or one with other machines, for the reader
//! - [`tables`]: what a file has defined so far, for the reader
//! - [`naming`]: names and sources, for the reader
//! - [`probes`]: what probes counted, both ways
//! - [`states`]: what threads did, both ways

mod block;
mod columns;
mod naming;
mod place;
mod probes;
mod reader;
mod states;
mod tables;
mod writer;

pub use place::{MACHINES_MAX, Machine};
pub use reader::Reader;
pub use writer::Writer;

use super::FormatError;
use crate::{Limits, Store, View};
use std::io::{Read, Write};

/// What a file begins with. As with PNG, a transfer that changes line ends or
/// strips the eighth bit shows at once.
pub const MAGIC: [u8; 8] = *b"\x89PFT\r\n\x1a\n";

/// Files of a higher one cannot be read.
pub(super) const VERSION: u16 = 2;
/// Sections that are not known are left out.
pub(super) const VERSION_MINOR: u16 = 10;

/// What a block consists of: parts, each with its tag and length.
pub(super) mod section {
    pub(crate) const INFO: u64 = 1;
    pub(crate) const STRINGS: u64 = 2;
    pub(crate) const MODULES: u64 = 3;
    pub(crate) const PROCESSES: u64 = 4;
    pub(crate) const THREADS: u64 = 5;
    pub(crate) const FRAMES: u64 = 6;
    pub(crate) const STACKS: u64 = 7;
    pub(crate) const NAMES: u64 = 8;
    pub(crate) const SOURCES: u64 = 9;
    pub(crate) const SAMPLES: u64 = 10;
    pub(crate) const END: u64 = 11;
    /// These in the place of those of version 1.
    pub(crate) const FRAME_RUNS: u64 = 12;
    pub(crate) const STACK_COLUMNS: u64 = 13;
    pub(crate) const NAME_COLUMNS: u64 = 14;
    pub(crate) const SOURCE_COLUMNS: u64 = 15;
    pub(crate) const SAMPLE_COLUMNS: u64 = 16;
    /// Since 2.2, and only if the rate was changed.
    pub(crate) const RATES: u64 = 17;
    /// Since 2.3, and only if not all of them were sampled.
    pub(crate) const SAMPLED_CPUS: u64 = 18;
    /// Since 2.4, and only if there were probes.
    pub(crate) const PROBES: u64 = 19;
    /// Since 2.4, and only if recordings of different times were put together.
    pub(crate) const PAUSES: u64 = 21;
    /// Since 2.4, and only if time waited is counted.
    pub(crate) const WAITS: u64 = 20;
    /// Since 2.5, and only if time waited is counted.
    pub(crate) const STATES: u64 = 22;
    /// Since 2.8, and only if it is known. The last one counts.
    pub(crate) const BUSY: u64 = 23;
    /// Since 2.9, and only if there are processes of several machines.
    pub(crate) const HOSTS: u64 = 24;
}

/// Writes all of a view as one finished file.
pub fn write(view: &View, out: impl Write) -> Result<(), FormatError> {
    let mut writer = Writer::new(out)?;
    writer.append(view, None)?;
    writer.finish(view)?;
    Ok(())
}

/// Reads a whole file; the sentences say what is missing of it.
pub fn read(input: impl Read, limits: Limits) -> Result<(Store, Vec<String>), FormatError> {
    let mut store = Store::new(limits);
    let mut reader = Reader::new(input)?;
    while reader.read_block(&mut store)? {}
    let notes = reader.notes();
    Ok((store, notes))
}
