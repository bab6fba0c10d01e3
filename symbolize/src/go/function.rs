//! The record of one function in the table.

use super::header::Layout;
use super::pc_values::value_at;
use super::table::Table;
use crate::bytes::u32_in;

/// Maximum number of pcdata tables and of funcdata entries: real functions have about ten.
const TABLES_MAX: u32 = 64;

/// Index of `PCDATA_InlTreeIndex` and of `FUNCDATA_InlTree` since Go 1.16.
const INLINE_INDEX: u32 = 2;
const INLINE_TREE: u32 = 3;

/// Length of what is read at once: the record, and lists of ordinary length.
const RECORD_BYTES: usize = 128;

/// The record of one function; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Link address of the function's first byte.
    pub start: u64,
    end: u64,
    /// Offset of the name in the table of names.
    pub name: u32,
    files: u32,
    lines: u32,
    unit: u32,
    /// Offset of the pc-value table with indices into the inline tree.
    inline_index: Option<u32>,
    /// The inline tree: an offset or an address, depending on the layout.
    pub inline_tree: Option<u64>,
}

impl Table {
    /// Returns the function that contains an address.
    pub fn function(&self, addr: u64) -> Option<Function> {
        let within = u32::try_from(addr.checked_sub(self.text)?).ok()?;
        let behind = self.list.partition_point(|(start, _)| *start <= within);
        let (start, told) = *self.list.get(behind.checked_sub(1)?)?;
        // `None` behind the last function.
        let (end, _) = *self.list.get(behind)?;
        let start = self.text + u64::from(start);
        Function::read(self, start, self.text + u64::from(end), told.into())
    }
}

impl Function {
    /// Reads the record at `offset` of the function that starts at `start`.
    fn read(table: &Table, start: u64, end: u64, offset: u64) -> Option<Function> {
        let layout = table.header.layout;
        let offset = table.header.function_base().checked_add(offset)?;
        let entry = match layout {
            Layout::Go1_2 | Layout::Go1_16 => 8,
            Layout::Go1_18 | Layout::Go1_20 => 4,
        };
        let record = Record::read(table, offset.checked_add(entry)?);
        let word = |index: u64| record.u32(index * 4);
        let mut function = Function {
            start,
            end,
            name: word(0)?,
            files: word(4)?,
            lines: word(5)?,
            unit: 0,
            inline_index: None,
            inline_tree: None,
        };
        let is_empty = start >= end;
        if layout == Layout::Go1_2 || is_empty {
            return (!is_empty).then_some(function);
        }
        // Layouts have nine or ten words after the entry; then come the lists.
        function.unit = word(7)?;
        let last = if layout == Layout::Go1_20 { 9 } else { 8 };
        let numbers = word(6)?.min(TABLES_MAX);
        let data = (word(last)? >> 24).min(TABLES_MAX);
        let numbers_at = (last + 1) * 4;
        if numbers > INLINE_INDEX && data > INLINE_TREE {
            let index = record.u32(numbers_at + u64::from(INLINE_INDEX) * 4)?;
            function.inline_index = Some(index).filter(|offset| *offset != 0);
            function.inline_tree = tree(&record, numbers_at + u64::from(numbers) * 4);
        }
        Some(function)
    }

    /// Distance to the next function.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether an address is in the function's code, and not in the padding before the next one.
    pub fn has_code(&self, table: &Table, addr: u64) -> bool {
        self.files == 0 || self.value(table, self.files, addr).is_some()
    }

    /// Returns file and line of an address.
    pub fn position(&self, table: &Table, addr: u64) -> (Vec<u8>, u32) {
        let file = self.value(table, self.files, addr);
        let file = file.and_then(|number| self.file(table, number));
        let line = self.value(table, self.lines, addr);
        let line = line.and_then(|line| u32::try_from(line).ok());
        (file.unwrap_or_default(), line.unwrap_or_default())
    }

    /// Returns the path of the file with this number in the function's compilation unit.
    pub fn file(&self, table: &Table, number: i32) -> Option<Vec<u8>> {
        table.file(self.unit, number)
    }

    /// Returns the value for an address from the pc-value table at `offset`.
    fn value(&self, table: &Table, offset: u32, addr: u64) -> Option<i32> {
        let offset = table.header.pc_values.checked_add(offset.into())?;
        value_at(table, offset, self.start, addr)
    }

    /// Returns the index in the inline tree for an address, if a call was inlined there.
    pub fn inlined_at(&self, table: &Table, addr: u64) -> Option<u32> {
        let index = self.value(table, self.inline_index?, addr)?;
        u32::try_from(index).ok()
    }
}

/// Returns the place of the inline tree, from the list of data that starts at `data_at` of the
/// record.
fn tree(record: &Record<'_>, data_at: u64) -> Option<u64> {
    let index = u64::from(INLINE_TREE);
    match record.table.header.layout {
        Layout::Go1_2 | Layout::Go1_16 => {
            // Addresses are aligned in the table.
            let list = (record.offset + data_at).next_multiple_of(8) - record.offset;
            let at = list + index * 8;
            let low = u64::from(record.u32(at)?);
            let addr = low | u64::from(record.u32(at + 4)?) << 32;
            (addr != 0).then_some(addr)
        }
        Layout::Go1_18 | Layout::Go1_20 => {
            let offset = record.u32(data_at + index * 4)?;
            (offset != u32::MAX).then_some(offset.into())
        }
    }
}

/// The record without the entry, with as much behind it as mostly has its lists: one read.
struct Record<'t> {
    table: &'t Table,
    /// Its offset in the table.
    offset: u64,
    bytes: [u8; RECORD_BYTES],
    have: usize,
}

impl<'t> Record<'t> {
    fn read(table: &'t Table, offset: u64) -> Record<'t> {
        let mut bytes = [0; RECORD_BYTES];
        let have = table.read(offset, &mut bytes);
        Record {
            table,
            offset,
            bytes,
            have,
        }
    }

    /// Returns the number of 4 bytes at a distance from its start; `None` if the table ends before.
    fn u32(&self, at: u64) -> Option<u32> {
        let read = u32_in(&self.bytes[..self.have], usize::try_from(at).ok()?);
        let beyond = || self.table.u32(self.offset.checked_add(at)?);
        read.or_else(beyond)
    }
}
