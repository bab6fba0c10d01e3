//! The answers of other tools.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use addr2line::LookupResult;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::{FileSource, RemoteFiles};

use crate::Frame;

/// Returns llvm-symbolizer's answers; `None` if it is not installed.
pub fn llvm(path: &Path, addresses: &[u64]) -> Option<Vec<Vec<Frame>>> {
    let mut child = Command::new("llvm-symbolizer")
        .args(["--no-demangle", "--functions=linkage", "--inlines"])
        .arg("--obj")
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut words = String::new();
    addresses
        .iter()
        .for_each(|address| _ = writeln!(words, "{address:#x}"));
    let mut stdin = child.stdin.take()?;
    let writer = std::thread::spawn(move || stdin.write_all(words.as_bytes()));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answers = text.split("\n\n").take(addresses.len());
    Some(answers.map(llvm_answer).collect())
}

fn llvm_answer(text: &str) -> Vec<Frame> {
    let lines: Vec<&str> = text.trim_start_matches('\n').lines().collect();
    let frames = lines.chunks(2).filter_map(|pair| {
        let [function, place] = pair else { return None };
        let mut parts = place.rsplitn(3, ':');
        let mut number = || parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let (column, line) = (number(), number());
        Some(Frame {
            function: known(function),
            file: without_repetition(&known(parts.next().unwrap_or_default())),
            line,
            column,
        })
    });
    frames.collect()
}

/// Removes a repetition: from a directory that is relative to itself llvm-symbolizer makes
/// `./libio/./libio/file.c`.
fn without_repetition(file: &str) -> String {
    let twice = |(at, _): &(usize, &str)| {
        let (first, rest) = file.split_at(*at);
        rest[1..]
            .strip_prefix(first)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let found = file.match_indices('/').find(twice);
    match found.filter(|_| file.starts_with('.')) {
        Some((at, _)) => file[at + 1..].to_owned(),
        None => file.to_owned(),
    }
}

fn known(word: &str) -> String {
    match word {
        "??" => String::new(),
        word => word.to_owned(),
    }
}

/// Returns the answers of the crate addr2line for the sections that we found; `None` if
/// they are of a kind that it leaves to its caller (split DWARF).
pub fn addr2line(path: &Path, addresses: &[u64]) -> Option<Vec<Vec<Frame>>> {
    let object = Object::read(&std::fs::File::open(path).ok()?).ok()?;
    let path = path.canonicalize().ok()?;
    let files = DebugFiles::of(&FileSource::new(&path), RemoteFiles::Open);
    let object = files.separate(&object).unwrap_or(object);
    let mut dwarf = Dwarf::load(|id| load(&object, id)).ok()?;
    if let Some(object) = files.supplementary(&object) {
        dwarf.load_sup(|id| load(&object, id)).ok()?;
    }
    let context = addr2line::Context::from_dwarf(dwarf).ok()?;
    let answer = |&address: &u64| {
        let LookupResult::Output(frames) = context.find_frames(address) else {
            return None;
        };
        let mut frames = frames.ok()?;
        let mut answer = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let place = frame.location;
            let name = frame
                .function
                .map(|function| function.name.slice().to_vec());
            answer.push(Frame {
                function: String::from_utf8_lossy(&name.unwrap_or_default()).into_owned(),
                file: place
                    .as_ref()
                    .and_then(|p| p.file)
                    .unwrap_or_default()
                    .into(),
                line: place.as_ref().and_then(|p| p.line).unwrap_or(0),
                column: place.as_ref().and_then(|p| p.column).unwrap_or(0),
            });
        }
        Some(answer)
    };
    addresses.iter().map(answer).collect()
}

type Section = EndianSlice<'static, LittleEndian>;

fn load(object: &Object, id: SectionId) -> Result<Section, ()> {
    let bytes = object.debug_section(id.name(), u64::MAX).map_err(|_| ())?;
    Ok(EndianSlice::new(bytes.leak(), LittleEndian))
}
