//! The head of the table: its layout, and where its parts are.
//!
//! | magic | Go | what is new |
//! |---|---|---|
//! | `fffffffb` | 1.2 to 1.15 | all offsets count from the start of the table |
//! | `fffffffa` | 1.16, 1.17 | a table for each kind of thing |
//! | `fffffff0` | 1.18, 1.19 | addresses of functions are relative to the text's start |
//! | `fffffff1` | 1.20 and later | functions have the line they start at |

use crate::bytes::{u32_at, u64_at};

/// Length of the longest head.
pub const HEADER_BYTES: usize = 8 + 8 * 8;

/// The four layouts of the table; see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layout {
    /// Go 1.2 to 1.15.
    Go1_2,
    /// Go 1.16 and 1.17.
    Go1_16,
    /// Go 1.18 and 1.19.
    Go1_18,
    /// Go 1.20 and later.
    Go1_20,
}

/// The head. All offsets are relative to the start of the table; those of parts that the layout
/// does not have are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub layout: Layout,
    /// Factor for address deltas.
    pub quantum: u8,
    /// Number of functions.
    pub functions: u64,
    /// Start of the text; 0 from Go 1.26 on, and in layouts with absolute addresses.
    pub text_start: u64,
    /// Offset of the names of functions.
    pub names: u64,
    /// Offset of the lists of files of each unit.
    pub units: u64,
    /// Offset of the names of files.
    pub files: u64,
    /// Offset of the pc-value tables.
    pub pc_values: u64,
    /// Offset of the list of functions, to which their record offsets are relative, too.
    pub list: u64,
}

impl Header {
    /// Parses a head; `None` if it is not the head of a 64-bit table.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
        let layout = match u32_at(bytes, 0) {
            0xffff_fffb => Layout::Go1_2,
            0xffff_fffa => Layout::Go1_16,
            0xffff_fff0 => Layout::Go1_18,
            0xffff_fff1 => Layout::Go1_20,
            _ => return None,
        };
        let [0, 0, quantum @ (1 | 2 | 4), 8] = bytes[4..8] else {
            return None;
        };
        let word = |index: usize| u64_at(bytes, 8 + index * 8);
        // The second word, the number of files, is not needed.
        let (text_start, parts) = match layout {
            Layout::Go1_2 => (0, None),
            Layout::Go1_16 => (0, Some(2)),
            Layout::Go1_18 | Layout::Go1_20 => (word(2), Some(3)),
        };
        let part = |index: usize| parts.map_or(0, |first| word(first + index));
        Some(Header {
            layout,
            quantum,
            functions: word(0),
            text_start,
            names: part(0),
            units: part(1),
            files: part(2),
            pc_values: part(3),
            list: if parts.is_some() { part(4) } else { 16 },
        })
    }

    /// Size of an address, and of an offset, in the list of functions.
    pub fn list_word(&self) -> u64 {
        match self.layout {
            Layout::Go1_2 | Layout::Go1_16 => 8,
            Layout::Go1_18 | Layout::Go1_20 => 4,
        }
    }

    /// Base of the offsets of function records.
    pub fn function_base(&self) -> u64 {
        match self.layout {
            Layout::Go1_2 => 0,
            _ => self.list,
        }
    }

    /// Size of the list: two words for each function, and one more.
    pub fn list_bytes(&self) -> Option<u64> {
        self.functions
            .checked_mul(2)?
            .checked_add(1)?
            .checked_mul(self.list_word())
    }

    /// Whether the parts lie in order within a table of `len` bytes.
    pub fn is_within(&self, len: u64) -> bool {
        let parts = [
            self.names,
            self.units,
            self.files,
            self.pc_values,
            self.list,
        ];
        let in_order = self.layout == Layout::Go1_2 || parts.is_sorted() && parts[0] >= 64;
        let end = self
            .list_bytes()
            .and_then(|bytes| bytes.checked_add(self.list));
        self.functions > 0 && in_order && end.is_some_and(|end| end <= len)
    }
}
