//! Frames, stacks, names and sources as columns: what is alike lies side by side, where
//! it packs to half of what rows do.
//!
//! The writer fills them while it collects a block and takes their bytes when it closes
//! it; [`Strings`] is the only one that is read here, as the other columns are read by
//! those who need what is in them. `docs/pft.md` has the layout of each, by the number
//! of its section.

use crate::formats::FormatError;
use crate::formats::wire::{Bytes, put, put_bytes, put_signed};

/// Numbers of strings. Most are those of the line before, or the next one that
/// is new.
///
/// ```text
/// string:  …  7   7   8   9   7   10     7 is the highest so far, at first
/// number:         0   1   1   6   1      0: as before; else 1 + zigzag(string − next)
/// ```
#[derive(Debug, Default)]
pub(super) struct StringColumn {
    last: u32,
    /// One above the highest so far.
    next: u32,
    bytes: Vec<u8>,
}

impl StringColumn {
    /// Adds a row.
    pub(super) fn push(&mut self, string: u32) {
        if string == self.last {
            return self.bytes.push(0);
        }
        // 0 for the next new string, -1 for the newest one; zigzag makes 0, 1, 2, 3 …
        // of 0, -1, 1, -2 …
        let step = i64::from(string) - i64::from(self.next);
        put(&mut self.bytes, 1 + (step << 1 ^ step >> 63) as u64);
        self.last = string;
        self.next = self.next.max(string.saturating_add(1));
    }
}

/// Reads what [`StringColumn`] wrote.
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

    /// The number in the next row; an error at the end of the column, or for a number
    /// that does not fit into 32 bits.
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

/// Frames that are sorted: runs of one module and kind, and addresses less the
/// one before in the run.
/// Addresses rise within a run, so differences are never below zero.
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

/// Stacks, told by their frames' numbers, innermost first.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    /// Frames of all stacks, one stack after the other.
    words: Vec<u32>,
    /// Where in `words` each stack ends.
    ends: Vec<u32>,
}

impl Stacks {
    /// Bytes that they will be, roughly.
    pub(super) fn len(&self) -> usize {
        self.words.len() * 2 + self.ends.len() * 2
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a stack.
    pub(super) fn push(&mut self, words: impl IntoIterator<Item = u32>) {
        self.words.extend(words);
        self.ends.push(self.words.len() as u32);
    }

    /// Numbers of frames that were not the last word.
    pub(super) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        self.words.iter_mut().for_each(|word| *word = number(*word));
    }

    /// What each has in common with the one before at its outer end, and its
    /// own frames, outermost first, in as many bytes each as the highest needs.
    pub(super) fn write(&self) -> Vec<u8> {
        // All numbers take the same width, as equal stacks of bytes pack better than
        // numbers of changing length.
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

/// Whether a frame has a name.
/// The byte that stands for it in a column.
pub(super) mod kind {
    pub(crate) const NAMED: u8 = 0;
    /// A reason is in the place of the name.
    pub(crate) const UNNAMED: u8 = 1;
    /// A reason is in the place of the name, and where its function starts is known.
    pub(crate) const UNNAMED_IN: u8 = 2;
}

/// Names, by rising numbers of frames.
#[derive(Debug, Default)]
pub(super) struct Names {
    last: u32,
    frames: Vec<u8>,
    kinds: Vec<u8>,
    texts: StringColumn,
    starts: Vec<u8>,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.frames.len() + self.kinds.len() + self.texts.bytes.len() + self.starts.len()
    }

    /// `start` is that of the function, less the frame's address.
    pub(super) fn push(&mut self, frame: u32, kind: u8, text: u32, start: Option<i64>) {
        put(&mut self.frames, (frame - self.last).into());
        self.last = frame;
        self.kinds.push(kind);
        self.texts.push(text);
        if let Some(start) = start {
            put_signed(&mut self.starts, start);
        }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        joined(
            &[&self.frames, &self.kinds, &self.texts.bytes],
            &self.starts,
        )
    }
}

/// Chains of functions at places in source text, by rising numbers of frames.
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
    pub(super) fn len(&self) -> usize {
        let strings = self.functions.bytes.len() + self.files.bytes.len();
        self.frames.len() + self.counts.len() + strings + self.lines.len()
    }

    /// Function, file and line of each link.
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

    pub(super) fn write(&self) -> Vec<u8> {
        let strings = [&self.functions.bytes, &self.files.bytes];
        joined(
            &[&self.frames, &self.counts, strings[0], strings[1]],
            &self.lines,
        )
    }
}

/// Columns one after the other; the last one needs no length.
/// Nothing at all where no row is: the section is left out then.
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
        // Below zero, and beyond all numbers.
        assert!(Strings::new(&[4]).next().is_err());
        let beyond = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert!(Strings::new(&beyond).next().is_err());
    }
}
