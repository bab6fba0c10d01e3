//! The rows of a unit's line number program: each says which line begins at an address.

use gimli::{ColumnType, Unit};

use super::scopes::is_code;
use super::sections::Slice;

/// Maximum number of rows of one unit. LTO makes the largest, with some millions.
const ROWS_MAX: usize = 64 << 20;

/// The file number where no row applies.
pub const NO_FILE: u32 = u32::MAX;

/// Link addresses from `start` up to the next row belong to this line, or to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub start: u64,
    /// Number of the file in the program's own list, or [`NO_FILE`].
    pub file: u32,
    /// Line in the file, from 1 on; 0 if the code belongs to no line.
    pub line: u32,
    /// Column, from 1 on; 0 if it is unknown or was not requested.
    pub column: u32,
}

impl Row {
    fn end(start: u64) -> Row {
        Row {
            start,
            file: NO_FILE,
            line: 0,
            column: 0,
        }
    }
}

/// Returns all rows in ascending order, each sequence ended by a row without file. Where sequences
/// overlap, the one that starts first counts. `room` is the buffer of another unit's rows, which is
/// reused.
pub fn read(unit: &Unit<Slice<'_>>, columns: bool, mut room: Vec<Row>) -> Vec<Row> {
    room.clear();
    let Some(program) = unit.line_program.clone() else {
        return room;
    };
    let mut found = Sequences {
        rows: room,
        ..Sequences::default()
    };
    let mut rows = program.rows();
    // Rows before an error are valid.
    while let Ok(Some((_, row))) = rows.next_row()
        && found.rows.len() < ROWS_MAX
    {
        let start = row.address();
        if row.end_sequence() {
            found.end(start);
            continue;
        }
        let column = match row.column() {
            ColumnType::Column(column) if columns => column.get().try_into().unwrap_or(0),
            _ => 0,
        };
        found.add(Row {
            start,
            file: row.file_index().try_into().unwrap_or(NO_FILE),
            line: row
                .line()
                .map_or(0, |line| line.get().try_into().unwrap_or(0)),
            column,
        });
    }
    found.sorted()
}

/// Collects rows in the order of the program, each sequence ended by a row without file.
#[derive(Default)]
struct Sequences {
    rows: Vec<Row>,
    /// For each sequence start, end, and its range in `rows`.
    sequences: Vec<(u64, u64, usize, usize)>,
    first: usize,
}

impl Sequences {
    fn add(&mut self, row: Row) {
        // Of several rows at one address the last one counts, as in debuggers. Of equal neighbours
        // only the first is kept.
        let is_open = self.rows.len() > self.first;
        if is_open && self.rows.last().is_some_and(|last| last.start == row.start) {
            self.rows.pop();
        }
        let last = self.rows[self.first..].last();
        let same = |last: &Row| {
            Row {
                start: row.start,
                ..*last
            } == row
        };
        if !last.is_some_and(same) {
            self.rows.push(row);
        }
    }

    fn end(&mut self, end: u64) {
        let behind = self.rows.len();
        match self.rows.get(self.first).map(|row| row.start) {
            Some(start) if is_code(start, end) => {
                self.sequences.push((start, end, self.first, behind));
                self.rows.push(Row::end(end));
            }
            // The sequence is of code that the linker removed.
            _ => self.rows.truncate(self.first),
        }
        self.first = self.rows.len();
    }

    /// Whether the sequences are already in ascending order, as they usually are.
    fn are_sorted(&self) -> bool {
        let in_order = |(first, behind): (usize, usize)| {
            let rows = self.rows.get(first..=behind);
            rows.is_some_and(|rows| rows.is_sorted_by(|a, b| a.start < b.start))
        };
        let ascend = |pair: &[(u64, u64, usize, usize)]| pair[0].1 <= pair[1].0;
        self.sequences.windows(2).all(ascend) && self.sequences.iter().all(|s| in_order((s.2, s.3)))
    }

    fn sorted(mut self) -> Vec<Row> {
        self.rows.truncate(self.first);
        if self.are_sorted() {
            return self.rows;
        }
        self.sequences
            .sort_unstable_by_key(|(start, end, ..)| (*start, *end));
        let mut sorted: Vec<Row> = Vec::with_capacity(self.rows.len() + self.sequences.len());
        let mut done = 0;
        for &(_, end, first, behind) in &self.sequences {
            if end <= done {
                continue;
            }
            sorted.pop_if(|last| last.start >= done.max(self.rows[first].start));
            let rows = &self.rows[first..behind];
            let skipped = rows
                .partition_point(|row| row.start <= done)
                .saturating_sub(1);
            for row in rows[skipped..].iter().take_while(|row| row.start < end) {
                sorted.push(Row {
                    start: row.start.max(done),
                    ..*row
                });
            }
            sorted.push(Row::end(end));
            done = end;
        }
        sorted
    }
}
