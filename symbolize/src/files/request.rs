//! Requests for files and memory of targets, and how they are performed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags, statx};

use super::{jit_files, unpack};
use crate::Reason;
use crate::error::io_reason;
use crate::object::{Summary, write_answer};
use crate::opener::{self, Blocker, FileSource, Links, Opening};
use crate::revision::{REVISION_WORDS, Revision};

/// Maximum size of the executable lines of `/proc/PID/maps`: 65,530 mappings, the default limit of
/// a process, with paths of 250 bytes.
const MAPS_BYTES_MAX: usize = 16 << 20;

/// Maximum size of an environment. Real ones are smaller; the kernel allows a quarter of the stack.
const ENVIRONMENT_BYTES_MAX: u64 = 2 << 20;

/// Maximum size of a command line. More of it is not helpful, and those of thousands of processes
/// are kept.
const COMMAND_LINE_BYTES_MAX: u64 = 1 << 10;

/// Maximum number of bytes read from a process's memory: images of vDSOs and functions that
/// runtimes made are what is read.
const MEMORY_BYTES_MAX: u32 = 1 << 20;

/// The name of the work of reading headers, for reports of mistakes.
pub const READING_HEADERS: &str = "reading headers of files";

/// A request that may block on a file server, or on a target.
#[derive(Debug, Clone, Copy)]
pub enum Request<'a> {
    /// Open the file that a process has mapped.
    Mapped(FileSource<'a>),
    /// Open the file that a process has mapped, and read its headers. The reply also has the
    /// [`Summary`] of these, or why there is none ([`write_answer`]).
    Summarized(FileSource<'a>),
    /// Open what is mapped at exactly this range.
    Mapping {
        /// The process.
        pid: u32,
        /// First address, and the first one after the range.
        range: (u64, u64),
    },
    /// Read the revision of what is mapped at exactly these ranges. The reply has for each range
    /// one word that says whether it could be read, and the words of the [`Revision`].
    MappedRevisions {
        /// The process.
        pid: u32,
        /// For each range first address, and the first one after it.
        ranges: &'a [(u64, u64)],
    },
    /// Open `/proc/PID/exe`.
    Program {
        /// The process.
        pid: u32,
    },
    /// Open a regular file below a root directory.
    Beneath {
        /// The directory; no path leads out of it.
        root: BorrowedFd<'a>,
        /// The path below it, relative or absolute.
        path: &'a Path,
        /// Whether the last part may be a symbolic link.
        links: Links,
    },
    /// Open a root directory.
    Root {
        /// The process.
        pid: u32,
    },
    /// Open a file or directory at an absolute path that the user specified.
    Named {
        /// The path, absolute.
        path: &'a Path,
    },
    /// Open the perf map of the process with this directory in /proc.
    PerfMap {
        /// `/proc/PID`, opened.
        process: BorrowedFd<'a>,
    },
    /// Open the jitdump of the process with this directory in /proc.
    JitDump {
        /// `/proc/PID`, opened.
        process: BorrowedFd<'a>,
    },
    /// Read the executable lines of `/proc/PID/maps`.
    CodeMappings {
        /// The process.
        pid: u32,
        /// Maximum number of lines; those behind are not read.
        lines_max: u32,
    },
    /// Read a piece of a process's memory, as far as it exists from its start on.
    Memory {
        /// The process.
        pid: u32,
        /// The address of the first byte.
        start: u64,
        /// Number of bytes, 1 MiB at most.
        len: u32,
    },
    /// Read several pieces of a process's memory, one after the other. The reply has for each piece
    /// its number of bytes, as four bytes, and the bytes; 0 if the piece is not completely
    /// readable.
    Pieces {
        /// The process.
        pid: u32,
        /// First address and length of each piece. Pieces beyond 1 MiB in total are not read.
        pieces: &'a [(u64, u64)],
    },
    /// Open `/proc/PID/mem` for reading.
    OpenMemory {
        /// The process.
        pid: u32,
    },
    /// Unpack an xz stream of a file into a file in memory, of at most 64 MiB.
    Unpack {
        /// The file.
        file: BorrowedFd<'a>,
        /// Offset of the stream.
        offset: u64,
        /// Its length.
        len: u64,
    },
    /// Read `/proc/PID/environ`.
    Environment {
        /// The process.
        pid: u32,
    },
    /// Read `/proc/PID/cmdline`, which the kernel reads from the process's memory.
    CommandLine {
        /// The process.
        pid: u32,
    },
}

/// The result of a request.
#[derive(Debug, Default)]
pub struct Reply {
    /// The opened file or directory, if the request opens one.
    pub file: Option<OwnedFd>,
    /// The bytes that were read, if the request reads some.
    pub bytes: Vec<u8>,
}

impl Request<'_> {
    /// The pid of the process that the request is about; `None` if it is about none.
    pub fn pid(&self) -> Option<u32> {
        match *self {
            Request::Mapped(source) | Request::Summarized(source) => source.pid,
            Request::Mapping { pid, .. }
            | Request::MappedRevisions { pid, .. }
            | Request::Program { pid }
            | Request::Root { pid }
            | Request::CodeMappings { pid, .. }
            | Request::Memory { pid, .. }
            | Request::Pieces { pid, .. }
            | Request::OpenMemory { pid }
            | Request::Environment { pid }
            | Request::CommandLine { pid } => Some(pid),
            Request::Beneath { .. }
            | Request::Named { .. }
            | Request::PerfMap { .. }
            | Request::JitDump { .. }
            | Request::Unpack { .. } => None,
        }
    }

    /// The process whose memory the request reads, on which it may block from the beginning on;
    /// `None` if it blocks elsewhere.
    pub fn waits_at_first(&self) -> Option<Blocker> {
        match *self {
            Request::MappedRevisions { pid, .. }
            | Request::CodeMappings { pid, .. }
            | Request::Memory { pid, .. }
            | Request::Pieces { pid, .. }
            | Request::OpenMemory { pid }
            | Request::Environment { pid }
            | Request::CommandLine { pid } => Some(Blocker::Process(pid)),
            Request::Mapped(_)
            | Request::Summarized(_)
            | Request::Mapping { .. }
            | Request::Program { .. }
            | Request::Root { .. }
            | Request::Beneath { .. }
            | Request::Named { .. }
            | Request::PerfMap { .. }
            | Request::JitDump { .. }
            | Request::Unpack { .. } => None,
        }
    }

    /// Performs the request in the calling thread.
    pub fn perform(&self, opening: &mut Opening<'_>) -> Result<Reply, Reason> {
        if let Some(place) = self.waits_at_first() {
            opening.watch.enter(place)?;
        }
        match *self {
            Request::Mapped(source) => opener::open(&source, opening).map(Reply::file),
            Request::Summarized(source) => {
                let file = opener::open(&source, opening)?;
                Ok(Reply {
                    bytes: write_answer(&summary(&file)),
                    file: Some(file.into()),
                })
            }
            Request::Mapping { pid, range } => {
                opening.see_mounts_of(&format!("/proc/{pid}"));
                opener::open_mapping(pid, range, opening).map(Reply::file)
            }
            Request::MappedRevisions { pid, ranges } => {
                let seen = ranges.iter().map(|range| mapped_revision(pid, *range).ok());
                Ok(Reply::bytes(seen.flat_map(words_of).collect()))
            }
            Request::Program { pid } => {
                opening.see_mounts_of(&format!("/proc/{pid}"));
                opener::open_link(&format!("/proc/{pid}/exe"), opening).map(Reply::file)
            }
            Request::Beneath { root, path, links } => {
                opener::open_beneath(root, path, links, opening).map(Reply::file)
            }
            Request::Root { pid } => opener::open_root_of(pid).map(|root| Reply {
                file: Some(root),
                ..Reply::default()
            }),
            Request::Named { path } => try_to_read(path).map(|()| Reply::default()),
            Request::PerfMap { process } => {
                opening.see_mounts_of(&directory(process));
                jit_files::perf_map(process, opening).map(Reply::file)
            }
            Request::JitDump { process } => {
                opening.see_mounts_of(&directory(process));
                jit_files::jit_dump(process, opening).map(Reply::file)
            }
            Request::CodeMappings { pid, lines_max } => {
                let file = File::open(format!("/proc/{pid}/maps")).map_err(reason)?;
                let lines = executable_lines(file, lines_max);
                lines.map(Reply::bytes).map_err(reason)
            }
            Request::Memory { pid, start, len } => {
                memory(pid, start, len).map(Reply::bytes).map_err(reason)
            }
            Request::Pieces { pid, pieces } => {
                read_pieces(pid, pieces).map(Reply::bytes).map_err(reason)
            }
            Request::OpenMemory { pid } => {
                let file = File::open(format!("/proc/{pid}/mem")).map_err(reason)?;
                Ok(Reply::file(file))
            }
            Request::Unpack { file, offset, len } => unpack::xz(file, offset, len).map(Reply::file),
            Request::Environment { pid } => environment(pid).map(Reply::bytes).map_err(reason),
            Request::CommandLine { pid } => command_line(pid).map(Reply::bytes).map_err(reason),
        }
    }
}

impl Reply {
    fn file(file: File) -> Reply {
        Reply {
            file: Some(file.into()),
            ..Reply::default()
        }
    }

    fn bytes(bytes: Vec<u8>) -> Reply {
        Reply {
            bytes,
            ..Reply::default()
        }
    }
}

/// Reads the headers of a file. A mistake of ours in doing that costs only what they tell.
fn summary(file: &File) -> Result<Summary, Reason> {
    let summary = faults::catch(READING_HEADERS, || Summary::read(file));
    let summary = summary.map_err(|_| Reason::Mistake)?;
    summary.map_err(|error| error.reason())
}

fn reason(error: io::Error) -> Reason {
    io_reason(&error)
}

/// The path in /proc of a directory that we have open.
fn directory(held: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", held.as_raw_fd())
}

/// Reads a revision without contacting a file server: a process may have replaced its mapping by a
/// file whose server does not respond.
fn mapped_revision(pid: u32, (start, end): (u64, u64)) -> Result<Revision, Reason> {
    let link = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
    let flags = AtFlags::STATX_DONT_SYNC;
    let status = statx(CWD, link, flags, StatxFlags::BASIC_STATS)
        .map_err(|error| io_reason(&error.into()))?;
    Ok(Revision::of_status(&status))
}

/// The words that one range adds to the reply to [`Request::MappedRevisions`].
fn words_of(revision: Option<Revision>) -> impl Iterator<Item = u8> {
    let is_seen = u64::from(revision.is_some());
    let words = revision.map_or([0; REVISION_WORDS], |revision| revision.to_words());
    let words = std::iter::once(is_seen).chain(words);
    words.flat_map(u64::to_le_bytes)
}

/// Filters `start-end r-xp …`, whole lines only, up to a number of lines.
fn executable_lines(maps: impl Read, lines_max: u32) -> io::Result<Vec<u8>> {
    let mut lines = io::BufReader::with_capacity(64 << 10, maps);
    let (mut kept, mut line) = (Vec::new(), Vec::new());
    let mut left = lines_max;
    while left > 0 && io::BufRead::read_until(&mut lines, b'\n', &mut line)? > 0 {
        let rights = memchr::memchr(b' ', &line).and_then(|space| line.get(space + 3));
        if rights == Some(&b'x') {
            if kept.len() + line.len() > MAPS_BYTES_MAX {
                break;
            }
            kept.extend_from_slice(&line);
            left -= 1;
        }
        line.clear();
    }
    Ok(kept)
}

/// Reads memory from `start` on, as far as it exists.
fn memory(pid: u32, start: u64, len: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len.min(MEMORY_BYTES_MAX) as usize];
    let file = File::open(format!("/proc/{pid}/mem"))?;
    let read = file.read_at(&mut bytes, start)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Reads pieces in the order in which they were requested, with as little time as possible in
/// between: the caller compares two readings of the same piece.
fn read_pieces(pid: u32, pieces: &[(u64, u64)]) -> io::Result<Vec<u8>> {
    let file = File::open(format!("/proc/{pid}/mem"))?;
    let mut bytes = Vec::with_capacity(64 << 10);
    let mut left = u64::from(MEMORY_BYTES_MAX);
    for (start, len) in pieces {
        let head = bytes.len();
        bytes.extend([0; 4]);
        if *len > left {
            continue;
        }
        left -= len;
        let from = bytes.len();
        bytes.resize(from + *len as usize, 0);
        match file.read_exact_at(&mut bytes[from..], *start) {
            Ok(()) => bytes[head..from].copy_from_slice(&(*len as u32).to_le_bytes()),
            Err(_) => bytes.truncate(from),
        }
    }
    Ok(bytes)
}

fn command_line(pid: u32) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/cmdline"))?;
    file.take(COMMAND_LINE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn environment(pid: u32) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ"))?;
    file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file and reads from it. An error of opening is left to the caller, who reports it.
fn try_to_read(path: &Path) -> Result<(), Reason> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options()
        .read(true)
        .custom_flags(nonblocking)
        .open(path);
    let Ok(mut file) = opened else {
        return Ok(());
    };
    let is = file.metadata().map(|metadata| metadata.file_type());
    if is.as_ref().is_ok_and(fs::FileType::is_dir) {
        _ = fs::read_dir(path).map(|mut entries| entries.next());
    } else if is.is_ok_and(|is| is.is_file()) {
        _ = file.read(&mut [0; 4096]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_in_their_order_and_what_is_not_there_is_left_out() {
        let own = *b"one, two, three";
        let start = own.as_ptr() as u64;
        let too_much = u64::from(MEMORY_BYTES_MAX);
        let pieces = [(start + 5, 3), (8, 8), (start, too_much), (start, 3)];
        let bytes = read_pieces(std::process::id(), &pieces).unwrap();
        assert_eq!(bytes, b"\x03\0\0\0two\0\0\0\0\0\0\0\0\x03\0\0\0one");
    }

    #[test]
    fn only_lines_of_code_are_kept() {
        let maps = "1000-2000 r--p 0 fe:01 5 /x\n2000-3000 r-xp 0 fe:01 5 /x y\n\n3000-4000 rwxp";
        let kept = executable_lines(maps.as_bytes(), u32::MAX).unwrap();
        assert_eq!(kept, b"2000-3000 r-xp 0 fe:01 5 /x y\n3000-4000 rwxp");
        let kept = executable_lines(maps.as_bytes(), 1).unwrap();
        assert_eq!(kept, b"2000-3000 r-xp 0 fe:01 5 /x y\n");
    }
}
