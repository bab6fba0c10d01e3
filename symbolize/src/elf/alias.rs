//! One function, several names: which one is shown.

use std::cmp::{Ordering, Reverse};

use super::candidates::{Binding, Candidate};
use super::strings::{Name, Names, Table};
use crate::demangle::has_clone_suffix;
use crate::object::Object;
use crate::{LinkAddr, OpenError};

/// Aliases whose names are compared one by one. Code folding puts thousands of
/// names on one empty function; beyond this they are counted, not compared.
const COMPARED_MAX: usize = 4096;

/// Bytes of names looked at in one file. The largest known programs need 50 MiB;
/// a hostile one could make us compare long names for hours.
const COMPARED_BYTES_MAX: usize = 1 << 30;

/// A function with its final name and extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    pub start: u64,
    /// 0: known only at `start` itself.
    pub size: u64,
    pub name: Name,
    pub inexact: bool,
    pub aliases: u32,
}

/// Merges candidates, in their order, that are the same code. Those without a
/// size are the same as a sized one that starts where they do.
///
/// Without a size of its own a function extends to the next one or to the end
/// of its section, inexactly; of an exported one in a stripped file only the
/// start is known, because what follows it is probably not exported.
pub fn choose(
    object: &Object,
    candidates: &[Candidate],
    names: &Names,
    stripped: bool,
) -> Result<Vec<Function>, OpenError> {
    let mut budget = COMPARED_BYTES_MAX;
    let mut functions: Vec<Function> = Vec::with_capacity(candidates.len());
    let mut covered = 0;
    let mut rest = candidates;
    while let Some(first) = rest.first() {
        let same = |other: &&Candidate| {
            other.start == first.start && (other.size == first.size || other.size == 0)
        };
        let (group, behind) = rest.split_at(rest.iter().take_while(same).count());
        rest = behind;

        // A label inside of a function is not the function's end.
        if first.size == 0 && covered > first.start {
            continue;
        }
        let extent = match (first.size, stripped) {
            (0, true) => 0,
            (0, false) => {
                let next = behind.first().map_or(u64::MAX, |next| next.start);
                match next.min(end_of_code(object, first)) - first.start {
                    0 => continue,
                    size => size,
                }
            }
            (size, _) => size,
        };
        let (best, aliases) = best(group, names, &mut budget)?;
        covered = covered.max(first.start.saturating_add(extent));
        functions.push(Function {
            start: first.start,
            size: extent,
            name: best.name,
            inexact: first.size == 0,
            aliases,
        });
    }
    Ok(functions)
}

/// The end of the section, or of the segment, that holds the candidate.
fn end_of_code(object: &Object, candidate: &Candidate) -> u64 {
    let section = object.sections().get(usize::from(candidate.section));
    let section = section.filter(|s| s.addr <= candidate.start && candidate.start <= s.end());
    let segment = object.segments().executable_end(LinkAddr(candidate.start));
    let segment = segment.map_or(candidate.start, |end| end.0);
    section.map_or(segment, |section| section.end().min(segment))
}

/// The preferred one, and how many other names there are.
fn best<'c>(
    group: &'c [Candidate],
    names: &Names,
    budget: &mut usize,
) -> Result<(&'c Candidate, u32), OpenError> {
    // `.dynsym` repeats a part of `.symtab`: it counts where that has nothing.
    // Not reading the names of the repetitions saves half of the time.
    let is_full = |candidate: &&Candidate| candidate.name.table == Table::Full;
    let mut full = group.iter().filter(is_full);
    let group: Vec<&Candidate> = match (full.next(), full.next(), group) {
        // Nearly all of them: not worth a list.
        (Some(only), None, _) | (None, _, [only]) => return Ok((only, 0)),
        (Some(_), Some(_), _) => group.iter().filter(is_full).collect(),
        (None, ..) => group.iter().collect(),
    };
    let mut ranked = Vec::with_capacity(group.len().min(COMPARED_MAX));
    for &candidate in group.iter().take(COMPARED_MAX) {
        let rank = Rank::new(candidate, names)?;
        *budget = budget
            .checked_sub(rank.name.len())
            .ok_or(OpenError::Refused("names too long to compare"))?;
        ranked.push((rank, candidate));
    }
    ranked.sort_by(|(a, _), (b, _)| a.name.cmp(b.name).then_with(|| b.order(a)));
    ranked.dedup_by(|(a, _), (b, _)| a.name == b.name);
    let not_compared = group.len().saturating_sub(COMPARED_MAX);
    let aliases = ranked.len() - 1 + not_compared;
    let best = ranked.iter().max_by(|(a, _), (b, _)| a.order(b));
    let &(_, best) = best.expect("a group is never empty");
    Ok((best, u32::try_from(aliases).unwrap_or(u32::MAX)))
}

/// What decides between names of the same code.
struct Rank<'n> {
    sized: bool,
    binding: Binding,
    old_version: bool,
    name: &'n [u8],
}

impl Rank<'_> {
    fn new<'n>(candidate: &Candidate, names: &'n Names) -> Result<Rank<'n>, OpenError> {
        let (name, old_version) = names.get_versioned(candidate.name)?;
        Ok(Rank {
            sized: candidate.size != 0,
            binding: candidate.binding,
            old_version: candidate.old_version || old_version,
            name,
        })
    }

    /// In this order: a size, a global name before a weak before a local one,
    /// no suffix of a compiler's clone, fewer leading underscores, the
    /// version that is current, the longer name, the alphabet.
    fn order(&self, other: &Rank<'_>) -> Ordering {
        self.key()
            .cmp(&other.key())
            .then_with(|| other.name.cmp(self.name))
    }

    fn key(&self) -> impl Ord {
        let underscores = self.name.iter().take_while(|&&byte| byte == b'_').count();
        (
            !self.name.is_empty(),
            self.sized,
            self.binding,
            !has_clone_suffix(self.name),
            Reverse(underscores),
            !self.old_version,
            self.name.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(name: &str, binding: Binding) -> Rank<'_> {
        Rank {
            sized: true,
            binding,
            old_version: false,
            name: name.as_bytes(),
        }
    }

    #[track_caller]
    fn prefers(better: Rank<'_>, worse: Rank<'_>) {
        assert_eq!(better.order(&worse), Ordering::Greater);
        assert_eq!(worse.order(&better), Ordering::Less);
    }

    #[test]
    fn in_the_documented_order() {
        use Binding::{Global, Local, Stub, Weak};
        prefers(rank("__x", Global), rank("long_name", Weak));
        prefers(rank("x", Weak), rank("long_name", Local));
        prefers(rank("x", Local), rank("long_name", Stub));
        prefers(rank("x", Global), rank("work.part.0", Global));
        prefers(rank("x", Global), rank("_xyz", Global));
        prefers(rank("longer", Global), rank("short", Global));
        prefers(rank("abc", Global), rank("abd", Global));
        let old = Rank {
            old_version: true,
            ..rank("long_name", Global)
        };
        prefers(rank("x", Global), old);
        let sizeless = Rank {
            sized: false,
            ..rank("long_name", Global)
        };
        prefers(rank("x", Local), sizeless);
    }
}
