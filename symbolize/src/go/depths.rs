//! What unwinding needs of the table: every function with its name, its effects on the stack, and
//! the stack depth at each pc. Go itself unwinds with it, so every program has it.
//!
//! The functions are visited one after the other, so the table is read as a whole. Sources:
//! `src/runtime/symtab.go` and `src/internal/abi/symtab.go` of Go.

use super::find;
use super::header::{Header, Layout};
use super::module_data::ModuleData;
use super::pointers::Pointers;
use crate::OpenError;
use crate::bytes::u32_in;
use crate::object::Object;

/// Maximum size. The largest known table has 186 MB.
const TABLE_BYTES_MAX: u64 = 512 << 20;

const WHAT: &str = "Go's function table";

/// `funcFlag_TOPFRAME`: the first function of its stack.
pub const TOP_FRAME: u8 = 1;
/// `funcFlag_SPWRITE`: the function changes the stack pointer in ways that the table of deltas does
/// not contain, by switching to another stack.
pub const WRITES_SP: u8 = 2;

/// The functions of a Go program.
#[derive(Debug)]
pub struct Depths {
    data: Vec<u8>,
    header: Header,
    /// The link address that entries are relative to; 0 for older formats.
    text: u64,
}

/// A function of [`Depths`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Link address of its first byte.
    pub start: u64,
    /// Link address after its last byte.
    pub end: u64,
    /// Offset of its record.
    record: usize,
}

impl Depths {
    /// Reads the table of a file; `None` if it is not a Go program, or one older than Go 1.16.
    pub fn read(object: &Object) -> Result<Option<Depths>, OpenError> {
        let found = find::table(object).filter(|(_, header)| header.layout != Layout::Go1_2);
        let Some((place, header)) = found else {
            return Ok(None);
        };
        let text = match (header.layout, header.text_start) {
            (Layout::Go1_16, _) => 0,
            (_, 0) => {
                let record = ModuleData::find(&Pointers::new(object), place, &header);
                record.ok_or(OpenError::Damaged(WHAT))?.text()
            }
            (_, text) => text,
        };
        let len = place.len.min(TABLE_BYTES_MAX);
        Ok(Some(Depths {
            data: object.source().read(place.offset, len, WHAT)?,
            header,
            text,
        }))
    }

    /// All functions in the order of the table, which is by address.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        let functions = usize::try_from(self.header.functions).unwrap_or(0);
        (0..functions).filter_map(|number| {
            let (start, record) = self.entry(number)?;
            let (end, _) = self.entry(number + 1)?;
            let record = self.part(self.header.list)?.checked_add(record)?;
            (start < end).then_some(Function { start, end, record })
        })
    }

    /// Returns a function's name as the compiler wrote it; empty if the record is damaged.
    pub fn name(&self, function: &Function) -> &[u8] {
        let name = || {
            let at = self.field(function, 0)? as usize;
            let rest = self
                .data
                .get(self.part(self.header.names)?.checked_add(at)?..)?;
            rest.get(..memchr::memchr(0, rest)?)
        };
        name().unwrap_or_default()
    }

    /// Returns the flags of a function, such as [`TOP_FRAME`]; 0 before Go 1.17.
    pub fn flags(&self, function: &Function) -> u8 {
        let behind_address = match self.header.layout {
            Layout::Go1_20 => 37,
            _ => 33,
        };
        let at = function.record + self.header.list_word() as usize + behind_address;
        self.data.get(at).copied().unwrap_or(0)
    }

    /// Returns how far the stack pointer is below the return address, by distance from the
    /// function's start. Empty if unknown.
    pub fn stack_deltas(&self, function: &Function) -> Values<'_> {
        let table = || {
            let at = self.field(function, 12).filter(|at| *at != 0)? as usize;
            self.data
                .get(self.part(self.header.pc_values)?.checked_add(at)?..)
        };
        Values {
            rest: table().unwrap_or_default(),
            value: -1,
            at: 0,
            end: function.end - function.start,
            quantum: self.header.quantum.into(),
        }
    }

    /// Reads a field of a record, by its distance from the end of the address field.
    fn field(&self, function: &Function, at: usize) -> Option<u32> {
        u32_in(
            &self.data,
            function.record + self.header.list_word() as usize + at,
        )
    }

    fn part(&self, at: u64) -> Option<usize> {
        usize::try_from(at).ok()
    }

    /// Reads an entry of the index: a link address, and the offset of the record relative to the
    /// index. The entry after the last function has no record.
    fn entry(&self, number: usize) -> Option<(u64, usize)> {
        let bytes = self.header.list_word() as usize;
        let list = self.part(self.header.list)?;
        let at = list.checked_add(number.checked_mul(2 * bytes)?)?;
        let address = match bytes {
            8 => u64_in(&self.data, at)?,
            _ => u64::from(u32_in(&self.data, at)?),
        };
        let record = at.checked_add(bytes)?;
        let record = u32_in(&self.data, record).unwrap_or(u32::MAX);
        Some((self.text.checked_add(address)?, record as usize))
    }
}

/// A pc-value table: values, each valid from a distance on.
#[derive(Debug, Clone)]
pub struct Values<'t> {
    rest: &'t [u8],
    value: i32,
    at: u64,
    /// Length of the function.
    end: u64,
    /// Unit of distances, in bytes.
    quantum: u64,
}

impl Iterator for Values<'_> {
    type Item = (u64, i32);

    fn next(&mut self) -> Option<(u64, i32)> {
        if self.at >= self.end {
            return None;
        }
        let delta = number(&mut self.rest)?;
        // A delta of 0 ends the table, except as the first one.
        if delta == 0 && self.at > 0 {
            return None;
        }
        let distance = number(&mut self.rest)?;
        self.value = self
            .value
            .wrapping_add((delta >> 1) as i32 ^ -((delta & 1) as i32));
        let start = self.at;
        self.at = start + u64::from(distance) * self.quantum;
        Some((start, self.value))
    }
}

/// Reads a number in groups of seven bits, lowest first.
fn number(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn u64_in(data: &[u8], at: usize) -> Option<u64> {
    let low = u32_in(data, at)?;
    let high = u32_in(data, at.checked_add(4)?)?;
    Some(u64::from(high) << 32 | u64::from(low))
}

#[cfg(test)]
mod tests;
