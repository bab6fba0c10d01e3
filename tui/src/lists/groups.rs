//! Rows that have something in common, put together: the threads of a process that have one
//! name, the processes of a unit, of one command line or of a machine.

use profile::ProcessId;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What rows are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Their unit of systemd or container.
    Unit,
    /// Their command line: a server and those that it has forked.
    Command,
    /// The machine that they run on.
    Host,
    /// Their name, in one process.
    Name,
}

/// What the rows of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Common {
    /// The process that they belong to; `None` for rows that are processes.
    pub process: Option<ProcessId>,
    pub name: Arc<str>,
}

/// Identifies a line of a table from one report to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineKey<K> {
    Row(K),
    /// A hash of what the rows have in common. Should two groups ever share it, the selection
    /// may jump from one to the other; their rows and sums are told apart by [`Common`].
    Group(u64),
}

impl Common {
    /// Returns the key of the line in which rows with this in common stand.
    pub fn line_key<K>(&self) -> LineKey<K> {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        LineKey::Group(hasher.finish())
    }
}

/// Puts rows, given by their numbers, together by what they have in common; a row without
/// such a thing stays alone. The groups are in the order of their first rows.
pub fn gather(numbers: &[usize], common: impl Fn(usize) -> Option<Common>) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut places: HashMap<Common, usize> = HashMap::new();
    for number in numbers {
        let next = groups.len();
        let place = common(*number).map(|common| *places.entry(common).or_insert(next));
        match place {
            Some(place) if place < next => groups[place].push(*number),
            _ => groups.push(vec![*number]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(process: u32, name: &str) -> Common {
        Common {
            process: Some(ProcessId(process)),
            name: name.into(),
        }
    }

    #[test]
    fn rows_are_together_if_name_and_process_are_the_same() {
        let rows = [
            Some(common(1, "worker")),
            None,
            Some(common(2, "worker")),
            Some(common(1, "worker")),
            None,
            Some(common(1, "main")),
        ];
        let groups = gather(&[0, 1, 2, 3, 4, 5], |number| rows[number].clone());
        assert_eq!(groups, [vec![0, 3], vec![1], vec![2], vec![4], vec![5]]);
        // The order is that of the numbers.
        let groups = gather(&[5, 3, 0], |number| rows[number].clone());
        assert_eq!(groups, [vec![5], vec![3, 0]]);
    }

    #[test]
    fn a_line_has_the_same_key_in_every_report() {
        let key = |process, name| common(process, name).line_key::<u32>();
        assert_eq!(key(1, "worker"), key(1, "worker"));
        assert_ne!(key(1, "worker"), key(2, "worker"));
        assert_ne!(key(1, "worker"), key(1, "main"));
    }
}
