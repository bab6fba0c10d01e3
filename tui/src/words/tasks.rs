//! The asyncio tasks in a report. They are frames above their coroutines, without samples of their
//! own, so that no list of the hottest functions shows them.

use profile::few;
use profile::{FrameKind, FunctionRow};
use std::cmp::Reverse;

/// The beginning and the end of the name of a task's frame, around the name of the task: of a task
/// that runs, and of one that awaits the running one.
const RUNS: (&str, &str) = ("task ‹", "›");
const AWAITS: (&str, &str) = ("task ‹", "› awaits");

/// An asyncio task, or all tasks of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task<'a> {
    /// Its name in the program, or else the name of its coroutine.
    pub name: &'a str,
    /// Samples in which it ran.
    pub ran: u64,
    /// Samples in which a task ran that it awaited, directly or through other tasks.
    pub awaited: u64,
}

/// Returns the tasks among functions, those with most samples first.
pub fn among(functions: &[FunctionRow]) -> Vec<Task<'_>> {
    let mut tasks: Vec<Task<'_>> = Vec::new();
    for row in functions {
        if row.kind != FrameKind::Python {
            continue;
        }
        let between = |(begin, end)| row.name.strip_prefix(begin)?.strip_suffix(end);
        let (name, ran, awaited) = match (between(AWAITS), between(RUNS)) {
            (Some(name), _) => (name, 0, row.total_samples),
            (None, Some(name)) => (name, row.total_samples, 0),
            (None, None) => continue,
        };
        match tasks.iter_mut().find(|task| task.name == name) {
            Some(task) => {
                task.ran += ran;
                task.awaited += awaited;
            }
            None => tasks.push(Task { name, ran, awaited }),
        }
    }
    few::sort_by_key(&mut tasks, |task| {
        (Reverse(task.ran.max(task.awaited)), task.name)
    });
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::postgres;

    fn row(name: &str, kind: FrameKind, total: u64) -> FunctionRow {
        let mut row = postgres().report.functions[0].clone();
        (row.name, row.kind, row.total_samples) = (name.into(), kind, total);
        row
    }

    #[test]
    fn tasks_of_one_name_are_one_and_nothing_else_is_a_task() {
        let rows = [
            row("task ‹serve› awaits", FrameKind::Python, 30),
            row("task ‹query›", FrameKind::Python, 20),
            row("task ‹serve›", FrameKind::Python, 5),
            row("task ‹native›", FrameKind::User, 50),
            row("shop.task", FrameKind::Python, 50),
            row("a task awaits", FrameKind::Python, 50),
        ];
        let task = |name, ran, awaited| Task { name, ran, awaited };
        assert_eq!(among(&rows), [task("serve", 5, 30), task("query", 20, 0)]);
    }
}
