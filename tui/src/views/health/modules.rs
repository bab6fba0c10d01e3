//! What is missing *by module*: shows where a debug package or a symbol table would help most.

use engine::snapshot::{NameSource, Snapshot};
use profile::few;
use profile::{NoName, RowName};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// A file with code, and the samples that it had on top of stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleRow {
    pub module: Arc<str>,
    pub samples: u64,
    /// The part of `samples` in functions that have a name.
    pub named: u64,
    /// Number of functions that have samples.
    pub functions: usize,
    /// The most frequent reason for samples without a name. `None` if all have one, or are waiting
    /// for it.
    pub reason: Option<NoName>,
    /// Where the names come from, if known.
    pub from: Option<NameSource>,
    /// How many walks of stacks have ended in this module since proftop was started.
    pub cut: u64,
}

/// Returns the modules of all functions in the window, most samples first.
pub fn modules(snapshot: &Snapshot) -> Vec<ModuleRow> {
    let mut numbers: HashMap<&Arc<str>, usize> = HashMap::new();
    let mut rows: Vec<ModuleRow> = Vec::new();
    let mut reasons: HashMap<(usize, NoName), u64> = HashMap::new();
    let functions = snapshot.report.functions.iter();
    // Rows that stand for a missing stack are in no file.
    for function in functions.filter(|function| !function.module.is_empty()) {
        let next = rows.len();
        let at = *numbers.entry(&function.module).or_insert(next);
        if at == next {
            rows.push(ModuleRow {
                module: Arc::clone(&function.module),
                samples: 0,
                named: 0,
                functions: 0,
                reason: None,
                from: snapshot.names.from.of(&function.module),
                cut: 0,
            });
        }
        let row = &mut rows[at];
        row.samples += function.self_samples;
        row.functions += 1;
        match function.name_state {
            RowName::Named => row.named += function.self_samples,
            RowName::Pending => {}
            RowName::Unnamed(reason) => {
                *reasons.entry((at, reason)).or_default() += function.self_samples.max(1);
            }
        }
    }
    for (at, row) in rows.iter_mut().enumerate() {
        let of_it = reasons.iter().filter(|((of, _), _)| *of == at);
        let most = of_it.max_by_key(|((_, reason), samples)| (**samples, Reverse(reason.label())));
        row.reason = most.map(|((_, reason), _)| *reason);
        let stops = snapshot.health.stops.iter();
        let here = stops.filter(|stop| stop.module == row.module);
        row.cut = here.map(|stop| stop.samples).sum();
    }
    few::sort_by(&mut rows, |a, b| {
        (Reverse(a.samples), &a.module).cmp(&(Reverse(b.samples), &b.module))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::postgres;

    #[test]
    fn modules_add_up_and_say_what_they_lack() {
        let snapshot = postgres();
        let rows = modules(&snapshot);
        let report = &snapshot.report;
        let in_files = report.functions.iter().filter(|row| !row.module.is_empty());
        let own: u64 = in_files.map(|row| row.self_samples).sum();
        assert_eq!(rows.iter().map(|row| row.samples).sum::<u64>(), own);
        assert!(rows.is_sorted_by_key(|row| Reverse(row.samples)));
        for row in &rows {
            assert!(row.named <= row.samples && row.functions > 0, "{row:?}");
            let is_missing = report.functions.iter().any(|function| {
                function.module == row.module && matches!(function.name_state, RowName::Unnamed(_))
            });
            assert_eq!(row.reason.is_some(), is_missing, "{row:?}");
        }
        let cut = rows.iter().find(|row| &*row.module == "libjitx.so");
        assert_eq!(cut.map(|row| row.cut), Some(17));
    }
}
