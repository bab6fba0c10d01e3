//! Programs whose file has another name on the other side, such as `server-1.2` and `server-1.3`.
//! Matched by build-id and module name alone, all of their functions would be gone and new.
//!
//! Two files are taken for one program if
//!
//! 1. each is on one side only,
//! 2. at least two functions have the same names in both, and
//! 3. on each side, these have at least half of the samples that named functions of the
//!    file have themselves.
//!
//! If a file could be paired with several others, the pair with most samples is taken.

use super::Known;
use crate::RowName;
use crate::few;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A file on each side, recognized as the same program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// Short name of the file in A.
    pub a: Arc<str>,
    /// Short name of the file in B.
    pub b: Arc<str>,
    /// Number of function names that both files have.
    pub functions: usize,
}

/// A function name that occurs in more files than this proves nothing: `main` and `_init` are in
/// every one.
const FILES_MAX: usize = 8;
const FUNCTIONS_MIN: usize = 2;

/// The named functions of a file.
#[derive(Default)]
struct File {
    name: Arc<str>,
    self_samples: u64,
    /// Index in the list of all functions, and self samples, by function name.
    functions: HashMap<Arc<str>, (usize, u64)>,
}

/// What two files have in common: the functions with equal names.
#[derive(Default, Clone, Copy)]
struct Common {
    functions: usize,
    /// Self samples of these functions in A.
    a: u64,
    b: u64,
}

/// Returns the renamed files, and the indexes of their matching functions in `before` and `after`.
pub(super) fn find(before: &[&Known], after: &[Known]) -> (Vec<Renamed>, Vec<(usize, usize)>) {
    let after: Vec<&Known> = after.iter().collect();
    let (a, b) = (only_here(before, &after), only_here(&after, before));
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, file) in b.iter().enumerate() {
        for name in file.functions.keys() {
            by_name.entry(name).or_default().push(at);
        }
    }
    let mut common: HashMap<(usize, usize), Common> = HashMap::new();
    for (a_at, file) in a.iter().enumerate() {
        for (name, (_, a_self)) in &file.functions {
            let files = by_name.get(&**name).map_or(&[][..], |files| files);
            if files.len() > FILES_MAX {
                continue;
            }
            for b_at in files {
                let both = common.entry((a_at, *b_at)).or_default();
                both.functions += 1;
                both.a += a_self;
                both.b += b[*b_at].functions[name].1;
            }
        }
    }
    let mut pairs: Vec<_> = common.into_iter().collect();
    pairs.retain(|((a_at, b_at), both)| {
        let is_most = both.a * 2 >= a[*a_at].self_samples && both.b * 2 >= b[*b_at].self_samples;
        both.functions >= FUNCTIONS_MIN && both.a > 0 && both.b > 0 && is_most
    });
    // Ties are broken by position, so that the answer is the same each time.
    few::sort_by_key(&mut pairs, |(at, both)| (Reverse(both.a + both.b), *at));
    let (mut a_taken, mut b_taken) = (HashSet::new(), HashSet::new());
    let (mut renamed, mut places) = (Vec::new(), Vec::new());
    for ((a_at, b_at), both) in pairs {
        if a_taken.contains(&a_at) || b_taken.contains(&b_at) {
            continue;
        }
        a_taken.insert(a_at);
        b_taken.insert(b_at);
        renamed.push(Renamed {
            a: a[a_at].name.clone(),
            b: b[b_at].name.clone(),
            functions: both.functions,
        });
        for (name, (before_at, _)) in &a[a_at].functions {
            if let Some((after_at, _)) = b[b_at].functions.get(name) {
                places.push((*before_at, *after_at));
            }
        }
    }
    (renamed, places)
}

/// The files of one side that the other side does not have, in the order of their first functions.
/// If a file has two functions of one name, the first counts.
fn only_here(here: &[&Known], there: &[&Known]) -> Vec<File> {
    let others: HashSet<&str> = there.iter().map(|known| &*known.row.module).collect();
    let mut files: Vec<File> = Vec::new();
    let mut by_module: HashMap<&str, usize> = HashMap::new();
    for (at, known) in here.iter().enumerate() {
        let (module, row) = (&known.row.module, &known.row);
        if row.name_state != RowName::Named || others.contains(&**module) {
            continue;
        }
        let number = *by_module.entry(module).or_insert_with(|| {
            files.push(File {
                name: module.clone(),
                ..File::default()
            });
            files.len() - 1
        });
        let file = &mut files[number];
        file.self_samples += row.self_samples;
        let place = (at, row.self_samples);
        file.functions.entry(row.name.clone()).or_insert(place);
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameKind, FunctionRow, TREND_LEN};

    fn known(file: &str, name: &str, self_samples: u64) -> Known {
        let row = FunctionRow {
            id: crate::FrameId(0),
            name: name.into(),
            module: file.into(),
            module_path: file.into(),
            kind: FrameKind::User,
            address: 0,
            name_state: RowName::Named,
            file: None,
            line: 0,
            inlined: false,
            addresses: 0,
            self_samples,
            total_samples: self_samples,
            waits: None,
            trend: [0; TREND_LEN],
        };
        Known {
            row,
            build_id: Arc::default(),
        }
    }

    /// The pairs of files, as `a=b`, with the pairs of places of functions.
    fn found(before: &[Known], after: &[Known]) -> (Vec<String>, Vec<(usize, usize)>) {
        let (renamed, mut places) = find(&before.iter().collect::<Vec<_>>(), after);
        places.sort_unstable();
        let names = renamed
            .iter()
            .map(|renamed| format!("{}={}", renamed.a, renamed.b));
        (names.collect(), places)
    }

    #[test]
    fn another_version_is_the_same_program() {
        let before = [
            known("libc.so.6", "memcpy", 40),
            known("server-1.2", "main", 0),
            known("server-1.2", "encode", 50),
            known("server-1.2", "old", 3),
        ];
        let after = [
            known("server-1.3", "encode", 60),
            known("server-1.3", "fresh", 5),
            known("server-1.3", "main", 1),
            known("libc.so.6", "memcpy", 41),
        ];
        let (files, places) = found(&before, &after);
        assert_eq!(files, ["server-1.2=server-1.3"]);
        assert_eq!(places, [(1, 2), (2, 0)]);
    }

    #[test]
    fn one_name_or_a_small_part_is_not_enough() {
        let before = [known("a", "main", 50), known("a", "work", 50)];
        // Another program that has a main.
        let other = [known("b", "main", 50), known("b", "other", 50)];
        assert_eq!(found(&before, &other).0, [""; 0]);
        // The functions that are the same have only a small part of the samples.
        let other = [
            known("b", "main", 1),
            known("b", "work", 1),
            known("b", "other", 50),
        ];
        assert_eq!(found(&before, &other).0, [""; 0]);
        // The file exists on both sides under its own name.
        let both = [
            known("a", "main", 1),
            known("b", "main", 50),
            known("b", "work", 50),
        ];
        assert_eq!(found(&before, &both).0, [""; 0]);
    }

    #[test]
    fn the_best_pair_is_taken_and_each_file_once() {
        let before = [known("old", "main", 10), known("old", "work", 90)];
        let after = [
            known("helper", "main", 5),
            known("helper", "work", 5),
            known("new", "main", 10),
            known("new", "work", 95),
        ];
        assert_eq!(found(&before, &after).0, ["old=new"]);
    }
}
