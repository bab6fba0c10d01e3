//! Sorting of short lists with little machine code.
//!
//! The standard library's sort is compiled again for each element type, 4 to 8 kB each time. Here
//! the code that determines the order is compiled once for all types, and only the code that moves
//! elements is generic. Each comparison takes some nanoseconds more. It is meant for rows that a
//! person or a report looks at; whatever iterates over samples uses the standard library's sort.
//! Collecting a `BTreeMap` or a `BTreeSet` sorts as well; extending an empty one does not.

use std::cmp::Ordering;

/// Sorts as `slice::sort_by` does: equal elements keep their order.
pub fn sort_by<T>(things: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    if things.len() < 2 {
        return;
    }
    let order = order(things.len(), &mut |a, b| compare(&things[a], &things[b]));
    put_in_order(things, order);
}

/// Sorts as `slice::sort_by_key` does: equal elements keep their order.
pub fn sort_by_key<T, K: Ord>(things: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(things, |a, b| key(a).cmp(&key(b)));
}

/// Returns the index of the element that comes first, second and so on.
fn order(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// Moves the element at `order[0]` to the front, and so on.
fn put_in_order<T>(things: &mut [T], mut order: Vec<usize>) {
    for start in 0..order.len() {
        // Follows one cycle of the permutation: each place receives its element until the cycle
        // closes. Finished places contain their own index.
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
