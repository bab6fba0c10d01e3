//! Orders for a parser process, which has no privileges: to extract something from open files.

use std::os::fd::BorrowedFd;

use crate::Writers;

/// Maximum number of files of an order: the file, the known debug file, the table of its lines, and
/// two root directories.
pub const ORDER_FILES_MAX: usize = 5;

/// The task of a parser. Each task has a process of its own, which caches what it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Names of functions.
    Names,
    /// Lines of source text.
    Lines,
    /// Unwind tables that no sample waits for.
    Tables,
    /// Unwind tables that samples wait for.
    WantedTables,
    /// Names of code made at run time.
    JitNames,
    /// Whether a file has a Python interpreter, and where it has what.
    Python,
    /// What the interpreter has in the memory of one process. A parser for that has no other memory
    /// than that of the file with the number of its first order.
    PythonMemory,
    /// The code of functions: instructions and their lines.
    Code,
    /// What a file offers: names of functions, and stacks that can be walked.
    Facts,
    /// Functions that may be probed: their instructions and types.
    Sites,
    /// Recordings that a user names.
    Recordings,
    /// Source text in zip archives.
    Archives,
    /// Packages that files belong to.
    Packages,
}

impl Work {
    /// Every kind of work, in the order of the enum.
    pub const ALL: [Work; 13] = [
        Work::Names,
        Work::Lines,
        Work::Tables,
        Work::WantedTables,
        Work::JitNames,
        Work::Python,
        Work::PythonMemory,
        Work::Code,
        Work::Facts,
        Work::Sites,
        Work::Recordings,
        Work::Archives,
        Work::Packages,
    ];

    /// Name of the task, for error messages.
    pub const fn name(self) -> &'static str {
        match self {
            Work::Names => "reading symbols",
            Work::Lines => "finding source lines",
            Work::Tables | Work::WantedTables => "reading unwind tables",
            Work::JitNames => "reading maps of generated code",
            Work::Python => "looking for Python in a file",
            Work::PythonMemory => "reading Python's structures",
            Work::Code => "finding code",
            Work::Facts => "finding out what a file offers",
            Work::Sites => "looking for functions to probe",
            Work::Recordings => "reading recordings",
            Work::Archives => "reading archives",
            Work::Packages => "reading databases of packages",
        }
    }
}

/// A task for a parser process.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// What to do.
    pub work: Work,
    /// Number of the file that it is about. A parser that was given a file with that number before
    /// may have cached what it read.
    pub file: u64,
    /// Who can write to the file: a process that has parsed a file of some user is not used for
    /// files of other users.
    pub writers: Writers,
    /// The process whose memory is the file: reading it may block. `None` for files that can be read
    /// without waiting for anybody.
    pub process: Option<u32>,
    /// The open files that the message refers to, at most [`ORDER_FILES_MAX`].
    pub files: &'a [BorrowedFd<'a>],
    /// Details of the task, for [`Parser::perform`](crate::parser::Parser::perform), or for the
    /// process that makes unwind tables ([`table_order`](crate::parser::table_order)).
    pub message: &'a [u8],
}
