//! Rules as they are found: the rows of each function together, functions in
//! the order of the file.

use super::machine::Machine;
use super::row::Row;
use super::rule::UnwindRule;
use super::rules::Rules;
use crate::OpenError;

/// 128 MiB. The largest files known to us have 2 million.
const ROWS_MAX: usize = 16 << 20;

/// What was met in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// FDEs that contributed rows.
    pub functions: u64,
    /// FDEs of code that the linker removed, or beyond 4 GiB.
    pub discarded: u64,
    /// Entries that could not be read, or not to their end. The addresses of
    /// such a function are a hole.
    pub damaged: u64,
}

/// The rows of one function: `rows[first..behind]` of its collection.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
    pub first: u32,
    pub behind: u32,
}

/// The rows of one kind of section.
#[derive(Debug, Default)]
pub struct Collection {
    pub rows: Vec<Row>,
    pub spans: Vec<Span>,
}

/// Takes functions one after the other.
#[derive(Debug, Default)]
pub struct Collector {
    pub collection: Collection,
    pub rules: Rules,
    pub statistics: Statistics,
    /// Whose code it is.
    pub machine: Machine,
    /// Rules tell where rbx is.
    pub with_rbx: bool,
    open: Span,
}

impl Collector {
    /// Nothing yet of a file of this machine.
    pub fn of(machine: Machine) -> Self {
        Self {
            machine,
            ..Self::default()
        }
    }

    /// Starts a function. `false` for one that is not there: its code was
    /// removed by the linker, which then leaves an address of 0 or -1.
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

    /// Adds a row; addresses never go back.
    pub fn add(&mut self, address: u64, rule: impl FnOnce() -> UnwindRule) {
        // Rows behind the end belong to nobody, nor do those beyond what the
        // limit lets in, which `close` tells.
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

    /// Completes the function.
    pub fn close(&mut self) -> Result<(), OpenError> {
        if self.collection.rows.len() > ROWS_MAX {
            return Err(OpenError::Refused("too many unwind rows"));
        }
        self.open.behind = self.collection.rows.len() as u32;
        self.collection.spans.push(self.open);
        self.statistics.functions += 1;
        Ok(())
    }

    /// Forgets the function.
    pub fn abandon(&mut self) {
        self.collection.rows.truncate(self.open.first as usize);
    }

    /// What was collected since the start or the last call.
    pub fn take(&mut self) -> Collection {
        std::mem::take(&mut self.collection)
    }
}
