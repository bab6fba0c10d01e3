//! Damaged files: no panic, no hang, no memory out of proportion to the file.

use std::fs;
use std::path::Path;

use crate::support::{compile, forget_sections};
use symbolize::object::{Object, Summary, read_answer, write_answer};
use symbolize::source::Source;
use symbolize::{ElfSymbols, FileOffset};
use test_support::Random;

/// Makes every kind of query about bytes that may be a file.
fn exercise(bytes: Vec<u8>) {
    let len = bytes.len() as u64;
    let Ok(object) = Object::from_source(Source::Memory(bytes.into())) else {
        return;
    };
    let _ = object.file_id();
    let summary = Ok(Summary::of(&object));
    assert_eq!(read_answer(&write_answer(&summary)), Some(summary));
    let Ok(symbols) = ElfSymbols::from_object(object) else {
        return;
    };
    for step in 0..64 {
        let _ = symbols.find(FileOffset(len / 64 * step));
    }
    let functions = symbols.functions().count() as u64;
    assert!(functions <= len, "more functions than bytes");
}

/// Flips bytes and bits, overwrites words with extreme values, and cuts. Three quarters of the
/// damage are done to the headers at both ends of the file, where it has most effect.
fn damage(original: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=random.index(4) {
        let headers = 64 + 56 * 13;
        let at = match random.index(4) {
            0 => random.index(64),
            1 => random.index(headers.min(bytes.len())),
            2 => bytes.len() - 1 - random.index((64 * 40).min(bytes.len())),
            _ => random.index(bytes.len()),
        }
        .min(bytes.len() - 1);
        match random.index(4) {
            0 => bytes[at] ^= 1 << random.index(8),
            1 => bytes[at] = random.index(256) as u8,
            2 => {
                let extremes = [0, u64::MAX, 1 << 63, 1 << 32, 0xfff, u64::MAX - 0xfff];
                let extreme = extremes[random.index(extremes.len())].to_le_bytes();
                let end = (at + 8).min(bytes.len());
                bytes[at..end].copy_from_slice(&extreme[..end - at]);
            }
            _ if random.index(8) == 0 => bytes.truncate(at.max(1)),
            _ => bytes[at] = 0xff,
        }
    }
    bytes
}

fn survives_damage(original: &[u8], rounds: usize) {
    let mut random = Random::new(0x5eed);
    for _ in 0..rounds {
        exercise(damage(original, &mut random));
    }
}

#[test]
fn damaged_fixtures() {
    let directory = tempfile::tempdir().unwrap();
    let narrow = &["-m32", "-rdynamic"][..];
    for flags in [&["-rdynamic"][..], &["-s", "-rdynamic"], narrow] {
        let Some(path) = compile(directory.path(), "names.c", "victim", flags) else {
            return;
        };
        let mut bytes = fs::read(&path).unwrap();
        survives_damage(&bytes, 1000);
        forget_sections(&mut bytes);
        survives_damage(&bytes, 1000);
    }
}

#[test]
fn damaged_files_of_this_machine() {
    for path in ["/bin/true", "/lib64/ld-linux-x86-64.so.2", "/bin/ls"] {
        match fs::read(Path::new(path)) {
            Ok(bytes) => survives_damage(&bytes, 1000),
            Err(error) => test_support::skip(format_args!("{path}: {error}")),
        }
    }
}

#[test]
fn cut_at_every_length() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "names.c", "victim", &[]) else {
        return;
    };
    let bytes = fs::read(&path).unwrap();
    for len in (0..bytes.len()).step_by(37).chain(0..200) {
        exercise(bytes[..len].to_vec());
    }
}

#[test]
fn random_bytes_behind_a_header() {
    let mut random = Random::new(7);
    for _ in 0..1000 {
        let mut bytes: Vec<u8> = (0..2000).map(|_| random.index(256) as u8).collect();
        bytes[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
        bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
        bytes[54..58].copy_from_slice(&[56, 0, 4, 0]);
        exercise(bytes);
    }
}
