//! One row of the code view.

use crate::code::BodyLine;
use profile::FunctionId;

/// One row. `before` is the number of its samples in the baseline, 0 if there is no baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeRow {
    /// A line of the source file that is shown.
    Line {
        place: BodyLine,
        samples: u64,
        before: u64,
    },
    /// A machine instruction.
    Instruction {
        /// The number of the piece, and the number of the instruction in it.
        at: (usize, usize),
        /// The address of the instruction, as an offset in the file.
        offset: u64,
        samples: u64,
        before: u64,
        /// The row is below the row of its source line, whose samples include these.
        below_line: bool,
    },
    /// This number of instructions of the line above is left out, because there are no samples near
    /// them.
    Gap(usize),
    /// A function that the line above calls.
    Call {
        line: u32,
        callee: FunctionId,
        samples: u64,
    },
    /// The head of the piece with this number, which says whose code follows.
    Piece(usize),
    /// An address that has samples, but at which no instruction was found.
    Address {
        address: u64,
        samples: u64,
        before: u64,
    },
    /// The sum of the lines of this file that have samples but no row.
    OtherLines {
        lines: usize,
        samples: u64,
        before: u64,
    },
    /// The sum of the lines of another file.
    OtherFile {
        file: u32,
        lines: usize,
        samples: u64,
        before: u64,
    },
    /// The samples at addresses whose line is not known.
    Unplaced { samples: u64, before: u64 },
}

/// Identifies a row: a row with an equal key in the next answer is the same row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKey {
    Line(BodyLine),
    Instruction(u64),
    Call(u32, FunctionId),
    Address(u64),
    OtherLines,
    OtherFile(u32),
    Unplaced,
}

impl CodeRow {
    /// Returns the key of the row, or `None` if the row cannot be selected.
    pub fn key(&self) -> Option<RowKey> {
        Some(match self {
            CodeRow::Line { place, .. } => RowKey::Line(*place),
            CodeRow::Instruction { offset, .. } => RowKey::Instruction(*offset),
            CodeRow::Call { line, callee, .. } => RowKey::Call(*line, *callee),
            CodeRow::Address { address, .. } => RowKey::Address(*address),
            CodeRow::OtherLines { .. } => RowKey::OtherLines,
            CodeRow::OtherFile { file, .. } => RowKey::OtherFile(*file),
            CodeRow::Unplaced { .. } => RowKey::Unplaced,
            CodeRow::Gap(_) | CodeRow::Piece(_) => return None,
        })
    }

    /// Returns the row's samples. The samples of an instruction below its line are also counted by
    /// the row of the line.
    pub fn samples(&self) -> u64 {
        self.counts().0
    }

    /// Returns the row's samples in the baseline.
    pub fn before(&self) -> u64 {
        self.counts().1
    }

    fn counts(&self) -> (u64, u64) {
        match *self {
            CodeRow::Line {
                samples, before, ..
            }
            | CodeRow::Instruction {
                samples, before, ..
            }
            | CodeRow::Address {
                samples, before, ..
            }
            | CodeRow::OtherLines {
                samples, before, ..
            }
            | CodeRow::OtherFile {
                samples, before, ..
            }
            | CodeRow::Unplaced { samples, before } => (samples, before),
            CodeRow::Gap(_) | CodeRow::Piece(_) | CodeRow::Call { .. } => (0, 0),
        }
    }

    /// Whether a row above includes the samples of this row.
    pub fn is_part(&self) -> bool {
        matches!(
            self,
            CodeRow::Instruction {
                below_line: true,
                ..
            }
        )
    }
}
