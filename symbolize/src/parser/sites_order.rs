//! Encodes questions about the functions of a file that may be probed.
//!
//! ```text
//! question: the places where debug files may lie; the kind of the question; its details
//! ```
//!
//! The files of a question are the file itself, then the root directories of the places.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::types_order::TypesQuestion;
use crate::debug_file::DebugFiles;
use crate::sites::{Ends, Function, Language, Wish};
use crate::wire::{Taken, put_bytes, put_some_u64, put_u32, put_u64};
use crate::{FileOffset, Files, LinkAddr};

/// Maximum number of functions in one question for their sites.
pub const FUNCTIONS_MAX: usize = 4096;

const FACTS: u8 = 0;
const HAS_EXCEPTIONS: u8 = 1;
const NEEDED: u8 = 2;
const NAMED: u8 = 3;
const MATCHING: u8 = 4;
const AT: u8 = 5;
const LINE: u8 = 6;
const INLINED: u8 = 7;
const PLACE: u8 = 8;
const MARKERS: u8 = 9;
const PLACE_MARKERS: u8 = 10;
const CONTAINING: u8 = 11;
const MEANT: u8 = 12;
const TYPES: u8 = 13;

/// A question about the functions of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SitesQuestion {
    /// What do its headers tell?
    Facts,
    /// Do exceptions pass through its code?
    HasExceptions,
    /// What does it need to run?
    Needed,
    /// Which functions have this name?
    Named(String),
    /// Which functions have a name that matches this regular expression?
    Matching(String),
    /// Which function is at this offset?
    At(FileOffset),
    /// Where does this line of a source file begin?
    Line(String, u32),
    /// Into which functions was the one with this name inlined?
    Inlined(String),
    /// At which instructions are probes of these functions placed? At most [`FUNCTIONS_MAX`], whose
    /// displayed names are empty.
    Place(Vec<(Function, Wish)>),
    /// Which places did programmers mark?
    Markers,
    /// Which functions contain these places that programmers marked?
    PlaceMarkers(Vec<LinkAddr>),
    /// Which names of functions contain this text?
    Containing(String),
    /// Which names of functions may be meant by this word?
    Meant(String),
    /// A question about its types.
    Types(TypesQuestion),
}

/// A question that was received, and the file that it is about.
#[derive(Debug)]
pub struct SitesOrder {
    /// The file itself.
    pub file: File,
    /// Where debug files may be.
    pub places: DebugFiles,
    /// The question.
    pub question: SitesQuestion,
}

/// Encodes a question; returns the bytes and the files to send along.
pub fn write<'a>(
    file: &'a File,
    places: &'a DebugFiles,
    question: &SitesQuestion,
) -> (Vec<u8>, Vec<BorrowedFd<'a>>) {
    let mut out = Vec::new();
    let roots = places.write(&mut out);
    write_question(&mut out, question);
    (out, [file.as_fd()].into_iter().chain(roots).collect())
}

fn write_question(out: &mut Vec<u8>, question: &SitesQuestion) {
    let mut text = |kind: u8, text: &str| {
        out.push(kind);
        put_bytes(out, text.as_bytes());
    };
    match question {
        SitesQuestion::Facts => out.push(FACTS),
        SitesQuestion::HasExceptions => out.push(HAS_EXCEPTIONS),
        SitesQuestion::Needed => out.push(NEEDED),
        SitesQuestion::Markers => out.push(MARKERS),
        SitesQuestion::Named(name) => text(NAMED, name),
        SitesQuestion::Matching(pattern) => text(MATCHING, pattern),
        SitesQuestion::Inlined(name) => text(INLINED, name),
        SitesQuestion::Containing(part) => text(CONTAINING, part),
        SitesQuestion::Meant(word) => text(MEANT, word),
        SitesQuestion::Line(file, line) => {
            text(LINE, file);
            put_u32(out, *line);
        }
        SitesQuestion::At(offset) => {
            out.push(AT);
            put_u64(out, offset.0);
        }
        SitesQuestion::Place(functions) => {
            out.push(PLACE);
            put_u32(out, functions.len() as u32);
            for (function, wish) in functions {
                write_function(out, function);
                write_wish(out, *wish);
            }
        }
        SitesQuestion::PlaceMarkers(addrs) => {
            out.push(PLACE_MARKERS);
            put_u32(out, addrs.len() as u32);
            addrs.iter().for_each(|addr| put_u64(out, addr.0));
        }
        SitesQuestion::Types(question) => {
            out.push(TYPES);
            question.write(out);
        }
    }
}

impl SitesOrder {
    /// Decodes a question; `None` if it is malformed.
    pub fn read(message: &[u8], files: Vec<OwnedFd>, way: &Files) -> Option<SitesOrder> {
        let mut files = files.into_iter();
        let file = files.next()?.into();
        let mut message = Taken(message);
        let places = DebugFiles::told(&mut message, files.collect(), way)?;
        let question = read_question(&mut message)?;
        message.0.is_empty().then_some(SitesOrder {
            file,
            places,
            question,
        })
    }
}

fn read_question(message: &mut Taken<'_>) -> Option<SitesQuestion> {
    Some(match message.u8()? {
        FACTS => SitesQuestion::Facts,
        HAS_EXCEPTIONS => SitesQuestion::HasExceptions,
        NEEDED => SitesQuestion::Needed,
        MARKERS => SitesQuestion::Markers,
        NAMED => SitesQuestion::Named(text(message)?),
        MATCHING => SitesQuestion::Matching(text(message)?),
        INLINED => SitesQuestion::Inlined(text(message)?),
        CONTAINING => SitesQuestion::Containing(text(message)?),
        MEANT => SitesQuestion::Meant(text(message)?),
        LINE => SitesQuestion::Line(text(message)?, message.u32()?),
        AT => SitesQuestion::At(FileOffset(message.u64()?)),
        PLACE => {
            let count = message.u32()?;
            let function = |_| Some((read_function(message)?, read_wish(message)?));
            SitesQuestion::Place((0..count).map(function).collect::<Option<_>>()?)
        }
        PLACE_MARKERS => {
            let addrs = message.u64s()?.into_iter().map(LinkAddr);
            SitesQuestion::PlaceMarkers(addrs.collect())
        }
        TYPES => SitesQuestion::Types(TypesQuestion::read(message)?),
        _ => return None,
    })
}

fn text(message: &mut Taken<'_>) -> Option<String> {
    String::from_utf8(message.bytes()?.to_vec()).ok()
}

/// Appends a function without its displayed name, which follows from the other one.
fn write_function(out: &mut Vec<u8>, function: &Function) {
    put_bytes(out, &function.raw);
    put_u64(out, function.start.0);
    put_u64(out, function.len);
    out.push(function.language as u8);
    put_some_u64(out, function.inside.map(|addr| addr.0));
}

fn read_function(message: &mut Taken<'_>) -> Option<Function> {
    Some(Function {
        name: String::new(),
        raw: message.bytes()?.to_vec(),
        start: LinkAddr(message.u64()?),
        len: message.u64()?,
        language: *Language::ALL.get(usize::from(message.u8()?))?,
        inside: message.some_u64()?.map(LinkAddr),
    })
}

const ENDS: [Ends; 3] = [Ends::Unseen, Ends::Replaced, Ends::AtReturns];

fn write_wish(out: &mut Vec<u8>, wish: Wish) {
    out.push(wish.ends as u8);
    put_u32(out, wish.whole.into());
    out.push(wish.spares_calls.into());
}

fn read_wish(message: &mut Taken<'_>) -> Option<Wish> {
    Some(Wish {
        ends: *ENDS.get(usize::from(message.u8()?))?,
        whole: message.u32()?.try_into().ok()?,
        spares_calls: message.u8()? != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn questions() -> Vec<SitesQuestion> {
        let function = Function {
            name: String::new(),
            raw: b"_Zwork\xff".to_vec(),
            start: LinkAddr(0x1000),
            len: 64,
            language: Language::Rust,
            inside: Some(LinkAddr(0x1010)),
        };
        let wish = Wish {
            ends: Ends::AtReturns,
            whole: u16::MAX,
            spares_calls: true,
        };
        vec![
            SitesQuestion::Facts,
            SitesQuestion::HasExceptions,
            SitesQuestion::Needed,
            SitesQuestion::Named("work".into()),
            SitesQuestion::Matching("^work_".into()),
            SitesQuestion::At(FileOffset(0x1234)),
            SitesQuestion::Line("scan.c".into(), 120),
            SitesQuestion::Inlined("clamp".into()),
            SitesQuestion::Place(vec![(function, wish)]),
            SitesQuestion::Markers,
            SitesQuestion::PlaceMarkers(vec![LinkAddr(7), LinkAddr(u64::MAX)]),
            SitesQuestion::Containing("wo".into()),
            SitesQuestion::Meant("wrok".into()),
            SitesQuestion::Types(TypesQuestion::LeftOut),
        ]
    }

    #[test]
    fn questions_arrive_as_they_were_asked() {
        let file = tempfile::tempfile().expect("a file");
        let root = crate::opener::our_root().expect("a root");
        let places = DebugFiles::below(root, "/bin/program".as_ref(), Files::default());
        for question in questions() {
            let (message, files) = write(&file, &places, &question);
            let read = |message: &[u8]| {
                let files = files.iter().map(|file| file.try_clone_to_owned());
                let files = files.collect::<Result<_, _>>().expect("descriptors");
                let order = SitesOrder::read(message, files, &Files::default());
                order.map(|order| order.question)
            };
            assert_eq!(read(&message).as_ref(), Some(&question));
            for len in 0..message.len() {
                assert_eq!(read(&message[..len]), None, "{question:?}: {len}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let file = OwnedFd::from(tempfile::tempfile().expect("a file"));
            _ = SitesOrder::read(&bytes, vec![file], &Files::default());
        }
    }
}
