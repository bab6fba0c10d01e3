//! Names for code without debug information, from the symbol table that was
//! written along.

use super::Table;
use super::format::{Part, SYMBOL_WORDS};
use crate::LinkAddr;

/// A function of the symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedRange<'t> {
    pub name: &'t [u8],
    pub start: LinkAddr,
    pub size: u64,
}

impl Table {
    /// All functions of the symbol table, where each starts and its name.
    pub fn symbols(&self) -> impl Iterator<Item = (LinkAddr, &[u8])> {
        let count = self.directory.count(Part::Symbols);
        (0..count).filter_map(|index| {
            let [start, _, name, within] = self.record(Part::Symbols, index)?;
            // Behind a function that lies in it, it only goes on.
            let addr = self.directory.base + u64::from(start);
            (within == 0).then_some((LinkAddr(addr), self.text(name)?))
        })
    }

    /// The function at `addr` as the file's symbol table has it, if the table
    /// was written with one.
    pub fn symbol(&self, addr: LinkAddr) -> Option<NamedRange<'_>> {
        let rel = u32::try_from(addr.0.checked_sub(self.directory.base)?).ok()?;
        let count = u32::try_from(self.directory.count(Part::Symbols)).ok()?;
        let index = self.last_at_or_before(Part::Symbols, SYMBOL_WORDS, 0, count, rel)?;
        let field = |field| self.word(Part::Symbols, index * SYMBOL_WORDS + field);
        let (start, size, within) = (field(0)?, field(1)?, field(3)?);
        let function = start.checked_sub(within)?;
        (rel - function < size.max(1)).then_some(())?;
        Some(NamedRange {
            name: self.text(field(2)?)?,
            start: LinkAddr(self.directory.base + u64::from(function)),
            size: u64::from(size),
        })
    }
}
