//! How many mappings are kept of all processes together. A user can start processes by the thousand
//! that each map as much as is kept of one.

use crate::mappings::Mappings;
use crate::shares::{ROOT, SHARES};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Maximum number of mappings that are kept, in lists as long as one can be. Ten thousand usual
/// processes need half of that.
const LISTS_MAX: usize = 64;

/// The same in a control group with little memory, in which lists are shorter as well.
const LISTS_MAX_OF_LITTLE: usize = 16;

/// Returns how many mappings may be kept if a list has up to `list_max` of the usual `usual_max`.
pub fn kept_max(list_max: usize, usual_max: usize) -> usize {
    let lists = if list_max < usual_max {
        LISTS_MAX_OF_LITTLE
    } else {
        LISTS_MAX
    };
    lists * list_max
}

/// A list, and the processes that have this very one: children that have changed nothing.
#[derive(Debug)]
struct List<'a> {
    pids: Vec<u32>,
    /// Who is charged for it.
    user: u32,
    mappings: &'a Mappings,
}

/// A piece of lists.
#[derive(Debug)]
struct Piece {
    /// Number of lists that have it.
    holders: usize,
    mappings: usize,
    /// Who is charged for it: the user of the first list.
    user: u32,
}

/// Returns the processes whose mappings are to be given up if more than `max` are kept, so that there is
/// room for an eighth again. They are those with the longest lists: first of users other than root who
/// have more than a share, then of all. What several lists share counts once. The processes are given
/// by pid, user and list, in the order of their pids.
pub fn given_up<'a>(
    processes: impl Iterator<Item = (u32, u32, &'a Mappings)>,
    max: usize,
) -> Vec<u32> {
    let mut lists: Vec<List<'_>> = Vec::new();
    let mut places = HashMap::new();
    for (pid, user, mappings) in processes {
        let place = *places
            .entry(std::ptr::from_ref(mappings).addr())
            .or_insert(lists.len());
        match lists.get_mut(place) {
            Some(list) => list.pids.push(pid),
            None => lists.push(List {
                pids: vec![pid],
                user,
                mappings,
            }),
        }
    }
    // The pieces are looked at only if that can matter, as there may be very many.
    if lists.iter().map(|list| list.mappings.len()).sum::<usize>() <= max {
        return Vec::new();
    }
    let mut pieces = HashMap::new();
    let mut sums = HashMap::new();
    let mut kept = 0;
    for list in &lists {
        for (piece, mappings) in list.mappings.pieces() {
            let known = pieces.entry(piece).or_insert_with(|| {
                kept += mappings;
                *sums.entry(list.user).or_insert(0) += mappings;
                Piece {
                    holders: 0,
                    mappings,
                    user: list.user,
                }
            });
            known.holders += 1;
        }
    }
    if kept <= max {
        return Vec::new();
    }
    lists.sort_by_key(|list| Reverse(list.mappings.len()));
    let mut given_up = Vec::new();
    for is_of_all in [false, true] {
        lists.retain(|list| {
            let sum = sums.get(&list.user).copied().unwrap_or(0);
            let has_much = list.user != ROOT && sum > max / SHARES;
            let is_given_up = kept > max - max / SHARES && (is_of_all || has_much);
            if is_given_up {
                for (piece, _) in list.mappings.pieces() {
                    let Some(piece) = pieces.get_mut(&piece) else {
                        continue;
                    };
                    piece.holders -= 1;
                    if piece.holders == 0 {
                        kept -= piece.mappings;
                        *sums.entry(piece.user).or_insert(0) -= piece.mappings;
                    }
                }
                given_up.extend_from_slice(&list.pids);
            }
            !is_given_up
        });
    }
    given_up
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mappings::{Backing, Mapping};

    fn list(count: u64) -> Mappings {
        let mut mappings = Mappings::default();
        for at in 0..count {
            mappings.insert(Mapping {
                start: at * 10,
                end: at * 10 + 5,
                file_offset: 0,
                backing: Backing::Anonymous,
            });
        }
        mappings
    }

    /// Returns the pids that give up their lists, of processes given by pid, user and length.
    fn those_of(processes: &[(u32, u32, u64)], max: usize) -> Vec<u32> {
        let processes = processes.iter();
        let processes: Vec<_> = processes
            .map(|(pid, user, count)| (*pid, *user, list(*count)))
            .collect();
        let processes = processes.iter();
        given_up(processes.map(|(pid, user, list)| (*pid, *user, list)), max)
    }

    #[test]
    fn nothing_is_given_up_as_long_as_there_is_room() {
        assert_eq!(those_of(&[(1, 1000, 50), (2, 0, 50)], 100), []);
    }

    #[test]
    fn who_has_much_gives_up_the_longest_and_others_nothing() {
        let processes = [(1, 1000, 40), (2, 1000, 30), (3, 1001, 40), (4, 0, 10)];
        assert_eq!(those_of(&processes, 100), [1]);
        assert_eq!(those_of(&processes, 64), [1, 3]);
    }

    #[test]
    fn root_gives_up_last() {
        let processes = [(1, 0, 80), (2, 1000, 30), (3, 1000, 8)];
        assert_eq!(those_of(&processes, 104), [2]);
        // Of the user there is less than a share then.
        assert_eq!(those_of(&processes, 80), [2, 1]);
    }

    #[test]
    fn what_a_child_shares_counts_once() {
        let parents = list(800);
        let mut childs = parents.clone();
        childs.cover(0, 1);
        let processes = [(1, 1000, &parents), (2, 1000, &childs), (3, 1000, &parents)];
        let given_up = |max| given_up(processes.into_iter(), max);
        assert_eq!(given_up(810), []);
        // Nothing is gained before both lists are given up.
        assert_eq!(given_up(700), [1, 3, 2]);
    }
}
