//! The format of a table in a file of the cache, little-endian:
//!
//! ```text
//! header    magic, version, lengths of the parts below, first page, checksum
//! key       what the table is kept under
//! segments  offset, address and size: 3 × 8 bytes
//! rules     0 and a word, or 1 and an extended rule: 5 × 4 bytes
//! pages     rows of each page: 4 bytes
//! words     the page blocks: 4 bytes
//! ```
//!
//! The checksum covers everything but itself.

use super::checksum;
use crate::tables::dictionary::{extended_from_words, extended_to_words};
use crate::tables::encode::Packed;
use crate::tables::file_table::{FileTable, TABLE_WORDS_MAX};
use probe_ebpf::rule::Rule;
use std::io::Read;
use symbolize::{Segment, Segments};

const MAGIC: &[u8; 8] = b"PFUNWIND";
/// Version of this format and of the meaning of its words.
const VERSION: u32 = 6;

/// Number of header fields: lengths of key, segments, rules, pages and words, and the first page.
const FIELDS: usize = 6;
const CHECKSUM_AT: usize = MAGIC.len() + 4 + FIELDS * 4;
const HEADER_BYTES: usize = CHECKSUM_AT + 8;

const SEGMENT_BYTES: usize = 24;
const RULE_WORDS: usize = 5;

/// Maximum size of a file: the largest table with the largest dictionary.
pub const FILE_BYTES_MAX: u64 = (TABLE_WORDS_MAX as u64 + (1 << 20)) * 4;

/// Encodes a table with its key.
pub fn encode(table: &FileTable, key: &str) -> Vec<u8> {
    let segments: Vec<&Segment> = table.segments.iter().collect();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + table.bytes() + (1 << 12));
    bytes.extend(MAGIC);
    let fields = [
        key.len(),
        segments.len(),
        table.rules.len(),
        table.page_rows.len(),
        table.words.len(),
        table.first_page as usize,
    ];
    push_words(&mut bytes, [VERSION]);
    push_words(&mut bytes, fields.map(|field| field as u32));
    bytes.extend([0; 8]);
    bytes.extend(key.as_bytes());
    for segment in segments {
        for part in [segment.offset, segment.vaddr, segment.filesz] {
            bytes.extend(part.to_le_bytes());
        }
    }
    for rule in &table.rules {
        push_words(&mut bytes, rule_to_words(rule));
    }
    push_words(&mut bytes, table.page_rows.iter().copied());
    push_words(&mut bytes, table.words.iter().copied());
    let sum = sum(&bytes);
    bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Decodes a table from a file of `length` bytes. `None` unless the file has exactly what `encode`
/// wrote for this key. The file is never in memory as a whole, only the table is.
pub fn decode(file: impl Read, length: u64, key: &str) -> Option<FileTable> {
    let mut header = [0; HEADER_BYTES];
    let mut parts = Parts {
        file,
        left: length.checked_sub(HEADER_BYTES as u64)?,
        sum: checksum::Running::default(),
    };
    parts.file.read_exact(&mut header).ok()?;
    let (magic, rest) = header.split_first_chunk()?;
    let fields: Vec<usize> = words(&rest[..4 + FIELDS * 4]).map(|n| n as usize).collect();
    let [
        version,
        key_bytes,
        segments,
        rules,
        pages,
        words_,
        first_page,
    ] = fields[..]
    else {
        return None;
    };
    let written_sum = u64::from_le_bytes(*header.last_chunk()?);
    if magic != MAGIC || version != VERSION as usize || key_bytes != key.len() {
        return None;
    }
    let written_key = parts.take(key_bytes, 1)?;
    let table = FileTable {
        segments: read_segments(&parts.take(segments, SEGMENT_BYTES)?),
        rules: read_rules(&parts.take(rules, RULE_WORDS * 4)?)?,
        page_rows: parts.take_words(pages)?,
        words: parts.take_words(words_)?,
        first_page: u32::try_from(first_page).ok()?,
    };
    let sum = both(checksum::of(&header[..CHECKSUM_AT]), parts.sum.finish());
    let is_whole = parts.left == 0 && sum == written_sum && written_key == key.as_bytes();
    (is_whole && table.is_sound()).then_some(table)
}

/// Bytes that are read at once: a multiple of a word.
const PIECE_BYTES: usize = 64 << 10;

/// The part of the file after the header that has not been read yet.
struct Parts<F> {
    file: F,
    /// Number of bytes left.
    left: u64,
    /// Checksum of what has been read.
    sum: checksum::Running,
}

impl<F: Read> Parts<F> {
    /// Reads the next part: `count` items of `bytes` each. `None` if the file has fewer.
    fn take(&mut self, count: usize, bytes: usize) -> Option<Vec<u8>> {
        let mut part = vec![0; self.claim(count, bytes)?];
        self.read(&mut part)?;
        Some(part)
    }

    /// Reads the next part, which is `count` words. `None` if the file has fewer.
    fn take_words(&mut self, count: usize) -> Option<Vec<u32>> {
        let mut left = self.claim(count, 4)?;
        let mut part = Vec::with_capacity(count);
        let mut piece = vec![0; left.min(PIECE_BYTES)];
        while left > 0 {
            let piece = &mut piece[..left.min(PIECE_BYTES)];
            self.read(piece)?;
            part.extend(words(piece));
            left -= piece.len();
        }
        Some(part)
    }

    /// Returns the size of a part of `count` items of `bytes` each. `None` if the file has fewer,
    /// so that no memory is allocated for what a damaged header claims.
    fn claim(&mut self, count: usize, bytes: usize) -> Option<usize> {
        let bytes = count.checked_mul(bytes)?;
        self.left = self.left.checked_sub(bytes as u64)?;
        Some(bytes)
    }

    fn read(&mut self, piece: &mut [u8]) -> Option<()> {
        self.file.read_exact(piece).ok()?;
        self.sum.add(piece);
        Some(())
    }
}

fn sum(bytes: &[u8]) -> u64 {
    let (before, after) = (&bytes[..CHECKSUM_AT], &bytes[HEADER_BYTES..]);
    both(checksum::of(before), checksum::of(after))
}

/// Combines the checksums of the bytes before and after the checksum's own place.
fn both(before: u64, after: u64) -> u64 {
    before ^ after.rotate_left(1)
}

fn push_words(bytes: &mut Vec<u8>, words: impl IntoIterator<Item = u32>) {
    for word in words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word))
}

fn read_segments(bytes: &[u8]) -> Segments {
    let (numbers, _) = bytes.as_chunks::<8>();
    let (segments, _) = numbers.as_chunks::<3>();
    let segment = |parts: &[[u8; 8]; 3]| {
        let [offset, vaddr, filesz] = parts.map(u64::from_le_bytes);
        Segment {
            offset,
            vaddr,
            filesz,
            executable: true,
        }
    };
    Segments::new(segments.iter().map(segment).collect())
}

fn rule_to_words(rule: &Packed) -> [u32; RULE_WORDS] {
    match rule {
        Packed::Word(rule) => [0, rule.0, 0, 0, 0],
        Packed::Extended(rule) => {
            let [a, b, c, d] = extended_to_words(*rule);
            [1, a, b, c, d]
        }
    }
}

fn read_rules(bytes: &[u8]) -> Option<Vec<Packed>> {
    let numbers: Vec<u32> = words(bytes).collect();
    let (rules, _) = numbers.as_chunks::<RULE_WORDS>();
    let rule = |words: &[u32; RULE_WORDS]| match *words {
        [0, word, ..] => Some(Packed::Word(Rule(word))),
        [1, a, b, c, d] => Some(Packed::Extended(extended_from_words([a, b, c, d]))),
        _ => None,
    };
    rules.iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::*;

    fn decode(bytes: &[u8], key: &str) -> Option<FileTable> {
        super::decode(bytes, bytes.len() as u64, key)
    }

    #[test]
    fn there_and_back() {
        let table = table(3);
        assert_eq!(decode(&encode(&table, "key"), "key"), Some(table));
    }

    #[test]
    fn another_key_is_another_file() {
        assert_eq!(decode(&encode(&table(3), "key"), "kez"), None);
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut bytes = encode(&table(3), "key");
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bytes, "key"), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(decode(&bytes, "key").is_some());
    }

    #[test]
    fn every_other_length_is_found() {
        let mut bytes = encode(&table(3), "key");
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length], "key"), None, "length {length}");
        }
        bytes.push(0);
        assert_eq!(decode(&bytes, "key"), None);
    }

    #[test]
    fn a_right_sum_over_nonsense_is_not_enough() {
        let mut bytes = encode(&table(3), "key");
        // The last row has the number of a rule that does not exist.
        let last = bytes.len() - 4;
        bytes[last] = 99;
        let sum = sum(&bytes);
        bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(decode(&bytes, "key"), None);
    }
}
