//! Names of functions that are spelled like a text.

use std::collections::BTreeSet;

use crate::nearest::nearest_and_distance;
use crate::{ElfSymbols, demangle, sanitize};

/// Maximum number of names that are returned.
pub const NAMES_MAX: usize = 100;

/// Maximum number of names that are considered, of all that contain a text.
const FOUND_MAX: usize = 20_000;

/// The names of all functions of a file, without parameters.
pub fn names(symbols: &ElfSymbols) -> impl Iterator<Item = String> {
    let functions = symbols.functions();
    let functions = functions.map(|symbol| demangle(symbol.name).short().into_owned());
    // Includes functions of stripped Go programs.
    let go = symbols.go().into_iter();
    let go = go.flat_map(|go| go.starts().filter_map(|start| go.name_at(start)));
    functions.chain(go.map(|name| sanitize(&name).into_owned()))
}

/// Returns the names that contain a part, those that suit best.
pub fn containing(part: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let found = names.filter(|name| name.contains(part)).take(FOUND_MAX);
    best(part, found.collect())
}

/// Sorts names by how well they suit a part that they contain: those that begin with it first, then
/// the shortest. Returns at most [`NAMES_MAX`].
pub fn best(part: &str, names: BTreeSet<String>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by_key(|name| (!name.starts_with(part), name.len()));
    names.truncate(NAMES_MAX);
    names
}

/// Names that a user may have meant by a word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meant {
    /// The name that is spelled most like the word, and the number of letters that differ; `None` if
    /// none is close enough.
    pub near: Option<(usize, String)>,
    /// The shortest name that begins with the word.
    pub begun: Option<String>,
}

/// Finds the names that a user may have meant by a word.
pub fn meant(word: &str, names: impl Iterator<Item = String>) -> Meant {
    // Only the best ones are kept of all names, which may be many.
    let mut meant = Meant::default();
    for name in names {
        let distance = nearest_and_distance(word, [name.as_str()].into_iter());
        let is_nearer = distance.is_some_and(|(distance, _)| {
            let least = meant.near.as_ref().map(|(least, _)| *least);
            least.is_none_or(|least| distance < least)
        });
        let is_shorter = || {
            let shortest = meant.begun.as_ref().map(String::len);
            shortest.is_none_or(|shortest| name.len() < shortest)
        };
        if name.starts_with(word) && is_shorter() {
            meant.begun = Some(name.clone());
        }
        if let (true, Some((distance, _))) = (is_nearer, distance) {
            meant.near = Some((distance, name));
        }
    }
    meant
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'n>(names: &'n [&str]) -> impl Iterator<Item = String> + 'n {
        names.iter().map(|name| name.to_string())
    }

    #[test]
    fn what_begins_as_it_was_typed_comes_first() {
        let found = containing(
            "hash",
            names(&["rehash", "hash_search", "hash", "other", "hash"]),
        );
        assert_eq!(found, ["hash", "hash_search", "rehash"]);
    }

    #[test]
    fn the_nearest_name_is_the_first_with_the_fewest_other_letters() {
        let found = meant("scaan", names(&["scan_all", "scans", "scan", "scan"]));
        assert_eq!(found.near, Some((1, "scan".into())));
        assert_eq!(found.begun, None);
        let found = meant("work", names(&["workshop", "worker", "workings", "wo"]));
        assert_eq!(found.near, Some((2, "worker".into())));
        assert_eq!(found.begun, Some("worker".into()));
        assert_eq!(meant("work_one", names(&["work_two"])), Meant::default());
    }
}
