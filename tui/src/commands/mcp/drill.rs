//! `drill`: callers and callees of a function, or the call tree of one or all processes.

use super::arguments::Arguments;
use super::kept::Kept;
use super::samples::Lot;
use crate::views::tree::runs;
use crate::words::markdown::{self, Lines, code, quoted};
use crate::words::{metric, names, units, waits};
use profile::few;
use profile::query::{CallTree, Direction, FunctionPage, GroupBy, Neighbour, NeighbourKind, Node};
use profile::{Cancel, FunctionRow, Role, Selection, percent};

/// Maximum number of callers that are named, and of callees.
const NEIGHBOURS_MAX: usize = 12;
/// Maximum number of frames of the heaviest stack that are named: those nearest to the leaf.
const FRAMES_MAX: usize = 30;
/// Maximum number of other matching functions that are named.
const OTHERS_MAX: usize = 5;
/// Maximum number of threads that are named.
const THREADS_MAX: usize = 8;
/// Candidates for the minimum share of all samples, in percent, for a line of the tree. The first
/// one with which the tree fits into the answer is used.
const SHARES_MIN: [f64; 7] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0];
/// Maximum depth of the tree. Deeper lines are left out.
const DEPTH_MAX: usize = 40;

/// Returns the page of a function if the client names one, else the call tree.
pub fn answer(
    arguments: &Arguments,
    kept: &mut Kept,
    cancel: &Cancel,
    tokens_max: usize,
) -> Result<String, String> {
    let lot = kept
        .samples
        .find_or_newest(arguments.text("samples")?)?
        .narrowed(arguments.filter()?, cancel)?;
    let selection = lot.select(lot.snapshot.asked.query.filter.clone(), cancel)?;
    let room = markdown::bytes(tokens_max);
    match arguments.text("function")? {
        Some(name) => {
            let found = find(&selection, name)?;
            let page = selection
                .page(found.row.id, cancel)
                .map_err(|error| error.to_string())?
                .ok_or("no sample has it on its stack")?;
            Ok(function(&lot, &selection, &page, &found.others, room))
        }
        None => {
            let tree = selection
                .tree(Direction::TopDown, GroupBy::Comm, cancel)
                .map_err(|error| error.to_string())?;
            Ok(of_all(&lot, &selection, &tree, room))
        }
    }
}

/// The function that a name matches.
pub struct Found {
    pub row: FunctionRow,
    /// The names of other matching functions, those with most samples first.
    pub others: Vec<String>,
}

/// Finds a function by the name that reports show, by its whole name, or by a part of it. If
/// several match, the one with most samples is returned.
pub fn find(selection: &Selection, name: &str) -> Result<Found, String> {
    let wanted = name.trim_matches('`');
    let shown = |row: &FunctionRow| code(&row.name).trim_matches('`') == wanted;
    let lower = wanted.to_lowercase();
    let part = |row: &FunctionRow| row.name.to_lowercase().contains(&lower);
    let mut rows = selection.functions();
    few::sort_by_key(&mut rows, |row| std::cmp::Reverse(row.total_samples));
    let exact = |row: &FunctionRow| *row.name == *wanted || shown(row);
    let fits: Vec<&FunctionRow> = if rows.iter().any(exact) {
        rows.iter().filter(|row| exact(row)).collect()
    } else {
        rows.iter().filter(|row| part(row)).collect()
    };
    let Some((first, others)) = fits.split_first() else {
        return Err(format!(
            "no function with samples is called {}",
            quoted(name)
        ));
    };
    let named = |row: &&FunctionRow| format!("{} ({})", code(&row.name), quoted(&row.module));
    Ok(Found {
        row: (*first).clone(),
        others: others.iter().take(OTHERS_MAX).map(named).collect(),
    })
}

/// Returns the page of a function.
fn function(
    lot: &Lot,
    selection: &Selection,
    page: &FunctionPage,
    others: &[String],
    room: usize,
) -> String {
    let mut lines = Lines::new(room);
    let row = &page.function;
    let all = selection.samples();
    let metric = &selection.view().info().metric;
    lines.push(&format!(
        "# {} in {}: {} of {} with what it calls, {} itself",
        code(&row.name),
        quoted(&lot.name),
        lot.share(row.total_samples, all),
        metric::counted_by(Some(metric), all),
        lot.share(row.self_samples, all),
    ));
    let mut place = format!("In {}", quoted(names::module(&row.module)));
    if let Some(file) = &row.file {
        place += &format!(", {}", quoted(&format!("{file}:{}", row.line)));
    }
    if let Some(waits) = &row.waits {
        place += &format!("; {}", waits::brief(waits));
    }
    lines.push(&place);
    if !others.is_empty() {
        lines.push(&format!("The name also fits: {}", others.join(", ")));
    }
    // Shares of neighbours are relative to the samples that have the function on the stack.
    let total = row.total_samples;
    let mut neighbours = |head: &str, rows: &[Neighbour]| {
        if !lines.head(head) {
            return;
        }
        for row in rows.iter().take(NEIGHBOURS_MAX) {
            lines.push(&format!(
                "- {} {}",
                lot.share(row.samples, total),
                neighbour(selection, row)
            ));
        }
        let rest = rows.get(NEIGHBOURS_MAX..).unwrap_or_default();
        if !rest.is_empty() {
            let samples = rest.iter().map(|row| row.samples).sum();
            lines.push(&format!(
                "- {} in {} more",
                lot.share(samples, total),
                rest.len()
            ));
        }
    };
    neighbours("Callers, of the samples with it", &page.callers);
    neighbours("What it calls, of the samples with it", &page.callees);
    let head = format!(
        "Heaviest stack, callers first: {} of it",
        lot.share(page.heaviest_samples, total)
    );
    if lines.head(&head) {
        let skipped = page.heaviest.len().saturating_sub(FRAMES_MAX);
        if skipped > 0 {
            lines.push(&format!(
                "- {} above",
                units::counted(skipped as u64, "frame")
            ));
        }
        for id in &page.heaviest[skipped..] {
            let function = selection.view().function(*id);
            let module = quoted(names::module(&function.module));
            lines.push(&format!("- {} ({module})", code(&function.name)));
        }
    }
    lines.into_text()
}

/// Returns the name of a caller or callee.
fn neighbour(selection: &Selection, row: &Neighbour) -> String {
    match row.kind {
        NeighbourKind::Function(id) => {
            let function = selection.view().function(id);
            match function.role {
                Role::Function => {
                    let module = quoted(names::module(&function.module));
                    format!("{} ({module})", code(&function.name))
                }
                _ => code(&function.name),
            }
        }
        NeighbourKind::Root => "no caller: the thread begins there".into(),
        NeighbourKind::Stopped(ending) => {
            format!("a part of the stack that is missing ({})", ending.label())
        }
        NeighbourKind::Own => "itself".into(),
    }
}

/// Returns the threads and the call tree.
fn of_all(lot: &Lot, selection: &Selection, tree: &CallTree, room: usize) -> String {
    let mut lines = Lines::new(room);
    let all = selection.samples();
    let metric = &selection.view().info().metric;
    lines.push(&format!(
        "# Call tree of {}: {}",
        quoted(&lot.name),
        metric::counted_by(Some(metric), all)
    ));
    let filter = &selection.query().filter;
    if !filter.is_empty() {
        let filter = quoted(&filter.to_string());
        lines.push(&format!("Only samples that pass {filter}"));
    }
    let report = &lot.snapshot.report;
    if lines.head("Threads") {
        for thread in report.threads.iter().take(THREADS_MAX) {
            lines.push(&format!(
                "- {} tid {} of pid {}: {}",
                quoted(&thread.comm),
                thread.tid,
                thread.pid,
                lot.share(thread.samples, all)
            ));
        }
        let rest = report.threads.len().saturating_sub(THREADS_MAX);
        if rest > 0 {
            lines.push(&format!("- {rest} more"));
        }
    }
    lines.head("Call tree: share with what it calls, and itself");
    let left = room.saturating_sub(lines.len());
    let mut drawn = SHARES_MIN
        .iter()
        .map(|least| draw(lot, tree, *least))
        .skip_while(|rows| rows.iter().map(|row| row.len() + 1).sum::<usize>() >= left);
    // If none fits, a tree with few lines is drawn, and cut where the answer is full.
    let rows = drawn.next().unwrap_or_else(|| draw(lot, tree, 60.0));
    for row in rows {
        lines.push(&row);
    }
    lines.into_text()
}

/// Returns the lines of a tree that have at least `least` percent of all samples.
fn draw(lot: &Lot, tree: &CallTree, least: f64) -> Vec<String> {
    let mut rows = Vec::new();
    draw_below(lot, tree, &tree.root(), 0, least, &mut rows);
    rows
}

fn draw_below(
    lot: &Lot,
    tree: &CallTree,
    node: &Node,
    depth: usize,
    least: f64,
    rows: &mut Vec<String>,
) {
    let all = tree.root().samples;
    let children = tree.children(node);
    let shown = children.partition_point(|child| percent(child.samples, all) >= least);
    let indent = "  ".repeat(depth);
    for child in &children[..shown] {
        let (words, end) = joined(tree, child);
        let own = match end.own {
            0 => String::new(),
            own => format!(", itself {}", lot.share(own, all)),
        };
        rows.push(format!(
            "{indent}- {} {words}{own}",
            lot.share(child.samples, all)
        ));
        if depth < DEPTH_MAX {
            draw_below(lot, tree, &end, depth + 1, least, rows);
        }
    }
    let rest: u64 = children[shown..].iter().map(|child| child.samples).sum();
    if rest > 0 {
        let count = children.len() - shown;
        rows.push(format!(
            "{indent}- {} in {count} more",
            lot.share(rest, all)
        ));
    }
}

/// Joins a chain of frames, each with only one child, in one line. Returns the line and the last
/// frame.
fn joined(tree: &CallTree, first: &Node) -> (String, Node) {
    let (frames, end) = runs::of_nodes(tree, first);
    let name = |node: &Node| code(&tree.name(node.kind));
    if !runs::is_long(frames) {
        return (name(first), *first);
    }
    let between = units::counted(frames as u64 - 1, "frame");
    (format!("{} › {between} › {}", name(first), name(&end)), end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::mcp::samples::Samples;

    fn demo() -> Lot {
        let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/demo.pft");
        Samples::default().find(demo, None).unwrap()
    }

    fn selected(lot: &Lot) -> Selection {
        lot.select(profile::Filter::default(), &Cancel::new())
            .unwrap()
    }

    #[test]
    fn a_function_is_found_by_its_name_or_a_part_of_it() {
        let lot = demo();
        let selection = selected(&lot);
        let hottest = &lot.snapshot.report.functions[0];
        for name in [&*hottest.name, &code(&hottest.name)] {
            assert_eq!(find(&selection, name).unwrap().row.name, hottest.name);
        }
        let why = find(&selection, "no `such` function").err().unwrap();
        assert_eq!(
            why,
            "no function with samples is called `no 'such' function`"
        );
    }

    #[test]
    fn pages_and_trees_are_no_longer_than_they_may_be() {
        let lot = demo();
        let selection = selected(&lot);
        let tree = selection
            .tree(Direction::TopDown, GroupBy::Comm, &Cancel::new())
            .unwrap();
        let id = lot.snapshot.report.functions[0].id;
        let page = selection.page(id, &Cancel::new()).unwrap().unwrap();
        for room in [600, 1500, 4500, 60_000] {
            for text in [
                of_all(&lot, &selection, &tree, room),
                function(&lot, &selection, &page, &[], room),
            ] {
                assert!(text.len() <= room, "{} of {room}", text.len());
                assert!(text.starts_with("# "), "{text}");
                for line in text.lines() {
                    assert_eq!(line.matches('`').count() % 2, 0, "{line}");
                }
            }
        }
        let large = of_all(&lot, &selection, &tree, 60_000);
        let small = of_all(&lot, &selection, &tree, 1500);
        assert!(small.len() < large.len());
    }
}
