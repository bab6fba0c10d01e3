//! Frames, stacks, names and sources as columns. Similar values lie side by side, which compresses
//! to half the size of rows.
//!
//! The writer fills the columns while it collects a block and takes their bytes when it closes the
//! block. Only [`Strings`] is read here; the other columns are read by the modules that need their
//! contents. `docs/pft.md` has the layout of each, by the number of its section.

use crate::formats::FormatError;
use crate::formats::wire::{Bytes, put, put_bytes, put_signed};

/// A column of string numbers. Most rows have the number of the row before, or the next number that
/// is new.
///
/// ```text
/// string:  …  7   7   8   9   7   10     7 is the highest so far, at first
/// number:         0   1   1   6   1      0: as before; else 1 + zigzag(string − next)
/// ```
#[derive(Debug, Default)]
pub(super) struct StringColumn {
    last: u32,
    /// The highest number so far plus one.
    next: u32,
    bytes: Vec<u8>,
}

impl StringColumn {
    /// Adds a row.
    pub(super) fn push(&mut self, string: u32) {
        if string == self.last {
            return self.bytes.push(0);
        }
        // The next new string is 0, the newest one -1; zigzag maps 0, -1, 1, -2 … to 0, 1, 2, 3 …
        let step = i64::from(string) - i64::from(self.next);
        put(&mut self.bytes, 1 + (step << 1 ^ step >> 63) as u64);
        self.last = string;
        self.next = self.next.max(string.saturating_add(1));
    }
}

/// Reads a column that [`StringColumn`] wrote.
#[derive(Debug)]
pub(super) struct Strings<'a> {
    last: u32,
    next: u32,
    bytes: Bytes<'a>,
}

impl<'a> Strings<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            last: 0,
            next: 0,
            bytes: Bytes(bytes),
        }
    }

    /// Returns the number in the next row; an error at the end of the column, or for a number that
    /// does not fit into 32 bits.
    pub(super) fn next(&mut self) -> Result<u32, FormatError> {
        if let Some(step) = self.bytes.number()?.checked_sub(1) {
            let step = (step >> 1) as i64 ^ -((step & 1) as i64);
            let number = i64::from(self.next).checked_add(step);
            let number = number.and_then(|number| u32::try_from(number).ok());
            self.last = number.ok_or_else(|| damaged("a name of no number"))?;
            self.next = self.next.max(self.last.saturating_add(1));
        }
        Ok(self.last)
    }
}

/// Encodes sorted frames: runs of one module and kind, and within a run the difference of each
/// address to the one before. Addresses rise within a run, so differences are never negative.
pub(super) fn frames(sorted: &[(u32, u8, u64)]) -> Vec<u8> {
    let (mut runs, mut addresses) = (Vec::new(), Vec::new());
    for run in sorted.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        put(&mut runs, run[0].0.into());
        runs.push(run[0].1);
        put(&mut runs, run.len() as u64);
        let mut last = 0;
        for (.., address) in run {
            put(&mut addresses, address - last);
            last = *address;
        }
    }
    let mut out = Vec::with_capacity(runs.len() + addresses.len() + 4);
    put_bytes(&mut out, &runs);
    out.extend(addresses);
    out
}

/// Stacks as the numbers of their frames, innermost first.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    /// Frame numbers of all stacks, one stack after the other.
    words: Vec<u32>,
    /// End of each stack in `words`.
    ends: Vec<u32>,
}

impl Stacks {
    /// Approximate length in bytes when written.
    pub(super) fn len(&self) -> usize {
        self.words.len() * 2 + self.ends.len() * 2
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a stack, given as frame numbers, innermost first.
    pub(super) fn push(&mut self, words: impl IntoIterator<Item = u32>) {
        self.words.extend(words);
        self.ends.push(self.words.len() as u32);
    }

    /// Replaces every frame number by its final one; see `Writer::number_frames`.
    pub(super) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        self.words.iter_mut().for_each(|word| *word = number(*word));
    }

    /// Encodes each stack as the number of outermost frames that it shares with the stack before,
    /// and its own frames, outermost first. All frame numbers have as many bytes as the highest one
    /// needs.
    pub(super) fn write(&self) -> Vec<u8> {
        // All numbers have the same width, because equal stacks of bytes compress better than
        // numbers of varying length.
        let highest = self.words.iter().max().copied().unwrap_or(0);
        let width = (4 - highest.leading_zeros() as usize / 8).max(1);
        let (mut lens, mut words) = (Vec::new(), Vec::new());
        let (mut start, mut before) = (0, &self.words[..0]);
        for end in &self.ends {
            let stack = &self.words[start..*end as usize];
            let pairs = before.iter().rev().zip(stack.iter().rev());
            let shared = pairs.take_while(|(a, b)| a == b).count();
            put(&mut lens, shared as u64);
            put(&mut lens, (stack.len() - shared) as u64);
            for word in stack[..stack.len() - shared].iter().rev() {
                words.extend_from_slice(&word.to_le_bytes()[..width]);
            }
            (start, before) = (*end as usize, stack);
        }
        let mut out = Vec::with_capacity(lens.len() + words.len() + 4);
        out.push(width as u8);
        put_bytes(&mut out, &lens);
        out.extend(words);
        out
    }
}

/// Values of the column that says whether a frame has a name.
pub(super) mod kind {
    pub(crate) const NAMED: u8 = 0;
    /// The frame has no name; the reason is stored in place of it.
    pub(crate) const UNNAMED: u8 = 1;
    /// The frame has no name, the reason is stored in place of it, and the start of its function is
    /// known.
    pub(crate) const UNNAMED_IN: u8 = 2;
}

/// Names of frames, by rising frame numbers.
#[derive(Debug, Default)]
pub(super) struct Names {
    last: u32,
    frames: Vec<u8>,
    kinds: Vec<u8>,
    texts: StringColumn,
    starts: Vec<u8>,
}

impl Names {
    /// Approximate length in bytes when written.
    pub(super) fn len(&self) -> usize {
        self.frames.len() + self.kinds.len() + self.texts.bytes.len() + self.starts.len()
    }

    /// Adds a name. `start` is the start of the function, relative to the frame's address.
    pub(super) fn push(&mut self, frame: u32, kind: u8, text: u32, start: Option<i64>) {
        put(&mut self.frames, (frame - self.last).into());
        self.last = frame;
        self.kinds.push(kind);
        self.texts.push(text);
        if let Some(start) = start {
            put_signed(&mut self.starts, start);
        }
    }

    /// Encodes the columns; empty if there are no rows.
    pub(super) fn write(&self) -> Vec<u8> {
        joined(
            &[&self.frames, &self.kinds, &self.texts.bytes],
            &self.starts,
        )
    }
}

/// Source locations of frames with the chain of inlined functions, by rising frame numbers.
#[derive(Debug, Default)]
pub(super) struct Sources {
    last: u32,
    frames: Vec<u8>,
    counts: Vec<u8>,
    functions: StringColumn,
    files: StringColumn,
    last_line: u32,
    lines: Vec<u8>,
}

impl Sources {
    /// Approximate length in bytes when written.
    pub(super) fn len(&self) -> usize {
        let strings = self.functions.bytes.len() + self.files.bytes.len();
        self.frames.len() + self.counts.len() + strings + self.lines.len()
    }

    /// Adds the chain of a frame: function, file and line of each link.
    pub(super) fn push(&mut self, frame: u32, links: &[(u32, u32, u32)]) {
        put(&mut self.frames, (frame - self.last).into());
        self.last = frame;
        put(&mut self.counts, links.len() as u64);
        for (function, file, line) in links {
            self.functions.push(*function);
            self.files.push(*file);
            put_signed(
                &mut self.lines,
                i64::from(*line) - i64::from(self.last_line),
            );
            self.last_line = *line;
        }
    }

    /// Encodes the columns; empty if there are no rows.
    pub(super) fn write(&self) -> Vec<u8> {
        let strings = [&self.functions.bytes, &self.files.bytes];
        joined(
            &[&self.frames, &self.counts, strings[0], strings[1]],
            &self.lines,
        )
    }
}

/// Joins columns, each with its length in front except the last one. Empty if there are no rows, so
/// that the section is left out.
fn joined(columns: &[&Vec<u8>], last: &[u8]) -> Vec<u8> {
    if columns[0].is_empty() {
        return Vec::new();
    }
    let mut out = Vec::new();
    for column in columns {
        put_bytes(&mut out, column);
    }
    out.extend_from_slice(last);
    out
}

fn damaged(what: &str) -> FormatError {
    FormatError::Damaged(what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_and_new_ones_take_a_byte() {
        let given = [0, 1, 1, 2, 3, 1, u32::MAX, 0, 4, 5];
        let mut column = StringColumn::default();
        given.iter().for_each(|number| column.push(*number));
        let mut strings = Strings::new(&column.bytes);
        for number in given {
            assert_eq!(strings.next().unwrap(), number);
        }
        assert!(strings.next().is_err());
        let mut column = StringColumn::default();
        (1..100).for_each(|number| column.push(number));
        assert_eq!(column.bytes.len(), 99);
        // The first number would be below zero, the second above the 32-bit range.
        assert!(Strings::new(&[4]).next().is_err());
        let beyond = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert!(Strings::new(&beyond).next().is_err());
    }
}
