//! Files whose tables were dropped because no process had them mapped for a while.
//!
//! Such a file keeps its number. When it is mapped again, its table is requested again: a program
//! that runs once an hour has whole stacks each time.

use super::file;
use crate::ids::ModuleId;
use crate::mappings::Mappings;
use crate::tables::{Content, Job};
use std::collections::HashMap;

/// Maximum number of files that are opened again at one sample: more than most programs have, and
/// opening them takes some milliseconds.
const OPENED_MAX: usize = 32;

/// Number of files that are remembered. With more, those that nobody has mapped for longest are
/// forgotten altogether: a machine that compiles makes thousands of programs a day.
const KEPT_MAX: usize = 4096;

/// The files whose tables were dropped.
#[derive(Default)]
pub struct Dropped {
    /// Each with its place in the order in which they were added.
    files: HashMap<ModuleId, u64>,
    /// Number of files that were added in this run.
    added: u64,
    /// Requests of tables that are not made from a file: they can be repeated as they are.
    without_file: HashMap<ModuleId, Job>,
}

/// The tables to request again for a process.
#[derive(Default)]
pub struct Again {
    /// Requests that can be repeated.
    pub jobs: Vec<Job>,
    /// Files that have to be opened first, each with the range of addresses of its mapping.
    pub files: Vec<(ModuleId, (u64, u64))>,
}

impl Dropped {
    pub fn add(&mut self, files: Vec<ModuleId>) {
        for file in files {
            self.added += 1;
            self.files.insert(file, self.added);
        }
    }

    /// If there are too many files, takes out the quarter of them that was added first.
    pub fn take_surplus(&mut self) -> Vec<ModuleId> {
        if self.files.len() <= KEPT_MAX {
            return Vec::new();
        }
        let all = self.files.iter().map(|(file, added)| (*added, *file));
        let can_leave = all.filter(|(_, file)| !self.without_file.contains_key(file));
        let mut first: Vec<(u64, ModuleId)> = can_leave.collect();
        first.sort_unstable();
        first.truncate(KEPT_MAX / 4);
        let files = first.into_iter().map(|(_, file)| file);
        let files: Vec<ModuleId> = files.collect();
        for file in &files {
            self.files.remove(file);
        }
        files
    }

    pub fn contains(&self, file: ModuleId) -> bool {
        self.files.contains_key(&file)
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Records that a table is requested.
    pub fn note_request(&mut self, job: &Job) {
        self.files.remove(&job.file);
        if !matches!(job.content, Content::File { .. }) {
            self.without_file.insert(job.file, job.clone());
        }
    }

    /// Takes the tables that a process with these mappings needs.
    pub fn take(&mut self, mappings: &Mappings) -> Again {
        let mut again = Again::default();
        for mapping in mappings.iter() {
            let Some(file) = file(mapping) else {
                continue;
            };
            if again.files.len() >= OPENED_MAX || self.files.remove(&file).is_none() {
                continue;
            }
            match self.without_file.get(&file) {
                Some(job) => again.jobs.push(job.clone()),
                None => again.files.push((file, (mapping.start, mapping.end))),
            }
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use super::super::Unwinding;
    use super::*;
    use crate::mappings::{Backing, Mapping};
    use crate::modules::{Modules, Seen};
    use crate::sideband::record::Identity;
    use crate::tables::{Limits, PATIENCE_NS, TableMaps, Tables};
    use rustix::fs::{major, minor};
    use std::os::unix::fs::MetadataExt as _;
    use std::sync::Arc;
    use test_support::wait_until;

    /// The process of which samples are taken; it maps this program's own file.
    const PID: u32 = 1;

    fn unwinding() -> Unwinding {
        let limits = Limits {
            cache_base: None,
            ..Limits::default()
        };
        let tables = Tables::new(TableMaps::in_memory(), &limits).unwrap();
        Unwinding::new(tables, 100)
    }

    /// Returns the module of this program's own file, and a mapping of it.
    fn own_mappings(modules: &mut Modules) -> (ModuleId, Arc<Mappings>) {
        let path = std::fs::read_link("/proc/self/exe").unwrap();
        let file = std::fs::metadata(&path).unwrap();
        let identity = Identity {
            device: (major(file.dev()), minor(file.dev())),
            inode: file.ino(),
            generation: 0,
        };
        let seen = Seen {
            pid: std::process::id(),
            start: 0x1000,
            end: 0x2000,
            path: path.as_os_str().as_encoded_bytes(),
            identity: &identity,
        };
        let backing = modules.backing(&seen, &mut 1).unwrap();
        let Backing::Module(module) = backing else {
            panic!("it is a file");
        };
        let mut mappings = Mappings::default();
        mappings.insert(Mapping {
            start: 0x1000,
            end: 0x2000,
            file_offset: 0,
            backing,
        });
        (module, Arc::new(mappings))
    }

    /// Takes a sample once all tables that were requested are known. Returns whether the process is
    /// walked by tables from then on.
    fn is_published_after_a_sample(
        unwinding: &mut Unwinding,
        mappings: &Arc<Mappings>,
        now_ns: u64,
    ) -> bool {
        wait_until("the table is known", || {
            unwinding.poll(now_ns);
            unwinding.unknown.is_empty()
        });
        unwinding.sampled(PID, 0, mappings, now_ns);
        unwinding.tables.list_of(PID).is_some()
    }

    /// A process that is walked by the tables of this program's own file.
    struct Prepared {
        modules: Modules,
        own: ModuleId,
        mappings: Arc<Mappings>,
        unwinding: Unwinding,
        now_ns: u64,
    }

    fn prepared() -> Prepared {
        let mut modules = Modules::new();
        let (own, mappings) = own_mappings(&mut modules);
        let mut unwinding = unwinding();
        for module in modules.take_fresh() {
            unwinding.add_module(&module);
        }
        let now_ns = 1;
        assert!(is_published_after_a_sample(
            &mut unwinding,
            &mappings,
            now_ns
        ));
        Prepared {
            modules,
            own,
            mappings,
            unwinding,
            now_ns,
        }
    }

    /// Lets the time pass after which tables are dropped that no process needs.
    fn let_tables_be_dropped(unwinding: &mut Unwinding, now_ns: &mut u64) {
        unwinding.remove(PID, *now_ns);
        unwinding.sweep(*now_ns);
        *now_ns += PATIENCE_NS;
        unwinding.sweep(*now_ns);
    }

    #[test]
    fn a_program_that_runs_again_after_a_while_is_walked_by_tables_again() {
        let Prepared {
            mut modules,
            own,
            mappings,
            mut unwinding,
            mut now_ns,
        } = prepared();
        for _ in 0..2 {
            assert!(unwinding.take_dropped(PID, &mappings, now_ns).is_empty());
            let_tables_be_dropped(&mut unwinding, &mut now_ns);
            assert!(unwinding.tables.table_of(own).is_none());
            // Without the table it would be walked by frame pointers.
            let is_published = is_published_after_a_sample(&mut unwinding, &mappings, now_ns);
            assert!(!is_published);
            let dropped = unwinding.take_dropped(PID, &mappings, now_ns);
            assert_eq!(dropped, [(own, (0x1000, 0x2000))]);
            for (file, range) in dropped {
                let module = modules.open_again(file, std::process::id(), range);
                unwinding.add_module(&module.unwrap());
            }
            unwinding.sampled(PID, 0, &mappings, now_ns);
            assert!(unwinding.tables.list_of(PID).is_none());
            let is_published = is_published_after_a_sample(&mut unwinding, &mappings, now_ns);
            assert!(is_published);
            assert!(matches!(unwinding.tables.table_of(own), Some(Ok(_))));
        }
    }

    #[test]
    fn of_too_many_files_those_that_were_added_first_leave() {
        let mut dropped = Dropped::default();
        let all = KEPT_MAX as u32;
        dropped.add((0..all).map(ModuleId).collect());
        assert_eq!(dropped.take_surplus(), []);
        dropped.add(vec![ModuleId(0), ModuleId(all)]);
        let first: Vec<_> = (1..=all / 4).map(ModuleId).collect();
        assert_eq!(dropped.take_surplus(), first);
        assert_eq!(dropped.take_surplus(), []);
        assert!(dropped.contains(ModuleId(0)) && !dropped.contains(ModuleId(1)));
    }

    #[test]
    fn a_file_that_cannot_be_opened_again_does_not_hold_up_its_process() {
        let Prepared {
            mappings,
            mut unwinding,
            mut now_ns,
            ..
        } = prepared();
        let_tables_be_dropped(&mut unwinding, &mut now_ns);
        assert_eq!(unwinding.take_dropped(PID, &mappings, now_ns).len(), 1);
        let is_published = is_published_after_a_sample(&mut unwinding, &mappings, now_ns);
        assert!(is_published);
    }
}
