//! The storage of tables and lists: BPF maps, or memory of this process for a walk without BPF and
//! for tests.

mod bpf;
mod chunk;

pub use chunk::{Chunk, WINDOW_SHIFT, WINDOWS, Window};

use crate::shared::Shared;
use probe_ebpf::rule::Extended;
use probe_ebpf::table::{CHUNK_WORDS, EXTENDED_MAX, MAPPINGS_MAX, Mapping, MappingList, RULES_MAX};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// Bytes of a chunk.
pub const CHUNK_BYTES: usize = CHUNK_WORDS * 4;
/// Bytes of the map of rules.
pub const RULES_BYTES: usize = RULES_MAX * 4;
/// Bytes of the map of extended rules.
pub const EXTENDED_BYTES: usize = EXTENDED_MAX * size_of::<Extended>();
/// Bytes of the map of mappings.
pub const MAPPINGS_BYTES: usize = MAPPINGS_MAX * size_of::<Mapping>();

/// The chunks of the pool of words, made when they are needed.
pub trait Chunks: Send {
    /// Makes the chunk with this index; its words are 0.
    fn create(&mut self, index: u32) -> io::Result<Chunk>;
    /// Removes the chunk with this index.
    fn remove(&mut self, index: u32) -> io::Result<()>;
}

/// Stores which list of mappings a process has.
pub trait Processes: Send {
    /// Sets the list of a process.
    fn set(&mut self, tgid: u32, list: MappingList) -> io::Result<()>;
    /// Removes the entry of a process.
    fn remove(&mut self, tgid: u32) -> io::Result<()>;
}

/// Everything that is shared with the walk.
pub struct TableMaps {
    /// The pool of words that tables are made of.
    pub chunks: Box<dyn Chunks>,
    /// The list of each process.
    pub processes: Box<dyn Processes>,
    /// The dictionary of rules.
    pub rules: Arc<Shared>,
    /// The dictionary of extended rules.
    pub extended: Arc<Shared>,
    /// All lists of mappings, in sequence.
    pub mappings: Arc<Shared>,
}

impl TableMaps {
    /// Uses the maps of a loaded object.
    pub fn of_bpf(maps: BpfMaps) -> io::Result<Self> {
        bpf::open(maps)
    }

    /// Uses memory of this process.
    pub fn in_memory() -> Self {
        Self {
            chunks: Box::new(MemoryChunks),
            processes: Box::new(MemoryProcesses::default()),
            rules: Arc::new(Shared::heap(RULES_BYTES)),
            extended: Arc::new(Shared::heap(EXTENDED_BYTES)),
            mappings: Arc::new(Shared::heap(MAPPINGS_BYTES)),
        }
    }
}

/// The maps in the form in which aya returns them.
pub struct BpfMaps {
    /// `CHUNKS`
    pub chunks: aya::maps::Map,
    /// `RULES`
    pub rules: aya::maps::Map,
    /// `EXTENDED`
    pub extended: aya::maps::Map,
    /// `MAPPINGS`
    pub mappings: aya::maps::Map,
    /// `PROCESSES`
    pub processes: aya::maps::Map,
}

struct MemoryChunks;

impl Chunks for MemoryChunks {
    fn create(&mut self, _: u32) -> io::Result<Chunk> {
        Ok(Chunk::heap())
    }

    fn remove(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct MemoryProcesses(HashMap<u32, MappingList>);

impl Processes for MemoryProcesses {
    fn set(&mut self, tgid: u32, list: MappingList) -> io::Result<()> {
        self.0.insert(tgid, list);
        Ok(())
    }

    fn remove(&mut self, tgid: u32) -> io::Result<()> {
        self.0.remove(&tgid);
        Ok(())
    }
}
