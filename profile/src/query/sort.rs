//! Sorts sequences of words. Each word is looked at once or twice, whatever the depth; comparing
//! whole sequences would compare common beginnings again and again.

use super::{Cancel, Cancelled};

/// A run of words in an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl Span {
    #[inline]
    pub(super) fn words(self, arena: &[u32]) -> &[u32] {
        &arena[self.start as usize..][..self.len as usize]
    }
}

/// Smaller groups are sorted by comparing whole sequences.
const SMALL: usize = 24;

/// Sorts `spans` by their words; a sequence comes before its continuations. `payload` is moved
/// along with its span.
pub(super) fn sort<P: Copy>(
    arena: &[u32],
    items: &mut [(Span, P)],
    cancel: &Cancel,
) -> Result<(), Cancelled> {
    // Groups of spans that agree in their first `depth` words.
    let mut groups = vec![(0, items.len(), 0usize)];
    let mut keys: Vec<(u64, u32)> = Vec::new();
    let mut moved: Vec<(Span, P)> = Vec::new();
    let mut looked = 0usize;
    while let Some((from, to, depth)) = groups.pop() {
        let group = &mut items[from..to];
        looked += group.len();
        if looked > super::selection::STEP {
            looked = 0;
            cancel.check()?;
        }
        if group.len() <= SMALL {
            group
                .sort_unstable_by(|a, b| a.0.words(arena)[depth..].cmp(&b.0.words(arena)[depth..]));
            continue;
        }
        // 0 stands for the end of a sequence.
        let key = |span: Span| {
            span.words(arena)
                .get(depth)
                .map_or(0, |w| u64::from(*w) + 1)
        };
        keys.clear();
        keys.extend((0..).zip(group.iter()).map(|(at, item)| (key(item.0), at)));
        if keys.iter().any(|(key, _)| *key != keys[0].0) {
            keys.sort_unstable();
            moved.clear();
            moved.extend(keys.iter().map(|(_, at)| group[*at as usize]));
            group.copy_from_slice(&moved);
        }
        let mut start = 0;
        for run in keys.chunk_by(|a, b| a.0 == b.0) {
            if run[0].0 != 0 && run.len() > 1 {
                groups.push((from + start, from + start + run.len(), depth + 1));
            }
            start += run.len();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_as_comparing_does(
            sequences in prop::collection::vec(prop::collection::vec(0..3u32, 0..9), 0..200),
        ) {
            let mut arena = Vec::new();
            let mut items = Vec::new();
            for words in &sequences {
                items.push((Span { start: arena.len() as u32, len: words.len() as u32 }, ()));
                arena.extend_from_slice(words);
            }
            sort(&arena, &mut items, &Cancel::new()).unwrap();
            let sorted: Vec<Vec<u32>> = items.iter().map(|(s, ())| s.words(&arena).to_vec()).collect();
            let mut expected = sequences;
            expected.sort();
            prop_assert_eq!(sorted, expected);
        }
    }
}
