//! Tables in BPF maps. Kernel 5.5 or newer, for `BPF_F_MMAPABLE`.

use super::{
    BpfMaps, Chunk, Chunks, EXTENDED_BYTES, MAPPINGS_BYTES, Processes, RULES_BYTES, TableMaps,
};
use crate::bpf_call::bpf;
use crate::shared::Shared;
use aya::maps::{Array, ArrayOfMaps, HashMap, IterableMap as _, Map, MapData, MapError};
use probe_ebpf::table::{CHUNK_WORDS, MappingList};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::sync::Arc;

/// `BPF_F_MMAPABLE` of `enum bpf_map_flags`.
const MMAPABLE: u32 = 1 << 10;

/// The words are not in a struct: up to Linux 6.1 the array of maps refuses inner maps for which
/// the kernel knows a struct type and the template has none, or the reverse.
type ChunkMap = Array<MapData, [u32; CHUNK_WORDS]>;

/// Maps the BPF maps into the memory of this process.
pub fn open(maps: BpfMaps) -> io::Result<TableMaps> {
    Ok(TableMaps {
        rules: Arc::new(shared(&maps.rules, RULES_BYTES)?),
        extended: Arc::new(shared(&maps.extended, EXTENDED_BYTES)?),
        mappings: Arc::new(shared(&maps.mappings, MAPPINGS_BYTES)?),
        chunks: Box::new(BpfChunks {
            chunks: maps.chunks,
            _open: [maps.rules, maps.extended, maps.mappings],
        }),
        processes: Box::new(BpfProcesses(
            HashMap::try_from(maps.processes).map_err(io_error)?,
        )),
    })
}

fn shared(map: &Map, bytes: usize) -> io::Result<Shared> {
    match map {
        Map::Array(data) => Shared::map(data.fd().as_fd(), 0, bytes),
        _ => Err(io::Error::other("not an array map")),
    }
}

struct BpfChunks {
    chunks: Map,
    /// Their memory is mapped, which would be enough here. But programs that are loaded later
    /// (`events/call/point.rs`) refer to their maps by these descriptors.
    _open: [Map; 3],
}

impl Chunks for BpfChunks {
    // The kernel waits for running programs before it returns from changes of an array of maps,
    // some 10 ms, in which the thread sleeps.
    fn create(&mut self, index: u32) -> io::Result<Chunk> {
        let chunk = ChunkMap::create(1, MMAPABLE).map_err(io_error)?;
        ArrayOfMaps::<_, ChunkMap>::try_from(&mut self.chunks)
            .and_then(|mut chunks| chunks.set(index, &chunk, 0))
            .map_err(io_error)?;
        Ok(Chunk::map(chunk.map().fd().as_fd().try_clone_to_owned()?))
    }

    fn remove(&mut self, index: u32) -> io::Result<()> {
        match &self.chunks {
            Map::ArrayOfMaps(data) => delete_element(data.fd().as_fd(), index),
            _ => Err(io::Error::other("not an array of maps")),
        }
    }
}

struct BpfProcesses(HashMap<MapData, u32, u64>);

impl Processes for BpfProcesses {
    fn set(&mut self, tgid: u32, list: MappingList) -> io::Result<()> {
        self.0.insert(tgid, list.0, 0).map_err(io_error)
    }

    fn remove(&mut self, tgid: u32) -> io::Result<()> {
        match self.0.remove(&tgid) {
            Err(MapError::KeyNotFound) => Ok(()),
            removed => removed.map_err(io_error),
        }
    }
}

fn io_error(error: MapError) -> io::Error {
    match error {
        MapError::SyscallError(error) => error.io_error,
        MapError::CreateError { io_error, .. } => io_error,
        error => io::Error::other(error),
    }
}

/// Calls `BPF_MAP_DELETE_ELEM`, which aya lacks for arrays of maps.
fn delete_element(map: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    const BPF_MAP_DELETE_ELEM: u32 = 3;
    /// The fields of `union bpf_attr` for commands on elements.
    #[repr(C)]
    struct Attributes {
        map_fd: u32,
        reserved: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let mut attributes = Attributes {
        map_fd: map.as_raw_fd().cast_unsigned(),
        reserved: 0,
        key: std::ptr::from_ref(&index) as u64,
        value: 0,
        flags: 0,
    };
    // SAFETY: that command's arm; the key is a number of an array's element.
    unsafe { bpf(BPF_MAP_DELETE_ELEM, &mut attributes) }.map(drop)
}
