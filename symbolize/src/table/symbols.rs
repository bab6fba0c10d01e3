//! Names for code without debug information, from the symbol table that is stored with the ranges.

use super::Table;
use super::format::{SYMBOL_BYTES, TablePart, last_at_or_before};
use crate::LinkAddr;
use crate::bytes::u32_at;

/// A function of the symbol table. `size` is in bytes; 0 if only the start is known to belong to
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedRange<'t> {
    pub name: &'t [u8],
    pub start: LinkAddr,
    pub size: u64,
}

/// A record of the table.
struct Symbol {
    start: u32,
    size: u32,
    name: u32,
    within: u32,
}

impl Symbol {
    fn of(record: &[u8; SYMBOL_BYTES]) -> Symbol {
        Symbol {
            start: u32_at(record, 0),
            size: u32_at(record, 4),
            name: u32_at(record, 8),
            within: u32_at(record, 12),
        }
    }
}

impl Table {
    /// All functions of the symbol table, with start and name.
    pub fn symbols(&self) -> impl Iterator<Item = (LinkAddr, &[u8])> {
        let count = self.directory.count(TablePart::Symbols, SYMBOL_BYTES);
        (0..count).filter_map(|index| {
            let symbol = Symbol::of(self.record(TablePart::Symbols, index)?);
            // A record after a nested function only continues the outer one.
            let addr = self.directory.base.checked_add(symbol.start.into())?;
            (symbol.within == 0).then_some((LinkAddr(addr), self.text(symbol.name)?))
        })
    }

    /// Returns the function at `addr` in the file's symbol table, if the table was written with
    /// one.
    pub fn symbol(&self, addr: LinkAddr) -> Option<NamedRange<'_>> {
        let rel = u32::try_from(addr.0.checked_sub(self.directory.base)?).ok()?;
        let block = last_at_or_before(self.directory.symbol_starts(), rel)?;
        let (records, _) = self.block(TablePart::Symbols, block)?.as_chunks();
        let behind = records.partition_point(|record| Symbol::of(record).start <= rel);
        let symbol = Symbol::of(records.get(behind.checked_sub(1)?)?);
        let function = symbol.start.checked_sub(symbol.within)?;
        (rel - function < symbol.size.max(1)).then_some(())?;
        Some(NamedRange {
            name: self.text(symbol.name)?,
            start: LinkAddr(self.directory.base + u64::from(function)),
            size: u64::from(symbol.size),
        })
    }
}
