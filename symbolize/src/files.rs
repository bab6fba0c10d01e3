//! Opening the files of targets, and other operations on targets that may block.
//!
//! A file server that is gone, or a target that intends it, can block a process that opens, reads
//! or even stats a file for ever, and no signal can end that (`request_wait_answer` in Linux's
//! `fs/fuse/dev.c`). So everything that could block is a [`Request`], and [`Files`] has it
//! performed: in this thread, or by a [`Proxy`] that gives up at a deadline.

mod jit_files;
mod order;
mod request;
mod stat;
mod unpack;

use std::array;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use crate::Reason;
use crate::object::{Summary, read_answer};
use crate::opener::{FileSource, Links, Mounts, Opening, RemoteFiles, Unwatched};
use crate::revision::Revision;

pub(crate) use jit_files::has_ended;
pub use order::{ORDER_FILES_MAX, Order, Work};
pub use request::{READING_HEADERS, Reply, Request};
pub use stat::fields_behind_name;

/// Performs requests in another process, where blocking does no harm.
pub trait Proxy: std::fmt::Debug + Send + Sync {
    /// Returns the result of [`Request::perform`], or [`Reason::Remote`] if it takes too long.
    fn perform(&self, request: &Request<'_>, remote: RemoteFiles) -> Result<Reply, Reason>;

    /// Has a file parsed by a process without privileges, as
    /// [`Parser::perform`](crate::parser::Parser::perform) does; `None` if there are no such
    /// processes.
    fn parse(&self, order: &Order<'_>) -> Option<Result<Reply, Reason>> {
        _ = order;
        None
    }

    /// Whether there are parser processes.
    fn has_parsers(&self) -> bool {
        false
    }
}

/// Access to the files of targets. A file that it returns can be read without waiting for a server,
/// unless remote files were requested.
#[derive(Debug, Clone, Default)]
pub struct Files {
    remote: RemoteFiles,
    proxy: Option<Arc<dyn Proxy>>,
}

impl From<RemoteFiles> for Files {
    /// Performs requests in the calling thread, however long they take.
    fn from(remote: RemoteFiles) -> Files {
        Files {
            remote,
            proxy: None,
        }
    }
}

impl From<&Files> for Files {
    fn from(files: &Files) -> Files {
        files.clone()
    }
}

impl Files {
    /// Opens only local files, through a proxy.
    pub fn by(proxy: Arc<dyn Proxy>) -> Files {
        Files {
            remote: RemoteFiles::Skip,
            proxy: Some(proxy),
        }
    }

    /// Returns the same access, with or without remote files.
    pub fn with_remote(&self, remote: RemoteFiles) -> Files {
        Files {
            remote,
            ..self.clone()
        }
    }

    /// Opens the file that a process has mapped. See [`opener`](crate::opener).
    pub fn open(&self, source: &FileSource<'_>) -> Result<File, Reason> {
        self.file(&Request::Mapped(*source))
    }

    /// Opens the file that a process has mapped, and returns what its headers tell, or why that is
    /// unknown. Both come from the process that opens files, if there is one.
    pub fn open_summarized(
        &self,
        source: &FileSource<'_>,
    ) -> Result<(File, Result<Summary, Reason>), Reason> {
        let reply = self.perform(&Request::Summarized(*source))?;
        let file = reply.file.ok_or(Reason::FileGone)?;
        let summary = read_answer(&reply.bytes).unwrap_or(Err(Reason::Refused));
        Ok((file.into(), summary))
    }

    /// Opens the file that is mapped at this range, whatever has become of its path.
    pub fn open_mapping(&self, pid: u32, range: (u64, u64)) -> Result<File, Reason> {
        self.file(&Request::Mapping { pid, range })
    }

    /// Returns the current revision of the file mapped at each of these ranges; `None` where
    /// nothing is mapped, or if it cannot be read. No file server is contacted, so recent changes
    /// of a remote file may be missing.
    pub fn mapped_revisions(&self, pid: u32, ranges: &[(u64, u64)]) -> Vec<Option<Revision>> {
        let reply = self.perform(&Request::MappedRevisions { pid, ranges });
        let bytes = reply.map(|reply| reply.bytes).unwrap_or_default();
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let mut words = bytes.chunks_exact(8).map(word);
        let mut next = || words.next().unwrap_or_default();
        let revision = |_| {
            let is_seen = next() != 0;
            let words = array::from_fn(|_| next());
            is_seen.then(|| Revision::from_words(words))
        };
        ranges.iter().map(revision).collect()
    }

    /// Opens the program that a process runs.
    pub fn open_program(&self, pid: u32) -> Result<File, Reason> {
        self.file(&Request::Program { pid })
    }

    /// Opens `path` for reading as a process with this root directory would, keeping every symbolic
    /// link, absolute or with `..`, below the root.
    pub fn open_beneath(&self, root: impl AsFd, path: &Path) -> Result<File, Reason> {
        self.file(&Request::Beneath {
            root: root.as_fd(),
            path,
            links: Links::Follow,
        })
    }

    /// Opens the root directory of a process, to resolve paths from.
    pub fn root_of(&self, pid: u32) -> Result<OwnedFd, Reason> {
        let reply = self.perform(&Request::Root { pid })?;
        reply.file.ok_or(Reason::FileGone)
    }

    /// Whether a file or directory that the user specified, by an absolute path, responds: it is
    /// opened and a few bytes are read.
    pub fn answers(&self, path: &Path) -> Result<(), Reason> {
        self.with_remote(RemoteFiles::Open)
            .perform(&Request::Named { path })
            .map(drop)
    }

    /// Reads the executable lines of `/proc/PID/maps`, up to a number of lines: a process may have very
    /// many.
    pub fn code_mappings(&self, pid: u32, lines_max: u32) -> io::Result<Vec<u8>> {
        let reply = self.perform(&Request::CodeMappings { pid, lines_max });
        reply.map(|reply| reply.bytes).map_err(io_error)
    }

    /// Reads exactly `len` bytes of a process's memory, or returns an error.
    pub fn memory(&self, pid: u32, start: u64, len: u32) -> io::Result<Vec<u8>> {
        let bytes = self.memory_up_to(pid, start, len)?;
        let is_all = bytes.len() == len as usize;
        is_all
            .then_some(bytes)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Reads a process's memory from `start` on, as far as it exists, and at most `len` bytes.
    pub fn memory_up_to(&self, pid: u32, start: u64, len: u32) -> io::Result<Vec<u8>> {
        let reply = self.perform(&Request::Memory { pid, start, len });
        reply.map(|reply| reply.bytes).map_err(io_error)
    }

    /// Reads several pieces of a process's memory one after the other, given as first address and
    /// length. `None` for a piece that is not completely readable.
    pub fn pieces(&self, pid: u32, pieces: &[(u64, u64)]) -> Result<Vec<Option<Vec<u8>>>, Reason> {
        let reply = self.perform(&Request::Pieces { pid, pieces })?;
        let mut rest = reply.bytes.as_slice();
        let mut next = || {
            let (length, after) = rest.split_first_chunk()?;
            let (bytes, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            (!bytes.is_empty()).then(|| bytes.to_vec())
        };
        Ok(pieces.iter().map(|_| next()).collect())
    }

    /// Opens the memory of a process for reading. The file gives access to that memory as long as the
    /// process runs the same program, and to no other memory; reading it may block.
    pub fn open_memory(&self, pid: u32) -> Result<File, Reason> {
        self.file(&Request::OpenMemory { pid })
    }

    /// Reads the environment that a process was started with.
    pub fn environment(&self, pid: u32) -> io::Result<Vec<u8>> {
        let reply = self.perform(&Request::Environment { pid });
        reply.map(|reply| reply.bytes).map_err(io_error)
    }

    /// Reads the first kilobyte of the command line that a process was started with, or has put in
    /// its place; kernel threads have none.
    pub fn command_line(&self, pid: u32) -> io::Result<Vec<u8>> {
        let reply = self.perform(&Request::CommandLine { pid });
        reply.map(|reply| reply.bytes).map_err(io_error)
    }

    /// Opens `/tmp/perf-PID.map` of the process whose directory in /proc this is.
    pub(crate) fn perf_map(&self, process: &OwnedFd) -> Result<File, Reason> {
        let process = process.as_fd();
        self.file(&Request::PerfMap { process })
    }

    /// Opens its `jit-PID.dump`, wherever the process has it mapped.
    pub(crate) fn jit_dump(&self, process: &OwnedFd) -> Result<File, Reason> {
        let process = process.as_fd();
        self.file(&Request::JitDump { process })
    }

    /// Unpacks an xz stream in a file into a file in memory.
    pub(crate) fn unpacked(&self, file: &File, offset: u64, len: u64) -> Result<File, Reason> {
        let file = file.as_fd();
        self.file(&Request::Unpack { file, offset, len })
    }

    /// Whether files are parsed by processes without privileges.
    pub fn has_parsers(&self) -> bool {
        self.proxy.as_ref().is_some_and(|proxy| proxy.has_parsers())
    }

    /// Has a file parsed by such a process; returns an error if there is none.
    pub(crate) fn parse(&self, order: &Order<'_>) -> Result<Reply, Reason> {
        let proxy = self.proxy.as_ref();
        let parsed = proxy.and_then(|proxy| proxy.parse(order));
        parsed.unwrap_or(Err(Reason::Refused))
    }

    fn file(&self, request: &Request<'_>) -> Result<File, Reason> {
        let reply = self.perform(request)?;
        reply.file.map(File::from).ok_or(Reason::FileGone)
    }

    /// Has a request performed.
    pub fn perform(&self, request: &Request<'_>) -> Result<Reply, Reason> {
        match &self.proxy {
            Some(proxy) => proxy.perform(request, self.remote),
            None => request.perform(&mut Opening {
                remote: self.remote,
                mounts: &mut Mounts::default(),
                watch: &mut Unwatched,
                mountinfo: None,
            }),
        }
    }
}

/// Converts a reason to an I/O error.
fn io_error(reason: Reason) -> io::Error {
    let kind = match reason {
        Reason::NoPermission => io::ErrorKind::PermissionDenied,
        Reason::Remote => io::ErrorKind::TimedOut,
        Reason::FileGone => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    kind.into()
}
