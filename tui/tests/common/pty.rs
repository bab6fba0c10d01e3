//! A *pseudo-terminal* whose other end is the test's: what a program writes is bytes,
//! and only the test answers it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;
use test_support::DEADLINE;

pub struct Pty {
    ours: File,
    path: String,
}

/// Only the test may have this end: a child that had it as well would keep the terminal alive.
const FLAGS: OpenptFlags = OpenptFlags::RDWR
    .union(OpenptFlags::NOCTTY)
    .union(OpenptFlags::CLOEXEC);

impl Pty {
    pub fn open(width: u16, height: u16) -> Self {
        let terminal = openpt(FLAGS).expect("a terminal");
        grantpt(&terminal)
            .and_then(|()| unlockpt(&terminal))
            .expect("ours");
        let size = Winsize {
            ws_row: height,
            ws_col: width,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&terminal, size).expect("its size");
        let path = ptsname(&terminal, Vec::new()).expect("its name");
        Self {
            ours: File::from(terminal),
            path: path.to_str().expect("UTF-8").to_owned(),
        }
    }

    /// Makes a command read from and write to the terminal.
    pub fn attach(&self, command: &mut Command) {
        let open = || {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).open(&self.path);
            Stdio::from(file.expect("the other end"))
        };
        command.stdin(open()).stdout(open());
    }

    pub fn press(&mut self, keys: &[u8]) {
        self.ours.write_all(keys).expect("keys are taken");
    }

    /// Reads up to and with these bytes, and returns all that was read.
    pub fn read_until(&mut self, marker: &[u8]) -> Vec<u8> {
        let end = Instant::now() + DEADLINE;
        let mut read = Vec::new();
        let mut piece = [0; 4096];
        while !read.windows(marker.len()).any(|bytes| bytes == marker) {
            assert!(
                self.has_bytes_by(end),
                "in vain: {:?} in {}",
                marker.escape_ascii().to_string(),
                read.escape_ascii()
            );
            let length = self.ours.read(&mut piece).expect("it writes");
            read.extend_from_slice(&piece[..length]);
        }
        read
    }

    fn has_bytes_by(&self, end: Instant) -> bool {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a short time");
        let mut ours = [PollFd::new(&self.ours, PollFlags::IN)];
        poll(&mut ours, Some(&left)).is_ok_and(|ready| ready > 0)
    }
}
