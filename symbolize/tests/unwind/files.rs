//! Real files of this machine, compared with gimli row by row.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use symbolize::object::Object;
use symbolize::unwind::UnwindTable;

use crate::{elf, oracle};

/// Returns this program, the C library, the dynamic loader, and some files that most
/// machines have.
fn files() -> BTreeSet<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = maps
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]));
    let mut files: BTreeSet<PathBuf> = mapped.map(PathBuf::from).collect();
    let libraries: Vec<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    let math: Vec<PathBuf> = libraries.iter().map(|dir| dir.join("libm.so.6")).collect();
    files.extend(math);
    files.extend(["/usr/bin/python3", "/usr/bin/perl"].map(PathBuf::from));
    files.retain(|file| file.is_file());
    files
}

pub fn c_library() -> PathBuf {
    let mut files = files().into_iter();
    let library = files.find(|file| file.to_string_lossy().contains("libc.so"));
    library.expect("tests run with glibc")
}

/// Returns the C library of AArch64 and the libraries beside it, from a cross compiler.
fn files_of_aarch64() -> Vec<PathBuf> {
    let entries = fs::read_dir("/usr/aarch64-linux-gnu/lib")
        .into_iter()
        .flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    let is_library = |path: &PathBuf| path.to_string_lossy().contains(".so.") && path.is_file();
    paths.filter(is_library).collect()
}

#[test]
fn every_row_is_as_gimli_has_it() {
    check(files());
}

#[test]
fn every_row_of_aarch64_is_as_gimli_has_it() {
    let files = files_of_aarch64();
    if files.is_empty() {
        return test_support::skip("no libraries of AArch64: gcc-aarch64-linux-gnu has some");
    }
    check(files);
}

fn check(files: impl IntoIterator<Item = PathBuf>) {
    for path in files {
        let object = Object::read(&File::open(&path).unwrap()).unwrap();
        let table = UnwindTable::read(&object).unwrap();
        let outcome = oracle::check(&object, &table).unwrap();
        assert_eq!(
            outcome.wrong,
            0,
            "{}: {:?}",
            path.display(),
            outcome.examples
        );
        assert!(
            outcome.lookups > 3,
            "{}: nothing to compare",
            path.display()
        );
        assert_eq!(table.statistics().damaged, 0, "{}", path.display());
    }
}

#[test]
fn section_headers_are_not_needed() {
    let mut bytes = fs::read(c_library()).unwrap();
    let with = UnwindTable::read(&elf::object(bytes.clone()).unwrap()).unwrap();
    // e_shoff, e_shnum and e_shstrndx
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    let without = UnwindTable::read(&elf::object(bytes).unwrap()).unwrap();
    assert!(!with.rows().is_empty());
    assert_eq!(with.rows(), without.rows());
    assert_eq!(with.rules(), without.rules());
}
