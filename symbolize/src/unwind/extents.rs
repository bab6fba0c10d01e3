//! Where functions begin and end, from unwind information alone: stripped files have that, too.

use std::ops::Range;

use gimli::{EhFrame, UnwindSection};

use super::search_table::SearchTable;
use super::section::{AtZero, Extent};
use super::{Bytes, eh_frame};
use crate::object::Object;
use crate::{LinkAddr, OpenError};

/// Maximum number of functions, which take 64 MiB. The largest known files have a million.
const EXTENTS_MAX: usize = 8 << 20;

/// The extents of a file's functions, without names.
#[derive(Debug, Default)]
pub struct Extents(Kind);

#[derive(Debug)]
enum Kind {
    /// The file has a table to search them.
    Searched(SearchTable),
    /// All of them were read; by start.
    Listed(Vec<Extended>),
}

/// An extent in half of the memory of two words; functions above 4 GiB, which are rare, have none.
#[derive(Debug, Clone, Copy)]
struct Extended {
    start: u32,
    len: u32,
}

impl Default for Kind {
    fn default() -> Self {
        Kind::Listed(Vec::new())
    }
}

impl Extents {
    /// Reads the search table of the file, or all entries if there is none.
    pub fn read(object: &Object) -> Result<Extents, OpenError> {
        SearchTable::read(object, EXTENTS_MAX).map_or_else(
            || Extents::list(object),
            |table| Ok(Extents(Kind::Searched(table))),
        )
    }

    /// Reads all entries of `.eh_frame`. Damaged ones are skipped.
    fn list(object: &Object) -> Result<Extents, OpenError> {
        let mut found = Vec::new();
        eh_frame::sections(object, |section| {
            collect(&section, &mut found);
            if found.len() > EXTENTS_MAX {
                Err(OpenError::Refused("too many unwind entries"))
            } else {
                Ok(())
            }
        })?;
        found.sort_unstable_by_key(|extended| (extended.start, extended.len));
        found.dedup_by_key(|extended| extended.start);
        found.shrink_to_fit();
        Ok(Extents(Kind::Listed(found)))
    }

    /// Returns the function of this file that contains an address; if there are several, the one
    /// that starts last.
    pub fn find(&self, object: &Object, addr: LinkAddr) -> Option<Range<u64>> {
        let listed = match &self.0 {
            Kind::Searched(table) => return table.find(object, addr),
            Kind::Listed(listed) => listed,
        };
        let behind = listed.partition_point(|e| u64::from(e.start) <= addr.0);
        let found = listed.get(behind.checked_sub(1)?)?;
        let start = u64::from(found.start);
        let range = start..start + u64::from(found.len);
        range.contains(&addr.0).then_some(range)
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Kind::Searched(table) => table.heap_bytes(),
            Kind::Listed(listed) => listed.capacity() * size_of::<Extended>(),
        }
    }
}

fn collect(section: &eh_frame::Found<'_>, found: &mut Vec<Extended>) {
    let mut at = 0;
    while let Some(extent) = Extent::at(section.data, at) {
        match extent {
            Extent::Zero if section.at_zero == AtZero::Stop => return,
            Extent::Zero => at += 4,
            Extent::Damaged => return,
            Extent::Entry { behind } => {
                if found.len() > EXTENTS_MAX {
                    return;
                }
                found.extend(entry(section, at));
                at = behind;
            }
        }
    }
}

/// Returns the extent of the entry at `at`, if it is a valid entry of a function.
fn entry(section: &eh_frame::Found<'_>, at: usize) -> Option<Extended> {
    let eh_frame: &EhFrame<Bytes<'_>> = &section.eh_frame;
    // If this fails, the entry is damaged, or a CIE.
    let partial = eh_frame.partial_fde_from_offset(&section.bases, at.into());
    let fde = partial
        .ok()?
        .parse(|frame, bases, offset| frame.cie_from_offset(bases, offset))
        .ok()?;
    let start = u32::try_from(fde.initial_address()).ok()?;
    let len = u32::try_from(fde.len()).ok()?;
    // Linkers leave an address of 0 where they removed the code.
    (start != 0 && len != 0).then_some(Extended { start, len })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::path::Path;
    use test_support::{Scratch, compile};

    /// Compares what the search table of a file finds with all of its entries, at the bounds of
    /// each function. Returns the number of functions.
    fn compare(path: &Path) -> usize {
        let object = Object::read(&File::open(path).unwrap()).unwrap();
        let table = SearchTable::read(&object, EXTENTS_MAX).unwrap();
        let all = Extents::list(&object).unwrap();
        let Kind::Listed(listed) = &all.0 else {
            unreachable!("they were listed");
        };
        for function in listed {
            let start = u64::from(function.start);
            let end = start + u64::from(function.len);
            for addr in [start - 1, start, end - 1, end].map(LinkAddr) {
                let found = table.find(&object, addr);
                assert_eq!(found, all.find(&object, addr), "{path:?}, {addr:x?}");
            }
        }
        listed.len()
    }

    #[test]
    fn the_search_table_finds_what_all_entries_say() {
        let own = std::env::current_exe().unwrap();
        assert!(compare(&own) > 10_000);
    }

    /// A table that is out of order is not used; entries that lead nowhere have no function.
    #[test]
    fn a_damaged_table_does_no_harm() {
        let scratch = Scratch::new();
        let functions = (0..20).map(|n| format!("int f{n}(int a) {{ return a * {n}; }}\n"));
        let text = functions.collect::<String>() + "int main() { return 0; }";
        let (source, program) = (scratch.write("few.c", text), scratch.join("few"));
        if compile(&source, &program, ["-no-pie"]).is_none() {
            return;
        }
        let bytes = std::fs::read(&program).unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(&program, bytes).unwrap();
            Object::read(&File::open(&program).unwrap()).unwrap()
        };
        let object = read(&bytes);
        let Kind::Listed(listed) = Extents::list(&object).unwrap().0 else {
            unreachable!("they were listed");
        };
        let starts = Vec::from_iter(
            listed
                .iter()
                .map(|function| LinkAddr(function.start.into())),
        );
        let mut headers = object.program_headers().iter();
        let table = headers.find(|header| header.is_eh_frame_header()).unwrap();
        let (from, to) = (
            table.offset as usize,
            (table.offset + table.filesz) as usize,
        );
        let (mut unsorted, mut far, mut short) = (bytes.clone(), bytes.clone(), bytes.clone());
        unsorted[from + 12..from + 20].copy_from_slice(&bytes[from + 28..from + 36]);
        far[to - 4..to].copy_from_slice(&i32::MAX.to_le_bytes());
        short[from + 8..from + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        for (damaged, is_used) in [(unsorted, false), (far, true), (short, false)] {
            let object = read(&damaged);
            let extents = Extents::read(&object).unwrap();
            assert_eq!(matches!(extents.0, Kind::Searched(_)), is_used);
            let found = starts
                .iter()
                .filter_map(|addr| extents.find(&object, *addr));
            assert_eq!(found.count(), starts.len() - usize::from(is_used));
        }
    }
}
