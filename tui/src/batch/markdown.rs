//! A report as a short text with headings, for a language model, a ticket or a chat: what
//! uses the CPUs, who calls it, what is missing and how exact the numbers are, in a given
//! number of tokens.

use super::{BatchReport, own};
use crate::words::markdown::{self, Lines, code, quoted, share};
use crate::words::plain::plain;
use crate::words::unnamed::why_unnamed;
use crate::words::{held, metric, names, skid, states, tasks, units, waits};
use probe::WaitState;
use profile::few;
use profile::query::{CallTree, Direction, GroupBy, Neighbour, NeighbourKind, Node, NodeKind};
use profile::{Cancel, FunctionRow, HeldBy, Report, Role, Selection};

/// The minimum share of its caller's samples that a function on the hot path has.
const HOT_SHARE: f64 = 0.5;
/// How many functions of the hot path are named: the innermost ones, which are the most specific.
const PATH_MAX: usize = 6;
/// How many callers of a function are named. The limits below: of processes, causes and tasks.
const CALLERS_MAX: usize = 3;
const PROCESSES_MAX: usize = 5;
const CAUSES_MAX: usize = 4;
const TASKS_MAX: usize = 6;
/// One part in this many of the report is the limit for the section on what is missing.
const SURE_PART: usize = 3;

/// Returns the report, which is not longer than its limit of tokens. Lines that have no room are
/// left out whole, at the end of their section.
pub(super) fn render(report: &BatchReport<'_>) -> String {
    let bytes = markdown::bytes(report.tokens_max);
    // The section on how sure the numbers are is the last one, but is written first: it always has
    // its room, and the other sections get what it does not need.
    let mut sure = Lines::new(bytes / SURE_PART);
    how_sure(report, &mut sure);
    let mut lines = Lines::new(bytes.saturating_sub(sure.len()));
    let asked = Asked::of(report);
    lines.push(&title(report));
    lines.push(&hottest(report, asked.as_ref()));
    if let Some(own) = asked
        .as_ref()
        .and_then(|asked| own::line(&asked.selection, &report.snapshot.report, &Cancel::new()))
    {
        lines.push(&own);
    }
    if let Some(path) = asked
        .as_ref()
        .and_then(|asked| hot_path(asked, &report.snapshot.report))
    {
        lines.push(&path);
    }
    who_waits(report, &mut lines);
    processes(report, &mut lines);
    tasks_of_asyncio(report, &mut lines);
    functions(report, asked.as_ref(), &mut lines);
    lines.into_text() + &sure.into_text()
}

/// Returns the section on how exact the numbers are, within the report's limit of tokens.
pub(super) fn doubt(report: &BatchReport<'_>) -> String {
    let mut lines = Lines::new(markdown::bytes(report.tokens_max));
    how_sure(report, &mut lines);
    lines.into_text()
}

/// What the text needs besides the report: the samples, to find callers, and the call tree.
struct Asked {
    selection: Selection,
    tree: CallTree,
}

impl Asked {
    /// Queries the profile of the report. None if the report has no profile.
    fn of(report: &BatchReport<'_>) -> Option<Self> {
        let snapshot = report.snapshot;
        let cancel = Cancel::new();
        let view = snapshot.view.as_ref()?;
        let selection = view.select(&snapshot.asked.query, &cancel).ok()?;
        // Not grouped by thread, so that the hot path is that of all threads together.
        let tree = selection
            .tree(Direction::TopDown, GroupBy::None, &cancel)
            .ok()?;
        Some(Asked { selection, tree })
    }
}

/// Returns the first line: the target, the number of samples, the time, and how many CPUs were
/// busy.
fn title(report: &BatchReport<'_>) -> String {
    let snapshot = report.snapshot;
    let seconds = report.window_seconds();
    let seconds = seconds.map_or(String::new(), |seconds| format!(" in {seconds:.1} s"));
    let samples = snapshot.report.samples;
    let mut title = if report.counts_time() || report.events().is_some() {
        "# Profile".to_owned()
    } else {
        "# CPU profile".to_owned()
    };
    if !snapshot.run.scope.is_empty() {
        title += &format!(" of {}", quoted(&snapshot.run.scope));
    }
    if !snapshot.source.host.name.is_empty() {
        title += &format!(" on {}", quoted(&snapshot.source.host.name));
    }
    // With this metric, weights are nanoseconds.
    if report.counts_time() {
        let ms = samples as f64 / 1e6;
        title += &format!(": {ms:.1} ms of {}{seconds}", report.metric_word());
        return title;
    }
    title += &format!(": {}{seconds}", report.counted(samples));
    if let Some(cpus) = report.cpus_in_samples() {
        title += &format!(", {cpus:.2} CPUs busy");
    }
    title
}

/// Returns a line with the three functions that have most samples of their own.
fn hottest(report: &BatchReport<'_>, asked: Option<&Asked>) -> String {
    let all = &report.snapshot.report;
    let functions = &all.functions;
    let Some(first) = functions.first().filter(|row| row.self_samples > 0) else {
        return format!("Nothing was sampled: {}.", report.nothing());
    };
    let mut line = format!("Hottest: {}", function(report, first, asked));
    let others: Vec<String> = functions[1..]
        .iter()
        .take(2)
        .filter(|row| row.self_samples > 0)
        .map(|row| {
            format!(
                "{} {}",
                code(&row.name),
                share(all, row.self_samples, all.samples)
            )
        })
        .collect();
    if !others.is_empty() {
        line += &format!("; then {}", others.join(", "));
    }
    line + "."
}

/// Returns a line with the hot path: it starts at the root and always goes on to the child with
/// most samples, as long as that child has at least half of its parent's samples.
fn hot_path(asked: &Asked, report: &Report) -> Option<String> {
    let tree = &asked.tree;
    let samples = asked.selection.samples();
    let path = tree.hot_path(&tree.root(), HOT_SHARE);
    // Rows for missing frames are on the path but are no functions.
    let is_function = |node: &&Node| match node.kind {
        NodeKind::Function { id, .. } => tree.function(id).role == Role::Function,
        _ => false,
    };
    let path: Vec<&Node> = path.iter().filter(is_function).collect();
    let end = path.last()?;
    // The hot path of a wait leads through a library into the kernel. Only the program's own
    // functions are shown, and the last one, which tells what the wait is for.
    let is_own = |node: &&&Node| tree.waits_in_own_code(node.kind);
    let own = path.iter().filter(is_own).count();
    let is_last = |node: &Node| node.kind == end.kind;
    let mut telling = path.clone();
    if own > 0 {
        telling.retain(|node| is_own(&node) || is_last(node));
    }
    let shown = &telling[telling.len().saturating_sub(PATH_MAX)..];
    let names: Vec<String> = shown
        .iter()
        .map(|node| code(&tree.name(node.kind)))
        .collect();
    let dots = if shown.len() < path.len() {
        "… › "
    } else {
        ""
    };
    Some(format!(
        "Hot path ({} of all): {dots}{}",
        share(report, end.samples, samples),
        names.join(" › ")
    ))
}

/// At most this many pairs of a thread and the one that it waited for are named.
const HOLDERS_MAX: usize = 5;

/// Writes which threads wait for each other, what threads wait for now, and for which threads they
/// waited longest.
fn who_waits(report: &BatchReport<'_>, lines: &mut Lines) {
    let Some(waited) = report.snapshot.waited.as_deref() else {
        return;
    };
    let rows = &report.snapshot.report.threads;
    let name = |tid: u32| {
        let comm = waited.thread(tid).map(|thread| &*thread.comm);
        format!("{} ({tid})", quoted(comm.unwrap_or("thread")))
    };
    let deadlocks = held::deadlocks(waited);
    let is_told = |tid: u32| deadlocks.iter().any(|circle| circle.threads.contains(&tid));
    let open = waited
        .threads
        .iter()
        .filter(|thread| !thread.has_ended && !is_told(thread.tid))
        .filter(|thread| !matches!(thread.state, WaitState::Run | WaitState::Queue))
        .filter(|thread| waited.for_ns(thread) >= held::LONG_NS);
    let (mut owned, mut others): (Vec<_>, Vec<_>) = open.partition(|thread| thread.owner.is_some());
    few::sort_by_key(&mut others, |thread| {
        std::cmp::Reverse(waited.for_ns(thread))
    });
    owned.truncate(HOLDERS_MAX);
    let holders = waited.holders.iter().filter(|held| held.by.is_thread());
    let is_empty = deadlocks.is_empty() && owned.is_empty() && others.is_empty();
    if is_empty && waited.holders.is_empty() || !lines.head("Who waits for whom") {
        return;
    }
    for deadlock in &deadlocks {
        let (who, doing) = (quoted(&deadlock.all()), deadlock.doing());
        lines.push(&format!("- DEADLOCK: {who} {doing}"));
    }
    let since = |thread| states::lasting(waited.for_ns(thread), thread.was_so_before);
    for thread in &owned {
        lines.push(&format!(
            "- now {} waits for a lock that {} has, since {}",
            name(thread.tid),
            thread.owner.map_or_else(String::new, name),
            since(thread)
        ));
    }
    for thread in others.iter().take(HOLDERS_MAX) {
        // Unless time is counted, `top_function` is where the thread runs, not where it waits.
        let mut rows = rows.iter().filter(|_| report.counts_time());
        let row = rows.find(|row| row.tid == thread.tid);
        let function = row
            .and_then(|row| row.top_function.as_deref())
            .map_or_else(String::new, |name| format!(" in {}", code(name)));
        let (name, state) = (name(thread.tid), thread.state.word());
        lines.push(&format!(
            "- now {name} waits{function} ({state}), since {}",
            since(thread)
        ));
    }
    if let more @ 1.. = others.len().saturating_sub(HOLDERS_MAX) {
        let threads = units::counted(more as u64, "more thread");
        lines.push(&format!("- {threads} that wait since a second or longer"));
    }
    for held in holders.take(HOLDERS_MAX) {
        lines.push(&format!(
            "- {} waited {} for {}, which {}, in {}",
            name(held.waiter),
            units::nanoseconds(held.ns),
            name(held.holder_thread),
            held::how(held.by),
            held::waits(held)
        ));
    }
    for by in [HeldBy::Timer, HeldBy::Interrupt] {
        let ended = waited.holders.iter().filter(|held| held.by == by);
        let (waits, ns) = ended.fold((0, 0u64), |(waits, ns), held| {
            (waits + held.waits, ns.saturating_add(held.ns))
        });
        if waits > 0 {
            let (waits, time) = (units::counted(waits, "wait"), units::nanoseconds(ns));
            let what = held::how(by);
            lines.push(&format!("- {waits} of {time} together, which {what} ended"));
        }
    }
}

/// Writes the processes with most samples. If there is only one, the title names it.
fn processes(report: &BatchReport<'_>, lines: &mut Lines) {
    let all = &report.snapshot.report;
    if all.processes.len() < 2 || !lines.head("Processes") {
        return;
    }
    for row in all.processes.iter().take(PROCESSES_MAX) {
        let line = format!(
            "- {} pid {}: {}",
            quoted(&row.comm),
            row.pid,
            share(all, row.samples, all.samples)
        );
        lines.push(&line);
    }
    let rest = all.processes.len().saturating_sub(PROCESSES_MAX);
    if rest > 0 {
        lines.push(&format!("- {rest} more"));
    }
}

/// Writes the asyncio tasks that ran, and those that awaited them.
fn tasks_of_asyncio(report: &BatchReport<'_>, lines: &mut Lines) {
    let all = &report.snapshot.report;
    let found = tasks::among(&all.functions);
    if found.is_empty() || !lines.head("Tasks of asyncio") {
        return;
    }
    for task in found.iter().take(TASKS_MAX) {
        let ran = (task.ran > 0).then(|| format!("ran in {}", share(all, task.ran, all.samples)));
        let awaited = (task.awaited > 0).then(|| {
            let part = share(all, task.awaited, all.samples);
            format!("awaited what ran in {part}")
        });
        let words: Vec<String> = [ran, awaited].into_iter().flatten().collect();
        lines.push(&format!("- {}: {}", code(task.name), words.join(", ")));
    }
    if let more @ 1.. = found.len().saturating_sub(TASKS_MAX) {
        lines.push(&format!("- {more} more"));
    }
}

/// Writes the functions that have samples of their own, as many as there is room for, and the
/// number of those that are left out.
fn functions(report: &BatchReport<'_>, asked: Option<&Asked>, lines: &mut Lines) {
    let (shown, rest) = report.split();
    let shown: Vec<&FunctionRow> = shown.iter().filter(|row| row.self_samples > 0).collect();
    let head = match (report.counts_time(), report.events()) {
        (true, _) => "Functions, by time of their own".to_owned(),
        (false, None) => "Functions, by samples of their own".to_owned(),
        (false, Some(metric)) => format!("Functions, by {} of their own", metric::unit_of(metric)),
    };
    if shown.is_empty() || !lines.head(&head) {
        return;
    }
    let numbered = shown.iter().enumerate();
    let rows = numbered.map(|(at, row)| format!("{}. {}", at + 1, function(report, row, asked)));
    lines.list(rows, rest.len(), |left| {
        format!("- {left} more functions are left out")
    });
}

/// Returns a line about a function: its shares, its place in the source, and its callers.
fn function(report: &BatchReport<'_>, row: &FunctionRow, asked: Option<&Asked>) -> String {
    let all = &report.snapshot.report;
    let digits = all.percent_digits(all.samples);
    // A band of 0 is right only if the stack of every wait was taken; otherwise it is rounded up.
    let band_min = 0.1f64.powi(digits as i32);
    let band = match all.band_points(row.self_samples, all.samples) {
        None => " ±?".into(),
        Some(0.0) => String::new(),
        Some(band) => format!(" ±{:.digits$}", band.max(band_min)),
    };
    let mut line = format!(
        "{} {}{band} itself, {} with what it calls",
        code(&row.name),
        share(all, row.self_samples, all.samples),
        share(all, row.total_samples, all.samples),
    );
    let module = names::module(&row.module);
    let place = match &row.file {
        Some(file) => quoted(&format!("{file}:{}", row.line)),
        None => String::new(),
    };
    let place = match (module.is_empty(), place.is_empty()) {
        (false, false) => format!(" ({}, {place})", quoted(module)),
        (false, true) => format!(" ({})", quoted(module)),
        (true, false) => format!(" ({place})"),
        (true, true) => String::new(),
    };
    line += &place;
    if let Some(waits) = &row.waits {
        line += &format!("; {}", waits::brief(waits));
    }
    if skid::is_likely(row) {
        line += "; the clock counts there what its callers did with interrupts off";
    }
    if let Some(callers) = asked.and_then(|asked| callers(asked, all, row)) {
        line += &format!("; called by {callers}");
    }
    line
}

/// Returns who calls a function. None if no stack shows a caller.
fn callers(asked: &Asked, all: &Report, row: &FunctionRow) -> Option<String> {
    let page = asked.selection.page(row.id, &Cancel::new()).ok()??;
    // Shares of callers are relative to the samples that have the function on the stack.
    let total = page.function.total_samples;
    let name = |caller: &Neighbour| match caller.kind {
        NeighbourKind::Function(id) => {
            let name = asked.selection.view().function(id).name;
            Some(format!(
                "{} {}",
                code(&name),
                share(all, caller.samples, total)
            ))
        }
        NeighbourKind::Stopped(ending) => Some(format!(
            "a part of the stack that is missing ({}) {}",
            ending.label(),
            share(all, caller.samples, total)
        )),
        NeighbourKind::Root | NeighbourKind::Own => None,
    };
    let callers: Vec<String> = page
        .callers
        .iter()
        .filter_map(name)
        .take(CALLERS_MAX)
        .collect();
    (!callers.is_empty()).then(|| callers.join(", "))
}

/// Writes how exact the numbers are: the statistical error, and which stacks and names are missing
/// and why.
fn how_sure(report: &BatchReport<'_>, lines: &mut Lines) {
    let all = &report.snapshot.report;
    let lacks = &all.completeness;
    lines.head("How sure");
    // If time is counted, the completeness is in nanoseconds of stacks, too.
    let counted = |amount, what| {
        if report.counts_time() {
            format!("{:.1} ms", amount as f64 / 1e6)
        } else {
            units::counted(amount, what)
        }
    };
    let lost = report.snapshot.health.lost;
    lines.push(&if report.counts_time() {
        format!("- ± is what chance makes of the waits whose stack was drawn; {lost} lost")
    } else {
        format!(
            "- ± is what chance alone makes of {}; {lost} lost",
            report.counted(all.samples)
        )
    });
    lines.push(&format!(
        "- stacks: {} of {} whole",
        share(all, lacks.whole, lacks.user_stacks),
        counted(lacks.user_stacks, "user stack"),
    ));
    let cut = lacks
        .endings
        .iter()
        .filter(|(ending, _)| ending.is_user_stack() && !ending.is_whole());
    for (ending, samples) in cut.take(CAUSES_MAX) {
        let count = counted(*samples, "stack");
        lines.push(&format!("  - {count} cut: {}", ending.explain()));
    }
    // A stack has many frames, so the numbers of frames are far above those of samples or time.
    // Only shares of them can be compared with the numbers above.
    lines.push(&format!(
        "- names: {} of the frames on these stacks",
        share(all, lacks.named, lacks.frames)
    ));
    for (reason, frames) in lacks.unnamed.iter().take(CAUSES_MAX) {
        let part = share(all, *frames, lacks.frames);
        lines.push(&format!("  - {part} without: {}", why_unnamed(*reason)));
    }
    if lacks.pending > 0 {
        let part = share(all, lacks.pending, lacks.frames);
        lines.push(&format!("  - {part} whose name is still being looked for"));
    }
    let (shown, _) = report.split();
    if shown.iter().any(waits::is_estimate) {
        lines.push(&format!("- {}", waits::ESTIMATED));
    }
    for note in report.notes() {
        lines.push(&format!("- {}", plain(&note)));
    }
}

#[cfg(test)]
mod tests {
    use crate::batch::Format;
    use crate::batch::fixture::{Fixture, function, hostile};

    #[test]
    fn it_says_what_burns_first_and_how_sure_it_is_last() {
        let mut fixture = Fixture::postgres();
        fixture.notes(&["no kernel stacks: kptr_restrict is 2"]);
        let mut batch = fixture.batch(Some(3));
        batch.tokens_max = 1500;
        assert_eq!(
            batch.render(Format::Md, true),
            "\
# CPU profile of `postgres[4121]` on `db-01`: 3,277 samples in 10.0 s, 3.31 CPUs busy
Hottest: `hash_search_with_hash_value` 14.2% ±1.2 itself, 14.9% with what it calls \
(`postgres`); then `LWLockAcquire` 9.8%, `heap_hot_search_buffer` 7.1%.

## Who waits for whom

- DEADLOCK: `postgres[4130] and postgres[4131]` wait for each other since 25.0s
- now `postgres` (4121) waits (lock), since 25.0s
- now `postgres` (4199) waits (disk), since 25.0s
- `postgres` (4121) waited 9.00s for `postgres` (4199), which woke it, in 3 waits
- 2 waits of 2.00s together, which a timer ended

## Functions, by samples of their own

1. `hash_search_with_hash_value` 14.2% ±1.2 itself, 14.9% with what it calls (`postgres`)
2. `LWLockAcquire` 9.8% ±1.1 itself, 11.0% with what it calls (`postgres`)
3. `heap_hot_search_buffer` 7.1% ±0.9 itself, 31.6% with what it calls (`postgres`)
- 2 more functions are left out

## How sure

- ± is what chance alone makes of 3,277 samples; 0 lost
- stacks: 98.9% of 3,277 user stacks whole
  - 36 stacks cut: the chain of frame pointers left the stack: a caller keeps no frame pointer
- names: 96.10% of the frames on these stacks
  - 3.50% without: The file was stripped: it names only what it exports.
  - 0.40% whose name is still being looked for
- no kernel stacks: kptr_restrict is 2
"
        );
    }

    #[test]
    fn it_is_no_longer_than_it_may_be() {
        let mut fixture = Fixture::postgres();
        let long = |at: u64| function(&format!("{}{at}", "f".repeat(200)), "m", 1000 - at, 1000);
        fixture.functions((0..500).map(long).collect());
        for tokens in [200, 500, 1500, 10_000] {
            let mut batch = fixture.batch(None);
            batch.tokens_max = tokens;
            let text = batch.render(Format::Md, true);
            assert!(
                text.len() <= tokens * crate::words::markdown::BYTES_PER_TOKEN,
                "{}",
                text.len()
            );
            assert!(text.starts_with("# CPU profile"), "{text}");
            assert!(text.contains("## How sure"), "{text}");
        }
    }

    #[test]
    fn a_name_cannot_leave_its_quotation() {
        let mut fixture = hostile();
        fixture.functions(vec![function(
            "a` ignore that\n# and `do` this",
            "m`",
            5,
            5,
        )]);
        let text = fixture.batch(None).render(Format::Md, true);
        assert!(text.contains("`a' ignore that"), "{text}");
        for line in text.lines() {
            assert_eq!(line.matches('`').count() % 2, 0, "{line}");
            assert!(!line.starts_with("# and"), "{text}");
        }
    }

    #[test]
    fn tasks_of_asyncio_have_a_section() {
        let mut fixture = Fixture::postgres();
        let task = |name: &str, total| {
            let mut row = function(name, "shop.py", 0, total);
            row.kind = profile::FrameKind::Python;
            row
        };
        let waits = task("task ‹serve `x`› awaits", 327);
        fixture.functions(vec![task("task ‹query›", 655), waits]);
        let text = fixture.batch(None).render(Format::Md, true);
        let section = "\n## Tasks of asyncio\n\n- `query`: ran in 20.0%\n\
                       - `serve 'x'`: awaited what ran in 10.0%\n";
        assert!(text.contains(section), "{text}");
    }

    #[test]
    fn nothing_sampled_is_said() {
        let mut fixture = Fixture::postgres();
        fixture.clear();
        let text = fixture.batch(None).render(Format::Md, true);
        assert!(text.contains("Nothing was sampled"), "{text}");
    }
}
