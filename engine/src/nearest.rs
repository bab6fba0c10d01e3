//! The word that somebody meant who mistyped one.

/// The known word that is spelled most like this one. `None` if none is close enough:
/// at most two letters differ, of a short word one, or its letters are in another order.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|known| (distance(word, known), known));
    near.filter(|(distance, known)| match distance {
        0 | 1 => true,
        2 => word.len() > SHORT_LEN || letters(word) == letters(known),
        _ => false,
    })
    .min_by_key(|(distance, _)| *distance)
    .map(|(_, known)| known)
}

/// Of words up to this length two other letters make another word: `foo` is no `top`.
const SHORT_LEN: usize = 3;

/// The letters of a word in order: two words with the same ones differ by a swap.
fn letters(word: &str) -> Vec<u8> {
    let mut letters = word.as_bytes().to_vec();
    letters.sort_unstable();
    letters
}

/// How many letters to change, add or leave out (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    // One row of the table of distances: `row[j]` is that of the beginning of `a` so far
    // from the first `j` letters of `b`, and `corner` what stood above and to the left.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
