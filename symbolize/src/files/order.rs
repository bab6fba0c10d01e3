//! What is asked of a process that has no rights: to make something of files that are open.

use std::os::fd::BorrowedFd;

use crate::Writers;

/// A file, what is known of its debug file, and two root directories.
pub const ORDER_FILES_MAX: usize = 4;

/// What a parser is there for. Each has a process of its own, which keeps what it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Names of functions.
    Names,
    /// Lines of source text.
    Lines,
    /// Unwind tables that nobody waits for.
    Tables,
    /// Unwind tables that samples wait for.
    WantedTables,
    /// Names of code that was made at run time.
    JitNames,
}

impl Work {
    /// Every kind of work, in the order of the enum.
    pub const ALL: [Work; 5] = [
        Work::Names,
        Work::Lines,
        Work::Tables,
        Work::WantedTables,
        Work::JitNames,
    ];

    /// What is done, for who reads of a mistake in it.
    pub const fn name(self) -> &'static str {
        match self {
            Work::Names => "reading symbols",
            Work::Lines => "finding source lines",
            Work::Tables | Work::WantedTables => "reading unwind tables",
            Work::JitNames => "reading maps of generated code",
        }
    }
}

/// A piece of work for a parser.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// What is to be done.
    pub work: Work,
    /// The number of the file that it is about. Whoever was given a file of that number
    /// before may have kept what was read of it.
    pub file: u64,
    /// Who can write to the file: a process that has read a file of theirs reads none of
    /// others.
    pub writers: Writers,
    /// The open files that the message speaks of, [`ORDER_FILES_MAX`] at most.
    pub files: &'a [BorrowedFd<'a>],
    /// What to do, for [`Parser::perform`](crate::parser::Parser::perform), or for who makes
    /// unwind tables ([`table_order`](crate::parser::table_order)).
    pub message: &'a [u8],
}
