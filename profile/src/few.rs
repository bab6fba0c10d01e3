//! Sorting where there is little to sort.
//!
//! The standard library's sort is made anew for each kind of things, 4 to 8 kB each time; here
//! what decides the order is there once for all of them, and only what moves things is made
//! anew. It takes some nanoseconds more for each comparison. It is for rows that a person or
//! a report looks at; what goes through samples is sorted by the standard library.

use std::cmp::Ordering;

/// Sorts as `sort_by` of a slice does: equal things keep their order.
pub fn sort_by<T>(things: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let order = order(things.len(), &mut |a, b| compare(&things[a], &things[b]));
    put_in_order(things, order);
}

/// Sorts as `sort_by_key` of a slice does: equal things keep their order.
pub fn sort_by_key<T, K: Ord>(things: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(things, |a, b| key(a).cmp(&key(b)));
}

/// Returns which thing comes first, second and so on.
fn order(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// Puts the thing that was at `order[0]` first, and so on.
fn put_in_order<T>(things: &mut [T], mut order: Vec<usize>) {
    for start in 0..order.len() {
        // A thing goes to the place of the one that comes here, until the first is home. Places
        // that are done name themselves.
        let mut at = start;
        while order[at] != start {
            let from = order[at];
            things.swap(at, from);
            order[at] = at;
            at = from;
        }
        order[at] = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_standard_library(
            things in prop::collection::vec((0u8..8, any::<u16>()), 0..80)
        ) {
            let mut expected = things.clone();
            expected.sort_by_key(|(key, _)| *key);
            let mut by_key = things.clone();
            sort_by_key(&mut by_key, |(key, _)| *key);
            prop_assert_eq!(&by_key, &expected);

            let mut expected = things.clone();
            expected.sort_by_key(|(key, _)| Reverse(*key));
            let mut by = things;
            sort_by(&mut by, |a, b| b.0.cmp(&a.0));
            prop_assert_eq!(by, expected);
        }
    }
}
