//! The tools by name, and what each does: make a file ready, open it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::table::Table;
use symbolize::{FileSource, LinkAddr, RemoteFiles, Resolver};

use crate::answer::{Answer, Module};
use crate::peers;

/// A file, or what was made of it before.
pub fn open(tool: &str, file: &Path, table: Option<&Path>) -> Box<dyn Module> {
    match (tool, table) {
        ("ours", Some(table)) => {
            let table = std::fs::File::open(table).unwrap();
            Box::new(Ours(Table::from_file(table).unwrap()))
        }
        ("demand", _) => Box::new(OnDemand(resolver(file))),
        ("addr2line", _) => Box::new(addr2line::Loader::new(file).unwrap()),
        ("blazesym", _) => Box::new(peers::Blazesym::new(file)),
        ("symcache", Some(table)) => Box::new(peers::SymCache::open(table)),
        _ => panic!("no {tool} without a table"),
    }
}

pub fn table_path(tool: &str, directory: &Path, file: &Path) -> Option<PathBuf> {
    let name = file.to_str().unwrap().replace('/', "_");
    ["ours", "symcache"]
        .contains(&tool)
        .then(|| directory.join(format!("{name}.{tool}")))
}

pub fn build(tool: &str, file: &Path, out: &Path) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut out = std::fs::File::create(out).unwrap();
    match tool {
        "ours" => resolver(file).write_table(threads, &mut out).unwrap(),
        "ours1" => resolver(file).write_table(1, &mut out).unwrap(),
        "symcache" => out.write_all(&peers::symcache(file)).unwrap(),
        _ => panic!("no {tool}"),
    }
}

fn resolver(file: &Path) -> Resolver {
    let files = || DebugFiles::of(&FileSource::new(file), RemoteFiles::Open);
    let object = Object::read(&std::fs::File::open(file).unwrap()).unwrap();
    Resolver::of_file(object, files, 8 << 30).unwrap()
}

/// From the table alone.
struct Ours(Table);

impl Module for Ours {
    fn answer(&self, addr: u64) -> Answer {
        let mut answer = Answer::default();
        for frame in self.0.find(LinkAddr(addr)) {
            let path = frame.directory.len() + frame.file.len();
            answer.add(frame.function.map_or(0, <[u8]>::len), path, frame.line);
        }
        answer
    }
}

/// Ours from the file, unit by unit.
struct OnDemand(Resolver);

impl Module for OnDemand {
    fn answer(&self, addr: u64) -> Answer {
        let mut answer = Answer::default();
        for frame in self.0.resolve(LinkAddr(addr)).frames {
            answer.add(frame.function.len(), frame.path.len(), frame.line);
        }
        answer
    }
}

impl Module for addr2line::Loader {
    fn answer(&self, addr: u64) -> Answer {
        let mut answer = Answer::default();
        let mut frames = self.find_frames(addr).unwrap();
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref();
            let name = function.and_then(|function| function.raw_name().ok());
            let place = frame.location.as_ref();
            answer.add(
                name.map_or(0, |name| name.len()),
                place.and_then(|place| place.file).map_or(0, str::len),
                place.and_then(|place| place.line).unwrap_or(0),
            );
        }
        answer
    }
}
