//! A program that the go command of this machine builds, stripped and not.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use symbolize::object::Object;
use symbolize::{ElfSymbols, GoSymbols, LinkAddr};

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
