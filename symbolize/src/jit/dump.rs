//! `jit-PID.dump`: records of what code was made when, and when it was moved
//! (linux/tools/perf/Documentation/jitdump-specification.txt).
//!
//! The code itself is in the file, too, so only the heads of records are read until their contents
//! are needed. Line records are not read: runtimes do not agree on what the addresses in them are
//! relative to (V8 adds the 64 bytes of a header that `perf inject` writes).

use std::fs::File;
use std::io;

use super::code::{BYTES_MAX, JitCode};
use super::spans::{SPANS_MAX, Span, Spans};
use super::tail::{Change, Tail};
use crate::bytes::{u32_at, u64_at};

const MAGIC: u32 = 0x4a69_5444;

const HEADER_BYTES: usize = 40;

/// Length of the head of a record: kind, length, time of writing.
const PREFIX_BYTES: usize = 16;

/// Length of a code record without the name.
const LOAD_BYTES: usize = PREFIX_BYTES + 40;
const MOVE_BYTES: usize = PREFIX_BYTES + 48;

const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;

/// Flag: the times of records are from the processor's counter, not from a clock.
const FLAG_ARCH_TIMESTAMP: u64 = 1;

const NAME_BYTES_MAX: usize = 4 << 10;

/// Code that is at one address from some time on.
#[derive(Debug, Clone, Copy)]
struct Load {
    start: u64,
    len: u32,
    time: u64,
    /// Offset of the name.
    name: u64,
}

/// The dump of one process.
#[derive(Debug)]
pub struct JitDump {
    tail: Tail,
    loads: Vec<Load>,
    spans: Spans,
    has_clock: bool,
    /// Whether the file is damaged from here on, so that reading has stopped.
    broken: bool,
}

impl JitDump {
    /// A dump of which only the header was read.
    pub fn new(file: File) -> io::Result<JitDump> {
        let mut tail = Tail::new(file);
        let mut header = [0; HEADER_BYTES];
        let have = tail.read(&mut header)?;
        let size = u32_at(&header, 8);
        let is_dump = have == HEADER_BYTES && u32_at(&header, 0) == MAGIC;
        if !is_dump || (size as usize) < HEADER_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        tail.skip(size.into());
        Ok(JitDump {
            tail,
            loads: Vec::new(),
            spans: Spans::default(),
            has_clock: u64_at(&header, 32) & FLAG_ARCH_TIMESTAMP == 0,
            broken: false,
        })
    }

    /// Whether `other` is the file of this dump.
    pub fn is(&self, other: &File) -> bool {
        self.tail.is(other)
    }

    /// Reads new records. Returns true if there were any.
    pub fn update(&mut self) -> io::Result<bool> {
        if self.broken || self.tail.look()? != Change::Grown {
            return Ok(false);
        }
        let len = self.tail.len()?;
        let before = self.loads.len();
        let mut batch = Vec::new();
        while self.loads.len() < SPANS_MAX {
            let mut record = [0; MOVE_BYTES];
            let have = self.tail.read(&mut record)?;
            let size = u64::from(u32_at(&record, 4));
            if have < PREFIX_BYTES || self.tail.position() + size > len {
                break;
            }
            if size < PREFIX_BYTES as u64 {
                self.broken = true;
                break;
            }
            let load = match u32_at(&record, 0) {
                CODE_LOAD if size > LOAD_BYTES as u64 => Some(self.loaded(&record)),
                CODE_MOVE if size >= MOVE_BYTES as u64 => {
                    // The moved code may be in this batch.
                    self.spans.add(std::mem::take(&mut batch));
                    self.moved(&record)
                }
                _ => None,
            };
            if let Some(load) = load {
                batch.push(Span {
                    start: load.start,
                    len: load.len,
                    entry: self.loads.len() as u32,
                });
                self.loads.push(load);
            }
            self.tail.skip(size);
        }
        self.spans.add(batch);
        Ok(self.loads.len() > before)
    }

    /// Returns the name of the latest code at this address.
    pub fn find(&self, addr: u64) -> Option<Vec<u8>> {
        let span = self.spans.find(addr)?;
        self.name(self.loads.get(span.entry as usize)?)
    }

    /// Returns the name of the code that was at this address at a time of `CLOCK_MONOTONIC`, if the
    /// dump has such times.
    pub fn find_at(&self, addr: u64, time_ns: u64) -> Option<Vec<u8>> {
        let latest = self.loads.get(self.spans.find(addr)?.entry as usize)?;
        if !self.has_clock || latest.time <= time_ns {
            return self.name(latest);
        }
        let was_there = |load: &&Load| {
            load.time <= time_ns && addr >= load.start && addr - load.start < u64::from(load.len)
        };
        self.name(self.loads.iter().rev().find(was_there)?)
    }

    /// Returns the latest code at this address, with its bytes.
    pub fn code(&self, addr: u64) -> Option<JitCode> {
        let load = self.loads.get(self.spans.find(addr)?.entry as usize)?;
        let name = self.name(load)?;
        // If only a part of a longer name was read, the code would be looked for at the wrong
        // place.
        let is_whole = name.len() < NAME_BYTES_MAX;
        let mut bytes = vec![0; u64::from(load.len).min(BYTES_MAX) as usize];
        let place = load.name.checked_add(name.len() as u64 + 1)?;
        let have = self.tail.read_at(&mut bytes, place).unwrap_or(0);
        bytes.truncate(have);
        Some(JitCode {
            name,
            start: load.start,
            len: load.len.into(),
            bytes: Some(bytes).filter(|bytes| is_whole && !bytes.is_empty()),
        })
    }

    /// Number of functions in the dump.
    pub fn len(&self) -> usize {
        self.loads.len()
    }

    /// Whether it has told of none.
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.loads.capacity() * size_of::<Load>() + self.spans.heap_bytes()
    }

    fn loaded(&self, record: &[u8; MOVE_BYTES]) -> Load {
        Load {
            start: u64_at(record, 32),
            len: u32::try_from(u64_at(record, 40)).unwrap_or(u32::MAX),
            time: u64_at(record, 8),
            name: self.tail.position() + LOAD_BYTES as u64,
        }
    }

    fn moved(&self, record: &[u8; MOVE_BYTES]) -> Option<Load> {
        let from = self.spans.find(u64_at(record, 32))?;
        let from = self.loads.get(from.entry as usize)?;
        Some(Load {
            start: u64_at(record, 40),
            len: u32::try_from(u64_at(record, 48)).unwrap_or(u32::MAX),
            time: u64_at(record, 8),
            name: from.name,
        })
    }

    fn name(&self, load: &Load) -> Option<Vec<u8>> {
        let mut buffer = [0; NAME_BYTES_MAX];
        let have = self.tail.read_at(&mut buffer, load.name).ok()?;
        let end = memchr::memchr(0, &buffer[..have]).unwrap_or(have);
        (end > 0).then(|| buffer[..end].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn header() -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [MAGIC, 1, HEADER_BYTES as u32, 62, 0, 1] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(HEADER_BYTES, 0);
        bytes
    }

    fn record(kind: u32, time: u64, words: &[u64], name: &str) -> Vec<u8> {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if !name.is_empty() {
            body.extend(name.as_bytes());
            body.push(0);
        }
        let size = (PREFIX_BYTES + body.len()) as u32;
        let prefix = [kind.to_le_bytes(), size.to_le_bytes()].concat();
        [&prefix, &time.to_le_bytes()[..], &body].concat()
    }

    fn load(time: u64, start: u64, size: u64, name: &str) -> Vec<u8> {
        record(CODE_LOAD, time, &[0, start, start, size, 0], name)
    }

    fn name(found: Option<Vec<u8>>) -> Option<String> {
        found.map(|name| String::from_utf8(name).unwrap())
    }

    #[test]
    fn code_by_address_and_time() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let text = [
            header(),
            load(10, 0x1000, 0x100, "first"),
            record(2, 15, &[1, 2, 3], "lines"),
            load(20, 0x1000, 0x80, "second"),
            record(CODE_MOVE, 30, &[0, 0x1000, 0x1000, 0x5000, 0x80, 0], ""),
        ];
        file.write_all(&text.concat()).unwrap();
        let mut dump = JitDump::new(file.reopen().unwrap()).unwrap();
        assert!(dump.update().unwrap());
        assert_eq!(dump.len(), 3);
        assert_eq!(name(dump.find(0x1010)).as_deref(), Some("second"));
        assert_eq!(name(dump.find(0x1080)).as_deref(), Some("first"));
        assert_eq!(name(dump.find(0x5010)).as_deref(), Some("second"));
        assert_eq!(name(dump.find_at(0x1010, 19)).as_deref(), Some("first"));
        assert_eq!(name(dump.find_at(0x1010, 9)), None);

        // In two pieces, as a reader may see a record that is being written.
        let next = load(40, 0x9000, 0x10, "third");
        file.write_all(&next[..20]).unwrap();
        assert!(!dump.update().unwrap());
        file.write_all(&next[20..]).unwrap();
        assert!(dump.update().unwrap());
        assert_eq!(name(dump.find(0x900f)).as_deref(), Some("third"));
    }

    #[test]
    fn the_code_follows_its_name() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let code = |time, start: u64, name: &str, bytes: &str| {
            let words = [0, start, start, bytes.len() as u64, 0];
            record(CODE_LOAD, time, &words, &format!("{name}\0{bytes}"))
        };
        // `record` ends each with a zero, which is not part of the code.
        let text = [
            header(),
            code(10, 0x1000, "first", "\u{55}\u{5d}"),
            record(CODE_MOVE, 30, &[0, 0x1000, 0x1000, 0x5000, 2, 0], ""),
            load(40, 0x9000, 2 << 20, "larger than the file"),
        ];
        file.write_all(&text.concat()).unwrap();
        let mut dump = JitDump::new(file.reopen().unwrap()).unwrap();
        dump.update().unwrap();
        let found = |addr: u64| {
            let code = dump.code(addr)?;
            Some((code.start, code.len, code.bytes))
        };
        assert_eq!(found(0x1001), Some((0x1000, 2, Some(vec![0x55, 0x5d]))));
        assert_eq!(found(0x5000), Some((0x5000, 2, Some(vec![0x55, 0x5d]))));
        assert_eq!(
            found(0x9000),
            Some((0x9000, 2 << 20, None)),
            "nothing follows"
        );
        assert_eq!(found(0x1002), None);
    }

    #[test]
    fn what_is_no_dump_and_where_one_ends_to_be_one() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        assert!(JitDump::new(file.reopen().unwrap()).is_err());
        let text = [
            header(),
            load(1, 0x1000, 1, "f"),
            vec![0; 64],
            load(2, 0, 1, "g"),
        ];
        file.write_all(&text.concat()).unwrap();
        let mut dump = JitDump::new(file.reopen().unwrap()).unwrap();
        dump.update().unwrap();
        assert_eq!(dump.len(), 1);
        assert!(!dump.update().unwrap());
    }
}
