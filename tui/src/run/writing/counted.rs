//! A writer that counts bytes, and fails when the work is cancelled.

use profile::Cancel;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// The minimum time between two calls of `tell`.
const PAUSE: Duration = Duration::from_millis(100);

/// Passes bytes on to `out`, and counts them.
pub struct Counted<'a, W> {
    out: W,
    bytes: u64,
    cancel: &'a Cancel,
    tell: &'a dyn Fn(u64),
    told: Instant,
}

impl<'a, W: Write> Counted<'a, W> {
    /// Wraps a writer. `tell` is called now and then with the number of bytes so far.
    pub fn new(out: W, cancel: &'a Cancel, tell: &'a dyn Fn(u64)) -> Self {
        Counted {
            out,
            bytes: 0,
            cancel,
            tell,
            told: Instant::now(),
        }
    }

    /// Returns the number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        if self.told.elapsed() >= PAUSE {
            self.told = Instant::now();
            (self.tell)(self.bytes);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn bytes_are_counted_until_nobody_wants_them() {
        let cancel = Cancel::new();
        let heard = RefCell::new(Vec::new());
        let tell = |bytes| heard.borrow_mut().push(bytes);
        let mut out = Counted::new(Vec::new(), &cancel, &tell);
        out.write_all(b"stack").unwrap();
        // As if this time had passed.
        out.told -= PAUSE;
        out.write_all(b"s").unwrap();
        assert_eq!(out.bytes(), 6);
        assert_eq!(heard.borrow().last(), Some(&6));
        cancel.cancel();
        assert!(out.write_all(b"more").is_err());
        assert_eq!(out.bytes(), 6);
    }
}
