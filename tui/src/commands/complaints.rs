//! The *complaints* of a program that we have started: the lines of its standard error.

use probe::channel::{Receiver, channel};
use std::io::{self, BufRead as _, BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How many lines are kept, and how many bytes of each.
const LINES_MAX: usize = 4;
const LINE_BYTES_MAX: u64 = 500;

/// How long to wait for the last complaint after the end of the program: a process that it left
/// behind, such as one of ssh for later connections, keeps the pipe open.
const LAST_WAIT: Duration = Duration::from_millis(300);

/// The complaints of a program, which a thread reads until the last one.
#[derive(Debug)]
pub struct Complaints {
    lines: Arc<Mutex<Vec<String>>>,
    /// The sender is dropped when there are no more complaints.
    ended: Receiver<()>,
}

impl Complaints {
    /// Starts a thread that reads the complaints. `prefix` is the beginning of the program's own
    /// messages, which is left out.
    pub fn read(
        errors: impl Read + Send + 'static,
        prefix: &'static str,
    ) -> io::Result<Complaints> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let (open, ended) = channel::<()>();
        let builder = thread::Builder::new().name("complaints".into());
        builder.spawn(move || {
            let _open = open;
            keep(errors, prefix, &kept);
        })?;
        Ok(Complaints { lines, ended })
    }

    /// Returns the first lines and the last one, without characters that a terminal acts on. To be
    /// called after the end of the program.
    pub fn all(&self) -> Vec<String> {
        // The error means that the sender is dropped: all complaints are there.
        let _ = self.ended.recv_timeout(LAST_WAIT);
        lock(&self.lines).clone()
    }
}

/// Reads complaints to their end. The first lines and the last one are kept.
fn keep(errors: impl Read, prefix: &str, kept: &Mutex<Vec<String>>) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut errors)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = symbolize::sanitize(line.trim_ascii());
        let text = text.strip_prefix(prefix).unwrap_or(&text);
        if text.is_empty() {
            continue;
        }
        let mut kept = lock(kept);
        if kept.len() == LINES_MAX {
            kept.pop();
        }
        kept.push(text.to_owned());
    }
}

/// Locks a mutex, even if another thread panicked while it held the lock: the list of lines is
/// valid at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_complaints_and_the_last_are_kept() {
        let text = "proftop: cannot sample\n\n  why\n\u{1b}[2J\n4\n5\n6\n";
        let complaints = Complaints::read(text.as_bytes(), "proftop: ").unwrap();
        // The thread drops its end of the channel when all is read, so the test needs no fixed time.
        assert!(complaints.ended.recv().is_err());
        let kept = complaints.all();
        assert_eq!(
            (kept.len(), &*kept[0], &*kept[3]),
            (4, "cannot sample", "6")
        );
        assert!(!kept[2].contains('\u{1b}'), "{kept:?}");
    }
}
