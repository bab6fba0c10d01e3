//! The owners of locks for which threads were already waiting at the start: the kernel side reads a
//! lock when its thread leaves its CPU, which these did before. The memory is read on another
//! thread, because a target can block its reader.

use crate::aside::Aside;
use crate::owner::real_uid;
use crate::shares::NOBODY;
use probe_ebpf::waits::{LOCK_WORDS, lock_owner};
use std::collections::HashMap;
use std::path::Path;
use symbolize::Files;

/// A thread that waits in futex(2), and the arguments of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    pub pid: u32,
    pub tid: u32,
    /// Address of the lock in its memory.
    pub at: u64,
    /// The operation (`futex_op`), with its flags.
    pub operation: u64,
    /// The value that the thread expects at the lock (`val`).
    pub expected: u64,
}

/// Looks up the owners of locks.
#[derive(Default)]
pub struct Owners {
    /// `None` before the first look-up, or if no thread can be started.
    reader: Option<Aside<Blocked, (u32, u32)>>,
    /// Owner by the waiting thread.
    known: HashMap<u32, u32>,
}

impl Owners {
    /// Requests the owner of a lock, whose memory is read through `files`; the result is available
    /// later, if ever.
    pub fn ask(&mut self, blocked: Blocked, files: &Files) {
        if self.reader.is_none() {
            let files = files.clone();
            let read = move |blocked: Blocked| Some((blocked.tid, owner_of(blocked, &files)?));
            self.reader = Aside::start("locks", "reading locks", read).ok();
        }
        if let Some(reader) = &self.reader {
            // If the queue is full, the owner of this lock stays unknown.
            reader.ask(real_uid(blocked.pid).unwrap_or(NOBODY), blocked);
        }
    }

    /// Returns the owner of the lock that a thread was waiting for at the start.
    pub fn of(&mut self, tid: u32) -> Option<u32> {
        while let Some((tid, owner)) = self.reader.as_ref().and_then(Aside::answer) {
            self.known.insert(tid, owner);
        }
        self.known.get(&tid).copied()
    }
}

/// Reads the owner; `None` if the lock does not contain it, or contains a number that is not a
/// thread of its process: in another pid namespace threads have other numbers.
pub fn owner_of(blocked: Blocked, files: &Files) -> Option<u32> {
    let bytes = files
        .memory(blocked.pid, blocked.at, (LOCK_WORDS * 4) as u32)
        .ok()?;
    let mut words = [0; LOCK_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let owner = lock_owner(blocked.operation, blocked.expected, &words);
    let thread = format!("/proc/{}/task/{owner}", blocked.pid);
    (owner != 0 && Path::new(&thread).exists()).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::wait_until;

    #[test]
    fn a_lock_is_asked_who_has_it() {
        let own = std::process::id();
        // Like a mutex of glibc that is owned by the first thread.
        let lock: [u32; LOCK_WORDS] = [2, 0, own, 1, 0];
        let blocked = |words: &[u32; LOCK_WORDS]| Blocked {
            pid: own,
            tid: 8,
            at: words.as_ptr() as u64,
            operation: 128,
            expected: 2,
        };
        let files = Files::default();
        assert_eq!(owner_of(blocked(&lock), &files), Some(own));
        // Not a thread of this process; released; not readable.
        assert_eq!(owner_of(blocked(&[2, 0, 1, 1, 0]), &files), None);
        assert_eq!(owner_of(blocked(&[0; LOCK_WORDS]), &files), None);
        let nowhere = Blocked {
            at: 8,
            ..blocked(&lock)
        };
        assert_eq!(owner_of(nowhere, &files), None);
        let mut owners = Owners::default();
        owners.ask(blocked(&lock), &files);
        wait_until("the owner", || owners.of(8).is_some());
        assert_eq!((owners.of(8), owners.of(9)), (Some(own), None));
    }
}
