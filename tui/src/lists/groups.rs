//! Groups of rows that have something in common: threads of a process with the same name, or
//! processes of the same unit, command line or machine.

use profile::ProcessId;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The criterion by which rows are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The systemd unit or the container.
    Unit,
    /// The command line, as of a server and its forked processes.
    Command,
    /// The machine that they run on.
    Host,
    /// The name, within one process.
    Name,
}

/// What the rows of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Common {
    /// The process that the rows belong to. `None` for rows that are processes.
    pub process: Option<ProcessId>,
    pub name: Arc<str>,
}

/// Identifies a line of a table from one report to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineKey<K> {
    Row(K),
    /// A hash of what the rows have in common. If two groups ever have the same hash, the selection
    /// may jump from one to the other; their rows and sums are distinguished by [`Common`].
    Group(u64),
}

impl Common {
    /// Returns the key of the line for rows that have this in common.
    pub fn line_key<K>(&self) -> LineKey<K> {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        LineKey::Group(hasher.finish())
    }
}

/// Groups rows, given by their numbers, by what they have in common. A row for which `common`
/// returns `None` stays alone. The groups are in the order of their first rows.
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
        // The order is that of the given numbers.
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
