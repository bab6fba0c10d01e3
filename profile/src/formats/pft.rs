//! `.pft`, proftop's own format. It holds everything that a store has, is written while recording,
//! and can be read up to the last whole block, whatever happened to the writer.
//! `docs/pft.md` describes the bytes.
//!
//! - [`block`]: blocks, compressed and with checksums
//! - [`columns`]: the contents of blocks that are written only once
//! - [`writer`]: writes what a view has and the file does not have yet
//! - [`reader`]: reads block by block into a store
//! - [`place`]: where the reader puts samples: a store of their own, or one shared with other
//!   machines
//! - [`tables`]: the definitions that the reader has read so far
//! - [`naming`]: reads names and sources
//! - [`probes`]: writes and reads the counts of probes
//! - [`states`]: writes and reads what threads did

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

/// The first bytes of a file. As with PNG, a transfer that changes line ends or strips the eighth
/// bit damages them visibly.
pub const MAGIC: [u8; 8] = *b"\x89PFT\r\n\x1a\n";

/// The major version that is written. Files of a higher one cannot be read.
pub(super) const VERSION: u16 = 2;
/// The minor version that is written. Files of a higher one can be read: their unknown sections are
/// skipped.
pub(super) const VERSION_MINOR: u16 = 10;

/// Tags of the sections of a block. Each section has its tag and length in front.
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
    /// Sections 12 to 16 replace sections 6, 7, 8, 9 and 10 of version 1.
    pub(crate) const FRAME_RUNS: u64 = 12;
    pub(crate) const STACK_COLUMNS: u64 = 13;
    pub(crate) const NAME_COLUMNS: u64 = 14;
    pub(crate) const SOURCE_COLUMNS: u64 = 15;
    pub(crate) const SAMPLE_COLUMNS: u64 = 16;
    /// Since 2.2, written only if the rate was changed.
    pub(crate) const RATES: u64 = 17;
    /// Since 2.3, written only if not all CPUs were sampled.
    pub(crate) const SAMPLED_CPUS: u64 = 18;
    /// Since 2.4, written only if there were probes.
    pub(crate) const PROBES: u64 = 19;
    /// Since 2.4, written only if recordings of different times were merged.
    pub(crate) const PAUSES: u64 = 21;
    /// Since 2.4, written only if waiting time is counted.
    pub(crate) const WAITS: u64 = 20;
    /// Since 2.5, written only if waiting time is counted.
    pub(crate) const STATES: u64 = 22;
    /// Since 2.8, written only if known; a later section replaces an earlier one.
    pub(crate) const BUSY: u64 = 23;
    /// Since 2.9, written only if there are processes of several machines.
    pub(crate) const HOSTS: u64 = 24;
}

/// Writes a whole view as one finished file.
pub fn write(view: &View, out: impl Write) -> Result<(), FormatError> {
    let mut writer = Writer::new(out)?;
    writer.append(view, None)?;
    writer.finish(view)?;
    Ok(())
}

/// Reads a whole file; the returned sentences say what is missing.
pub fn read(input: impl Read, limits: Limits) -> Result<(Store, Vec<String>), FormatError> {
    let mut store = Store::new(limits);
    let mut reader = Reader::new(input)?;
    while reader.read_block(&mut store)? {}
    let notes = reader.notes();
    Ok((store, notes))
}
