//! Where functions begin and end, from unwind information alone: stripped files have that, too.

use std::ops::Range;

use gimli::{EhFrame, UnwindSection};

use super::section::{AtZero, Extent};
use super::{Bytes, eh_frame};
use crate::object::Object;
use crate::{LinkAddr, OpenError};

/// Maximum number of functions, which take 64 MiB. The largest known files have a million.
const EXTENTS_MAX: usize = 8 << 20;

/// The extents of a file's functions, by start, without names.
#[derive(Debug, Default)]
pub struct Extents(Vec<Extended>);

/// An extent in half of the memory of two words; functions above 4 GiB, which are rare, have none.
#[derive(Debug, Clone, Copy)]
struct Extended {
    start: u32,
    len: u32,
}

impl Extents {
    /// Reads `.eh_frame`. Damaged entries are skipped.
    pub fn read(object: &Object) -> Result<Extents, OpenError> {
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
        Ok(Extents(found))
    }

    /// Returns the function that contains an address; if there are several, the one that starts
    /// last.
    pub fn find(&self, addr: LinkAddr) -> Option<Range<u64>> {
        let behind = self.0.partition_point(|e| u64::from(e.start) <= addr.0);
        let found = self.0.get(behind.checked_sub(1)?)?;
        let start = u64::from(found.start);
        let range = start..start + u64::from(found.len);
        range.contains(&addr.0).then_some(range)
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Extended>()
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
