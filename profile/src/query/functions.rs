//! Counts self and total samples of every function in a selection.

use super::selection::Selection;
use super::shape::Step;
use super::trend::Trends;
use crate::intern::RESERVED;
use crate::tables::{Module, UNMAPPED_CODE};
use crate::wait::WaitSum;
use crate::{FrameId, FrameKind, FunctionId, FunctionRow, ModuleId, View};
use std::collections::HashMap;
use std::sync::Arc;

/// The counts of one function, in one struct because all are updated at once.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    self_samples: u64,
    total_samples: u64,
    /// The last entry that was counted here, plus one: a recursive function counts once.
    mark: u32,
    /// Whether the function occurred out of line, and not only inlined.
    out_of_line: bool,
    /// The frame whose source location is shown, and its number of self samples.
    place: FrameId,
    place_samples: u64,
}

/// The rows of functions, and the index of each function's row.
pub(super) struct Functions {
    /// Rows, sorted by self samples.
    pub(super) rows: Vec<FunctionRow>,
    /// Index of the row by the function's number; [`NO_ROW`] if it has none.
    row_of: Vec<u32>,
}

const NO_ROW: u32 = u32::MAX;

impl Selection {
    /// Returns self and total of every function, by self samples, falling.
    pub fn functions(&self) -> Vec<FunctionRow> {
        rows(self, &Trends::collect(self)).rows
    }
}

/// Goes through all stacks once: every function on a stack gets its samples as total, the innermost
/// one also as self. The source location of a function is the one of the frame that has most of its
/// self samples.
fn count(selection: &Selection) -> Vec<Cell> {
    let tables = &*selection.view.tables;
    let mut cells = vec![Cell::default(); tables.names.owners().len()];
    let mut hits = vec![0u64; cells.len()];
    for (mark, entry) in (1..).zip(&selection.entries) {
        for step in selection.shape(entry.shape) {
            let step = Step(*step);
            let cell = &mut cells[step.function().0 as usize];
            cell.out_of_line |= !step.is_inlined();
            if cell.mark != mark {
                cell.mark = mark;
                cell.total_samples += entry.samples;
            }
        }
        let leaf = selection.leaf(entry.shape);
        cells[leaf.0 as usize].self_samples += entry.samples;
        hits[tables.stacks.leaf(entry.stack).0 as usize] += entry.samples;
    }
    // The samples of a frame belong to its innermost inlined function, if there is one.
    for (frame, samples) in (0..).map(FrameId).zip(hits).filter(|(_, n)| *n > 0) {
        let inlined = tables.sources.inlined_in(frame).first();
        let function = inlined.map_or(selection.view.function_of(frame), |link| link.function);
        let cell = &mut cells[function.0 as usize];
        if samples > cell.place_samples {
            (cell.place, cell.place_samples) = (frame, samples);
        }
    }
    cells
}

/// Returns the waits of every function: the waits of a stack count for each function on it, once
/// even if it is recursive.
fn count_waits(selection: &Selection) -> HashMap<FunctionId, WaitSum> {
    let mut sums: HashMap<FunctionId, WaitSum> = HashMap::new();
    for (stack, waits) in &selection.waits {
        let shape = selection.shape(selection.shape_of[stack.0 as usize]);
        for (at, step) in shape.iter().enumerate() {
            let function = Step(*step).function();
            let is_first = |before: &u32| Step(*before).function() != function;
            if shape[..at].iter().all(is_first) {
                sums.entry(function).or_default().add(waits);
            }
        }
    }
    sums
}

/// Returns the rows of all functions that have samples: by self, then total, both falling, then by
/// name, so that the order is the same each time.
pub(super) fn rows(selection: &Selection, trends: &Trends) -> Functions {
    let mut modules = ModuleCache::new(&selection.view);
    let cells = count(selection);
    let waits = count_waits(selection);
    let mut rows: Vec<FunctionRow> = (0..)
        .map(FrameId)
        .zip(&cells)
        .filter(|(_, cell)| cell.total_samples > 0)
        .map(|(id, cell)| FunctionRow {
            waits: waits.get(&id).and_then(WaitSum::waits),
            ..row(selection, id, cell, trends, &mut modules)
        })
        .collect();
    count_addresses(selection, &mut rows);
    rows.sort_unstable_by(|a, b| {
        let by_count = (b.self_samples, b.total_samples).cmp(&(a.self_samples, a.total_samples));
        by_count
            .then_with(|| a.name.cmp(&b.name))
            .then_with(|| a.id.cmp(&b.id))
    });
    let mut row_of = vec![NO_ROW; cells.len()];
    for (at, row) in (0..).zip(&rows) {
        row_of[row.id.0 as usize] = at;
    }
    Functions { rows, row_of }
}

/// Sets, for each row of code in no map, how many addresses the row stands for.
fn count_addresses(selection: &Selection, rows: &mut [FunctionRow]) {
    let is_sum = |row: &&mut FunctionRow| row.kind == FrameKind::Jit && *row.name == *UNMAPPED_CODE;
    let mut sums: HashMap<FunctionId, &mut FunctionRow> = HashMap::new();
    sums.extend(rows.iter_mut().filter(is_sum).map(|row| (row.id, row)));
    if sums.is_empty() {
        return;
    }
    for owner in selection.view.tables.names.members() {
        if let Some(row) = sums.get_mut(&owner) {
            row.addresses += 1;
        }
    }
}

/// Makes a row from the counts, without its waits. Without self samples its source location is that
/// of the function's first frame.
fn row(
    selection: &Selection,
    id: FunctionId,
    cell: &Cell,
    trends: &Trends,
    modules: &mut ModuleCache<'_>,
) -> FunctionRow {
    let place = if cell.place_samples > 0 {
        cell.place
    } else {
        id
    };
    let function = selection.view.describe(id, place, modules.of(id));
    FunctionRow {
        id,
        name: function.name,
        module: function.module,
        module_path: function.module_path,
        kind: function.kind,
        address: function.address,
        name_state: function.name_state,
        file: function.file,
        line: function.line,
        inlined: !cell.out_of_line,
        addresses: 0,
        self_samples: cell.self_samples,
        total_samples: cell.total_samples,
        waits: None,
        trend: trends.function(id),
    }
}

impl Functions {
    /// Returns the name of a function that has samples.
    pub(super) fn name(&self, function: FunctionId) -> Arc<str> {
        let row = self.row_of[function.0 as usize];
        Arc::clone(&self.rows[row as usize].name)
    }
}

/// Caches module names, which many rows share.
pub(super) struct ModuleCache<'a> {
    view: &'a View,
    modules: HashMap<ModuleId, Module>,
}

impl<'a> ModuleCache<'a> {
    /// A cache without entries.
    pub(super) fn new(view: &'a View) -> Self {
        Self {
            view,
            modules: HashMap::new(),
        }
    }

    /// The module of a function.
    pub(super) fn of(&mut self, id: FunctionId) -> Module {
        match self.view.frame(id) {
            Some(frame) if id.0 >= RESERVED => self
                .modules
                .entry(frame.module)
                .or_insert_with(|| self.view.tables.modules.get(frame.module))
                .clone(),
            _ => Module::none(),
        }
    }
}
