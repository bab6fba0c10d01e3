//! The lines of standard input. As much of it is read at once as there is, so that the addresses of
//! many lines are known before the first is answered.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, BufRead, ErrorKind, StdinLock};

/// Maximum length of a line, in bytes. A longer line is handled as several lines.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Number of bytes from which on no more is read before they are answered.
const TEXT_BYTES: usize = 1 << 20;

/// Number of bytes that the buffer of standard input has. When it is full, the program that writes
/// has more, and is waited for.
const PART_BYTES: usize = 8 << 10;

/// How long that program is waited for.
const WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Standard input, line by line.
pub struct Lines {
    input: StdinLock<'static>,
    text: Vec<u8>,
    /// Where the next line begins in `text`.
    at: usize,
}

impl Lines {
    /// Reads nothing yet.
    pub fn of_input() -> Lines {
        Lines {
            input: io::stdin().lock(),
            text: Vec::new(),
            at: 0,
        }
    }

    /// Returns the next line, with its end; None behind the last one. When something had to be read
    /// for it, `expect` gets the line and all text behind it that was read.
    pub fn next(&mut self, expect: impl FnOnce(&[u8])) -> io::Result<Option<&[u8]>> {
        let mut is_new = false;
        let len = loop {
            let rest = &self.text[self.at..];
            let mut line = &rest[..rest.len().min(LINE_BYTES_MAX)];
            let len = line.skip_until(b'\n')?;
            let is_whole = rest[..len].ends_with(b"\n") || len == LINE_BYTES_MAX;
            if is_whole || self.read()? == 0 {
                break len;
            }
            is_new = true;
        };
        let rest = &self.text[self.at..];
        if is_new {
            expect(rest);
        }
        self.at += len;
        Ok((len > 0).then_some(&rest[..len]))
    }

    /// Whether the next line, or its end, has to be read, and may be waited for.
    pub fn is_all_answered(&self) -> bool {
        !self.text[self.at..].contains(&b'\n')
    }

    /// Reads some text; returns its length, which is 0 at the end.
    fn read(&mut self) -> io::Result<usize> {
        self.text.drain(..self.at);
        self.at = 0;
        let before = self.text.len();
        loop {
            let len = match self.input.fill_buf() {
                Ok(part) => {
                    self.text.extend_from_slice(part);
                    part.len()
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // What was read is answered first, and the next attempt tells the error.
                Err(_) if self.text.len() > before => 0,
                Err(error) => return Err(error),
            };
            self.input.consume(len);
            if len < PART_BYTES || self.text.len() >= TEXT_BYTES || !comes_soon() {
                return Ok(self.text.len() - before);
            }
        }
    }
}

/// Whether there is more to read, or is after a moment.
fn comes_soon() -> bool {
    let stdin = io::stdin();
    let mut input = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut input, Some(&WAIT)).is_ok_and(|ready| ready > 0)
}
