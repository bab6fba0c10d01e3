//! The samples of each process and thread in the baseline.
//!
//! Within one store, a process is identified by its number. In another recording the matching
//! process is the one with the same name and pid, or else, if only one process on each side has
//! that name, the one with the same name. Threads are matched in the same way, with their tid.

use super::Baseline;
use profile::diff::Sides;
use profile::few;
use profile::{ProcessId, ProcessRow, Selection, ThreadRow};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// The baseline's samples of the displayed processes and threads.
#[derive(Debug)]
pub struct People {
    /// Number of samples of each side.
    pub sides: Sides,
    /// Samples of each process.
    pub processes: Before<ProcessId>,
    /// Samples of each thread, by its process and tid.
    pub threads: Before<(ProcessId, u32)>,
}

/// Samples in the baseline, by the key of the current row.
#[derive(Debug)]
pub struct Before<K> {
    samples: HashMap<K, u64>,
    /// Rows that only the baseline has, most samples first.
    pub gone: Vec<(String, u64)>,
}

/// A row with its keys on either side.
struct Known<K> {
    key: K,
    number: u32,
    comm: Arc<str>,
    samples: u64,
    words: String,
}

impl People {
    /// Finds the samples in `before` for each process and thread of `now`.
    pub fn new(baseline: &Baseline, before: &Selection, now: &Selection) -> Self {
        let (processes, threads) = now.processes_and_threads();
        let (processes_before, threads_before) = before.processes_and_threads();
        let is_same = baseline.is_of_here();
        People {
            sides: Sides::of(before, now),
            processes: Before::new(
                processes_before.iter().map(process).collect(),
                processes.iter().map(process).collect(),
                is_same,
            ),
            threads: Before::new(
                threads_before.iter().map(thread).collect(),
                threads.iter().map(thread).collect(),
                is_same,
            ),
        }
    }
}

impl<K: Copy + Eq + Hash> Before<K> {
    /// Returns the samples of a row in the baseline; 0 if it is new.
    pub fn of(&self, key: K) -> u64 {
        self.samples.get(&key).copied().unwrap_or(0)
    }

    /// Pairs rows in passes: each pass removes the rows that it could pair, and the next one uses a
    /// weaker key. Within one store the number is the key. Otherwise name and number come first,
    /// and then names that occur once on each side: two processes `cc1` cannot be matched.
    fn new(before: Vec<Known<K>>, now: Vec<Known<K>>, is_same_store: bool) -> Self {
        let mut before: Vec<Option<Known<K>>> = before.into_iter().map(Some).collect();
        let mut samples = HashMap::new();
        let mut open: Vec<&Known<K>> = now.iter().collect();
        let mut pass = |name: &dyn Fn(&Known<K>) -> Name<K>, is_unique: bool| {
            let mut known: HashMap<Name<K>, Vec<usize>> = HashMap::new();
            for (at, row) in before.iter().enumerate() {
                if let Some(row) = row {
                    known.entry(name(row)).or_default().push(at);
                }
            }
            // Number of current rows with the same name.
            let mut rivals: HashMap<Name<K>, usize> = HashMap::new();
            for row in &open {
                *rivals.entry(name(row)).or_default() += 1;
            }
            open.retain(|row| {
                let name = name(row);
                let is_alone = !is_unique || rivals.get(&name) == Some(&1);
                let found = known
                    .get_mut(&name)
                    .filter(|found| !is_unique || found.len() == 1);
                let taken = found.filter(|_| is_alone).and_then(Vec::pop);
                let was = taken.and_then(|at| before[at].take());
                if let Some(was) = &was {
                    samples.insert(row.key, was.samples);
                }
                was.is_none()
            });
        };
        if is_same_store {
            pass(&|row| Name::Key(row.key), false);
        } else {
            pass(&|row| Name::Number(row.number, row.comm.clone()), false);
            pass(&|row| Name::Comm(row.comm.clone()), true);
        }
        let left = before.into_iter().flatten();
        let mut gone: Vec<(String, u64)> = left.map(|row| (row.words, row.samples)).collect();
        few::sort_by(&mut gone, |a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        Before { samples, gone }
    }
}

/// The key that a pass uses.
#[derive(PartialEq, Eq, Hash)]
enum Name<K> {
    Key(K),
    Number(u32, Arc<str>),
    Comm(Arc<str>),
}

fn process(row: &ProcessRow) -> Known<ProcessId> {
    Known {
        key: row.id,
        number: row.pid,
        comm: row.comm.clone(),
        samples: row.samples,
        words: format!("{}[{}]", row.comm, row.pid),
    }
}

fn thread(row: &ThreadRow) -> Known<(ProcessId, u32)> {
    Known {
        key: (row.process, row.tid),
        number: row.tid,
        comm: row.comm.clone(),
        samples: row.samples,
        words: format!("{}/{}", row.comm, row.tid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: u32, number: u32, comm: &str, samples: u64) -> Known<u32> {
        Known {
            key,
            number,
            comm: comm.into(),
            samples,
            words: format!("{comm}[{number}]"),
        }
    }

    #[test]
    fn in_one_store_numbers_tell() {
        let before = vec![row(1, 10, "nginx", 5), row(2, 11, "cc1", 7)];
        let now = vec![row(1, 10, "nginx", 6), row(3, 12, "cc1", 9)];
        let found = Before::new(before, now, true);
        assert_eq!((found.of(1), found.of(3)), (5, 0));
        assert_eq!(found.gone, [("cc1[11]".to_owned(), 7)]);
    }

    #[test]
    fn elsewhere_names_do_as_long_as_they_are_clear() {
        let before = vec![
            row(1, 10, "nginx", 5),
            row(2, 11, "nginx", 7),
            row(3, 90, "redis", 3),
        ];
        // 11 is the same pid; the other nginx is the only one left; redis was restarted.
        let now = vec![
            row(7, 11, "nginx", 1),
            row(8, 99, "nginx", 2),
            row(9, 4, "redis", 8),
        ];
        let found = Before::new(before, now, false);
        assert_eq!((found.of(7), found.of(8), found.of(9)), (7, 5, 3));
        assert_eq!(found.gone, []);
        let before = vec![row(1, 10, "cc1", 5), row(2, 11, "cc1", 7)];
        let found = Before::new(before, vec![row(7, 12, "cc1", 1)], false);
        assert_eq!(found.of(7), 0, "which of both cannot be told");
        assert_eq!(found.gone.len(), 2);
    }
}
