//! The functions as a table. The selection is stored as one of the function's frames, so that it
//! stays on the function when a name arrives and more frames turn out to belong to it.

pub mod difference;
pub mod draw;
mod view;
pub mod words;
use crate::choices::Sort;
use crate::lists::table::{Item, Table};
use profile::{FrameId, FunctionRow, Report};
use std::cmp::Ordering;

/// The view of functions: a list, or the difference from a baseline in its place.
#[derive(Debug, Default)]
pub struct Functions {
    pub table: Table<FunctionRow>,
    pub difference: difference::Difference,
}

/// A column that the functions can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FunctionColumn {
    #[default]
    SelfSamples,
    TotalSamples,
    Name,
    Module,
}

impl FunctionColumn {
    /// Returns the name of the column. Users type it to sort by the column, and it is saved for the
    /// next run.
    pub fn words(self) -> &'static str {
        match self {
            FunctionColumn::SelfSamples => "self",
            FunctionColumn::TotalSamples => "total",
            FunctionColumn::Name => "name",
            FunctionColumn::Module => "module",
        }
    }
}

impl From<Sort> for FunctionColumn {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::SelfTime => FunctionColumn::SelfSamples,
            Sort::Total => FunctionColumn::TotalSamples,
            Sort::Name => FunctionColumn::Name,
        }
    }
}

impl Item for FunctionRow {
    type Key = FrameId;
    type Column = FunctionColumn;

    const COLUMNS: &'static [FunctionColumn] = &[
        FunctionColumn::SelfSamples,
        FunctionColumn::TotalSamples,
        FunctionColumn::Name,
        FunctionColumn::Module,
    ];

    fn rows(report: &Report) -> &[Self] {
        &report.functions
    }

    fn key(&self) -> FrameId {
        self.id
    }

    // The selected frame may belong to another row now, because its name has arrived. The report
    // knows the row of every frame.
    fn current_key(report: &Report, key: FrameId) -> FrameId {
        let owner = report.owners.get(key.0 as usize);
        owner.copied().unwrap_or(key)
    }

    fn compare(column: FunctionColumn, a: &Self, b: &Self) -> Ordering {
        match column {
            FunctionColumn::SelfSamples => b.self_samples.cmp(&a.self_samples),
            FunctionColumn::TotalSamples => b.total_samples.cmp(&a.total_samples),
            FunctionColumn::Name => a.name.cmp(&b.name),
            FunctionColumn::Module => a.module.cmp(&b.module),
        }
    }

    fn is_word(column: FunctionColumn) -> bool {
        matches!(column, FunctionColumn::Name | FunctionColumn::Module)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn samples(&self) -> u64 {
        self.self_samples
    }
}
