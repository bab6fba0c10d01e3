//! Rows of an engine's answer.

use crate::failure::Failure;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    None,
    Text(String),
    Whole(u64),
    Number(f64),
    List(Vec<u64>),
}

impl Cell {
    /// Bytes that it has allocated.
    pub fn bytes(&self) -> usize {
        match self {
            Cell::Text(text) => text.len(),
            Cell::List(list) => size_of_val(&**list),
            Cell::None | Cell::Whole(_) | Cell::Number(_) => 0,
        }
    }
}

/// The answer to a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub cells: Vec<Vec<Cell>>,
}

impl Rows {
    /// Iterates over the rows, whose values are accessed by column name.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let columns = &self.columns;
        self.cells.iter().map(move |cells| Row { columns, cells })
    }

    /// Returns the row at an existing index.
    pub fn row(&self, at: usize) -> Row<'_> {
        Row {
            columns: &self.columns,
            cells: &self.cells[at],
        }
    }

    /// Returns the only row; an error if the engine returned another number of rows.
    pub fn only(&self) -> Result<Row<'_>, Failure> {
        match &self.cells[..] {
            [_] => Ok(self.iter().next().expect("there is one")),
            cells => Err(Failure::failed(format!(
                "the engine answers with {} rows where there is one",
                cells.len()
            ))),
        }
    }
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    columns: &'a [String],
    cells: &'a [Cell],
}

impl<'a> Row<'a> {
    fn cell(self, column: &str) -> &'a Cell {
        let at = self.columns.iter().position(|it| it == column);
        at.and_then(|at| self.cells.get(at)).unwrap_or(&Cell::None)
    }

    /// Returns a text; empty if there is none.
    pub fn text(self, column: &str) -> &'a str {
        match self.cell(column) {
            Cell::Text(text) => text,
            _ => "",
        }
    }

    /// Returns a number; 0 if there is none, as for sums of nothing.
    pub fn number(self, column: &str) -> f64 {
        match self.cell(column) {
            Cell::Whole(number) => *number as f64,
            Cell::Number(number) => *number,
            // Servers send integers wider than 53 bits as text.
            Cell::Text(text) => text.parse().unwrap_or(0.0),
            Cell::None | Cell::List(_) => 0.0,
        }
    }

    /// Returns an integer; 0 if there is none.
    pub fn whole(self, column: &str) -> u64 {
        match self.cell(column) {
            Cell::Whole(number) => *number,
            Cell::Text(text) => text.parse().unwrap_or(0),
            // Sums of integers that an engine returns as decimals.
            Cell::Number(number) => number.round().max(0.0) as u64,
            Cell::None | Cell::List(_) => 0,
        }
    }

    /// Returns a list; empty if there is none.
    pub fn list(self, column: &str) -> &'a [u64] {
        match self.cell(column) {
            Cell::List(list) => list,
            _ => &[],
        }
    }
}
