//! One row of the code.

use crate::code::Place;
use profile::FunctionId;

/// One line of the screen. `before`: its samples in the baseline, where there is
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeRow {
    /// A line of the file that is shown.
    Line {
        place: Place,
        samples: u64,
        before: u64,
    },
    Instruction {
        /// Piece and number.
        at: (usize, usize),
        /// Where it is in the file.
        offset: u64,
        samples: u64,
        before: u64,
        /// Its line stands above it.
        below_line: bool,
    },
    /// This many instructions of the line above that no sample hit.
    Gap(usize),
    /// What the line above calls.
    Call {
        line: u32,
        callee: FunctionId,
        samples: u64,
    },
    /// The head of a piece: whose code follows.
    Piece(usize),
    /// An address without an instruction.
    Address {
        address: u64,
        samples: u64,
        before: u64,
    },
    /// Lines of the file that are not shown.
    OtherLines {
        lines: usize,
        samples: u64,
        before: u64,
    },
    /// Lines of another file.
    OtherFile {
        file: u32,
        lines: usize,
        samples: u64,
        before: u64,
    },
    /// What is of no known line.
    Unplaced { samples: u64, before: u64 },
}

/// What a row is known by from one answer to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKey {
    Line(Place),
    Instruction(u64),
    Call(u32, FunctionId),
    Address(u64),
    OtherLines,
    OtherFile(u32),
    Unplaced,
}

impl CodeRow {
    /// `None` for rows that cannot be selected.
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

    /// That hit there; of an instruction below its line they are a part of the
    /// line's.
    pub fn samples(&self) -> u64 {
        self.counts().0
    }

    /// The same in the baseline.
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

    /// Whether its samples are also those of a row above.
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
