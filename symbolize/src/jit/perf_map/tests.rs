use super::*;

use std::io::Write;
use std::path::Path;

fn append(path: &Path, text: &str) {
    let mut file = File::options().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn map(text: &str) -> (tempfile::TempDir, std::path::PathBuf, PerfMap) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf-1.map");
    std::fs::write(&path, text).unwrap();
    let mut map = PerfMap::new(File::open(&path).unwrap());
    map.update().unwrap();
    (directory, path, map)
}

fn name(map: &mut PerfMap, addr: u64) -> Option<String> {
    let name = map.find(addr)?;
    Some(String::from_utf8(name).unwrap())
}

#[test]
fn grows_by_lines() {
    let (_directory, path, mut map) = map("1000 10 first\n2000 10 sec");
    assert_eq!(name(&mut map, 0x1008).as_deref(), Some("first"));
    assert_eq!(name(&mut map, 0x2008), None, "not written to its end");
    assert!(!map.update().unwrap());

    append(&path, "ond\n1008 10 over\n");
    assert!(map.update().unwrap());
    assert_eq!(name(&mut map, 0x2008).as_deref(), Some("second"));
    assert_eq!(name(&mut map, 0x1007).as_deref(), Some("first"));
    assert_eq!(name(&mut map, 0x1008).as_deref(), Some("over"));
    assert!(!map.update().unwrap());
}

#[test]
fn written_anew() {
    let (_directory, path, mut map) = map("1000 10 old\n2000 10 other\n");
    // The file is longer than before, as when the JVM writes its map a second time.
    std::fs::write(&path, "1000 10 new\n3000 10 other\n4000 10 more\n").unwrap();
    assert!(map.update().unwrap());
    assert_eq!(name(&mut map, 0x1000).as_deref(), Some("new"));
    assert_eq!(name(&mut map, 0x2000), None);
    assert_eq!(name(&mut map, 0x4000).as_deref(), Some("more"));

    // The file is shorter, which is not noticed before a name is looked up.
    std::fs::write(&path, "5000 10 x\n1000 8 newest\n").unwrap();
    assert_eq!(name(&mut map, 0x1000).as_deref(), Some("newest"));
    assert_eq!(name(&mut map, 0x3000), None);
}

#[test]
fn lines_longer_than_a_chunk_and_bytes_that_are_none() {
    let long = "x".repeat(CHUNK_BYTES * 2);
    let text = format!("1000 10 {long}\n\0\u{1}garbage\n\n2000 10 after\n");
    let (_directory, _path, mut map) = map(&text);
    assert_eq!(name(&mut map, 0x2000).as_deref(), Some("after"));
}

#[test]
fn many_lines_across_chunks() {
    let lines = 100_000;
    let text: String = (0..lines)
        .map(|i| {
            format!(
                "{:x} 20 LazyCompile:*f{i} /a/b.js:{i}:1\n",
                0x7000_0000 + i * 32
            )
        })
        .collect();
    let (_directory, _path, mut map) = map(&text);
    assert_eq!(map.len(), lines);
    for i in (0..lines).step_by(997) {
        let found = name(&mut map, (0x7000_0000 + i * 32 + 31) as u64).unwrap();
        assert_eq!(found, format!("LazyCompile:*f{i} /a/b.js:{i}:1"));
    }
}
