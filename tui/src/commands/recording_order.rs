//! Has a recording read by a parser, for a process that has threads and so cannot fork one for the
//! recording, as commands do ([`super::apart`]). The parser reads one recording and ends.
//!
//! ```text
//! order:  whether a metric is wanted; the places where names are looked up; the metric
//! files:  the recording; those of the places
//! answer: READ, what the format lacks, and what is missing from the recording, each in a line.
//!             Its file has the samples, as a recording of our own
//!         FAILED, and why the recording cannot be read
//! ```
//!
//! A recording may have taken over that process: what it answers is read as a stranger's bytes.

use super::apart;
use super::open_file::{self, Opened};
use super::resolve::Places;
use engine::snapshot::Lacks;
use probe::confine::RECORDING_BYTES;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use symbolize::files::Reply;
use symbolize::parser::recording_order;
use symbolize::{Files, Reason, sanitize};

/// The first byte of an answer.
const READ: u8 = 1;
const FAILED: u8 = 0;

/// Maximum number of sentences about one recording. No format has as many.
const NOTES_MAX: usize = 100;

/// Maximum length of a sentence in bytes. The longest ones name all metrics of a file.
const NOTE_BYTES_MAX: usize = 4 << 10;

/// A reader of recordings is stopped at these bounds ([`probe::files`]).
const REFUSED: &str = "the process that reads it was ended or could not be started: the file takes \
                       more than 8 GB of memory, 5 minutes of CPU time or 20 minutes, or the \
                       process was killed";

/// The sentence about an answer that is none.
const MALFORMED: &str = "the process that reads it gave no answer that proftop understands";

/// Reads a recording with the metric of this name; `None` means the first one. If there are parser
/// processes, one of them reads the file. An error is a sentence.
pub fn read(file: File, metric: Option<&str>, places: &Places) -> Result<Opened, String> {
    let way = probe::files::of_user();
    if !way.has_parsers() {
        return open_file::read_metric(Box::new(file), metric, places)
            .map_err(|error| error.to_string());
    }
    let mut message = vec![u8::from(metric.is_some())];
    places.write(&mut message);
    message.extend_from_slice(metric.unwrap_or_default().as_bytes());
    let reply = recording_order::ask(file, places.descriptors(), &message, &way);
    let reply = reply.map_err(|reason| match reason {
        Reason::Mistake => "proftop made a mistake of its own while it read the file",
        _ => REFUSED,
    })?;
    read_answer(reply).unwrap_or_else(|| Err(MALFORMED.to_owned()))
}

/// Decodes an answer, and reads the recording that came with it. `None` if it is malformed.
fn read_answer(reply: Reply) -> Option<Result<Opened, String>> {
    let (kind, rest) = reply.bytes.split_first()?;
    if *kind == FAILED {
        return Some(Err(sentence(rest)));
    }
    let (lacks, notes) = rest.split_first().filter(|_| *kind == READ)?;
    let lines = notes.split(|byte| *byte == b'\n').take(NOTES_MAX);
    let mut notes: Vec<String> = lines
        .filter(|line| !line.is_empty())
        .map(sentence)
        .collect();
    // Only a file in memory has seals: reading it waits for nobody.
    let mut made = File::from(reply.file?);
    rustix::fs::fcntl_get_seals(&made).ok()?;
    made.rewind().ok()?;
    let made = made.take(RECORDING_BYTES);
    Some(open_file::read_made(Box::new(made)).map(|opened| {
        notes.extend(opened.notes);
        Opened {
            notes,
            lacks: read_lacks(*lacks),
            ..opened
        }
    }))
}

fn sentence(bytes: &[u8]) -> String {
    sanitize(&bytes[..bytes.len().min(NOTE_BYTES_MAX)]).into_owned()
}

/// Reads the recording that an order is about, in the parser.
pub fn answer(message: &[u8], files: Vec<OwnedFd>, _: &Files) -> Result<Reply, Reason> {
    let (has_metric, mut rest) = message.split_first().ok_or(Reason::Refused)?;
    let mut files = files.into_iter();
    let mut file = File::from(files.next().ok_or(Reason::Refused)?);
    let places = Places::told(&mut rest, files).ok_or(Reason::Refused)?;
    let metric = std::str::from_utf8(rest).map_err(|_| Reason::Refused)?;
    let metric = (*has_metric != 0).then_some(metric);
    // A parser that was killed may have read a part.
    file.rewind().map_err(|_| Reason::Refused)?;
    Ok(match make(file, metric, &places) {
        Ok((bytes, made)) => Reply {
            bytes,
            file: Some(made.into()),
        },
        Err(why) => Reply {
            bytes: [&[FAILED], why.as_bytes()].concat(),
            file: None,
        },
    })
}

/// Reads a recording. Returns what is said of it, and a recording of our own.
fn make(file: File, metric: Option<&str>, places: &Places) -> Result<(Vec<u8>, File), String> {
    let opened = open_file::read_metric(Box::new(file), metric, places)
        .map_err(|error| error.to_string())?;
    let made = apart::recording(&opened.view).map_err(|failure| failure.message)?;
    if made.bytes.len() as u64 > RECORDING_BYTES {
        return Err("its samples take more than 1 GB".to_owned());
    }
    let made = in_memory(&made.bytes).map_err(|error| error.to_string())?;
    let head = [READ, write_lacks(opened.lacks)];
    Ok(([&head, opened.notes.join("\n").as_bytes()].concat(), made))
}

fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("recording", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}

fn write_lacks(lacks: Lacks) -> u8 {
    u8::from(lacks.time) | u8::from(lacks.people) << 1 | u8::from(lacks.unnamed) << 2
}

fn read_lacks(bits: u8) -> Lacks {
    Lacks {
        time: bits & 1 != 0,
        people: bits & 2 != 0,
        unnamed: bits & 4 != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::formats::pft;

    #[test]
    fn an_answer_that_is_none_costs_one_recording() {
        let read = |bytes: &[u8], file| {
            let bytes = bytes.to_vec();
            read_answer(Reply { bytes, file })
        };
        let made = |bytes: &[u8]| Some(OwnedFd::from(in_memory(bytes).expect("a file")));
        let (pipe, _writer) = io::pipe().expect("a pipe");
        for (bytes, file) in [
            (&[][..], None),
            (&[READ], made(b"")),
            (&[READ, 0], None),
            (&[READ, 0], Some(pipe.into())),
            (&[2, 0], made(b"")),
        ] {
            assert!(read(bytes, file).is_none(), "{bytes:?}");
        }
        // Only our own format is read.
        let noise = [&pft::MAGIC[..], &[0xff; 200]].concat();
        for bytes in [&b""[..], b"main;work 3\n", &noise] {
            let answer = read(&[READ, 0], made(bytes));
            assert!(matches!(answer, Some(Err(_))), "{bytes:?}");
        }
        let answer = read(&[&[FAILED], &b"it is \x1b[2J"[..]].concat(), None);
        let Some(Err(why)) = answer else {
            panic!("no reason");
        };
        assert_eq!(why, "it is \\u{1b}[2J");
    }
}
