//! Processes that began and ended between two turns without being sampled: their mappings are
//! useless.
//!
//! If a shell starts fifty commands a second, most of them end before the sampler has processed
//! their start, and were never sampled. Opening the files that they mapped would then be most of
//! the sampler's work.

use crate::sideband::record::{Event, What};
use foldhash::{HashSet, HashSetExt as _};

/// Removes the mappings of such processes from the events of one turn, which are in order of time.
/// `sampled` are the processes of all samples that have been read, including those that are kept
/// for a later turn.
///
/// A process is short-lived if
///
/// 1. the last event of it as a process is its end,
/// 2. it is not among `sampled`, and
/// 3. it had no child in this turn, which would have inherited its mappings.
///
/// If its other threads continue without the first one, their first sample has addresses without a
/// mapping, and the process is read from /proc.
pub fn drop_mappings(events: &mut Vec<Event>, sampled: impl IntoIterator<Item = u32>) {
    let mut ended = HashSet::new();
    let mut parents = HashSet::new();
    for event in events.iter() {
        match event.what {
            What::Exit { pid, tid } if pid == tid => {
                ended.insert(pid);
            }
            // The number belongs to another process from here on.
            What::Fork { pid, parent_pid } => {
                ended.remove(&pid);
                parents.insert(parent_pid);
            }
            _ => {}
        }
    }
    ended.retain(|pid| !parents.contains(pid));
    if ended.is_empty() {
        return;
    }
    for pid in sampled {
        ended.remove(&pid);
    }
    events.retain(|event| !matches!(&event.what, What::Map(map) if ended.contains(&map.pid)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sideband::record::{Identity, Map};

    const SHELL: u32 = 10;
    const COMMAND: u32 = 11;

    /// Makes events whose times are in their order.
    fn events(whats: impl IntoIterator<Item = What>) -> Vec<Event> {
        let timed = (1..).zip(whats);
        timed
            .map(|(time_ns, what)| Event { time_ns, what })
            .collect()
    }

    fn fork(pid: u32, parent_pid: u32) -> What {
        What::Fork { pid, parent_pid }
    }

    fn exit(pid: u32, tid: u32) -> What {
        What::Exit { pid, tid }
    }

    fn map(pid: u32) -> What {
        What::Map(Map {
            pid,
            start: 0x1000,
            length: 0x1000,
            file_offset: 0,
            path: b"/bin/true".to_vec(),
            identity: Identity {
                device: (0, 0),
                inode: 1,
                generation: 1,
            },
        })
    }

    /// Returns the processes whose mappings are kept.
    fn mapped(whats: impl IntoIterator<Item = What>, sampled: &[u32]) -> Vec<u32> {
        let mut events = events(whats);
        let others = |events: &[Event]| {
            let is_other = |event: &&Event| !matches!(event.what, What::Map(_));
            events.iter().filter(is_other).count()
        };
        let before = others(&events);
        drop_mappings(&mut events, sampled.iter().copied());
        assert_eq!(others(&events), before, "only mappings are dropped");
        let pid = |event: Event| match event.what {
            What::Map(map) => Some(map.pid),
            _ => None,
        };
        events.into_iter().filter_map(pid).collect()
    }

    #[test]
    fn what_ended_unseen_has_mapped_nothing() {
        let life = || [fork(COMMAND, SHELL), map(COMMAND), exit(COMMAND, COMMAND)];
        assert_eq!(mapped(life(), &[]), []);
        assert_eq!(mapped(life(), &[SHELL]), []);
        assert_eq!(mapped(life(), &[SHELL, COMMAND]), [COMMAND]);
    }

    #[test]
    fn what_lives_keeps_its_mappings() {
        let beginning = [fork(COMMAND, SHELL), map(COMMAND)];
        assert_eq!(mapped(beginning, &[]), [COMMAND]);
        let other_thread = [map(COMMAND), exit(COMMAND, COMMAND + 1)];
        assert_eq!(mapped(other_thread, &[]), [COMMAND]);
    }

    #[test]
    fn a_child_may_need_what_its_parent_mapped() {
        let daemon = [
            map(COMMAND),
            fork(COMMAND + 1, COMMAND),
            exit(COMMAND, COMMAND),
        ];
        assert_eq!(mapped(daemon, &[]), [COMMAND]);
    }

    #[test]
    fn a_number_that_is_used_again_is_of_another_process() {
        let two_lives = [
            map(COMMAND),
            exit(COMMAND, COMMAND),
            fork(COMMAND, SHELL),
            map(COMMAND),
        ];
        assert_eq!(mapped(two_lives, &[]), [COMMAND, COMMAND]);
    }
}
