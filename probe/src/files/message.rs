//! Encodes requests and replies as bytes. Both ends are this program.

use super::avoided::PLACES_MAX;
use faults::Fault;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use symbolize::files::{Order, READING_HEADERS, Reply, Request, Work};
use symbolize::opener::{Blocker, Links};
use symbolize::{FileIdentity, FileSource, Reason, RemoteFiles};

/// What a reader needs to know to perform one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// How files on remote file systems are treated.
    pub remote: RemoteFiles,
    /// Whether file systems that no list contains are not even asked for their kind.
    pub is_careful: bool,
    /// Places that must not be accessed.
    pub avoided: Vec<Blocker>,
}

/// A message from a reader or parser.
#[derive(Debug)]
pub enum Word {
    /// The process is about to wait at this place. Not sent for the place where the request itself
    /// begins to wait.
    Entering(Blocker),
    /// A parser has a request of its own: its bytes and files.
    Asking(Vec<u8>, Vec<OwnedFd>),
    /// The process detected a fault of its own code while doing one of the [`WORKS`].
    Mistaken(Fault),
    /// The request has ended, with this result.
    Done(Result<Reply, Reason>),
}

/// The kinds of work in which a reader or parser can detect a fault.
const WORKS: [&str; 14] = [
    Work::Names.name(),
    "demangling a name",
    Work::Lines.name(),
    Work::Tables.name(),
    Work::JitNames.name(),
    Work::Python.name(),
    Work::PythonMemory.name(),
    Work::Code.name(),
    Work::Facts.name(),
    Work::Sites.name(),
    Work::Recordings.name(),
    Work::Archives.name(),
    Work::Packages.name(),
    READING_HEADERS,
];

/// An order for a parser, without its files.
#[derive(Debug, PartialEq, Eq)]
pub struct Task<'m> {
    /// The kind of work.
    pub work: Work,
    /// The number of the file that it is about, by which failures are remembered.
    pub file: u64,
    /// The question itself, in the encoding of the work.
    pub message: &'m [u8],
}

/// Encodes an order. Its files are sent along with it.
pub fn write_order(order: &Order<'_>) -> Vec<u8> {
    let head = [&[order.work as u8][..], &order.file.to_le_bytes()].concat();
    [&head, order.message].concat()
}

/// Decodes an order; `None` if these bytes are not an order.
pub fn read_order(bytes: &[u8]) -> Option<Task<'_>> {
    let mut rest = bytes;
    let [work] = take(&mut rest)?;
    Some(Task {
        work: *Work::ALL.get(usize::from(work))?,
        file: u64::from_le_bytes(take(&mut rest)?),
        message: rest,
    })
}

/// A request of any kind, field by field; fields that it does not have are empty.
#[derive(Debug, Default)]
struct Fields<'a> {
    tag: u8,
    flags: u8,
    pid: u32,
    numbers: [u64; 4],
    path: &'a [u8],
    build_id: &'a [u8],
    ranges: &'a [(u64, u64)],
    identity: Option<[u64; IDENTITY_WORDS]>,
}

const IDENTITY_WORDS: usize = 9;

/// The tags of the two requests that have the same fields.
const MAPPED: u8 = 0;
const SUMMARIZED: u8 = 15;

const HAS_PID: u8 = 1;
const HAS_RANGE: u8 = 2;
const HAS_BUILD_ID: u8 = 4;
const HAS_FILE: u8 = 8;
const HAS_ROOT: u8 = 16;
const FOLLOWS: u8 = 32;
const HAS_IDENTITY: u8 = 64;

/// Encodes a request; also returns the files to send along with it.
pub fn write_request<'r>(request: &Request<'r>, terms: &Terms) -> (Vec<u8>, Vec<BorrowedFd<'r>>) {
    let mut files = Vec::new();
    let fields = fields(request, &mut files);
    let mut out = vec![
        u8::from(terms.remote == RemoteFiles::Open),
        u8::from(terms.is_careful),
        terms.avoided.len().min(PLACES_MAX) as u8,
    ];
    for place in terms.avoided.iter().take(PLACES_MAX) {
        write_place(&mut out, *place);
    }
    out.extend([fields.tag, fields.flags]);
    out.extend(fields.pid.to_le_bytes());
    for number in fields.numbers {
        out.extend(number.to_le_bytes());
    }
    for word in fields.identity.into_iter().flatten() {
        out.extend(word.to_le_bytes());
    }
    out.extend((fields.path.len() as u32).to_le_bytes());
    out.extend(fields.path);
    out.extend((fields.ranges.len() as u32).to_le_bytes());
    for (start, end) in fields.ranges {
        out.extend(start.to_le_bytes());
        out.extend(end.to_le_bytes());
    }
    out.extend(fields.build_id);
    (out, files)
}

/// Decodes a request and passes it to `perform`; `None` if these bytes are not a request.
pub fn read_request<T>(
    bytes: &[u8],
    files: &[OwnedFd],
    perform: impl FnOnce(Request<'_>, Terms) -> T,
) -> Option<T> {
    let mut rest = bytes;
    let [remote, is_careful, count] = take(&mut rest)?;
    let avoided = (0..count).map(|_| read_place(&mut rest));
    let terms = Terms {
        remote: if remote == 1 {
            RemoteFiles::Open
        } else {
            RemoteFiles::Skip
        },
        is_careful: is_careful == 1,
        avoided: avoided.collect::<Option<_>>()?,
    };
    let [tag, flags] = take(&mut rest)?;
    let pid = u32::from_le_bytes(take(&mut rest)?);
    let mut numbers = [0; 4];
    for number in &mut numbers {
        *number = u64::from_le_bytes(take(&mut rest)?);
    }
    let mut identity = None;
    if flags & HAS_IDENTITY != 0 {
        let words = identity.insert([0; IDENTITY_WORDS]);
        for word in words {
            *word = u64::from_le_bytes(take(&mut rest)?);
        }
    }
    let path = u32::from_le_bytes(take(&mut rest)?) as usize;
    let (path, mut rest) = rest.split_at_checked(path)?;
    let count = u32::from_le_bytes(take(&mut rest)?);
    let ranges = (0..count).map(|_| {
        let (start, end) = (take(&mut rest)?, take(&mut rest)?);
        Some((u64::from_le_bytes(start), u64::from_le_bytes(end)))
    });
    let ranges: Vec<_> = ranges.collect::<Option<_>>()?;
    let fields = Fields {
        tag,
        flags,
        pid,
        numbers,
        path,
        ranges: &ranges,
        build_id: rest,
        identity,
    };
    let identity = identity.map(FileIdentity::from_words);
    Some(perform(request(&fields, files, identity.as_ref())?, terms))
}

fn fields<'r>(request: &Request<'r>, files: &mut Vec<BorrowedFd<'r>>) -> Fields<'r> {
    let plain = |tag, pid| Fields {
        tag,
        pid,
        ..Fields::default()
    };
    match *request {
        Request::Mapped(source) | Request::Summarized(source) => {
            files.extend(source.file.map(OwnedFd::as_fd));
            files.extend(source.root.map(OwnedFd::as_fd));
            let (start, end) = source.range.unwrap_or_default();
            let flags = [
                (source.pid.is_some(), HAS_PID),
                (source.range.is_some(), HAS_RANGE),
                (source.build_id.is_some(), HAS_BUILD_ID),
                (source.file.is_some(), HAS_FILE),
                (source.root.is_some(), HAS_ROOT),
                (source.identity.is_some(), HAS_IDENTITY),
            ];
            let set = flags.iter().filter(|(is_set, _)| *is_set);
            Fields {
                tag: match request {
                    Request::Summarized(_) => SUMMARIZED,
                    _ => MAPPED,
                },
                flags: set.fold(0, |all, (_, flag)| all | flag),
                pid: source.pid.unwrap_or_default(),
                numbers: [start, end, device(source.device), source.inode],
                path: source.path.as_os_str().as_bytes(),
                build_id: source.build_id.unwrap_or_default(),
                ranges: &[],
                identity: source.identity.map(FileIdentity::to_words),
            }
        }
        Request::Mapping { pid, range } => Fields {
            numbers: [range.0, range.1, 0, 0],
            ..plain(1, pid)
        },
        Request::Program { pid } => plain(2, pid),
        Request::Beneath { root, path, links } => {
            files.push(root);
            Fields {
                flags: if links == Links::Follow { FOLLOWS } else { 0 },
                path: path.as_os_str().as_bytes(),
                ..plain(3, 0)
            }
        }
        Request::Root { pid } => plain(4, pid),
        Request::Named { path } => Fields {
            path: path.as_os_str().as_bytes(),
            ..plain(5, 0)
        },
        Request::PerfMap { process } => {
            files.push(process);
            plain(6, 0)
        }
        Request::JitDump { process } => {
            files.push(process);
            plain(7, 0)
        }
        Request::CodeMappings { pid, lines_max } => Fields {
            numbers: [lines_max.into(), 0, 0, 0],
            ..plain(8, pid)
        },
        Request::Memory { pid, start, len } => Fields {
            numbers: [start, len.into(), 0, 0],
            ..plain(9, pid)
        },
        Request::Environment { pid } => plain(10, pid),
        Request::Pieces { pid, pieces } => Fields {
            ranges: pieces,
            ..plain(14, pid)
        },
        Request::Unpack { file, offset, len } => {
            files.push(file);
            Fields {
                numbers: [offset, len, 0, 0],
                ..plain(13, 0)
            }
        }
        Request::CommandLine { pid } => plain(12, pid),
        Request::OpenMemory { pid } => plain(16, pid),
        Request::MappedRevisions { pid, ranges } => Fields {
            ranges,
            ..plain(11, pid)
        },
    }
}

fn request<'a>(
    fields: &Fields<'a>,
    files: &'a [OwnedFd],
    identity: Option<&'a FileIdentity>,
) -> Option<Request<'a>> {
    let Fields { pid, path, .. } = *fields;
    let [start, end, device, inode] = fields.numbers;
    let path = Path::new(OsStr::from_bytes(path));
    let has = |flag: u8| fields.flags & flag != 0;
    Some(match fields.tag {
        MAPPED | SUMMARIZED => {
            let mut files = files.iter();
            let mut next = |flag| if has(flag) { files.next() } else { None };
            let source = FileSource {
                path,
                pid: has(HAS_PID).then_some(pid),
                range: has(HAS_RANGE).then_some((start, end)),
                build_id: has(HAS_BUILD_ID).then_some(fields.build_id),
                device: ((device >> 32) as u32, device as u32),
                inode,
                identity,
                file: next(HAS_FILE),
                root: next(HAS_ROOT),
            };
            if fields.tag == MAPPED {
                Request::Mapped(source)
            } else {
                Request::Summarized(source)
            }
        }
        1 => Request::Mapping {
            pid,
            range: (start, end),
        },
        2 => Request::Program { pid },
        3 => Request::Beneath {
            root: files.first()?.as_fd(),
            path,
            links: if has(FOLLOWS) {
                Links::Follow
            } else {
                Links::Refuse
            },
        },
        4 => Request::Root { pid },
        5 => Request::Named { path },
        6 => Request::PerfMap {
            process: files.first()?.as_fd(),
        },
        7 => Request::JitDump {
            process: files.first()?.as_fd(),
        },
        8 => Request::CodeMappings {
            pid,
            lines_max: u32::try_from(start).ok()?,
        },
        9 => Request::Memory {
            pid,
            start,
            len: u32::try_from(end).ok()?,
        },
        10 => Request::Environment { pid },
        12 => Request::CommandLine { pid },
        13 => Request::Unpack {
            file: files.first()?.as_fd(),
            offset: start,
            len: end,
        },
        11 => Request::MappedRevisions {
            pid,
            ranges: fields.ranges,
        },
        16 => Request::OpenMemory { pid },
        14 => Request::Pieces {
            pid,
            pieces: fields.ranges,
        },
        _ => return None,
    })
}

/// Encodes a word, without the file that may be sent along with it.
pub fn write_word(word: &Word) -> Vec<u8> {
    match word {
        Word::Entering(place) => {
            let mut out = vec![0];
            write_place(&mut out, *place);
            out
        }
        Word::Asking(request, _) => [&[3], request.as_slice()].concat(),
        Word::Mistaken(fault) => write_fault(fault),
        Word::Done(Ok(reply)) => [&[1], reply.bytes.as_slice()].concat(),
        Word::Done(Err(reason)) => vec![2, *reason as u8],
    }
}

/// Decodes a word; `None` if these bytes are not a word.
pub fn read_word(bytes: Vec<u8>, mut files: Vec<OwnedFd>) -> Option<Word> {
    let (tag, mut rest) = bytes.split_first()?;
    Some(match tag {
        0 => Word::Entering(read_place(&mut rest)?),
        1 => Word::Done(Ok(Reply {
            file: files.pop(),
            bytes: rest.to_vec(),
        })),
        3 => Word::Asking(rest.to_vec(), files),
        4 => Word::Mistaken(read_fault(rest)?),
        2 => Word::Done(Err(*Reason::ALL.get(usize::from(*rest.first()?))?)),
        _ => return None,
    })
}

/// Writes the number of the work and the count, then the place and the message.
fn write_fault(fault: &Fault) -> Vec<u8> {
    let work = WORKS.iter().position(|work| *work == fault.work);
    let mut out = vec![4, work.unwrap_or(0) as u8];
    out.extend(fault.count.to_le_bytes());
    let place = fault.place.as_deref().unwrap_or_default();
    out.extend((place.len() as u32).to_le_bytes());
    out.extend(place.as_bytes());
    out.extend(fault.message.as_bytes());
    out
}

/// Reads a fault that a process has reported about itself. By then untrusted code may run in that
/// process, so any bytes may come: place and message are made safe to print.
fn read_fault(mut bytes: &[u8]) -> Option<Fault> {
    let [work] = take(&mut bytes)?;
    let count = u64::from_le_bytes(take(&mut bytes)?);
    let place = u32::from_le_bytes(take(&mut bytes)?) as usize;
    let (place, message) = bytes.split_at_checked(place)?;
    let is_place = !place.is_empty() && place.len() <= PLACE_BYTES_MAX;
    Some(Fault {
        work: WORKS.get(usize::from(work))?,
        message: symbolize::sanitize(message).into_owned(),
        place: is_place.then(|| symbolize::sanitize(place).into_owned()),
        count: count.min(FAULTS_MAX),
    })
}

/// Maximum length of a place. Names of proftop's own source files are shorter.
const PLACE_BYTES_MAX: usize = 200;

/// Maximum count of a fault; a single order cannot cause more.
const FAULTS_MAX: u64 = 1 << 20;

fn write_place(out: &mut Vec<u8>, place: Blocker) {
    let (tag, one, other) = match place {
        Blocker::FileSystem(major, minor) => (0, major, minor),
        Blocker::Process(pid) => (1, pid, 0),
    };
    out.push(tag);
    out.extend(one.to_le_bytes());
    out.extend(other.to_le_bytes());
}

fn read_place(rest: &mut &[u8]) -> Option<Blocker> {
    let [tag] = take(rest)?;
    let (one, other) = (take(rest)?, take(rest)?);
    let (one, other) = (u32::from_le_bytes(one), u32::from_le_bytes(other));
    Some(match tag {
        0 => Blocker::FileSystem(one, other),
        _ => Blocker::Process(one),
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*first)
}

fn device((major, minor): (u32, u32)) -> u64 {
    u64::from(major) << 32 | u64::from(minor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn requests_arrive_as_they_were_sent() {
        let file: OwnedFd = File::open("/dev/null").unwrap().into();
        let path = Path::new("/a b/c (deleted)");
        let identity = FileIdentity::from_words([1, 2, 3, 4, 5, 6, 7, 8 << 32 | 9, 3]);
        let source = FileSource {
            pid: Some(7),
            range: Some((0x1000, u64::MAX)),
            build_id: Some(b"id"),
            device: (u32::MAX, 5),
            inode: u64::MAX,
            identity: Some(&identity),
            ..FileSource::new(path)
        };
        let with_files = FileSource {
            root: Some(&file),
            file: Some(&file),
            ..FileSource::new(path)
        };
        let links = Links::Refuse;
        let (root, process) = (file.as_fd(), file.as_fd());
        let pid = 4_194_304;
        let ranges: &[_] = &[(1, 2), (3, u64::MAX)];
        let requests = [
            Request::Mapped(source),
            Request::Mapped(with_files),
            Request::Summarized(source),
            Request::Summarized(with_files),
            Request::Mapping { pid, range: (1, 2) },
            Request::Program { pid },
            Request::Beneath { root, path, links },
            Request::Root { pid },
            Request::Named { path },
            Request::PerfMap { process },
            Request::JitDump { process },
            Request::CodeMappings {
                pid,
                lines_max: u32::MAX,
            },
            Request::Memory {
                pid,
                start: u64::MAX,
                len: 3,
            },
            Request::Environment { pid },
            Request::CommandLine { pid },
            Request::Unpack {
                file: file.as_fd(),
                offset: 1,
                len: u64::MAX,
            },
            Request::Pieces {
                pid,
                pieces: ranges,
            },
            Request::MappedRevisions { pid, ranges: &[] },
            Request::MappedRevisions { pid, ranges },
            Request::OpenMemory { pid },
        ];
        let terms = Terms {
            remote: RemoteFiles::Open,
            is_careful: true,
            avoided: vec![Blocker::Process(3), Blocker::FileSystem(0, 39)],
        };
        // Compares without the numbers of descriptors, which differ on the other side.
        let words = |request: &Request<'_>| {
            let words = format!("{request:?}");
            let pieces = words.split("fd: ");
            pieces
                .map(|piece| piece.trim_start_matches(|c: char| c.is_ascii_digit()))
                .collect::<String>()
        };
        for request in &requests {
            let (bytes, files) = write_request(request, &terms);
            let files: Vec<_> = files
                .iter()
                .map(|f| f.try_clone_to_owned().unwrap())
                .collect();
            let read = read_request(&bytes, &files, |read, read_terms| {
                assert_eq!(words(&read), words(request));
                assert_eq!(read_terms, terms);
            });
            assert!(read.is_some());
            for len in 0..bytes.len() - 20 {
                assert!(read_request(&bytes[..len], &files, |_, _| ()).is_none());
            }
        }
    }

    #[test]
    fn words_arrive_as_they_were_said() {
        for reason in Reason::ALL {
            let word = write_word(&Word::Done(Err(reason)));
            let read = read_word(word, Vec::new());
            assert!(matches!(read, Some(Word::Done(Err(read))) if read == reason));
        }
        let reply = Reply {
            file: None,
            bytes: b"lines".to_vec(),
        };
        let read = read_word(write_word(&Word::Done(Ok(reply))), Vec::new());
        assert!(matches!(read, Some(Word::Done(Ok(read))) if read.bytes == b"lines"));
        let place = Blocker::FileSystem(1, 2);
        let read = read_word(write_word(&Word::Entering(place)), Vec::new());
        assert!(matches!(read, Some(Word::Entering(read)) if read == place));
    }
}
