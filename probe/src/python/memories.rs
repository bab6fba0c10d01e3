//! The memory of the processes that are read, opened once for each.

use std::sync::{Arc, Weak};
use symbolize::parser::ProcessMemory;
use symbolize::{Files, Reason};

/// Maximum number of processes whose memory is held open. With more, that of the one whose memory was
/// opened first is opened again when it is needed.
const HELD_MAX: usize = 64;

/// A process that is read: from the time at which its interpreter is found until it ends or runs
/// another program.
#[derive(Debug)]
pub struct Subject {
    /// Its number, which a later process may have as well.
    pub pid: u32,
}

/// The open memory of processes.
#[derive(Debug, Default)]
pub struct Memories(Vec<(Weak<Subject>, ProcessMemory)>);

impl Memories {
    /// Returns the memory of a process, which is opened if it is not.
    pub fn of(&mut self, subject: &Arc<Subject>, way: &Files) -> Result<&ProcessMemory, Reason> {
        self.0.retain(|(known, _)| known.strong_count() > 0);
        let place = self.0.iter().position(|(known, _)| is_it(known, subject));
        let place = match place {
            Some(place) => place,
            None => {
                let memory = ProcessMemory::open(subject.pid, way)?;
                if self.0.len() >= HELD_MAX {
                    self.0.remove(0);
                }
                self.0.push((Arc::downgrade(subject), memory));
                self.0.len() - 1
            }
        };
        Ok(&self.0[place].1)
    }

    /// Closes the memory of a process, because the kernel has none of it any more: the process runs
    /// another program, if it has not ended.
    pub fn close(&mut self, subject: &Arc<Subject>) {
        self.0.retain(|(known, _)| !is_it(known, subject));
    }
}

fn is_it(known: &Weak<Subject>, subject: &Arc<Subject>) -> bool {
    std::ptr::eq(known.as_ptr(), Arc::as_ptr(subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_open_as_long_as_its_process_is_known_and_not_of_too_many() {
        let way = Files::default();
        let mut memories = Memories::default();
        let pid = std::process::id();
        let subjects: Vec<_> = (0..HELD_MAX + 8)
            .map(|_| Arc::new(Subject { pid }))
            .collect();
        for subject in &subjects {
            let opened: *const _ = memories.of(subject, &way).expect("our own");
            let again: *const _ = memories.of(subject, &way).expect("our own");
            assert!(std::ptr::eq(opened, again));
        }
        assert_eq!(memories.0.len(), HELD_MAX);
        let last = subjects.last().expect("many").clone();
        drop(subjects);
        assert!(memories.of(&last, &way).is_ok());
        assert_eq!(memories.0.len(), 1);
        memories.close(&last);
        assert!(memories.0.is_empty());
        let nobody = Arc::new(Subject { pid: u32::MAX });
        assert!(memories.of(&nobody, &way).is_err());
    }
}
