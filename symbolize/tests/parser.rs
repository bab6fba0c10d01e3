//! What a file tells is the same, whether it is read here or by a parser, and whichever parser
//! that is.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::support::compile;
use symbolize::files::{Order, Proxy, Reply, Request};
use symbolize::parser::Parser;
use symbolize::parser::names::{FileNames, PlaceName};
use symbolize::{FileOffset, FileSource, Files, Origin, Reason, RemoteFiles, Symbolizer};
use test_support::run_tool;

/// A parser in this process, and another one in its place whenever that is wanted.
#[derive(Debug, Default)]
struct Here {
    parser: Mutex<Parser>,
}

impl Here {
    fn another(&self) {
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
    // More than are asked for at once.
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

/// The debug file may be gone by then, as a container's is.
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
    fs::remove_file(&debug).unwrap();
    here.another();
    assert_eq!(names(&parsed, &program, None), right);
    // Whoever looks for it anew does not find it.
    let later = Symbolizer::new().with_files(Files::by(here));
    assert!(!has(&names(&later, &program, None), "local_one"));
}
