//! Maps and dumps of run-time code, damaged: no panic, no endless loop, no
//! memory out of proportion to the bytes.

use std::fs::File;
use std::io::{Seek, Write};

use symbolize::jit::{JitDump, PerfMap};
use test_support::Random;

/// Bytes that are most likely to change lengths, signs and lines.
const TELLING: [u8; 9] = [0, 1, 0x7f, 0x80, 0xff, b'\n', b' ', b'f', b'x'];

const ROUNDS: usize = 1000;

/// Addresses of code in the undamaged files, and others.
const ADDRS: [u64; 6] = [0, 0x1000, 0x1010, 0x10ff, 0x2000, u64::MAX];

/// Some lines of V8, the JVM and Python.
const MAP: &[u8] = b"\
1000 100 LazyCompile:*handle /srv/app.js:12:3\n\
0x0000000000001010 0x0000000000000038 StubRoutines (1)\n\
2000 10 py::main:/srv/app.py\n\
1000 80 JS:^handle /srv/app.js:12:3\n";

fn dump() -> Vec<u8> {
    let mut bytes = 0x4a69_5444u32.to_le_bytes().to_vec();
    for word in [1u32, 40, 62, 0, 1] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.resize(40, 0);
    let mut record = |kind: u32, words: &[u64], name: &[u8]| {
        let size = 16 + words.len() * 8 + name.len();
        bytes.extend(kind.to_le_bytes());
        bytes.extend((size as u32).to_le_bytes());
        bytes.extend(7u64.to_le_bytes());
        words
            .iter()
            .for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(name);
    };
    record(0, &[1, 0x1000, 0x1000, 0x100, 0], b"first\0code");
    record(2, &[0x1000, 1, 0x1000, 12], b"app.js\0");
    record(0, &[1, 0x1010, 0x1010, 0x38, 1], b"second\0code");
    record(1, &[1, 0x1000, 0x1000, 0x2000, 0x100, 0], b"");
    record(3, &[], b"");
    bytes
}

/// Calls `check` with a file for each of a thousand damaged copies.
fn damage(whole: &[u8], mut check: impl FnMut(&File, usize)) {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    for _ in 0..ROUNDS {
        let mut bytes = whole.to_vec();
        for _ in 0..1 << random.index(6) {
            let at = random.index(bytes.len());
            bytes[at] = TELLING[random.index(TELLING.len())];
        }
        bytes.truncate(bytes.len() - random.index(bytes.len()) * random.index(2));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file.rewind().unwrap();
        check(&file, bytes.len());
    }
}

/// Returns the maximum memory: 16 bytes for each entry, and as much for the parts that later
/// entries cut off; the capacities of small vectors are rounded up.
fn bound(len: usize) -> usize {
    64 * len + 1024
}

fn ask_map(map: &mut PerfMap) {
    for addr in ADDRS {
        let name = map.find(addr);
        assert!(name.is_none_or(|name| !name.is_empty() && name.len() <= 4096));
    }
}

fn ask_dump(dump: &JitDump) {
    for addr in ADDRS {
        for name in [dump.find(addr), dump.find_at(addr, 6)] {
            assert!(name.is_none_or(|name| !name.is_empty() && name.len() <= 4096));
        }
    }
}

#[test]
fn a_thousand_damaged_maps() {
    damage(MAP, |file, len| {
        let mut map = PerfMap::new(file.try_clone().unwrap());
        map.update().unwrap();
        assert!(map.heap_bytes() <= bound(len));
        ask_map(&mut map);
        // The file is cut while it is open.
        file.set_len(len as u64 / 2).unwrap();
        ask_map(&mut map);
        map.update().unwrap();
        ask_map(&mut map);
    });
}

#[test]
fn a_thousand_damaged_dumps() {
    damage(&dump(), |file, len| {
        let Ok(mut dump) = JitDump::new(file.try_clone().unwrap()) else {
            return;
        };
        dump.update().unwrap();
        assert!(dump.heap_bytes() <= bound(len));
        ask_dump(&dump);
        file.set_len(len as u64 / 2).unwrap();
        dump.update().unwrap();
        ask_dump(&dump);
    });
}

#[test]
fn the_whole_ones_are_read() {
    let mut random = 0;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(MAP).unwrap();
    let mut map = PerfMap::new(file);
    map.update().unwrap();
    for addr in ADDRS {
        random += usize::from(map.find(addr).is_some());
    }
    assert_eq!(random, 4);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&dump()).unwrap();
    let mut dump = JitDump::new(file).unwrap();
    dump.update().unwrap();
    assert_eq!(dump.find(0x2000).as_deref(), Some(&b"first"[..]));
    assert_eq!(dump.find(0x1010).as_deref(), Some(&b"second"[..]));
}
