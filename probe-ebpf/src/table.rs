//! The *unwind table* of a file: which rule holds at which address, in words
//! that BPF reads from a map and user space from the same memory.
//!
//! All tables share one pool of words, made of chunks of 1 MiB. A word is found
//! by its number in the pool: `chunk = number >> 18`. The parts of one table:
//!
//! ```text
//! page index   one word for each 64 KiB of the file's address space:
//!              the number of its page block, or 0 for a page without rows
//! page block   64 words: for each KiB of the page `first << 16 | end`, a range
//!              of rows that holds the row of every address in it
//!              then the rows, by address: `address & 0xffff << 16 | rule`
//! ```
//!
//! A page block lies in one chunk, and so does a page index. Each page block has
//! a row for its first address, so that a search never leaves it; `rule` is an
//! index into the dictionary of all rules.

/// Number of words of a chunk.
pub const CHUNK_WORDS: usize = 1 << 18;
/// A chunk has two to the power of this words: 1 MiB.
pub const CHUNK_SHIFT: u32 = 18;
/// Maximum number of chunks of the pool: 256 MiB, or 60 million rows.
pub const CHUNKS_MAX: usize = 256;

/// Addresses of a page of a file, as a shift: 64 KiB.
pub const PAGE_SHIFT: u32 = 16;
/// Addresses of a block of a page, as a shift: 1 KiB.
pub const BLOCK_SHIFT: u32 = 10;
/// Blocks of a page: each has a word in front of the page's rows.
pub const BLOCKS: u32 = 1 << (PAGE_SHIFT - BLOCK_SHIFT);

/// Maximum number of rows of a page: row numbers have 16 bits. One row per byte would
/// be the same number; real pages have less than 9,000.
pub const PAGE_ROWS_MAX: usize = 0xffff;

/// Maximum number of rules in the dictionary: a row has 16 bits for one. A whole
/// distribution has about 4,200.
pub const RULES_MAX: usize = 1 << 16;
/// Maximum number of extended rules.
pub const EXTENDED_MAX: usize = 1 << 12;

/// Maximum number of mappings of all processes together.
pub const MAPPINGS_MAX: usize = 1 << 17;
/// Maximum number of published mappings of one process; in steps of [`MAPPING_UNIT`].
pub const PROCESS_MAPPINGS_MAX: usize = 1 << 14;
/// Lists of mappings begin at multiples of this.
pub const MAPPING_UNIT: usize = 4;
/// Maximum number of processes whose mappings are published.
pub const PROCESSES_MAX: usize = 16_384;

/// A value of [`Mapping::table`]: there is no unwind information, only frame pointers.
pub const NO_TABLE: u32 = u32::MAX;

/// A word of a page index: the page has no rows. No block begins at the pool's first
/// word.
pub const NO_BLOCK: u32 = 0;

/// An executable mapping of a process, as BPF sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
    /// Address in the file = address - bias.
    pub bias: u64,
    /// Number of the first word of the page index, or [`NO_TABLE`].
    pub table: u32,
    /// The first page that the index has.
    pub first_page: u32,
    /// How many pages the index has.
    pub pages: u32,
    /// Always 0: it fills the structure up to a multiple of 8 bytes.
    pub reserved: u32,
}

/// A list of mappings, as `PROCESSES` holds it for a tgid: where it begins, in
/// units of [`MAPPING_UNIT`], how long it is, and the generation of its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct MappingList(pub u64);

impl MappingList {
    /// Makes a list that begins at mapping number `first`, a multiple of [`MAPPING_UNIT`].
    pub const fn new(first: u32, length: u16, generation: u32) -> Self {
        let unit = first / MAPPING_UNIT as u32;
        Self(unit as u64 & 0xffff | (length as u64) << 16 | (generation as u64) << 32)
    }

    /// Returns the number of its first mapping.
    #[inline(always)]
    pub const fn first(self) -> u32 {
        (self.0 & 0xffff) as u32 * MAPPING_UNIT as u32
    }

    /// Returns how many mappings it has; 0 if there is no list.
    #[inline(always)]
    pub const fn length(self) -> u32 {
        (self.0 >> 16 & 0xffff) as u32
    }

    /// Returns its generation, which changes whenever an address may mean something else.
    #[inline(always)]
    pub const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

const _: () = {
    assert!(size_of::<Mapping>() == 40);
    assert!(core::mem::offset_of!(Mapping, table) == 24);
    assert!(MAPPINGS_MAX / MAPPING_UNIT <= 1 << 16);
    assert!(PROCESS_MAPPINGS_MAX <= u16::MAX as usize);
    // A page block fits into a chunk.
    assert!(BLOCKS as usize + PAGE_ROWS_MAX <= CHUNK_WORDS);
};

/// Makes a row of the low half of an address and a rule's number.
#[inline(always)]
pub const fn row(address: u32, rule: u16) -> u32 {
    (address & 0xffff) << 16 | rule as u32
}

/// The words of one chunk.
pub trait Words {
    /// Returns the word with this number in the pool. Only the part of the number inside
    /// the chunk is used.
    fn word(&self, number: u32) -> u32;
}

/// Returns the number of the rule for `address` in the page block at `block`.
#[inline(always)]
pub fn find_rule<W: Words>(words: &W, block: u32, address: u32) -> u16 {
    let range = words.word(block.wrapping_add(address >> BLOCK_SHIFT & (BLOCKS - 1)));
    let rows = block.wrapping_add(BLOCKS);
    // Not `range - 1`: the range always holds one row at least.
    let (first, end) = (range >> 16, range & 0xffff);
    // Rows at or below the address compare as not above the key, whatever their rule is.
    let key = u64::from((address & 0xffff) << 16 | 0xffff);
    let mut low = u64::from(first);
    let mut length = u64::from(end.wrapping_sub(first) & 0xffff);
    // With a branch in each step, the verifier would follow every path.
    for _ in 0..PROBES_MAX {
        if length <= 1 {
            break;
        }
        let half = length >> 1;
        let row = words.word(rows.wrapping_add((low + half) as u32));
        low += half & !less_than(key, u64::from(row));
        length -= half;
    }
    words.word(rows.wrapping_add(low as u32)) as u16
}

/// Steps of the search: a KiB of code has at most 1024 rows and the one before it.
const PROBES_MAX: u32 = 11;

/// Returns all ones if `a < b`, without a branch. Both must be below 2^63.
#[inline(always)]
pub fn less_than(a: u64, b: u64) -> u64 {
    #[cfg(target_arch = "bpf")]
    {
        let mut difference = a;
        // SAFETY: arithmetic on registers only. The compiler would turn the same arithmetic
        // in Rust into a branch again.
        unsafe {
            core::arch::asm!(
                "{0} -= {1}",
                "{0} s>>= 63",
                inout(reg) difference,
                in(reg) b,
                options(pure, nomem, nostack)
            )
        };
        difference
    }
    #[cfg(not(target_arch = "bpf"))]
    {
        ((a.wrapping_sub(b) as i64) >> 63) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    struct Slice<'a>(&'a [u32]);

    impl Words for Slice<'_> {
        fn word(&self, number: u32) -> u32 {
            self.0[number as usize]
        }
    }

    /// Makes a page block as the builder makes it, from `(address, rule)`.
    fn block(rows: &[(u32, u16)]) -> Vec<u32> {
        assert_eq!(rows[0].0, 0, "a row for the first address");
        let mut words = Vec::new();
        for block in 0..BLOCKS {
            let (start, end) = (block << BLOCK_SHIFT, (block + 1) << BLOCK_SHIFT);
            let first = rows.partition_point(|(address, _)| *address <= start) - 1;
            let last = rows.partition_point(|(address, _)| *address < end);
            words.push((first as u32) << 16 | last as u32);
        }
        words.extend(rows.iter().map(|(address, rule)| row(*address, *rule)));
        words
    }

    fn check(rows: &[(u32, u16)]) {
        let words = block(rows);
        for address in 0..1 << PAGE_SHIFT {
            let expected = rows
                .iter()
                .rev()
                .find(|(start, _)| *start <= address)
                .unwrap()
                .1;
            assert_eq!(
                find_rule(&Slice(&words), 0, address),
                expected,
                "at {address:#x}"
            );
        }
    }

    #[test]
    fn one_row_holds_for_the_whole_page() {
        check(&[(0, 7)]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a hundred thousand steps, each interpreted")]
    fn rows_here_and_there() {
        check(&[
            (0, 1),
            (5, 2),
            (1023, 3),
            (1024, 4),
            (1025, 5),
            (40_000, 6),
            (0xffff, 7),
        ]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a hundred thousand steps, each interpreted")]
    fn a_row_for_every_byte_of_a_kib() {
        let rows: Vec<(u32, u16)> = (0..2048).map(|address| (address, address as u16)).collect();
        check(&rows);
    }

    #[test]
    fn less_than_is_a_mask() {
        for (a, b) in [
            (0, 0),
            (0, 1),
            (1, 0),
            (u64::from(u32::MAX), 5),
            (5, u64::from(u32::MAX)),
        ] {
            assert_eq!(less_than(a, b), if a < b { u64::MAX } else { 0 });
        }
    }

    #[test]
    fn a_list_keeps_its_parts() {
        let list = MappingList::new(131_068, 16_384, u32::MAX);
        assert_eq!(
            (list.first(), list.length(), list.generation()),
            (131_068, 16_384, u32::MAX)
        );
    }
}
