//! `/tmp/perf-PID.map`: one line for each piece of code, in the order in which
//! it was made.
//!
//! Only 16 bytes per line are kept in memory. Names are read from the file on demand; if a line has
//! changed since, the file was rewritten.

mod line;

use std::fs::File;
use std::io;

use super::code::JitCode;
use super::spans::{SPANS_MAX, Span, Spans};
use super::tail::{Change, Tail};
use line::{LINE_BYTES_MAX, Line};

/// Maximum size that is read: offsets have 32 bits.
const MAP_BYTES_MAX: u64 = 1 << 30;

/// Size of one read: large enough that the cost of system calls does not matter, small enough to
/// stay in a cache.
const CHUNK_BYTES: usize = 256 << 10;

/// Typical minimum length of a line.
const LINE_BYTES_USUAL: u64 = 40;

/// The map of one process.
#[derive(Debug)]
pub struct PerfMap {
    tail: Tail,
    spans: Spans,
}

impl PerfMap {
    /// A map of which nothing was read yet.
    pub fn new(file: File) -> PerfMap {
        PerfMap {
            tail: Tail::new(file),
            spans: Spans::default(),
        }
    }

    /// Whether `other` is the file of this map.
    pub fn is(&self, other: &File) -> bool {
        self.tail.is(other)
    }

    /// Reads new lines. Returns true if there were any.
    pub fn update(&mut self) -> io::Result<bool> {
        match self.tail.look()? {
            Change::Same => return Ok(false),
            Change::Grown => {}
            Change::Anew => self.spans = Spans::default(),
        }
        let mut buffer = vec![0; CHUNK_BYTES];
        let new = self.tail.len()?.saturating_sub(self.tail.position());
        // Reserves address space, not memory: only what is used is ever touched.
        let room = (new / LINE_BYTES_USUAL).min(SPANS_MAX as u64) as usize;
        let mut batch = Vec::with_capacity(room);
        while self.tail.position() < MAP_BYTES_MAX {
            let have = self.tail.read(&mut buffer)?;
            let chunk = &buffer[..have];
            let Some(last) = memchr::memrchr(b'\n', chunk) else {
                if have < CHUNK_BYTES {
                    // The last line is still being written: it is read next time.
                    break;
                }
                self.tail.consume(chunk);
                continue;
            };
            let lines = &chunk[..=last];
            parse(lines, self.tail.position(), &mut batch);
            self.tail.consume(lines);
        }
        let grown = !batch.is_empty();
        self.spans.add(batch);
        Ok(grown)
    }

    /// Returns the name of the latest code at this address. Reads the file again if it has been
    /// rewritten.
    pub fn find(&mut self, addr: u64) -> Option<Vec<u8>> {
        Some(self.code(addr)?.name)
    }

    /// Returns the latest code at this address; a map has only its name and its position.
    pub fn code(&mut self, addr: u64) -> Option<JitCode> {
        let span = self.spans.find(addr)?;
        self.entry(span, addr).or_else(|| {
            self.spans = Spans::default();
            self.tail = self.tail.restarted().ok()?;
            self.update().ok()?;
            self.entry(self.spans.find(addr)?, addr)
        })
    }

    /// Number of pieces of code.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether it has no function.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.spans.heap_bytes()
    }

    fn entry(&self, span: Span, addr: u64) -> Option<JitCode> {
        let mut buffer = [0; LINE_BYTES_MAX];
        let have = self.tail.read_at(&mut buffer, span.entry.into()).ok()?;
        let text = &buffer[..have];
        let end = memchr::memchr(b'\n', text).unwrap_or(have);
        let line = Line::parse(&text[..end]).filter(|line| line.has(addr))?;
        Some(JitCode {
            name: line.name.to_vec(),
            start: line.start,
            len: line.size,
            bytes: None,
        })
    }
}

/// Adds the entries of whole lines, the first of which is at `offset`.
fn parse(lines: &[u8], offset: u64, batch: &mut Vec<Span>) {
    let mut begin = 0;
    for end in memchr::memchr_iter(b'\n', lines) {
        if let Some(line) = Line::parse(&lines[begin..end]) {
            batch.push(Span {
                start: line.start,
                // No function has 4 GiB; larger sizes are cut.
                len: u32::try_from(line.size).unwrap_or(u32::MAX),
                entry: (offset + begin as u64) as u32,
            });
        }
        begin = end + 1;
    }
}

#[cfg(test)]
mod tests;
