//! The *class* of an ELF file: whether its addresses have 32 bits or 64.
//!
//! The class decides where the fields of a record are and how wide they are, but not what they mean
//! (gABI chapters 4 and 5). So 32-bit records are widened when they are read, and all other code
//! handles only 64-bit records.

use std::borrow::Cow;

/// Whether a file's addresses have 32 bits or 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// `ELFCLASS32`.
    Narrow,
    /// `ELFCLASS64`.
    Wide,
}

impl Class {
    /// Bytes of an address.
    pub fn address_size(self) -> u8 {
        match self {
            Class::Narrow => 4,
            Class::Wide => 8,
        }
    }

    /// Size of such a record in a file of this class.
    pub fn size_of(self, record: &Record) -> usize {
        match self {
            Class::Narrow => record.narrow,
            Class::Wide => record.wide,
        }
    }

    /// Converts records to the 64-bit layout. If they have to be widened, an incomplete one at the
    /// end is dropped.
    pub fn widen<'r>(self, record: &Record, records: impl Into<Cow<'r, [u8]>>) -> Cow<'r, [u8]> {
        let records = records.into();
        if self == Class::Wide {
            return records;
        }
        let mut wide = vec![0; records.len() / record.narrow * record.wide];
        let pairs = records.chunks_exact(record.narrow);
        for (narrow, wide) in pairs.zip(wide.chunks_exact_mut(record.wide)) {
            for field in record.fields {
                let bytes = &narrow[field.narrow..field.narrow + field.len];
                wide[field.wide..field.wide + field.len].copy_from_slice(bytes);
            }
        }
        wide.into()
    }
}

/// The two layouts of a kind of record.
#[derive(Debug)]
pub struct Record {
    /// Size in a 32-bit file.
    pub narrow: usize,
    /// Size in a 64-bit file.
    pub wide: usize,
    fields: &'static [Field],
}

/// A field to copy. Adjacent fields that stay adjacent are one field here. Additional bytes of the
/// wide field are the upper ones and become 0.
#[derive(Debug)]
struct Field {
    narrow: usize,
    wide: usize,
    len: usize,
}

const fn field(narrow: usize, wide: usize, len: usize) -> Field {
    Field { narrow, wide, len }
}

/// `Elf32_Ehdr`, `Elf64_Ehdr`.
pub const FILE_HEADER: Record = Record {
    narrow: 52,
    wide: 64,
    fields: &[
        field(0, 0, 24),
        // Entry, program headers, section headers.
        field(24, 24, 4),
        field(28, 32, 4),
        field(32, 40, 4),
        field(36, 48, 16),
    ],
};

/// `Elf32_Phdr`, `Elf64_Phdr`: the flags moved.
pub const PROGRAM_HEADER: Record = Record {
    narrow: 32,
    wide: 56,
    fields: &[
        field(0, 0, 4),
        field(4, 8, 4),
        field(8, 16, 4),
        field(12, 24, 4),
        field(16, 32, 4),
        field(20, 40, 4),
        field(24, 4, 4),
        field(28, 48, 4),
    ],
};

/// `Elf32_Shdr`, `Elf64_Shdr`.
pub const SECTION_HEADER: Record = Record {
    narrow: 40,
    wide: 64,
    fields: &[
        field(0, 0, 8),
        field(8, 8, 4),
        field(12, 16, 4),
        field(16, 24, 4),
        field(20, 32, 4),
        field(24, 40, 8),
        field(32, 48, 4),
        field(36, 56, 4),
    ],
};

/// `Elf32_Sym`, `Elf64_Sym`: address and size moved behind the other fields.
pub const SYMBOL: Record = Record {
    narrow: 16,
    wide: 24,
    fields: &[
        field(0, 0, 4),
        field(4, 8, 4),
        field(8, 16, 4),
        field(12, 4, 4),
    ],
};

/// `Elf32_Dyn`, `Elf64_Dyn`.
pub const DYNAMIC: Record = Record {
    narrow: 8,
    wide: 16,
    fields: &[field(0, 0, 4), field(4, 8, 4)],
};

/// `Elf32_Chdr`, `Elf64_Chdr`.
pub const COMPRESSION_HEADER: Record = Record {
    narrow: 12,
    wide: 24,
    fields: &[field(0, 0, 4), field(4, 8, 4), field(8, 16, 4)],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_narrow_record_has_one_place() {
        let all = [
            FILE_HEADER,
            PROGRAM_HEADER,
            SECTION_HEADER,
            SYMBOL,
            DYNAMIC,
            COMPRESSION_HEADER,
        ];
        for record in all {
            let narrow: Vec<u8> = (1..).take(record.narrow).collect();
            let wide = Class::Narrow.widen(&record, &narrow[..]);
            assert_eq!(wide.len(), record.wide);
            let mut kept: Vec<u8> = wide.iter().copied().filter(|byte| *byte != 0).collect();
            kept.sort_unstable();
            assert_eq!(kept, narrow, "{record:?}");
        }
    }

    #[test]
    fn a_symbol_of_each_class() {
        // Name 1, address 0x8048000, size 0x20, a global function, section 12.
        let narrow = b"\x01\0\0\0\0\x80\x04\x08\x20\0\0\0\x12\0\x0c\0rest";
        let wide = b"\x01\0\0\0\x12\0\x0c\0\0\x80\x04\x08\0\0\0\0\x20\0\0\0\0\0\0\0";
        assert_eq!(&*Class::Narrow.widen(&SYMBOL, &narrow[..]), wide);
        assert_eq!(&*Class::Wide.widen(&SYMBOL, &wide[..]), wide);
    }
}
