//! The code of functions: the same whether it is found here or by a parser, and harmless whatever
//! the file says.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::parser::Here;
use crate::support::compile;
use symbolize::code::assembly::{BYTES_MAX, Mode};
use symbolize::code::{
    CodeFound, CodeQuestion, Dialect, FunctionCode, NoLines, RunTimeFound, RunTimeQuestion,
};
use symbolize::parser::{CodeAnswer, FileCode, RunTimeCode};
use symbolize::{
    ElfSymbols, FileOffset, FileSource, Files, JitNames, Reason, RemoteFiles, Symbolizer,
    TableCache,
};
use test_support::{Process, skip};

/// Number of functions of each file that are compared.
const FUNCTIONS: usize = 12;

/// One that finds code here, and one that has it found by a parser.
fn both() -> (Symbolizer, Symbolizer, Arc<Here>) {
    let here = Arc::new(Here::default());
    let parsed = Symbolizer::new().with_files(Files::by(here.clone()));
    let plain = Symbolizer::new().with_files(RemoteFiles::Skip);
    (plain, parsed, here)
}

fn code_of(symbolizer: &Symbolizer, path: &Path) -> Result<FileCode, Reason> {
    let file = OwnedFd::from(File::open(path).unwrap());
    let metadata = fs::metadata(path).unwrap();
    let device = metadata.dev();
    symbolizer.file_code(FileSource {
        device: (rustix::fs::major(device), rustix::fs::minor(device)),
        inode: metadata.ino(),
        file: Some(&file),
        ..FileSource::new(path)
    })
}

fn question(function: &str, address: FileOffset) -> CodeQuestion<'_> {
    CodeQuestion {
        function,
        module: "file",
        address,
        is_inlined: false,
        bytes_max: BYTES_MAX,
    }
}

fn find(symbolizer: &Symbolizer, path: &Path, address: FileOffset) -> Result<CodeAnswer, Reason> {
    code_of(symbolizer, path)?.find(&question("", address))
}

fn function(answer: &CodeAnswer) -> &FunctionCode {
    match &answer.found {
        CodeFound::Function(code) => code,
        other => panic!("{other:?}"),
    }
}

/// Returns the places of some functions all over a file, each a byte behind its start.
fn places(path: &Path) -> Vec<FileOffset> {
    let symbols = ElfSymbols::read(&File::open(path).unwrap()).unwrap();
    let starts: Vec<_> = symbols.functions().map(|symbol| symbol.start).collect();
    let step = (starts.len() / FUNCTIONS).max(1);
    let starts = starts.into_iter().step_by(step);
    let places = starts.filter_map(|start| symbols.segments().to_file(start));
    places.map(|place| FileOffset(place.0 + 1)).collect()
}

fn place_of(path: &Path, name: &str) -> FileOffset {
    let symbols = ElfSymbols::read(&File::open(path).unwrap()).unwrap();
    let mut functions = symbols.functions();
    let found = functions.find(|symbol| symbol.name == name.as_bytes());
    symbols.segments().to_file(found.unwrap().start).unwrap()
}

#[test]
fn a_parser_finds_the_code_that_is_found_without() {
    let (plain, parsed, here) = both();
    let folder = tempfile::tempdir().unwrap();
    let mut files: Vec<PathBuf> = [
        "/bin/ls",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/aarch64-linux-gnu/libc.so.6",
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    ]
    .map(PathBuf::from)
    .into();
    files.retain(|path| path.exists());
    if files.is_empty() {
        skip("no file of this machine is known here");
    }
    // It has inlined functions.
    files.push(std::env::current_exe().unwrap());
    files.extend(compile(folder.path(), "names.c", "program", &["-g"]));
    for path in files {
        let (mut whole, mut with_lines) = (0, 0);
        for place in places(&path) {
            let right = find(&plain, &path, place).unwrap();
            let told = find(&parsed, &path, place).unwrap();
            assert_eq!(told, right, "{} {place:x?}", path.display());
            here.another();
            assert_eq!(find(&parsed, &path, place), Ok(told));
            if let CodeFound::Function(code) = &right.found {
                whole += 1;
                assert!(code.range.contains(&place.0));
                let ends = code
                    .instructions
                    .last()
                    .map(|last| last.contains(code.range.end - 1));
                assert_eq!(ends, Some(true), "the last byte is written out");
                with_lines += usize::from(code.instructions.iter().any(|i| i.place.is_some()));
            }
        }
        println!(
            "{}: {whole} functions, {with_lines} with lines",
            path.display()
        );
        assert!(whole > 0, "{}", path.display());
    }
}

/// Returns the name of the innermost function. Names of functions may contain ` (` in their type
/// parameters.
fn innermost(inlined: &str) -> Option<&str> {
    let count = |text: &str, bracket| text.matches(bracket).count();
    let is_whole = |name: &&str| {
        let arrows = count(name, "->");
        count(name, "<") + arrows == count(name, ">")
    };
    let ends = inlined.match_indices(" (").map(|(end, _)| end);
    ends.map(|end| &inlined[..end]).find(is_whole)
}

#[test]
fn of_an_inlined_function_a_parser_returns_its_own_instructions() {
    let (plain, parsed, _) = both();
    let path = std::env::current_exe().unwrap();
    let mut compared = 0;
    for place in places(&path) {
        let found = find(&plain, &path, place).unwrap();
        let CodeFound::Function(code) = found.found else {
            continue;
        };
        let inlined = code.instructions.iter().find_map(|i| i.inlined.as_deref());
        // The innermost function is the first one: `add (math.h:12), in sum (math.h:30)`.
        let Some(name) = inlined.and_then(innermost) else {
            continue;
        };
        let asked = CodeQuestion {
            is_inlined: true,
            ..question(name, place)
        };
        let right = code_of(&plain, &path).unwrap().find(&asked).unwrap();
        let told = code_of(&parsed, &path).unwrap().find(&asked).unwrap();
        assert_eq!(told, right, "{name}");
        let part = function(&right).instructions.len();
        let all = code.instructions.len();
        // A function may consist of what it calls and nothing else.
        let is_of_it = |inlined: Option<&str>| inlined.is_some_and(|text| text.contains(name));
        let of_it = code.instructions.iter().map(|i| i.inlined.as_deref());
        let of_it = of_it.filter(|inlined| is_of_it(*inlined)).count();
        assert!(
            (1..all).contains(&part) || part == all && of_it == all,
            "{name}: {part} of {all}, {of_it} by their lines: {:#?}",
            code.instructions
        );
        compared += 1;
    }
    if compared == 0 {
        skip("this program has no debug information");
    }
}

#[test]
fn a_parser_takes_lines_from_the_table_of_an_earlier_run() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-g", "-Wl,--build-id=0x0102030405060708"];
    let Some(program) = compile(folder.path(), "names.c", "program", &flags) else {
        return;
    };
    let place = place_of(&program, "main");
    let cached = || {
        let cache = TableCache::open(folder.path(), 1 << 20).unwrap();
        let (_, parsed, _) = both();
        parsed.with_tables(cache)
    };
    let right = find(&cached(), &program, place).unwrap();
    assert!(
        function(&right)
            .instructions
            .iter()
            .any(|i| i.place.is_some())
    );
    let symbolizer = cached();
    let file = OwnedFd::from(File::open(&program).unwrap());
    let source = FileSource {
        file: Some(&file),
        ..FileSource::new(&program)
    };
    let lines = symbolizer.file_lines(source).unwrap().expect("it has some");
    lines.finish(symbolizer.tables()).unwrap();
    assert_eq!(find(&cached(), &program, place).as_ref(), Ok(&right));

    // A table that is damaged is noticed when it is read, and not used from then on.
    let tables = folder.path().join("proftop/symbols/v5");
    let mut kept = fs::read_dir(tables).unwrap();
    let kept = kept.next().expect("a table").unwrap().path();
    let good = fs::read(&kept).unwrap();
    let mut has_noticed = false;
    for at in (0..good.len()).step_by(good.len() / 16) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(&kept, &bytes).unwrap();
        let symbolizer = cached();
        let first = find(&symbolizer, &program, place).unwrap();
        has_noticed |= first.is_table_damaged;
        assert_eq!(
            find(&symbolizer, &program, place).as_ref(),
            Ok(&right),
            "{at}"
        );
    }
    assert!(has_noticed, "a table is read block by block");
}

/// A number in a file of 64 bits.
fn word(bytes: &[u8], at: usize, len: usize) -> usize {
    let word = bytes[at..at + len].iter().rev();
    word.fold(0, |word, byte| word << 8 | usize::from(*byte))
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// Returns where the program headers of loaded segments are in a file.
fn segments(bytes: &[u8]) -> Vec<usize> {
    let (start, count) = (word(bytes, 32, 8), word(bytes, 56, 2));
    let all = (0..count).map(|number| start + 56 * number);
    all.filter(|at| word(bytes, *at, 4) == 1).collect()
}

/// Returns where the entries of the symbol table are that are functions with a size.
fn functions(bytes: &[u8]) -> Vec<usize> {
    let (start, count) = (word(bytes, 40, 8), word(bytes, 60, 2));
    let mut sections = (0..count).map(|number| start + 64 * number);
    let table = sections.find(|at| word(bytes, at + 4, 4) == 2);
    let table = table.expect("a symbol table");
    let (start, len) = (word(bytes, table + 24, 8), word(bytes, table + 32, 8));
    let all = (start..start + len).step_by(24);
    let is_function = |at: &usize| bytes[at + 4] & 0xf == 2 && word(bytes, at + 16, 8) > 0;
    all.filter(is_function).collect()
}

#[test]
fn hostile_files_are_answered_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "names.c", "program", &["-g"]) else {
        return;
    };
    let good = fs::read(&program).unwrap();
    if good[4] != 2 {
        return skip("a compiler for 32 bits");
    }
    const HUGE: u64 = 1 << 60;
    let place = place_of(&program, "main");
    let ask = |bytes: &[u8], bytes_max: u64| {
        let (plain, parsed, _) = both();
        let path = folder.path().join("hostile");
        // Another inode: a file that was written a moment ago has no revision of its own.
        _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        let asked = CodeQuestion {
            bytes_max,
            ..question("main", place)
        };
        let find = |symbolizer: &Symbolizer| code_of(symbolizer, &path)?.find(&asked);
        let told = find(&parsed);
        assert_eq!(told, find(&plain));
        told.map(|answer| answer.found)
    };
    let whole = |found: Result<CodeFound, Reason>| match found {
        Ok(CodeFound::Function(code)) => code,
        other => panic!("{other:?}"),
    };
    let right = whole(ask(&good, BYTES_MAX));

    // Each function has 2^60 bytes: its code is cut at the end of the segment.
    let mut bytes = good.clone();
    for at in functions(&good) {
        put(&mut bytes, at + 16, HUGE);
    }
    let long = whole(ask(&bytes, 64));
    assert_eq!(long.range.end - long.range.start, 64);
    assert!(long.instructions.len() <= 64 && long.cut > 0);
    // So has the segment; of a function 4 GiB are believed. More than the file has cannot be read.
    for at in segments(&good) {
        put(&mut bytes, at + 32, HUGE);
    }
    let long = whole(ask(&bytes, 64));
    assert!(long.cut > u64::from(u32::MAX) - 100, "{:x}", long.cut);
    assert_eq!(ask(&bytes, u64::MAX), Ok(CodeFound::Unknown));

    // All functions overlap each other, and some end behind the highest address.
    let mut bytes = good.clone();
    for (number, at) in functions(&good).into_iter().enumerate() {
        let start = word(&good, at + 8, 8) as u64;
        put(&mut bytes, at + 8, start.saturating_sub(16 * number as u64));
        put(&mut bytes, at + 16, u64::MAX - number as u64);
    }
    _ = ask(&bytes, BYTES_MAX);

    // No segment is code.
    let mut bytes = good.clone();
    for at in segments(&good) {
        bytes[at + 4] &= !1;
    }
    assert_eq!(ask(&bytes, BYTES_MAX), Ok(CodeFound::Unknown));

    // Without sections there are no symbols: unwind information tells where functions are.
    let mut bytes = good.clone();
    crate::support::forget_sections(&mut bytes);
    match ask(&bytes, BYTES_MAX) {
        Ok(CodeFound::Function(code)) => assert_eq!(code.range, right.range),
        found => assert_eq!(found, Ok(CodeFound::Unknown)),
    }

    // RISC-V.
    let mut bytes = good.clone();
    bytes[18] = 243;
    assert_eq!(ask(&bytes, BYTES_MAX), Ok(CodeFound::Machine(243)));
    assert_eq!(ask(b"no ELF file", BYTES_MAX), Err(Reason::Damaged));
    assert_eq!(whole(ask(&good, BYTES_MAX)), right);
}

#[test]
fn a_program_without_debug_information_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "names.c", "program", &["-g0"]) else {
        return;
    };
    let (plain, parsed, _) = both();
    let place = place_of(&program, "main");
    for symbolizer in [plain, parsed] {
        let answer = find(&symbolizer, &program, place).unwrap();
        assert_eq!(answer.no_lines, Some(NoLines::NoDebugInfo));
        assert!(
            function(&answer)
                .instructions
                .iter()
                .all(|i| i.place.is_none())
        );
    }
}

#[test]
fn code_that_was_made_at_run_time_is_found_by_a_parser_as_well() {
    let target = Process::start(Command::new("sleep").arg("60"));
    let map = format!("/tmp/perf-{}.map", target.id());
    let way = Files::by(Arc::new(Here::default()));
    // dec %rdi; jne back; call the other function; ret.
    let code = [0x48, 0xff, 0xcf, 0x75, 0xfb, 0xe8, 0xf6, 0x0f, 0, 0, 0xc3];
    let asked = |function| RunTimeQuestion {
        function,
        address: 0x1003,
        mode: Mode::Bits64,
        bytes_max: BYTES_MAX,
        memory: None,
    };
    let open = |way: Files| {
        let process = Arc::new(JitNames::hold(target.id()).unwrap());
        RunTimeCode::new(process, way)
    };
    for way in [Files::default(), way] {
        assert_eq!(open(way.clone()).find(&asked("count")), Err(Reason::Jit));
        fs::write(&map, "1000 b count\n2000 10 other\n").unwrap();
        let mut process = open(way);
        let start = 0x1000;
        let len = code.len() as u64;
        let wanted = Ok(RunTimeFound::InMemory { start, len });
        assert_eq!(process.find(&asked("count")), wanted);
        assert_eq!(process.find(&asked("gone")), Ok(RunTimeFound::Replaced));
        let beside = RunTimeQuestion {
            address: 0x3000,
            ..asked("count")
        };
        assert_eq!(process.find(&beside), Err(Reason::JitNotCovered));
        let memory = Some((start, &code[..]));
        let found = process.find(&RunTimeQuestion {
            memory,
            ..asked("count")
        });
        let Ok(RunTimeFound::Function(found)) = found else {
            panic!("{found:?}");
        };
        let text = found.instructions.iter().map(|i| i.text(Dialect::Att));
        let text: Vec<_> = text.collect();
        assert_eq!(text, ["dec    %rdi", "jne    +0x0", "call   other", "ret"]);
        assert_eq!((found.range, found.cut), (start..start + len, 0));
        // Memory from elsewhere is not taken for the function's.
        let memory = Some((start + 1, &code[..]));
        let found = process.find(&RunTimeQuestion {
            memory,
            ..asked("count")
        });
        assert_eq!(found, wanted);
        fs::remove_file(&map).unwrap();
    }
}
