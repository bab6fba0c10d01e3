//! *Jumps* from one row of instructions to another, which show where the loops are.

use super::CodeRow;
use crate::code::Body;
use std::collections::HashMap;

/// A jump from one row to another. Both are numbers of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// The row of the jump instruction.
    pub from: usize,
    /// The row that the jump leads to.
    pub to: usize,
    /// The sum of the samples of all rows from one end to the other.
    pub samples: u64,
}

impl Jump {
    /// Returns the upper row and the lower one.
    pub fn ends(&self) -> (usize, usize) {
        (self.from.min(self.to), self.from.max(self.to))
    }

    /// Whether the jump leads upwards or to itself, so that the rows between its ends are repeated.
    pub fn is_loop(&self) -> bool {
        self.to <= self.from
    }
}

/// Returns the jumps of which both ends have rows. Instructions below a line of source text are
/// left out, because only some of them have rows.
pub fn jumps(rows: &[CodeRow], body: &Body) -> Vec<Jump> {
    let mut numbers: HashMap<u64, usize> = HashMap::new();
    // `sums[n]` is the number of samples of the first n rows, so that rows `first` to `last`
    // have `sums[last + 1] - sums[first]`.
    let mut sums = vec![0];
    for (number, row) in rows.iter().enumerate() {
        if let CodeRow::Instruction {
            offset,
            below_line: false,
            ..
        } = row
        {
            numbers.insert(*offset, number);
        }
        sums.push(sums[number] + row.samples());
    }
    let jump = |(number, row): (usize, &CodeRow)| {
        let CodeRow::Instruction {
            at,
            below_line: false,
            ..
        } = row
        else {
            return None;
        };
        let to = *numbers.get(&body.instruction(*at)?.jump()?)?;
        let (first, last) = (number.min(to), number.max(to));
        Some(Jump {
            from: number,
            to,
            samples: sums[last + 1] - sums[first],
        })
    };
    rows.iter().enumerate().filter_map(jump).collect()
}
