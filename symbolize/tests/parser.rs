//! Answers about a file are the same, whether it is read here or by a parser, and whichever parser
//! reads it.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::support::compile;
use symbolize::files::{Order, Proxy, Reply, Request};
use symbolize::parser::names::{FileNames, PlaceName, SourceLine};
use symbolize::parser::{CodeNames, FileLines, Parser};
use symbolize::{
    FileOffset, FileSource, Files, JitNames, Origin, Reason, RemoteFiles, Symbolizer, TableCache,
};
use test_support::{Process, run_tool};

/// A parser in this process, which can be replaced by another one.
#[derive(Debug, Default)]
pub struct Here {
    parser: Mutex<Parser>,
}

impl Here {
    /// Replaces the parser, which knows nothing yet.
    pub fn another(&self) {
        *self.parser.lock().unwrap() = Parser::default();
    }
}

impl Proxy for Here {
    fn perform(&self, request: &Request<'_>, remote: RemoteFiles) -> Result<Reply, Reason> {
        Files::from(remote).perform(request)
    }

    fn has_parsers(&self) -> bool {
        true
    }

    fn parse(&self, order: &Order<'_>) -> Option<Result<Reply, Reason>> {
        let files = order.files.iter().map(|file| file.try_clone_to_owned());
        let files: Vec<OwnedFd> = files.collect::<Result<_, _>>().unwrap();
        let parser = self.parser.lock().unwrap();
        let way = Files::from(RemoteFiles::Skip);
        Some(parser.perform(order.work, order.file, files, order.message, &way))
    }
}

fn names(symbolizer: &Symbolizer, path: &Path, root: Option<&OwnedFd>) -> FileNames {
    let metadata = fs::metadata(path).unwrap();
    let device = metadata.dev();
    let file = OwnedFd::from(File::open(path).unwrap());
    let source = FileSource {
        device: (rustix::fs::major(device), rustix::fs::minor(device)),
        inode: metadata.ino(),
        file: Some(&file),
        root,
        ..FileSource::new(path)
    };
    // More than fit into one question.
    let offsets: Vec<_> = (0..metadata.len()).step_by(7).map(FileOffset).collect();
    let names = symbolizer.names(&source, &offsets).unwrap();
    assert_eq!(names.places.len(), offsets.len());
    names
}

fn has(names: &FileNames, wanted: &str) -> bool {
    let is_it = |name: &PlaceName| matches!(name, PlaceName::Named { name, .. } if name == wanted);
    names.places.iter().any(|place| is_it(&place.name))
}

#[test]
fn a_parser_says_what_is_said_without() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "names.c", "program", &["-g", "-rdynamic"]) else {
        return;
    };
    let plain = Symbolizer::new().with_files(RemoteFiles::Skip);
    let parsed = Symbolizer::new().with_files(Files::by(Arc::new(Here::default())));
    let right = names(&plain, &program, None);
    assert!(has(&right, "local_one") && right.origin == Origin::SymbolTable);
    for _ in 0..2 {
        assert_eq!(names(&parsed, &program, None), right);
    }
    let text = folder.path().join("text");
    fs::write(&text, "no ELF file").unwrap();
    let file = OwnedFd::from(File::open(&text).unwrap());
    let source = FileSource {
        file: Some(&file),
        ..FileSource::new(&text)
    };
    assert_eq!(
        parsed.names(&source, &[FileOffset(0)]),
        Err(Reason::Damaged)
    );
}

/// Returns the lines at places all over a file, and the reader that found them.
fn lines(symbolizer: &Symbolizer, path: &Path) -> (FileLines, Vec<Vec<SourceLine>>) {
    let file = OwnedFd::from(File::open(path).unwrap());
    let source = FileSource {
        file: Some(&file),
        ..FileSource::new(path)
    };
    let lines = symbolizer.file_lines(source).unwrap().expect("it has some");
    let found = find_all(&lines, path);
    (lines, found)
}

fn find_all(lines: &FileLines, path: &Path) -> Vec<Vec<SourceLine>> {
    let len = fs::metadata(path).unwrap().len();
    let offsets: Vec<_> = (0..len).step_by(7).map(FileOffset).collect();
    lines.find_all(&offsets).unwrap()
}

#[test]
fn a_parser_finds_the_lines_that_are_found_without() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-g", "-O1", "-Wl,--build-id=0x0102030405060708"];
    let Some(program) = compile(folder.path(), "names.c", "program", &flags) else {
        return;
    };
    let plain = Symbolizer::new().with_files(RemoteFiles::Skip);
    let (_, right) = lines(&plain, &program);
    assert!(
        right
            .iter()
            .flatten()
            .any(|line| line.function == "local_one" && line.line > 0)
    );
    let cache = || TableCache::open(folder.path(), 1 << 20).unwrap();
    let here = Arc::new(Here::default());
    let parsed = || {
        let parsed = Symbolizer::new().with_files(Files::by(here.clone()));
        parsed.with_tables(cache())
    };
    let symbolizer = parsed();
    let (units, found) = lines(&symbolizer, &program);
    assert!(matches!(units, FileLines::Elsewhere(_)) && !units.is_finished());
    assert!(units.may_be_kept());
    assert_eq!(found, right);
    assert!(units.unread_bytes() > 0);
    here.another();
    assert_eq!(find_all(&units, &program), right);
    // The table of the whole file is made by the parser, and stored here.
    units.finish(symbolizer.tables()).unwrap();
    assert!(units.is_finished() && units.unread_bytes() == 0);
    assert_eq!(find_all(&units, &program), right);
    let (later, found) = lines(&parsed(), &program);
    assert!(later.is_finished());
    assert_eq!(found, right);
}

/// A table has as many blocks as were asked for; all of those of a large program are too much.
#[test]
fn what_was_read_of_a_table_does_not_stay_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-g", "-O1", "-Wl,--build-id=0x0102030405060709"];
    let Some(program) = compile(folder.path(), "names.c", "program", &flags) else {
        return;
    };
    let symbolizer = Symbolizer::new()
        .with_files(Files::by(Arc::new(Here::default())))
        .with_tables(TableCache::open(folder.path(), 1 << 20).unwrap())
        .with_lines_bytes_max(1 << 10);
    let (units, right) = lines(&symbolizer, &program);
    units.finish(symbolizer.tables()).unwrap();
    assert_eq!(find_all(&units, &program), right);
    let with_all = symbolizer.heap_bytes();
    for _ in 0..3 {
        let file = OwnedFd::from(File::open(&program).unwrap());
        let source = FileSource {
            file: Some(&file),
            ..FileSource::new(&program)
        };
        let again = symbolizer.file_lines(source).unwrap().expect("it has some");
        assert!(again.is_finished());
        let with_few = symbolizer.heap_bytes();
        assert!(with_few + (4 << 10) < with_all, "{with_few} {with_all}");
        assert_eq!(find_all(&again, &program), right);
        assert_eq!(symbolizer.heap_bytes(), with_all);
    }
}

#[test]
fn a_table_that_cannot_be_kept_is_of_use_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-g", "-Wl,--build-id=none"];
    let Some(program) = compile(folder.path(), "names.c", "program", &flags) else {
        return;
    };
    let parsed = Symbolizer::new().with_files(Files::by(Arc::new(Here::default())));
    let (units, right) = lines(&parsed, &program);
    // It has no build-id, and was made a moment ago.
    assert!(!units.may_be_kept());
    units.finish(None).unwrap();
    assert!(units.is_finished());
    assert_eq!(find_all(&units, &program), right);
}

/// The debug file may be gone when the other parser starts, for example that of a container.
#[test]
fn a_parser_that_takes_the_place_of_another_has_the_same_debug_file() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-g", "-rdynamic", "-Wl,--build-id=none"];
    let Some(program) = compile(folder.path(), "names.c", "program", &flags) else {
        return;
    };
    let debug = folder.path().join("program.debug");
    let made = run_tool(
        Command::new("objcopy")
            .arg("--only-keep-debug")
            .args([&program, &debug]),
    )
    .and_then(|_| run_tool(Command::new("strip").arg("-s").arg(&program)))
    .and_then(|_| {
        let link = format!("--add-gnu-debuglink={}", debug.display());
        run_tool(Command::new("objcopy").arg(link).arg(&program))
    });
    if made.is_none() {
        return;
    }
    let here = Arc::new(Here::default());
    let parsed = Symbolizer::new().with_files(Files::by(here.clone()));
    let right = names(&parsed, &program, None);
    assert!(has(&right, "local_one") && right.origin == Origin::DebugFile);
    let (units, right_lines) = lines(&parsed, &program);
    assert!(right_lines.iter().any(|chain| !chain.is_empty()));
    fs::remove_file(&debug).unwrap();
    here.another();
    assert_eq!(names(&parsed, &program, None), right);
    assert_eq!(find_all(&units, &program), right_lines);
    // A new search does not find the debug file.
    let later = Symbolizer::new().with_files(Files::by(here));
    assert!(!has(&names(&later, &program, None), "local_one"));
}

#[test]
fn a_parser_reads_maps_of_generated_code_as_they_grow() {
    let mut target = Process::start(Command::new("sleep").arg("60"));
    let map = format!("/tmp/perf-{}.map", target.id());
    let here = Arc::new(Here::default());
    let process = Arc::new(JitNames::hold(target.id()).unwrap());
    let mut names = CodeNames::new(process, Files::by(here.clone()));
    assert!(matches!(names, CodeNames::Elsewhere(_)));
    // More than fit into one question.
    let addresses: Vec<u64> = (0..10_000).map(|number| 0x1000 + 16 * number).collect();
    let told = names.names(true, false, &addresses);
    assert!(!told.is_new && told.names.iter().all(|name| *name == Err(Reason::Jit)));

    let mut text = String::new();
    for address in &addresses {
        text += &format!("{address:x} 10 f{address:x}\n");
    }
    fs::write(&map, text).unwrap();
    let is_right =
        |(address, name): (&u64, &Result<String, Reason>)| *name == Ok(format!("f{address:x}"));
    let told = names.names(true, true, &addresses);
    let right = addresses
        .iter()
        .zip(&told.names)
        .filter(|pair| is_right(*pair));
    assert_eq!((told.is_new, right.count()), (true, addresses.len()));
    assert!(names.heap_bytes() > 0 && !names.have_ended());
    let told = names.names(true, true, &addresses);
    assert!(!told.is_new && told.names.is_empty());

    // Another parser reads the whole map.
    here.another();
    target.kill().unwrap();
    target.wait().unwrap();
    fs::remove_file(&map).unwrap();
    let told = names.names(true, false, &[0x1000, 0x10]);
    assert_eq!(told.names, [Ok("f1000".into()), Err(Reason::JitNotCovered)]);
    assert!(names.have_ended());
}
