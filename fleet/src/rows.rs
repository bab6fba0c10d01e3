//! Rows that an engine has answered with.

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
    /// The bytes that it has beside itself.
    pub fn bytes(&self) -> usize {
        match self {
            Cell::Text(text) => text.len(),
            Cell::List(list) => size_of_val(&**list),
            Cell::None | Cell::Whole(_) | Cell::Number(_) => 0,
        }
    }
}

/// The answer to a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub cells: Vec<Vec<Cell>>,
}

impl Rows {
    /// Each row, to be asked by names of columns.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let columns = &self.columns;
        self.cells.iter().map(move |cells| Row { columns, cells })
    }

    /// The row at a place that there is.
    pub fn row(&self, at: usize) -> Row<'_> {
        Row {
            columns: &self.columns,
            cells: &self.cells[at],
        }
    }

    /// The only row; an error if the engine answered with another number of them.
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

    /// A text; empty if there is none.
    pub fn text(self, column: &str) -> &'a str {
        match self.cell(column) {
            Cell::Text(text) => text,
            _ => "",
        }
    }

    /// A number; 0 if there is none, as sums of nothing are.
    pub fn number(self, column: &str) -> f64 {
        match self.cell(column) {
            Cell::Whole(number) => *number as f64,
            Cell::Number(number) => *number,
            // Servers write what is wider than 53 bits as text.
            Cell::Text(text) => text.parse().unwrap_or(0.0),
            Cell::None | Cell::List(_) => 0.0,
        }
    }

    /// A whole number; 0 if there is none.
    pub fn whole(self, column: &str) -> u64 {
        match self.cell(column) {
            Cell::Whole(number) => *number,
            Cell::Text(text) => text.parse().unwrap_or(0),
            // Sums of whole numbers that an engine makes decimals of.
            Cell::Number(number) => number.round().max(0.0) as u64,
            Cell::None | Cell::List(_) => 0,
        }
    }

    /// A list; empty if there is none.
    pub fn list(self, column: &str) -> &'a [u64] {
        match self.cell(column) {
            Cell::List(list) => list,
            _ => &[],
        }
    }
}
