//! What the headers and notes of a file tell, and files whose headers are made to take time.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{major, minor};
use symbolize::files::{Proxy, Reply, Request};
use symbolize::object::{Object, Summary, write_answer};
use symbolize::source::Source;
use symbolize::{FileSource, Files, OpenError, Reason, RemoteFiles};

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const NOTE: u32 = 4;

const PROGBITS: u32 = 1;
const STRINGS: u32 = 3;
const SECTION_OF_NOTES: u32 = 7;

const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const SECTION_HEADER_BYTES: usize = 64;

/// A section of a file: offset of its name, kind, offset and size.
type Section = (u32, u32, u64, u64);

/// A 64-bit ELF file: its header, program headers, section headers, and whatever comes behind
/// these.
#[derive(Default)]
struct Elf {
    /// Kind, offset and size of each segment.
    segments: Vec<(u32, u64, u64)>,
    sections: Vec<Section>,
    /// The index of the section that has the names of sections.
    names: u16,
    behind: Vec<u8>,
}

impl Elf {
    /// Returns the offset of what comes behind the headers.
    fn behind(segments: usize, sections: usize) -> u64 {
        (HEADER_BYTES + segments * PROGRAM_HEADER_BYTES + sections * SECTION_HEADER_BYTES) as u64
    }

    fn bytes(&self) -> Vec<u8> {
        let sections_at = match self.sections[..] {
            [] => 0,
            _ => Elf::behind(self.segments.len(), 0),
        };
        // With 0xff00 sections or more, the first one has their number.
        let in_first = self.sections.len() >= 0xff00;
        let sections = if in_first { 0 } else { self.sections.len() };
        let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        out.extend(0u64.to_le_bytes());
        out.extend(64u64.to_le_bytes());
        out.extend(sections_at.to_le_bytes());
        out.extend([0, 0, 0, 0, 64, 0, 56, 0]);
        out.extend((self.segments.len() as u16).to_le_bytes());
        out.extend([64, 0]);
        out.extend((sections as u16).to_le_bytes());
        out.extend(self.names.to_le_bytes());
        for (kind, offset, size) in &self.segments {
            out.extend(kind.to_le_bytes());
            out.extend([4, 0, 0, 0]);
            // The address is the offset, whatever the kind.
            for word in [*offset, *offset, 0, *size, *size, 1] {
                out.extend(word.to_le_bytes());
            }
        }
        for (index, (name, kind, offset, size)) in self.sections.iter().enumerate() {
            let is_count = in_first && index == 0;
            let size = if is_count {
                self.sections.len() as u64
            } else {
                *size
            };
            out.extend(name.to_le_bytes());
            out.extend(kind.to_le_bytes());
            for word in [0, 0, *offset, size, 0, 1, 0] {
                out.extend(word.to_le_bytes());
            }
        }
        out.extend(&self.behind);
        out
    }

    fn summary(&self) -> Result<Summary, OpenError> {
        let object = Object::from_source(Source::Memory(self.bytes().into()))?;
        Ok(Summary::of(&object))
    }
}

fn note(owner: &[u8], kind: u32, description: &[u8]) -> Vec<u8> {
    let mut note = Vec::new();
    note.extend((owner.len() as u32).to_le_bytes());
    note.extend((description.len() as u32).to_le_bytes());
    note.extend(kind.to_le_bytes());
    for part in [owner, description] {
        note.extend(part);
        note.resize(note.len().next_multiple_of(4), 0);
    }
    note
}

fn build_id(description: &[u8]) -> Vec<u8> {
    note(b"GNU\0", 3, description)
}

#[test]
fn a_note_of_4_gb_hides_no_other() {
    let right = build_id(&[7; 20]);
    let mut endless = build_id(&[8; 20]);
    endless[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut nameless = build_id(&[8; 20]);
    nameless[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let at = Elf::behind(4, 0);
    let (first, second) = (at + endless.len() as u64, at + 2 * endless.len() as u64);
    let elf = Elf {
        segments: vec![
            // Notes that the file is too short for.
            (NOTE, at, 4 << 30),
            (NOTE, at, endless.len() as u64),
            (NOTE, first, nameless.len() as u64),
            (NOTE, second, right.len() as u64),
        ],
        behind: [endless, nameless, right].concat(),
        ..Elf::default()
    };
    assert_eq!(elf.summary().unwrap().build_id, Some(vec![7; 20]));
}

#[test]
fn the_same_notes_behind_each_of_65535_headers_are_not_all_searched() {
    let right = build_id(&[7; 20]);
    let count = usize::from(u16::MAX);
    let at = Elf::behind(count, 0);
    let end = at + (1 << 20);
    let with_last = |(offset, size)| {
        let mut segments = vec![(NOTE, offset, size); count - 1];
        segments.push((NOTE, end, right.len() as u64));
        let mut behind = vec![0; 1 << 20];
        behind.extend(&right);
        Elf {
            segments,
            behind,
            ..Elf::default()
        }
    };
    // A megabyte each, then nothing each: neither the bytes nor the headers are endless.
    for place in [(at, 1 << 20), (at, 0)] {
        assert_eq!(with_last(place).summary().unwrap().build_id, None);
    }
    let mut few = with_last((at, 1 << 10));
    few.segments.drain(100..count - 1);
    few.segments.iter_mut().for_each(|segment| {
        segment.1 -= ((count - 101) * PROGRAM_HEADER_BYTES) as u64;
    });
    assert_eq!(few.summary().unwrap().build_id, Some(vec![7; 20]));
}

#[test]
fn a_name_without_an_end_in_each_of_65536_sections() {
    const NAMES_BYTES: usize = 16 << 20;
    let count = 1 << 16;
    let at = Elf::behind(0, count);
    let mut sections = vec![(0, PROGBITS, at, u64::MAX); count];
    sections[1] = (0, STRINGS, at, NAMES_BYTES as u64);
    let mut elf = Elf {
        sections,
        names: 1,
        behind: vec![b'x'; NAMES_BYTES],
        ..Elf::default()
    };
    let summary = elf.summary().unwrap();
    assert_eq!((summary.unwind_bytes, summary.has_asyncio), (0, false));
    // A name at the end of all names ends there; sizes are added up to the largest number.
    for (index, name) in [(7usize, &b".debug_frame\0"[..]), (8, b".eh_frame\0")] {
        let place = 1000 * index;
        elf.sections[index].0 = place as u32;
        elf.behind[place..place + name.len()].copy_from_slice(name);
    }
    let last = b".AsyncioDebug";
    let place = NAMES_BYTES - last.len();
    elf.sections[9].0 = place as u32;
    elf.behind[place..].copy_from_slice(last);
    let summary = elf.summary().unwrap();
    assert_eq!(
        (summary.unwind_bytes, summary.has_asyncio),
        (u64::MAX, true)
    );
}

#[test]
fn a_chain_of_symbols_without_an_end() {
    let at = Elf::behind(2, 0);
    let table = at + 64;
    // One bucket; no hashed symbol before number 1; a Bloom filter of one word, which all pass.
    let mut behind: Vec<u8> = [(0x6fff_fef5, table), (5, table), (6, table), (0, 0)]
        .iter()
        .flat_map(|(tag, value): &(u64, u64)| [tag.to_le_bytes(), value.to_le_bytes()].concat())
        .collect();
    for word in [1u32, 1, 1, 0, u32::MAX, u32::MAX, 1] {
        behind.extend(word.to_le_bytes());
    }
    behind.resize(1 << 20, 0);
    let elf = Elf {
        segments: vec![(LOAD, 0, at + (1 << 20)), (DYNAMIC, at, 64)],
        behind,
        ..Elf::default()
    };
    assert!(!elf.summary().unwrap().has_python_state);
}

#[test]
fn a_build_id_that_is_longer_than_any_is_none() {
    for (len, is_one) in [(0, false), (1, true), (256, true), (257, false)] {
        let note = build_id(&vec![7; len]);
        let at = Elf::behind(0, 1);
        let elf = Elf {
            sections: vec![(0, SECTION_OF_NOTES, at, note.len() as u64)],
            behind: note,
            ..Elf::default()
        };
        let id = elf.summary().unwrap().build_id;
        assert_eq!(id, is_one.then(|| vec![7; len]), "{len}");
    }
}

#[test]
fn headers_that_are_cut_off_are_damaged() {
    let elf = Elf {
        segments: vec![(NOTE, Elf::behind(1, 0), 36)],
        behind: build_id(&[7; 20]),
        ..Elf::default()
    };
    let bytes = elf.bytes();
    for len in 0..bytes.len() {
        let read = Object::from_source(Source::Memory(bytes[..len].into()));
        match read.map(|object| Summary::of(&object)) {
            // Its only program header is there, and its notes are not.
            Ok(summary) => {
                assert!(len >= HEADER_BYTES + PROGRAM_HEADER_BYTES);
                assert_eq!(summary.build_id, None);
            }
            Err(error) => {
                assert!(len < HEADER_BYTES + PROGRAM_HEADER_BYTES, "{error}");
                assert_eq!(error.reason(), Reason::Damaged, "{len}");
            }
        }
    }
}

/// A file that is mapped from this path.
fn source(path: &Path) -> FileSource<'_> {
    let metadata = fs::metadata(path).unwrap();
    let device = metadata.dev();
    FileSource {
        device: (major(device), minor(device)),
        inode: metadata.ino(),
        ..FileSource::new(path)
    }
}

/// The same reading of headers is used in every process: see also `probe/tests/parsers.rs`.
#[test]
fn opened_files_come_with_what_their_headers_tell() {
    let files = Files::default();
    let own = std::env::current_exe().unwrap();
    let (mut opened, summary) = files.open_summarized(&source(&own)).unwrap();
    let read = Summary::read(&File::open(&own).unwrap()).unwrap();
    assert_eq!(summary, Ok(read.clone()));
    assert!(read.unwind_bytes > 1000 && !read.has_python_state);
    let mut magic = [0; 4];
    std::io::Read::read_exact(&mut opened, &mut magic).unwrap();
    assert_eq!(&magic, b"\x7fELF", "it is read from its beginning");

    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "no program").unwrap();
    let (_, summary) = files.open_summarized(&source(&text)).unwrap();
    assert_eq!(summary, Err(Reason::Damaged));
    let nowhere = files.open_summarized(&FileSource::new(Path::new("/nowhere/a")));
    assert_eq!(nowhere.err(), Some(Reason::FileGone));
}

/// Answers with other bytes than what was read from headers.
#[derive(Debug)]
struct Damaging(Vec<u8>);

impl Proxy for Damaging {
    fn perform(&self, request: &Request<'_>, remote: RemoteFiles) -> Result<Reply, Reason> {
        let reply = Files::from(remote).perform(request)?;
        let bytes = self.0.clone();
        Ok(Reply { bytes, ..reply })
    }
}

#[test]
fn an_answer_that_is_damaged_costs_what_headers_tell() {
    let own = std::env::current_exe().unwrap();
    let right = Summary::read(&File::open(&own).unwrap()).unwrap();
    let right = write_answer(&Ok(right));
    for damaged in [
        Vec::new(),
        vec![0],
        vec![1, u8::MAX],
        vec![u8::MAX; 100],
        right[..right.len() - 1].to_vec(),
        [&right[..], &right].concat(),
    ] {
        let files = Files::by(Arc::new(Damaging(damaged)));
        let (file, summary) = files.open_summarized(&source(&own)).unwrap();
        assert_eq!(summary, Err(Reason::Refused));
        assert!(file.metadata().unwrap().is_file());
    }
}
