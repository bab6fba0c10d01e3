//! A program that the go command of this machine builds, stripped and not.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::resolver::ResolvedFrame;
use symbolize::{ElfSymbols, FileSource, GoSymbols, Lines, LinkAddr, RemoteFiles, Resolver};
use test_support::Random;

/// Builds the program; `None`, with a message, if that is not possible.
fn build(directory: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/go");
    let program = directory.join(name);
    let mut go = Command::new("go");
    go.current_dir(source)
        .envs([
            ("CGO_ENABLED", "0"),
            ("GOTOOLCHAIN", "local"),
            ("GOFLAGS", "-mod=mod"),
        ])
        // The compiled packages of the library are kept for the next run.
        .env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"))
        .args(["build", "-o"])
        .arg(&program)
        .args(flags);
    test_support::run_tool(&mut go)?;
    Some(program)
}

fn object(path: &Path) -> Arc<Object> {
    Arc::new(Object::read(&File::open(path).unwrap()).unwrap())
}

fn names(symbols: &GoSymbols, addr: u64) -> Vec<String> {
    let frames = symbols.find(LinkAddr(addr));
    let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    frames
        .iter()
        .map(|frame| name(&frame.short_name()))
        .collect()
}

#[test]
fn a_stripped_program_has_the_names_of_its_symbol_table() {
    let directory = tempfile::tempdir().unwrap();
    for mode in ["exe", "pie"] {
        let mode = format!("-buildmode={mode}");
        let Some(twin) = build(directory.path(), "twin", &[&mode]) else {
            return;
        };
        let flags = [&*mode, "-ldflags=-s -w"];
        let stripped = build(directory.path(), "stripped", &flags).unwrap();
        let go = GoSymbols::read(&object(&stripped)).unwrap();
        let symtab = ElfSymbols::read(&File::open(&twin).unwrap()).unwrap();

        let mut compared = 0;
        for start in go.starts() {
            let Ok(symbol) = symtab.find_link(start) else {
                continue;
            };
            let symbol = String::from_utf8_lossy(symbol.name).replace('·', ".");
            let symbol = symbol.strip_suffix(".abi0").unwrap_or(&symbol);
            let found = names(&go, start.0)
                .pop()
                .unwrap_or_default()
                .replace('·', ".");
            // Only the symbol table names type arguments.
            let generic = found.split_once("[...]");
            let is_same = generic.map_or(symbol == found, |(before, behind)| {
                symbol.starts_with(before) && symbol.ends_with(behind)
            });
            assert!(is_same, "{symbol} {found} at {start:?}");
            compared += 1;
        }
        assert!(compared > 1000, "{compared}");

        let functions = symtab.functions();
        let work = functions
            .into_iter()
            .find(|f| f.name == b"main.work")
            .unwrap();
        let code = work.start.0..work.start.0 + work.size;
        let chains: Vec<Vec<String>> = code.map(|addr| names(&go, addr)).collect();
        let inlined = ["main.square", "main.quad", "main.work"];
        assert!(chains.iter().any(|chain| *chain == inlined));
        assert!(
            chains
                .iter()
                .filter(|c| !c.is_empty())
                .all(|c| c.last().unwrap() == "main.work")
        );
    }
}

fn debug_files(path: &Path) -> DebugFiles {
    DebugFiles::of(&FileSource::new(path), RemoteFiles::Skip)
}

fn resolver(path: &Path) -> Resolver {
    let object = Object::read(&File::open(path).unwrap()).unwrap();
    Resolver::of_file(object, || debug_files(path), 1 << 30).unwrap()
}

/// Returns random addresses of the program's code.
fn addresses(go: &GoSymbols) -> Vec<LinkAddr> {
    let starts: Vec<u64> = go.starts().map(|start| start.0).collect();
    let (first, last) = (starts[0], starts[starts.len() - 1]);
    let mut random = Random::new(1);
    let address = |_| LinkAddr(first + random.below(last - first));
    (0..50_000).map(address).collect()
}

/// What a program that is not stripped answers is mostly from Go's table, and says what its DWARF
/// says.
#[test]
fn the_table_and_debug_information_say_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = build(directory.path(), "program", &[]) else {
        return;
    };
    let object = object(&program);
    let go = GoSymbols::read(&object).unwrap();
    let lines = Lines::open(&object, debug_files(&program), None, 1 << 30).unwrap();
    let table = lines.unwrap().whole(2).unwrap().unwrap();
    let resolver = resolver(&program);

    let (mut compared, mut inlined, mut other_lines) = (0, 0, 0);
    for addr in addresses(&go) {
        let frames = resolver.resolve(addr).frames;
        // Of code that the compiler made itself, DWARF lacks what was inlined, or the lines.
        if frames.iter().any(|frame| frame.path == b"<autogenerated>") {
            continue;
        }
        let by_info: Vec<_> = table.find(addr).collect();
        let functions: Vec<_> = by_info.iter().filter_map(|frame| frame.function).collect();
        let ours: Vec<_> = frames.iter().map(|frame| &*frame.function).collect();
        assert_eq!(ours, functions, "{addr:?}");
        for (frame, by_info) in frames.iter().zip(&by_info) {
            assert_eq!(frame.path, by_info.path(), "{addr:?}");
        }
        // The two differ in what aligns a loop.
        let same = |(frame, by_info): (&ResolvedFrame, &symbolize::table::SourceFrame<'_>)| {
            (frame.line, frame.column) == (by_info.line, by_info.column)
        };
        other_lines += usize::from(!frames.iter().zip(&by_info).all(same));
        compared += usize::from(!frames.is_empty());
        inlined += usize::from(frames.len() > 1);
    }
    assert!(compared > 40_000, "{compared}");
    assert!(inlined > 4_000, "{inlined}");
    assert!(other_lines < compared / 1000, "{other_lines}");
}

/// Debug information is not read for what Go's table has, and where it is needed and cannot be
/// read, that is known.
#[test]
fn debug_information_is_read_when_it_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = build(directory.path(), "program", &[]) else {
        return;
    };
    let before = object(&program);
    let section = before.section_by_name(b".debug_info").unwrap();
    let mut bytes = fs::read(&program).unwrap();
    let at = section.offset as usize..(section.offset + section.size) as usize;
    bytes[at].fill(0xff);
    let damaged = directory.path().join("damaged");
    fs::write(&damaged, bytes).unwrap();

    let resolver = resolver(&damaged);
    let functions = ElfSymbols::read(&File::open(&damaged).unwrap()).unwrap();
    let work = functions.functions().find(|f| f.name == b"main.work");
    let work = work.unwrap().start;
    let frames = resolver.resolve(work).frames;
    assert_eq!(frames[0].function, b"main.work");
    assert!(frames[0].path.ends_with(b"/main.go") && frames[0].line > 0);
    assert!(resolver.failure().is_none());

    let outside = resolver.resolve(LinkAddr(1));
    assert!(outside.frames.is_empty());
    let (what, why) = resolver.failure().expect("it was needed");
    assert_eq!(what, "debug information");
    assert!(why.to_string().contains(".debug_info"), "{why}");
    assert!(!resolver.has_lines());
    assert!(resolver.to_table(1).is_err());
}
