//! Encodes questions about the code of functions.
//!
//! ```text
//! question: `DEBUG_FILE` and a question about lines, which is which file has the debug information;
//!     or `FUNCTION`, bytes of debug information that may be held, which files go along;
//!     the key of the table of its lines, if that goes along;
//!     the places where its debug files may lie; name of the function, name of the module,
//!     offset, whether it was inlined there, bytes of code that are wanted;
//!     or `RUN_TIME` and a question about code that was made at run time (`run_time_order`)
//! ```
//!
//! The files of a question are the file itself, then the separate file with its debug information
//! and the table of its lines, as far as they exist, then the root directories of the places.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use crate::code::CodeQuestion;
use crate::debug_file::DebugFiles;
use crate::table_cache::TableKey;
use crate::wire::{Taken, put_bytes, put_u64};
use crate::{FileOffset, Files};

use super::lines_order::LinesQuestion;
use super::run_time_order::RunTimeOrder;

const DEBUG_FILE: u8 = 0;
const FUNCTION: u8 = 1;

/// Begins a question about code that a process made at run time.
pub const RUN_TIME: u8 = 2;

const HAS_SEPARATE: u8 = 1;
const HAS_TABLE: u8 = 2;

/// A question that was received.
#[derive(Debug)]
pub enum CodeOrder {
    /// Which file has its debug information?
    DebugFile(LinesQuestion),
    /// What is the code of a function?
    Function(CodeFiles, FunctionOrder),
    /// What is the code of a function that was made at run time?
    RunTime(RunTimeOrder),
}

/// The files that a question for a function is about.
#[derive(Debug)]
pub struct CodeFiles {
    /// The file itself.
    pub file: File,
    /// The file with the debug information, if it is another file and was found.
    pub separate: Option<File>,
    /// The table of all lines with its key, if there is one.
    pub table: Option<(File, Vec<u8>)>,
    /// Where debug files may be.
    pub places: DebugFiles,
    /// Maximum memory of debug information.
    pub debug_bytes_max: u64,
}

/// A question for the code of a function.
#[derive(Debug)]
pub struct FunctionOrder {
    function: String,
    module: String,
    address: FileOffset,
    is_inlined: bool,
    bytes_max: u64,
}

/// The files that a question is about. Its fields mean the same as those of [`CodeFiles`].
#[derive(Debug, Clone, Copy)]
pub struct CodeSubject<'a> {
    pub file: &'a File,
    pub separate: Option<&'a File>,
    pub table: Option<(&'a File, &'a TableKey)>,
    pub places: &'a DebugFiles,
    pub debug_bytes_max: u64,
}

/// Encodes a question for the file with the debug information, given as a question about lines.
pub fn write_debug_file(lines_question: &[u8]) -> Vec<u8> {
    [&[DEBUG_FILE], lines_question].concat()
}

/// Encodes a question for a function; returns the bytes and the files to send along.
pub fn write_function<'a>(
    subject: CodeSubject<'a>,
    question: &CodeQuestion<'_>,
) -> (Vec<u8>, Vec<BorrowedFd<'a>>) {
    let mut out = vec![FUNCTION];
    put_u64(&mut out, subject.debug_bytes_max);
    let has_separate = subject.separate.map_or(0, |_| HAS_SEPARATE);
    let has_table = subject.table.map_or(0, |_| HAS_TABLE);
    out.push(has_separate | has_table);
    let mut files = vec![subject.file.as_fd()];
    files.extend(subject.separate.map(File::as_fd));
    if let Some((table, key)) = subject.table {
        files.push(table.as_fd());
        put_bytes(&mut out, key.as_bytes());
    }
    files.extend(subject.places.write(&mut out));
    put_bytes(&mut out, question.function.as_bytes());
    put_bytes(&mut out, question.module.as_bytes());
    put_u64(&mut out, question.address.0);
    out.push(u8::from(question.is_inlined));
    put_u64(&mut out, question.bytes_max);
    (out, files)
}

impl CodeOrder {
    /// Decodes a question; `None` if it is malformed.
    pub fn read(message: &[u8], files: Vec<OwnedFd>, way: &Files) -> Option<CodeOrder> {
        let (kind, rest) = message.split_first()?;
        match *kind {
            DEBUG_FILE => LinesQuestion::read(rest, files, way).map(CodeOrder::DebugFile),
            FUNCTION => {
                let mut rest = Taken(rest);
                let files = CodeFiles::read(&mut rest, files, way)?;
                Some(CodeOrder::Function(files, FunctionOrder::read(&mut rest)?))
            }
            RUN_TIME => RunTimeOrder::read(rest, files).map(CodeOrder::RunTime),
            _ => None,
        }
    }
}

impl CodeFiles {
    fn read(message: &mut Taken<'_>, files: Vec<OwnedFd>, way: &Files) -> Option<CodeFiles> {
        let debug_bytes_max = message.u64()?;
        let flags = message.u8()?;
        let mut files = files.into_iter().map(File::from);
        let file = files.next()?;
        let mut next = |flag: u8| {
            if flags & flag == 0 {
                Some(None)
            } else {
                files.next().map(Some)
            }
        };
        let (separate, table) = (next(HAS_SEPARATE)?, next(HAS_TABLE)?);
        let table = match table {
            Some(table) => Some((table, message.bytes()?.to_vec())),
            None => None,
        };
        let roots = files.map(OwnedFd::from).collect();
        Some(CodeFiles {
            file,
            separate,
            table,
            places: DebugFiles::told(message, roots, way)?,
            debug_bytes_max,
        })
    }
}

impl FunctionOrder {
    /// The question for [`find`](crate::code::find).
    pub fn question(&self) -> CodeQuestion<'_> {
        CodeQuestion {
            function: &self.function,
            module: &self.module,
            address: self.address,
            is_inlined: self.is_inlined,
            bytes_max: self.bytes_max,
        }
    }

    fn read(message: &mut Taken<'_>) -> Option<FunctionOrder> {
        let mut text = || String::from_utf8(message.bytes()?.to_vec()).ok();
        Some(FunctionOrder {
            function: text()?,
            module: text()?,
            address: FileOffset(message.u64()?),
            is_inlined: message.u8()? != 0,
            bytes_max: message.u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileId;
    use crate::source::Source;
    use proptest::prelude::*;

    #[test]
    fn questions_arrive_as_they_were_asked() {
        let file = tempfile::tempfile().expect("a file");
        let table = tempfile::tempfile().expect("a file");
        let root = crate::opener::our_root().expect("a root");
        let places = DebugFiles::below(root, "/bin/program".as_ref(), Files::default());
        let source = Source::file(&file).expect("a file");
        let key = TableKey::of(&FileId::Go("id".into()), &source, &source).expect("a key");
        let subject = CodeSubject {
            file: &file,
            separate: None,
            table: Some((&table, &key)),
            places: &places,
            debug_bytes_max: 9,
        };
        let question = CodeQuestion {
            function: "sum",
            module: "program",
            address: FileOffset(0x1234),
            is_inlined: true,
            bytes_max: 64,
        };
        let (message, files) = write_function(subject, &question);
        let files = files.iter().map(|file| file.try_clone_to_owned());
        let files: Vec<_> = files.collect::<Result<_, _>>().expect("descriptors");
        let read = |message: &[u8]| {
            let files = files.iter().map(|file| file.try_clone());
            let files = files.collect::<Result<_, _>>().expect("descriptors");
            CodeOrder::read(message, files, &Files::default())
        };
        let Some(CodeOrder::Function(files, order)) = read(&message) else {
            panic!("no question");
        };
        assert!(files.separate.is_none());
        let told = files.table.map(|(_, key)| key);
        assert_eq!(told.as_deref(), Some(key.as_bytes()));
        assert_eq!(files.debug_bytes_max, 9);
        assert_eq!(format!("{:?}", order.question()), format!("{question:?}"));
        for len in 0..message.len() {
            assert!(read(&message[..len]).is_none(), "{len}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = CodeOrder::read(&bytes, Vec::new(), &Files::default());
        }
    }
}
