//! Finds the word that the user probably meant when mistyping.

/// Returns the known word that is spelled most like `word`. `None` if none is close enough: at most
/// two letters may differ, in a short word one, or the letters may be in another order.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest_and_distance(word, known).map(|(_, known)| known)
}

/// Returns the same, and the number of letters to change, add or leave out.
pub(crate) fn nearest_and_distance<'a>(
    word: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<(usize, &'a str)> {
    // As many letters differ as one word is longer than the other.
    let near = known.filter(|known| known.len().abs_diff(word.len()) <= DISTANCE_MAX);
    let near = near.map(|known| (distance(word, known), known));
    near.filter(|(distance, known)| match *distance {
        0 | 1 => true,
        DISTANCE_MAX => word.len() > SHORT_LEN || letters(word) == letters(known),
        _ => false,
    })
    .min_by_key(|(distance, _)| *distance)
}

/// Maximum number of letters that differ.
const DISTANCE_MAX: usize = 2;

/// Up to this length, two different letters make another word: `foo` is not `top`.
const SHORT_LEN: usize = 3;

/// The letters of a word, sorted: two words with the same ones differ by a swap.
fn letters(word: &str) -> Vec<u8> {
    let mut letters = word.as_bytes().to_vec();
    letters.sort_unstable();
    letters
}

/// Number of letters to change, add or leave out (Levenshtein distance).
fn distance(a: &str, b: &str) -> usize {
    // One row of the table of distances: `row[j]` is the distance of the processed beginning of `a`
    // from the first `j` letters of `b`, and `corner` the value above and to the left.
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
