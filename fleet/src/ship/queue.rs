//! Finds the next window of the spool for a sink, and counts missing ones before it.

use crate::spool::Entry;
use crate::state::Memory;

/// The next window of a sink.
#[derive(Debug, PartialEq, Eq)]
pub struct Next {
    pub entry: Entry,
    /// Number of windows before it that are no longer in the spool, or never were: they are lost.
    /// The agent writes windows in the order of their numbers.
    pub lost: u64,
}

/// Finds the next window among those of the spool; `None` if all were sent. For a new id it begins
/// with the first existing window: earlier ones do not count as lost.
pub fn next(entries: &[Entry], memory: &Memory) -> Option<Next> {
    entries.iter().find_map(|entry| {
        let next = memory.next.get(&entry.id).copied();
        if next.is_some_and(|next| entry.number < next) {
            return None;
        }
        Some(Next {
            entry: entry.clone(),
            lost: next.map_or(0, |next| entry.number - next),
        })
    })
}

/// Records that everything up to this window is done.
pub fn advance(memory: &mut Memory, entry: &Entry) {
    memory.next.insert(entry.id.clone(), entry.number + 1);
    memory.requests_done = 0;
}

/// Returns the number of windows in the spool that are still to be sent.
pub fn waiting(entries: &[Entry], memory: &Memory) -> u64 {
    let is_waiting = |entry: &&Entry| {
        let next = memory.next.get(&entry.id);
        next.is_none_or(|next| entry.number >= *next)
    };
    entries.iter().filter(is_waiting).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, number: u64) -> Entry {
        Entry {
            id: id.into(),
            number,
            path: format!("{id}-{number}").into(),
        }
    }

    #[test]
    fn each_window_comes_once_and_those_that_are_missing_are_counted() {
        let mut entries: Vec<Entry> = [3, 4, 7].map(|number| entry("a", number)).into();
        let mut memory = Memory::default();
        let mut found = Vec::new();
        while let Some(next) = next(&entries, &memory) {
            found.push((next.entry.number, next.lost));
            advance(&mut memory, &next.entry);
        }
        assert_eq!(found, [(3, 0), (4, 0), (7, 2)]);
        assert_eq!(waiting(&entries, &memory), 0);
        // The folder was recreated: its numbers start again.
        entries.push(entry("b", 1));
        entries.push(entry("a", 9));
        assert_eq!(waiting(&entries, &memory), 2);
        let first = next(&entries, &memory).unwrap();
        assert_eq!(
            (&*first.entry.id, first.entry.number, first.lost),
            ("b", 1, 0)
        );
        advance(&mut memory, &first.entry);
        let second = next(&entries, &memory).unwrap();
        assert_eq!(
            (&*second.entry.id, second.entry.number, second.lost),
            ("a", 9, 1)
        );
    }
}
