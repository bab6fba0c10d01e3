//! Chooses the displayed name of functions with several names.
//!
//! The names have to be read to be compared, which costs more than everything else that is done
//! when a file is opened. So that is done when such a function is first looked up.

use std::cmp::{Ordering, Reverse};
use std::sync::OnceLock;
use std::sync::atomic;

use super::candidates::{Binding, Candidate};
use super::strings::{Name, Names, Table};
use crate::demangle::has_clone_suffix;
use crate::object::Object;
use crate::{LinkAddr, OpenError};

/// Maximum number of aliases whose names are compared. Code folding puts thousands of names on one
/// empty function; further ones are only counted.
const COMPARED_MAX: usize = 4096;

/// Maximum number of name bytes that are compared in one file. The largest known programs need 50
/// MiB; a hostile one could make us compare long names for hours.
const COMPARED_BYTES_MAX: usize = 1 << 30;

/// A function with its final extent. `start` is a link address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    pub start: u64,
    /// Size in bytes; 0 if only `start` itself is known to belong to it.
    pub size: u64,
    pub label: Label,
    /// Whether the symbol table gives no size, so that the end is a guess.
    pub inexact: bool,
}

/// The name of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// The function's only name.
    Only(Name),
    /// One of several names: index into [`Aliases`].
    Several(u32),
}

/// The names of functions that have several.
#[derive(Debug, Default)]
pub struct Aliases {
    groups: Vec<Group>,
    members: Vec<Member>,
    /// Number of name bytes that were compared.
    compared: atomic::AtomicUsize,
}

/// The names of one function.
#[derive(Debug)]
struct Group {
    /// Index of the first name in `members`.
    first: u32,
    count: u32,
    not_compared: u32,
    chosen: OnceLock<Chosen>,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    name: Name,
    binding: Binding,
    sized: bool,
    old_version: bool,
}

/// The displayed name, and the number of other names.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    pub name: Name,
    pub aliases: u32,
}

impl Aliases {
    /// Reads and compares the names, if that was not done before.
    pub fn choose(&self, group: u32, names: &Names) -> Result<Chosen, OpenError> {
        let group = &self.groups[group as usize];
        if let Some(chosen) = group.chosen.get() {
            return Ok(*chosen);
        }
        let members = &self.members[group.first as usize..][..group.count as usize];
        let mut ranked = Vec::with_capacity(members.len());
        for member in members {
            let rank = Rank::new(member, names)?;
            let len = rank.name.len();
            let before = self.compared.fetch_add(len, atomic::Ordering::Relaxed);
            if before > COMPARED_BYTES_MAX {
                return Err(OpenError::Refused("names too long to compare"));
            }
            ranked.push((rank, member.name));
        }
        ranked.sort_unstable_by(|(a, _), (b, _)| a.name.cmp(b.name).then_with(|| b.order(a)));
        ranked.dedup_by(|(a, _), (b, _)| a.name == b.name);
        let aliases = ranked.len() - 1 + group.not_compared as usize;
        let best = ranked.iter().max_by(|(a, _), (b, _)| a.order(b));
        let (_, name) = best.expect("a group is never empty");
        Ok(*group.chosen.get_or_init(|| Chosen {
            name: *name,
            aliases: u32::try_from(aliases).unwrap_or(u32::MAX),
        }))
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Group>() + self.members.capacity() * size_of::<Member>()
    }

    /// Returns the name for a group of candidates that are the same function.
    fn label(&mut self, group: &[Candidate]) -> Label {
        // `.dynsym` repeats a part of `.symtab`: it is used only where `.symtab` has no name. Not
        // reading the repeated names saves half of the time.
        let is_full = |candidate: &&Candidate| candidate.name.table == Table::Full;
        let mut full = group.iter().filter(is_full);
        let has_full = match (full.next(), full.next(), group) {
            // The case of nearly all functions.
            (Some(only), None, _) | (None, _, [only]) => return Label::Only(only.name),
            (full, ..) => full.is_some(),
        };
        let counts = |candidate: &&Candidate| !has_full || is_full(candidate);
        let first = self.members.len();
        let members = group.iter().filter(counts).map(|candidate| Member {
            name: candidate.name,
            binding: candidate.binding,
            sized: candidate.size != 0,
            old_version: candidate.old_version,
        });
        self.members.extend(members.take(COMPARED_MAX));
        let count = self.members.len() - first;
        let not_compared = group.iter().filter(counts).count() - count;
        self.groups.push(Group {
            // Fits, as there are fewer candidates than 2^32.
            first: first as u32,
            count: count as u32,
            not_compared: not_compared as u32,
            chosen: OnceLock::new(),
        });
        Label::Several(self.groups.len() as u32 - 1)
    }
}

/// Merges candidates, which must be sorted, that are the same code, and calls `take` with each
/// function. A candidate without a size is the same function as one with a size that starts at the
/// same address.
///
/// A function without a size extends to the next one or to the end of its section, and is marked as
/// inexact. Of an exported function of a stripped file only the start is known, because what
/// follows it is probably not exported.
pub fn choose(
    object: &Object,
    candidates: &[Candidate],
    stripped: bool,
    mut take: impl FnMut(Function),
) -> Aliases {
    let mut aliases = Aliases::default();
    let mut covered = 0;
    let mut rest = candidates;
    while let Some(first) = rest.first() {
        let same = |other: &&Candidate| {
            other.start == first.start && (other.size == first.size || other.size == 0)
        };
        let (group, behind) = rest.split_at(rest.iter().take_while(same).count());
        rest = behind;

        // A label inside of a function does not end the function.
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
        covered = covered.max(first.start.saturating_add(extent));
        take(Function {
            start: first.start,
            size: extent,
            label: aliases.label(group),
            inexact: first.size == 0,
        });
    }
    aliases.groups.shrink_to_fit();
    aliases.members.shrink_to_fit();
    aliases
}

/// End of the section, or of the segment, that contains the candidate.
fn end_of_code(object: &Object, candidate: &Candidate) -> u64 {
    let section = object
        .sections()
        .get(usize::from(candidate.section))
        .filter(|s| s.addr <= candidate.start && candidate.start <= s.end());
    let segment = object
        .segments()
        .executable_end(LinkAddr(candidate.start))
        .map_or(candidate.start, |end| end.0);
    section.map_or(segment, |section| section.end().min(segment))
}

/// The criteria for choosing between names of the same code.
struct Rank<'n> {
    sized: bool,
    binding: Binding,
    old_version: bool,
    name: &'n [u8],
}

impl Rank<'_> {
    fn new<'n>(member: &Member, names: &'n Names) -> Result<Rank<'n>, OpenError> {
        let (name, old_version) = names.get_versioned(member.name)?;
        Ok(Rank {
            sized: member.sized,
            binding: member.binding,
            old_version: member.old_version || old_version,
            name,
        })
    }

    /// Compares in this order: a size; a global name before a weak one before a local one; no
    /// suffix of a compiler's clone; fewer leading underscores; the current version; the longer
    /// name; the alphabet.
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
