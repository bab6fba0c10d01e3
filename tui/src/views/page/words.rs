//! The texts of the page.

use crate::context::Context;
use crate::views::page::{Page, PageAnswer, PageRow, RowKey};
use crate::words::metric::amount;
use crate::words::units::Scale;
use crate::words::{metric, names, source, text, units, waits};
use profile::Function;
use profile::query::{FunctionPage, NeighbourKind};

/// Returns the sentence that says why the page is empty: no answer yet, or no samples. `back` is
/// appended to the latter, and names the key that leads back.
pub fn why_empty(cx: &Context<'_>, page: &Page, back: &str) -> String {
    match page.answer() {
        None if cx.shown.view.is_none() => "no samples".into(),
        None => "counting…".into(),
        Some(answer) => format!(
            "{} has no samples in this window{back}",
            answer.function.name
        ),
    }
}

/// Returns the name of a caller or callee on the screen.
pub fn neighbour(kind: NeighbourKind, page: &Page) -> String {
    let function = match kind {
        NeighbourKind::Function(id) => page.named(id),
        _ => None,
    };
    neighbour_of(kind, function)
}

/// Returns the name of a caller or callee. `function` is given if it is a function and still known.
pub fn neighbour_of(kind: NeighbourKind, function: Option<&Function>) -> String {
    match kind {
        NeighbourKind::Function(_) => match function {
            Some(function) => names::short(&function.name).into_owned(),
            None => "(no longer known)".into(),
        },
        NeighbourKind::Root => "(not called: the stack begins here)".into(),
        NeighbourKind::Stopped(ending) => names::stopped(ending),
        NeighbourKind::Own => "(self)".into(),
    }
}

/// Returns the line of the function itself:
/// `heap_hot_search_buffer   total 31.6%   self 7.1%   heapam.c:1691   postgres`.
pub fn title(cx: &Context<'_>, answer: &PageAnswer, page: &FunctionPage, width: usize) -> String {
    let function = &page.function;
    let scale = Scale::new(cx, answer.samples);
    let mut parts = vec![
        format!("total {}", scale.labelled(function.total_samples)),
        format!("self {}", scale.labelled(function.self_samples)),
    ];
    let used = |parts: &[String]| parts.iter().map(|p| text::width(p) + 3).sum::<usize>();
    let name = text::clean(&names::short(&function.name)).into_owned();
    // The name gets half of the line if it needs it. Parts that do not fit beside it are left out.
    let needed = text::width(&name).min(width / 2);
    let place = source::source(function.file.as_deref(), function.line);
    let waits = function.waits.as_ref().map(waits::brief);
    for part in waits
        .into_iter()
        .chain(place)
        .chain([text::clean(names::module(&function.module)).into_owned()])
    {
        if needed + used(&parts) + 3 + text::width(&part) <= width {
            parts.push(part);
        }
    }
    let name = text::cut_middle(&name, width.saturating_sub(used(&parts))).into_owned();
    format!("{name}   {}", parts.join("   "))
}

/// Returns the detail line: `916 smp = 88.4% of it ±2.1 pp   28.0% of scope   postgres`.
pub fn detail(page: &Page, cx: &Context<'_>, width: usize) -> String {
    let found = page
        .answer()
        .and_then(|a| Some((a, a.page.as_ref()?, page.selected()?)));
    let Some((answer, found, row)) = found else {
        return String::new();
    };
    let all = found.function.total_samples;
    let of_scope = |samples| {
        format!(
            "{}% of scope",
            units::share(&cx.shown.report, samples, answer.samples)
        )
    };
    let (mut parts, function) = match row {
        PageRow::Caller(neighbour) | PageRow::Callee(neighbour) => {
            let samples = neighbour.samples;
            let share = units::share(&cx.shown.report, samples, all);
            let band = units::band_text(&cx.shown.report, samples, all);
            let number = format!("{} = {share}% of it {band} pp", amount(cx, samples));
            let function = match neighbour.kind {
                NeighbourKind::Function(id) => page.named(id),
                _ => None,
            };
            (vec![number, of_scope(samples)], function)
        }
        PageRow::Function => {
            let own = found.function.self_samples;
            let band = units::band_text(&cx.shown.report, all, answer.samples);
            let total = format!("{} = {} {band} pp", amount(cx, all), of_scope(all));
            let own = format!(
                "self {} = {}% of it",
                amount(cx, own),
                units::share(&cx.shown.report, own, all)
            );
            let waits = found.function.waits.as_ref().map(waits::brief);
            // The row itself already says what the waits belong to.
            match waits {
                Some(waits) => (vec![total, waits, own], Some(&answer.function)),
                None => (vec![total, own], Some(&answer.function)),
            }
        }
        PageRow::MoreCallers(count, samples, _) | PageRow::MoreCallees(count, samples, _) => {
            let count = units::counted(*count as u64, "function");
            let number = format!("{count}, {} together", amount(cx, *samples));
            (vec![number, of_scope(*samples)], None)
        }
        _ => return String::new(),
    };
    let used = parts
        .iter()
        .map(|part| text::width(part) + 3)
        .sum::<usize>();
    let room = width.saturating_sub(used);
    parts.extend(function.and_then(|function| place(function, room)));
    let used = parts.iter().map(|part| text::width(part) + 3).sum();
    let room = width.saturating_sub(used);
    let name = function.and_then(whole_name).filter(|_| room > 12);
    parts.extend(name.map(|name| text::cut_middle(&name, room).into_owned()));
    parts.join("   ")
}

/// Returns the whole name of a function if rows show a shorter one, otherwise `None`.
fn whole_name(function: &Function) -> Option<String> {
    let is_folded = names::is_folded(&function.name);
    is_folded.then(|| text::clean(&function.name).into_owned())
}

/// Returns source line and module, or only the module if there is not enough room for both, or
/// `None` if there is no room at all.
fn place(function: &Function, room: usize) -> Option<String> {
    let module = text::clean(&function.module).into_owned();
    let line = source::source(function.file.as_deref(), function.line);
    let forms = [line.map(|line| format!("{line}   {module}")), Some(module)];
    forms
        .into_iter()
        .flatten()
        .find(|form| text::width(form) <= room)
}

/// Explains the number of the selected row in one sentence. Returns `None` without samples.
pub fn explain(page: &Page, cx: &Context<'_>) -> Option<String> {
    let answer = page.answer()?;
    let found = answer.page.as_ref()?;
    let name = &names::brief(&answer.function.name);
    let all = metric::counted(cx, found.function.total_samples);
    let base = format!("{all} with {name} on the stack");
    // The rows of the function itself, and those that sum up others, explain the whole. The other
    // rows explain their share of it.
    let (is_caller, kind, samples) = match page.selected()? {
        PageRow::Caller(neighbour) => (true, neighbour.kind, neighbour.samples),
        PageRow::Callee(neighbour) => (false, neighbour.kind, neighbour.samples),
        row => {
            let rest = match row.key()? {
                RowKey::MoreCallers | RowKey::MoreCallees => {
                    "each with fewer samples than those above"
                }
                _ => "recursion counted once",
            };
            let of = metric::counted(cx, answer.samples);
            let waits = found.function.waits.as_ref();
            let waits =
                waits.map_or_else(String::new, |waits| format!("; {}", waits::explain(waits)));
            let seconds = cx.shown.report.window.seconds();
            let scope = cx.scope_words();
            return Some(format!(
                "{base}, of {of} in {scope}, last {seconds:.1} s; {rest}{waits}"
            ));
        }
    };
    let all = found.function.total_samples;
    let number = share_of(
        &units::share(&cx.shown.report, samples, all),
        &metric::bare_amount(cx, samples),
        &metric::counted(cx, all),
        name,
    );
    let other = names::brief(&neighbour(kind, page));
    Some(explain_neighbour(&number, kind, &other, is_caller))
}

/// Returns `31.6% = 1,036 of the 3,277 samples with f on the stack`.
pub fn share_of(share: &str, samples: &str, all: &str, name: &str) -> String {
    format!("{share}% = {samples} of the {all} with {name} on the stack")
}

/// Returns the sentence that explains what the number of a caller or callee counts.
pub fn explain_neighbour(
    number: &str,
    kind: NeighbourKind,
    other: &str,
    is_caller: bool,
) -> String {
    match (kind, is_caller) {
        (NeighbourKind::Stopped(ending), _) => {
            format!("{number}: its caller is missing: {}", ending.explain())
        }
        (NeighbourKind::Root, _) => format!("{number}: nobody called it, the stack begins there"),
        (NeighbourKind::Own, _) => format!("{number}: it was on top of the stack itself"),
        (NeighbourKind::Function(_), true) => {
            format!("{number}: {other} called it; if it called itself, its first call counts")
        }
        (NeighbourKind::Function(_), false) => {
            format!("{number}: it called {other}; if it called itself, its last call counts")
        }
    }
}
