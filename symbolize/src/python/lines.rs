//! The line of each instruction of a code object.

use super::layout::LineTable;
use crate::wire::{Taken, put_u32};

/// The encoding of an instruction without a line. No source text has a line with this number.
const NO_LINE: u32 = u32::MAX;

/// Maximum number of places at which lines begin: a table has at most 1 MiB, and an entry of it has
/// at least one byte.
const STARTS_MAX: u32 = 1 << 20;

/// The lines of one code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    first_line: u32,
    /// Offsets in the code, rising, at which lines begin, with the line; `None` for instructions
    /// without a line.
    starts: Vec<(u32, Option<u32>)>,
    /// The first byte after the code that the table covers.
    end: u32,
}

impl Lines {
    /// Decodes a `co_linetable` or `co_lnotab`; stops at the first damaged entry.
    pub fn decode(kind: LineTable, table: &[u8], first_line: u32) -> Lines {
        let mut lines = Lines {
            first_line,
            starts: Vec::new(),
            end: 0,
        };
        match kind {
            LineTable::Steps => lines.add_steps(table),
            LineTable::Ranges => lines.add_ranges(table),
            LineTable::Locations => lines.add_locations(table),
        }
        lines
    }

    /// Returns the line of the instruction at an offset in the code; before the first instruction
    /// the line of the definition. `None` if it has no line.
    pub fn at(&self, offset: i32) -> Option<u32> {
        let Ok(offset) = u32::try_from(offset) else {
            return Some(self.first_line);
        };
        if offset >= self.end {
            return None;
        }
        let after = self.starts.partition_point(|(start, _)| *start <= offset);
        self.starts.get(after.checked_sub(1)?)?.1
    }

    /// Returns the memory that they take.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.starts.capacity() * size_of::<(u32, Option<u32>)>()
    }

    /// Encodes the lines for another process.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_u32(out, self.first_line);
        put_u32(out, self.end);
        put_u32(out, self.starts.len() as u32);
        for (start, line) in &self.starts {
            put_u32(out, *start);
            put_u32(out, line.unwrap_or(NO_LINE));
        }
    }

    /// Decodes the result of [`Lines::write`]; `None` if it is malformed.
    pub(crate) fn take(bytes: &mut Taken<'_>) -> Option<Lines> {
        let (first_line, end) = (bytes.u32()?, bytes.u32()?);
        let count = bytes.u32().filter(|count| *count <= STARTS_MAX)?;
        let mut start = || {
            let (start, line) = (bytes.u32()?, bytes.u32()?);
            Some((start, (line != NO_LINE).then_some(line)))
        };
        let starts = (0..count).map(|_| start()).collect::<Option<Vec<_>>>()?;
        let are_sorted = starts.is_sorted_by_key(|(start, _)| *start);
        are_sorted.then_some(Lines {
            first_line,
            starts,
            end,
        })
    }

    fn add(&mut self, bytes: u32, line: i64) {
        let line = u32::try_from(line).ok().filter(|line| *line != NO_LINE);
        self.add_maybe(bytes, line);
    }

    fn add_maybe(&mut self, bytes: u32, line: Option<u32>) {
        if bytes > 0 && self.starts.last().is_none_or(|(_, last)| *last != line) {
            self.starts.push((self.end, line));
        }
        self.end = self.end.saturating_add(bytes);
    }

    /// Decodes pairs of an address step and a line step; the line applies after the address step
    /// (`Objects/lnotab_notes.txt` of 3.9).
    fn add_steps(&mut self, table: &[u8]) {
        let mut line = i64::from(self.first_line);
        for [bytes, step] in table.as_chunks::<2>().0 {
            self.add((*bytes).into(), line);
            line += i64::from(step.cast_signed());
        }
        // The last line continues to the end of the code.
        self.add(u32::MAX - self.end, line);
    }

    /// Decodes pairs of a length and a line step; -128 means no line (PEP 626).
    fn add_ranges(&mut self, table: &[u8]) {
        let mut line = i64::from(self.first_line);
        for [bytes, step] in table.as_chunks::<2>().0 {
            match step.cast_signed() {
                i8::MIN => self.add_maybe((*bytes).into(), None),
                step => {
                    line += i64::from(step);
                    self.add((*bytes).into(), line);
                }
            }
        }
    }

    /// Decodes entries that begin with `1 cccc lll`: a code, and a length in units of two bytes
    /// minus one (PEP 657, `Objects/locations.md`).
    fn add_locations(&mut self, table: &[u8]) {
        let mut line = i64::from(self.first_line);
        let mut rest = table;
        while let Some((first, behind)) = rest.split_first() {
            if first & 0x80 == 0 {
                return;
            }
            rest = behind;
            let bytes = 2 * (u32::from(first & 7) + 1);
            let code = first >> 3 & 15;
            let Some(step) = line_step(code, &mut rest) else {
                return;
            };
            match step {
                Some(step) => {
                    line = line.saturating_add(step);
                    self.add(bytes, line);
                }
                None => self.add_maybe(bytes, None),
            }
        }
    }
}

/// Decodes the line step of an entry, and consumes its bytes; `Some(None)` if its instructions have
/// no line, `None` if the entry is cut.
fn line_step(code: u8, rest: &mut &[u8]) -> Option<Option<i64>> {
    let mut skip = |bytes: usize| {
        *rest = rest.get(bytes..)?;
        Some(())
    };
    match code {
        0..=9 => skip(1).map(|()| Some(0)),
        10..=12 => skip(2).map(|()| Some(i64::from(code) - 10)),
        13 => signed(rest).map(Some),
        14 => {
            let step = signed(rest)?;
            for _ in 0..3 {
                number(rest)?;
            }
            Some(Some(step))
        }
        _ => Some(None),
    }
}

/// Decodes a number of six bits per byte, lowest first; the bit above says that more follow.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..).step_by(6) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 63).checked_shl(shift).unwrap_or(0);
        if byte & 64 == 0 {
            return Some(value);
        }
    }
    None
}

/// Decodes a signed number whose sign is in the lowest bit.
fn signed(rest: &mut &[u8]) -> Option<i64> {
    let value = number(rest)?;
    let size = (value >> 1).cast_signed();
    Some(if value & 1 != 0 { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: LineTable, table: &[u8], expected: &[(i32, Option<u32>)]) {
        let lines = Lines::decode(kind, table, 10);
        for (offset, line) in expected {
            assert_eq!(lines.at(*offset), *line, "at {offset} of {table:?}");
        }
        check_encoding(&lines);
    }

    fn check_encoding(lines: &Lines) {
        let mut bytes = Vec::new();
        lines.write(&mut bytes);
        assert_eq!(Lines::take(&mut Taken(&bytes)).as_ref(), Some(lines));
        assert_eq!(Lines::take(&mut Taken(&bytes[..bytes.len() - 1])), None);
    }

    #[test]
    fn lines_out_of_order_are_malformed() {
        let lines = Lines {
            first_line: 1,
            starts: vec![(4, Some(1)), (2, None)],
            end: 8,
        };
        let mut bytes = Vec::new();
        lines.write(&mut bytes);
        assert_eq!(Lines::take(&mut Taken(&bytes)), None);
    }

    #[test]
    fn steps_of_lnotab() {
        // The example of `Objects/lnotab_notes.txt`, with a step back added.
        let table = [0, 1, 6, 1, 44, 5, 255, 0, 45, 255];
        check(
            LineTable::Steps,
            &table,
            &[
                (-1, Some(10)),
                (0, Some(11)),
                (5, Some(11)),
                (6, Some(12)),
                (49, Some(12)),
                (50, Some(17)),
                (349, Some(17)),
                (350, Some(16)),
                (100_000, Some(16)),
            ],
        );
    }

    #[test]
    fn ranges_of_3_10() {
        let table = [4, 1, 6, 0x80, 2, 3, 0, 1, 2, 0xff];
        check(
            LineTable::Ranges,
            &table,
            &[
                (-2, Some(10)),
                (0, Some(11)),
                (4, None),
                (9, None),
                (10, Some(14)),
                (12, Some(14)),
                (14, None),
            ],
        );
    }

    #[test]
    fn locations_of_3_11() {
        let table = [
            0x80, 0x10, // short, one unit, same line
            0xd9, 1, 2, // one line on, two units
            0xe8, 0x06, // no columns: 3 lines on
            0xf1, 0x03, 0x41, 0x00, 1, 2,    // long: a line back, two units
            0xf8, // no location
        ];
        check(
            LineTable::Locations,
            &table,
            &[
                (-1, Some(10)),
                (0, Some(10)),
                (2, Some(11)),
                (5, Some(11)),
                (6, Some(14)),
                (8, Some(13)),
                (11, Some(13)),
                (12, None),
                (14, None),
            ],
        );
    }

    #[test]
    fn what_is_cut_or_damaged_ends_the_table() {
        for kind in [LineTable::Steps, LineTable::Ranges, LineTable::Locations] {
            for table in [
                &[0xff; 7][..],
                &[0; 5],
                &[0xe8, 0x40, 0x40],
                &[0xf0; 4],
                &[],
            ] {
                let lines = Lines::decode(kind, table, u32::MAX);
                check_encoding(&lines);
                for offset in [i32::MIN, -1, 0, 2, i32::MAX] {
                    lines.at(offset);
                }
            }
        }
    }
}
