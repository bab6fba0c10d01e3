//! Addresses that a file was prepared for have the same answers as others.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::support::compile;
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::{FileSource, LinkAddr, RemoteFiles, Resolver};
use test_support::Random;

fn resolver(path: &Path) -> Resolver {
    let object = Object::read(&File::open(path).unwrap()).unwrap();
    let files = || DebugFiles::of(&FileSource::new(path), RemoteFiles::Open);
    Resolver::of_file(object, files, 1 << 30).unwrap()
}

/// Asks about addresses of all code of a file, some of which several times: in small groups, each
/// with a resolver of its own, and in large ones one after the other.
fn check(path: &Path, random: &mut Random) {
    let whole = resolver(path);
    let code: Vec<_> = whole.segments().iter().filter(|s| s.executable).collect();
    let mut lines = 0;
    let mut agree = |asked: &Resolver, count: u64| {
        let addr = |_| {
            let segment = code[random.index(code.len())];
            // Neighbours, too.
            LinkAddr(segment.vaddr + random.below(segment.filesz.div_ceil(3)) * 3 + random.below(2))
        };
        let addrs: Vec<LinkAddr> = (0..count).map(addr).collect();
        asked.prepare(&addrs);
        for addr in addrs {
            let expected = whole.resolve(addr);
            lines += expected.frames.len();
            assert_eq!(asked.resolve(addr), expected, "{addr:x?} of {path:?}");
        }
    };
    for count in [1, 1, 2, 3, 10, 60, 1] {
        agree(&resolver(path), count);
    }
    let asked = resolver(path);
    for count in [1, 300, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1_000] {
        agree(&asked, count);
    }
    assert!(lines > 500, "{lines} lines of {path:?}");
}

#[test]
fn an_address_that_was_prepared_for_has_the_answer_of_the_whole_file() {
    let mut random = Random::new(9);
    // This program has thousands of functions in many units.
    check(&std::env::current_exe().unwrap(), &mut random);
    let directory = tempfile::tempdir().unwrap();
    let mut programs: Vec<PathBuf> = Vec::new();
    for (name, flags) in [
        ("five", &["-O2", "-gdwarf-5"][..]),
        ("four", &["-O2", "-gdwarf-4", "-gz=zlib"]),
        ("split", &["-O2", "-gdwarf-4", "-gsplit-dwarf"]),
    ] {
        programs.extend(compile(directory.path(), "lines.c", name, flags));
    }
    for program in programs {
        check(&program, &mut random);
    }
}
