//! Collects rules as they are found: the rows of each function together, functions in the order of
//! the file.

use super::machine::Machine;
use super::row::Row;
use super::rule::UnwindRule;
use super::rules::Rules;
use crate::OpenError;

/// Maximum number of rows, which take 128 MiB. The largest known files have 2 million.
const ROWS_MAX: usize = 16 << 20;

/// Counts of what was found in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of FDEs that contributed rows.
    pub functions: u64,
    /// Number of FDEs for code that the linker removed, or beyond 4 GiB.
    pub discarded: u64,
    /// Number of entries that could not be read completely. The addresses of such a function are a
    /// hole.
    pub damaged: u64,
}

/// The rows of one function: `rows[first..behind]` of its collection.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// Link address of the function's first byte.
    pub start: u32,
    /// Link address after its last byte.
    pub end: u32,
    /// Index of its first row.
    pub first: u32,
    /// Index after its last row.
    pub behind: u32,
}

/// The rows of one kind of section.
#[derive(Debug, Default)]
pub struct Collection {
    /// Rows of all functions, one after the other.
    pub rows: Vec<Row>,
    /// Which rows each function has, in the order in which functions were found.
    pub spans: Vec<Span>,
}

/// Collects functions one after the other.
#[derive(Debug, Default)]
pub struct Collector {
    /// The functions and rows since the last [`Collector::take`].
    pub collection: Collection,
    /// The rules that rows refer to, for the whole file.
    pub rules: Rules,
    /// Counts of the whole file.
    pub statistics: Statistics,
    /// Machine of the code.
    pub machine: Machine,
    /// Whether rules include the place of rbx.
    pub with_rbx: bool,
    open: Span,
}

impl Collector {
    /// An empty collector for a file of this machine.
    pub fn of(machine: Machine) -> Self {
        Self {
            machine,
            ..Self::default()
        }
    }

    /// Begins a function. Returns `false` if the linker removed its code, which leaves an address
    /// of 0 or -1.
    pub fn open(&mut self, start: u64, len: u64) -> bool {
        let range = u32::try_from(start).ok().zip(
            start
                .checked_add(len)
                .and_then(|end| u32::try_from(end).ok()),
        );
        let Some((start, end)) = range.filter(|(start, end)| *start != 0 && start < end) else {
            self.statistics.discarded += 1;
            return false;
        };
        let first = self.collection.rows.len() as u32;
        self.open = Span {
            start,
            end,
            first,
            behind: first,
        };
        true
    }

    /// Adds a row; addresses never decrease.
    pub fn add(&mut self, address: u64, rule: impl FnOnce() -> UnwindRule) {
        // Rows after the function's end are ignored, and so are rows beyond the limit, which
        // `close` reports.
        let rows = &mut self.collection.rows;
        if address >= u64::from(self.open.end) || rows.len() > ROWS_MAX {
            return;
        }
        let row = Row {
            start: address as u32,
            rule: self.rules.id(rule()),
        };
        let last = rows[self.open.first as usize..].last();
        if last.is_none_or(|last| last.rule != row.rule) {
            rows.push(row);
        }
    }

    /// Completes the function; an error if there are too many rows.
    pub fn close(&mut self) -> Result<(), OpenError> {
        if self.collection.rows.len() > ROWS_MAX {
            return Err(OpenError::Refused("too many unwind rows"));
        }
        self.open.behind = self.collection.rows.len() as u32;
        self.collection.spans.push(self.open);
        self.statistics.functions += 1;
        Ok(())
    }

    /// Drops the function.
    pub fn abandon(&mut self) {
        self.collection.rows.truncate(self.open.first as usize);
    }

    /// Takes what was collected since the beginning or the last call.
    pub fn take(&mut self) -> Collection {
        std::mem::take(&mut self.collection)
    }
}
