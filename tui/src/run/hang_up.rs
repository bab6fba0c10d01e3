//! Ends the process when its terminal is gone and the loop of the screen cannot notice it:
//! crossterm reads keys until a read reports that there are none. If the terminal goes away in that
//! moment, no read ever reports that, and the process would run invisibly and keep a CPU busy
//! forever.

use probe::confine::{self, Duty};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{process, thread};
use tokio::sync::Notify;

/// How long the loop has to end after this thread has told it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The thread that watches the terminal.
#[derive(Debug)]
pub struct HangUp {
    has_ended: Arc<AtomicBool>,
    /// Tells the loop that the terminal is gone.
    notice: Arc<Notify>,
}

impl HangUp {
    /// Starts the thread.
    pub fn watch() -> io::Result<Self> {
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = has_ended.clone();
        let notice = Arc::new(Notify::new());
        let tell = notice.clone();
        let watch = move || {
            confine::thread(Duty::Waiting);
            let (keys, screen) = (io::stdin(), io::stdout());
            let keys = keys.is_terminal().then(|| keys.as_fd());
            let mut faults_left = faults::Patience::default();
            loop {
                let waited = faults::catch("watching the terminal", || {
                    wait(keys.into_iter().chain([screen.as_fd()]));
                });
                match faults_left.take(waited) {
                    Ok(Some(())) => break,
                    Ok(None) => {}
                    // Without this thread the loop still notices in most cases that the terminal is
                    // gone.
                    Err(_) => return,
                }
            }
            tell.notify_one();
            thread::sleep(PATIENCE);
            if !ended.load(Ordering::SeqCst) {
                // The exit status is the same as when the loop notices it.
                probe::call::leave_to_exit();
                process::exit(0);
            }
        };
        thread::Builder::new().name("hang-up".into()).spawn(watch)?;
        Ok(Self { has_ended, notice })
    }

    /// Waits until the terminal is gone.
    pub async fn noticed(&self) {
        self.notice.notified().await;
    }

    /// Marks the loop as ended, so that the thread does not end the process.
    pub fn loop_has_ended(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
    }
}

/// Waits for a hang-up of any of these descriptors.
fn wait<'fd>(watched: impl Iterator<Item = BorrowedFd<'fd>>) {
    // poll(2) reports hang-ups even without any requested events.
    let mut watched: Vec<_> = watched
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::empty()))
        .collect();
    while poll(&mut watched, None) == Err(Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_end_of_the_other_end_is_waited_for() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let (told, ended) = channel();
        let waiting = thread::spawn(move || {
            wait([writer.as_fd()].into_iter());
            told.send(()).expect("it is waited for");
        });
        assert!(ended.recv_timeout(Duration::from_millis(50)).is_err());
        drop(reader);
        ended.recv().expect("told");
        waiting.join().expect("no panic");
    }
}
