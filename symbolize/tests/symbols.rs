//! Symbols of real programs: compiled by the tests, and those of the machine.

use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;

use crate::support::{CLASSES, Listed, compile, forget_sections, nm};
use symbolize::sites;
use symbolize::{ElfSymbols, FileId, FileOffset, LinkAddr, Reason, demangle};

fn read(path: &Path) -> ElfSymbols {
    ElfSymbols::read(&File::open(path).unwrap()).unwrap()
}

fn named<'l>(listed: &'l [Listed], name: &str) -> &'l Listed {
    let found = listed.iter().find(|function| function.name == name);
    found.unwrap_or_else(|| panic!("nm does not list {name}"))
}

#[track_caller]
fn name_at(symbols: &ElfSymbols, addr: u64) -> Result<String, Reason> {
    let found = symbols.find_link(LinkAddr(addr))?;
    Ok(String::from_utf8_lossy(found.name).into_owned())
}

/// Checks that every function that `nm` lists with a size is found at its start, under one of the
/// names that it has there, and that what is found at its last byte, and behind that, is a function
/// that is there by `nm`.
#[track_caller]
fn agrees_with_nm(path: &Path, flags: &[&str]) {
    let Some(listed) = nm(path, flags) else {
        return;
    };
    let symbols = read(path);
    let unversioned = |name: &str| name.split('@').next().unwrap().to_string();
    // Where the functions of each name are.
    let mut extents: HashMap<String, Vec<Range<u64>>> = HashMap::new();
    for function in &listed {
        let extent = function.addr..function.addr + function.size;
        let name = unversioned(&function.name);
        extents.entry(name).or_default().push(extent);
    }
    let (mut checked, mut ends) = (0, 0);
    for function in listed.iter().filter(|f| f.size != 0) {
        let Ok(found) = symbols.find_link(LinkAddr(function.addr)) else {
            // Data in a section that is not code: `nm` marks all weak objects with `W`.
            let text = symbols.segments().is_executable(LinkAddr(function.addr));
            assert!(!text || function.kind == 'u', "{path:?}: {function:?}");
            continue;
        };
        let found_name = String::from_utf8_lossy(found.name);
        let known = listed
            .iter()
            .filter(|f| f.addr == function.addr)
            .any(|f| unversioned(&f.name) == found_name);
        assert!(known, "{path:?}: {function:?} found as {found_name}");
        checked += 1;
        let end = function.addr + function.size;
        for addr in [end - 1, end] {
            let Ok(found) = symbols.find_link(LinkAddr(addr)) else {
                assert_eq!(addr, end, "{path:?}: nothing at the end of {function:?}");
                continue;
            };
            let found_name = String::from_utf8_lossy(found.name).into_owned();
            // A symbol without a size, as assembly has, extends to the next one.
            let is_there = |its: &Range<u64>| its.contains(&addr) || its.is_empty();
            let known = extents.get(&found_name);
            assert!(
                known.is_some_and(|extents| extents.iter().any(is_there)),
                "{path:?}: {found_name} at {addr:x}, by the end of {function:?}"
            );
            ends += 1;
        }
    }
    assert_ne!(checked, 0, "{path:?}");
    assert_ne!(ends, 0, "{path:?}");
    eprintln!("{path:?}: {checked} functions agree");
}

/// The code of a function is the same with a symbol table and without one.
#[test]
fn the_code_of_a_function() {
    CLASSES.into_iter().for_each(check_the_code_of_a_function);
}

fn check_the_code_of_a_function(class: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let compile = |name, flags: &[&str]| {
        let flags = [class, flags].concat();
        compile(directory.path(), "names.c", name, &flags)
    };
    let Some(path) = compile("whole", &[]) else {
        return;
    };
    let Some(listed) = nm(&path, &[]) else {
        return;
    };
    let main = named(&listed, "main");
    let expected = LinkAddr(main.addr)..LinkAddr(main.addr + main.size);
    let whole = read(&path);
    let inside = LinkAddr(main.addr + 1);
    assert_eq!(whole.extent(inside), Some(expected.clone()));
    assert_ne!(whole.extent(expected.end), Some(expected.clone()));
    let code = whole.read_code(expected.start, main.size).unwrap();
    assert_eq!(code.len() as u64, main.size);
    assert!(whole.read_code(expected.start, 1 << 40).is_err());
    assert!(whole.read_code(LinkAddr(u64::MAX), 1).is_err());

    // The extent is known from unwind information alone.
    let stripped = read(&compile("stripped", &["-s"]).unwrap());
    assert_eq!(stripped.extent(inside), Some(expected.clone()));
    assert_eq!(stripped.read_code(expected.start, main.size).unwrap(), code);
    assert_eq!(stripped.extent(LinkAddr(0)), None);
}

#[test]
fn a_whole_program() {
    CLASSES.into_iter().for_each(check_a_whole_program);
}

fn check_a_whole_program(class: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let flags = [class, &["-rdynamic"]].concat();
    let Some(path) = compile(directory.path(), "names.c", "whole", &flags) else {
        return;
    };
    agrees_with_nm(&path, &[]);
    let Some(listed) = nm(&path, &[]) else {
        return;
    };
    let symbols = read(&path);
    assert!(!symbols.is_stripped());

    let one = named(&listed, "exported_one");
    let found = symbols.find_link(LinkAddr(one.addr + 1)).unwrap();
    assert_eq!(found.name, b"exported_alias", "the longer of two");
    assert_eq!(
        (found.aliases, found.size, found.inexact),
        (1, one.size, false)
    );

    let local = named(&listed, "local_one");
    assert_eq!(name_at(&symbols, local.addr).unwrap(), "local_one");

    let sizeless = named(&listed, "sizeless").addr;
    let found = symbols.find_link(LinkAddr(sizeless + 5)).unwrap();
    assert_eq!((found.name, found.inexact), (&b"sizeless"[..], true));

    let outer = named(&listed, "outer").addr;
    let names = ["outer", "inner", "inner", "outer"];
    for (offset, expected) in [0, 4, 5, 6].into_iter().zip(names) {
        assert_eq!(name_at(&symbols, outer + offset).unwrap(), expected);
    }
    let resumed = symbols.find_link(LinkAddr(outer + 7)).unwrap();
    assert_eq!(resumed.start, LinkAddr(outer));

    let entry = named(&listed, "_start").addr;
    assert_eq!(name_at(&symbols, entry).unwrap(), "_start");
}

#[test]
fn a_stripped_program_names_what_it_exports() {
    CLASSES.into_iter().for_each(check_a_stripped_program);
}

fn check_a_stripped_program(class: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let flags = [class, &["-rdynamic", "-Wl,--build-id=sha1"]].concat();
    let Some(whole) = compile(directory.path(), "names.c", "whole", &flags) else {
        return;
    };
    let Some(listed) = nm(&whole, &[]) else {
        return;
    };
    let flags = [&flags[..], &["-s"]].concat();
    let stripped = compile(directory.path(), "names.c", "stripped", &flags).unwrap();
    let bare = without_section_headers(&stripped);
    for path in [&stripped, &bare] {
        let symbols = read(path);
        assert!(symbols.is_stripped());
        let one = named(&listed, "exported_one").addr;
        assert_eq!(name_at(&symbols, one + 1).unwrap(), "exported_alias");
        let local = named(&listed, "local_one").addr;
        assert_eq!(name_at(&symbols, local), Err(Reason::Stripped));
        let inside = symbols.segments().to_file(LinkAddr(local + 1)).unwrap();
        let start = symbols.segments().to_file(LinkAddr(local));
        assert_eq!(symbols.function_start(inside), start);
        assert_eq!(symbols.function_start(FileOffset(0)), None);
        // The size is unknown, so only the start has the name.
        let sizeless = named(&listed, "sizeless").addr;
        assert_eq!(name_at(&symbols, sizeless).unwrap(), "sizeless");
        assert_eq!(name_at(&symbols, sizeless + 1), Err(Reason::Stripped));
        assert!(matches!(symbols.id(), FileId::Gnu(_)));
    }
    assert_eq!(read(&stripped).id(), read(&bare).id());
}

/// Removes the section headers, as `strip --strip-section-headers` of newer binutils does.
fn without_section_headers(path: &Path) -> std::path::PathBuf {
    let mut bytes = fs::read(path).unwrap();
    forget_sections(&mut bytes);
    let bare = path.with_extension("bare");
    fs::write(&bare, bytes).unwrap();
    bare
}

#[test]
fn without_any_symbols() {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["-static-pie", "-s", "-Wl,--build-id=none"];
    let Some(path) = compile(directory.path(), "names.c", "bare", &flags) else {
        return;
    };
    let symbols = read(&path);
    let code = symbols.segments().iter().find(|s| s.executable).unwrap();
    assert_eq!(name_at(&symbols, code.vaddr + 64), Err(Reason::Stripped));
    assert!(matches!(symbols.id(), FileId::Content { .. }));
}

#[test]
fn static_programs() {
    CLASSES.into_iter().for_each(check_static_programs);
}

fn check_static_programs(class: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    for flags in [&["-static-pie"][..], &["-static"], &["-static", "-no-pie"]] {
        let flags = &[class, flags].concat();
        if let Some(path) = compile(directory.path(), "names.c", "static", flags) {
            agrees_with_nm(&path, &[]);
        }
    }
}

#[test]
fn names_that_were_forgotten_are_read_again() {
    let mut symbols = read(&std::env::current_exe().unwrap());
    let before = symbols.heap_bytes();
    let names = |symbols: &ElfSymbols| -> Vec<Vec<u8>> {
        symbols.functions().map(|s| s.name.to_vec()).collect()
    };
    let first = names(&symbols);
    assert!(symbols.heap_bytes() > before + 100_000);
    symbols.bound_names(0);
    assert_eq!(symbols.heap_bytes(), before);
    assert_eq!(names(&symbols), first);
}

#[test]
fn stubs_are_named_after_what_they_call() {
    CLASSES.into_iter().for_each(check_stubs);
}

fn check_stubs(class: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let cases: [&[&str]; 4] = [
        &[],
        &["-Wl,-z,now"],
        &["-fcf-protection=full", "-Wl,-z,ibtplt"],
        &["-Wl,-z,lazy", "-fcf-protection=full", "-Wl,-z,ibtplt"],
    ];
    for flags in cases {
        let flags = &[class, flags].concat();
        let Some(path) = compile(directory.path(), "names.c", "plt", flags) else {
            return;
        };
        let symbols = read(&path);
        let names: Vec<_> = symbols.functions().map(|s| s.name.to_vec()).collect();
        for expected in [&b"strdup@plt"[..], b"free@plt", b"printf@plt"] {
            assert!(
                names.iter().any(|name| name == expected),
                "{flags:?}: no {}",
                String::from_utf8_lossy(expected)
            );
        }
    }
}

/// A static program jumps to a function that a resolver chose; the stub is named after the
/// resolver.
#[test]
fn stubs_of_static_programs() {
    CLASSES.into_iter().for_each(check_stubs_of_static_programs);
}

fn check_stubs_of_static_programs(class: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let flags = [class, &["-static"]].concat();
    let Some(path) = compile(directory.path(), "names.c", "static", &flags) else {
        return;
    };
    let Some(listed) = nm(&path, &[]) else {
        return;
    };
    let chosen = if class.is_empty() {
        "memmove"
    } else {
        "strcpy"
    };
    if !listed.iter().any(|f| f.name == chosen && f.kind == 'i') {
        test_support::skip(format_args!(
            "this C library chooses no {chosen} at run time"
        ));
        return;
    }
    let symbols = read(&path);
    let stubs = symbols.functions().filter(|s| s.name.ends_with(b"@plt"));
    let names: std::collections::HashSet<_> = stubs.map(|stub| stub.name).collect();
    assert!(
        names.contains(format!("{chosen}@plt").as_bytes()),
        "{names:?}"
    );
    assert!(names.len() > 3, "each has its own: {names:?}");
}

#[test]
fn mangled_names() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "names.cpp", "mangled", &[]) else {
        return;
    };
    agrees_with_nm(&path, &[]);
    let symbols = read(&path);
    let names: Vec<_> = symbols
        .functions()
        .map(|s| (demangle(s.name).short(), demangle(s.name).full()))
        .collect();
    let has = |short: &str, full: &str| names.iter().any(|(s, f)| s == short && f == full);
    assert!(has(
        "shop::Box<long>::take",
        "shop::Box<long>::take(int, char const*) const"
    ));
}

#[test]
fn files_of_this_machine() {
    let own = std::env::current_exe().unwrap();
    agrees_with_nm(&own, &[]);
    let candidates = [
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/lib64/libc.so.6",
        "/usr/bin/python3",
        "/lib/x86_64-linux-gnu/libcrypto.so.3",
        "/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/bin/bash",
    ];
    for path in candidates.map(Path::new) {
        if path.exists() {
            agrees_with_nm(path, &["-D"]);
        } else {
            test_support::skip(format_args!("no {path:?}"));
        }
    }
}

#[test]
fn a_name_alone_is_not_one_in_a_class_of_another_file() {
    let scratch = test_support::Scratch::new();
    let symbols = |name: &str, source: &str| {
        let source = scratch.write(name, source);
        let library = source.with_extension("so");
        test_support::compile(&source, &library, ["-shared", "-fPIC"])?;
        Some(read(&library))
    };
    let plain = symbols("plain.c", "int fetch(int a) { return a; }");
    let within = symbols(
        "within.cpp",
        "struct Stream { int fetch(int); }; int Stream::fetch(int a) { return a; } \
         int fetched(int a) { return a; }",
    );
    let (Some(plain), Some(within)) = (plain, within) else {
        return;
    };
    let named = |name: &str| {
        let files = sites::best_of(
            [&plain, &within]
                .map(|file| sites::fitting(file, name))
                .to_vec(),
        );
        let names = files
            .into_iter()
            .map(|file| file.into_iter().map(|one| one.name).collect());
        names.collect::<Vec<Vec<String>>>()
    };
    assert_eq!(named("fetch"), [vec!["fetch"], vec![]]);
    assert_eq!(named("Stream::fetch"), [vec![], vec!["Stream::fetch(int)"]]);
    assert_eq!(named("fetched"), [vec![], vec!["fetched(int)"]]);
    // If no function has exactly that name, the last part of a name is enough.
    let alone = sites::best_of(vec![sites::fitting(&within, "fetch")]).concat();
    assert_eq!(alone[0].name, "Stream::fetch(int)");
}
