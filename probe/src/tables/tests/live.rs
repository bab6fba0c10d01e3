//! Tests with real maps, which need no BPF program, but rights for BPF.

use super::*;
use crate::bpf_call::bpf;
use crate::tables::maps::CHUNK_BYTES;
use aya::maps::{Array, ArrayOfMaps, HashMap, IterableMap as _, Map, MapData, MapError};
use probe_ebpf::rule::Extended;
use probe_ebpf::table::{
    CHUNK_WORDS, CHUNKS_MAX, EXTENDED_MAX, MAPPINGS_MAX, PROCESSES_MAX, RULES_MAX,
};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};

const MMAPABLE: u32 = 1 << 10;
const EXTENDED_WORDS: usize = EXTENDED_MAX * size_of::<Extended>() / 4;
const MAPPING_WORDS: usize = MAPPINGS_MAX * 5;

type Chunk = Array<MapData, [u32; CHUNK_WORDS]>;

/// The maps, and second handles of them for the test.
struct Maps {
    ours: BpfMaps,
    chunks: Map,
    processes: Map,
    rules: Map,
}

fn again(map: &MapData) -> MapData {
    let fd = map.fd().as_fd().try_clone_to_owned().unwrap();
    MapData::from_fd(fd).unwrap()
}

fn array<const N: usize, T: aya::Pod>() -> Result<MapData, MapError> {
    let array = Array::<MapData, [T; N]>::create(1, MMAPABLE)?;
    Ok(again(array.map()))
}

/// Makes the maps; without the rights returns `None`, and says so.
fn maps() -> Option<Maps> {
    let rules = match array::<RULES_MAX, u32>() {
        Ok(rules) => rules,
        Err(error) => {
            test_support::skip(format_args!("no BPF maps here: {error}"));
            return None;
        }
    };
    let template = Chunk::create(1, MMAPABLE).unwrap();
    let chunks = MapData::from_fd(array_of_maps(template.map())).unwrap();
    let processes = HashMap::<MapData, u32, u64>::create(PROCESSES_MAX as u32, 0).unwrap();
    let ours = BpfMaps {
        chunks: Map::ArrayOfMaps(again(&chunks)),
        rules: Map::Array(again(&rules)),
        extended: Map::Array(array::<EXTENDED_WORDS, u32>().unwrap()),
        mappings: Map::Array(array::<MAPPING_WORDS, u64>().unwrap()),
        processes: Map::HashMap(again(processes.map())),
    };
    Some(Maps {
        ours,
        chunks: Map::ArrayOfMaps(chunks),
        processes: Map::HashMap(again(processes.map())),
        rules: Map::Array(rules),
    })
}

/// Makes an array of maps with `BPF_MAP_CREATE`; aya can only make those of an object.
fn array_of_maps(template: &MapData) -> OwnedFd {
    const BPF_MAP_CREATE: u32 = 0;
    const BPF_MAP_TYPE_ARRAY_OF_MAPS: u32 = 12;
    // Type, sizes of key and value, entries, flags, and the template.
    let mut attributes = [
        BPF_MAP_TYPE_ARRAY_OF_MAPS,
        4,
        4,
        CHUNKS_MAX as u32,
        0,
        template.fd().as_fd().as_raw_fd().cast_unsigned(),
    ];
    // SAFETY: the first words of that command's arm, without addresses.
    let fd = unsafe { bpf(BPF_MAP_CREATE, &mut attributes) }.unwrap();
    // SAFETY: a new descriptor that nobody else has.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[test]
fn what_was_written_is_in_the_maps() {
    let Some(maps) = maps() else { return };
    let mut tables = Tables::new(TableMaps::of_bpf(maps.ours).unwrap(), &limits()).unwrap();
    let file = ModuleId(3);
    tables.publish(1, 0, &own_layout(file), 0);
    tables.want(job(file, content("/proc/self/exe"), 0));
    wait(&mut tables, 0);
    check_own_rules(&tables, 1);

    // Reads the same through system calls.
    let processes = HashMap::<_, u32, u64>::try_from(maps.processes).unwrap();
    let list = tables.list_of(1).unwrap();
    assert_eq!(processes.get(&1, 0).unwrap(), list.0);
    let handle = tables.table_of(file).unwrap().unwrap();
    let chunk_of = |number: u32| -> Result<Chunk, MapError> {
        ArrayOfMaps::<_, Chunk>::try_from(&maps.chunks)?.get(&(number >> 18), 0)
    };
    let chunk = chunk_of(handle.table).unwrap();
    let words = read(chunk.map(), CHUNK_BYTES);
    let reader = tables.reader();
    let first = (handle.table & !(CHUNK_WORDS as u32 - 1)) as usize;
    for at in (0..CHUNK_WORDS).step_by(7) {
        assert_eq!(
            words[at],
            probe_ebpf::table::Words::word(&reader, (first + at) as u32)
        );
    }
    let Map::Array(rules) = &maps.rules else {
        unreachable!("made as one")
    };
    let rules = read(rules, RULES_MAX * 4);
    assert_eq!(rules[0], Rule::special(special::FRAME_POINTER).0);
    assert_eq!(
        rules[tables.stats().rules - 1],
        reader.rule((tables.stats().rules - 1) as u16).0
    );

    tables.unpublish(1, 1);
    assert!(matches!(processes.get(&1, 0), Err(MapError::KeyNotFound)));
    tables.sweep(2);
    tables.sweep(2 + PATIENCE_NS);
    // Each call removes one chunk.
    for _ in 0..tables.stats().chunks {
        tables.sweep(2 + PATIENCE_NS + REST_NS);
    }
    assert_eq!(tables.stats().chunks, 0);
    assert!(matches!(chunk_of(handle.table), Err(MapError::KeyNotFound)));
    drop(chunk);
    // An earlier view may still be in use.
    assert_ne!(probe_ebpf::table::Words::word(&reader, handle.table), 0);
}

/// Returns the value of element 0, by `BPF_MAP_LOOKUP_ELEM`: a megabyte is too much for the stack
/// that `Array::get` would use.
fn read(map: &MapData, bytes: usize) -> Vec<u32> {
    const BPF_MAP_LOOKUP_ELEM: u32 = 1;
    let mut words = vec![0_u32; bytes / 4];
    let key = 0_u32;
    let mut attributes = [
        u64::from(map.fd().as_fd().as_raw_fd().cast_unsigned()),
        std::ptr::from_ref(&key) as u64,
        words.as_mut_ptr() as u64,
        0,
    ];
    // SAFETY: that command's arm; `words` has as many bytes as the value.
    unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &mut attributes) }.unwrap();
    words
}
