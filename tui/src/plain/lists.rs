//! The commands that list functions, processes, threads, and differences from a baseline.

use super::answer::{Answer, Target, Trouble};
use super::dialog::{Dialog, count};
use crate::app::App;
use crate::knobs::{CountedAlone, Narrowing, Unit};
use crate::lists::find::Find;
use crate::lists::groups::{self, By};
use crate::lists::people::are_of_several_machines;
use crate::lists::table::Item;
use crate::order::Order;
use crate::view_id::ViewId;
use crate::views::functions;
use crate::views::functions::FunctionColumn;
use crate::views::people::Person as _;
use crate::words::compared::judgement;
use crate::words::metric::metric_told;
use crate::words::units::Scale;
use crate::words::{explain, held, names, states, units, waits};
use profile::diff::{Diff, DiffRow, Side};
use profile::few;
use profile::{Activity, FunctionRow, ProcessId, ProcessRow, Report, ThreadRow};
use std::collections::HashMap;
use std::sync::Arc;

/// Default for the number of rows of a list.
const ROWS: usize = 10;

/// Runs `top`: lists the functions in the order that `sort` has set.
pub fn top(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let count = count(words, ROWS)?;
    dialog.session.order(Order::View(ViewId::Functions))?;
    let app = &dialog.session.app;
    let rows = sorted(app);
    let scale = Scale::new(&app.context(), app.shown.report.samples);
    let mut answer = Answer::default();
    for row in rows.iter().take(count) {
        function(app, row, &scale, &mut answer);
    }
    rest(&rows, count, &scale, &mut answer);
    Ok(answer)
}

/// Returns all functions in the order that `sort` has set.
fn sorted(app: &App) -> Vec<&FunctionRow> {
    let functions = &app.views.functions;
    let mut rows: Vec<&FunctionRow> = app.shown.report.functions.iter().collect();
    few::sort_by(&mut rows, |a, b| {
        FunctionRow::compare(functions.table.column(), a, b)
    });
    if functions.table.is_inverted() {
        rows.reverse();
    }
    rows
}

/// Adds the row of a function, with the sentence that explains its number. The band is printed only
/// with shares, because it is in percentage points.
fn function(app: &App, row: &FunctionRow, scale: &Scale, answer: &mut Answer) {
    let base = app.shown.report.samples;
    let band = match scale.unit {
        Unit::Share => format!(
            " {}",
            units::band_text(&app.shown.report, row.self_samples, base)
        ),
        _ => String::new(),
    };
    let text = format!(
        "{} self{band}, {} total  {}  {}",
        scaled(scale, row.self_samples),
        scaled(scale, row.total_samples),
        names::short(&row.name),
        names::module(&row.module)
    );
    let text = match &row.waits {
        Some(waits) => format!("{text}  {}", waits::brief(waits)),
        None => text,
    };
    let explain =
        functions::words::of_function(&app.context(), row, app.views.functions.table.column());
    answer.row(Target::Function(row.id), &text, explain);
}

/// Adds a line that sums up the rows that are not listed, so that the column adds up.
fn rest(rows: &[&FunctionRow], shown: usize, scale: &Scale, answer: &mut Answer) {
    let rest = rows.get(shown..).unwrap_or_default();
    if !rest.is_empty() {
        let own = rest.iter().map(|row| row.self_samples).sum();
        let count = units::counted(rest.len() as u64, "more function");
        answer.bare_row(&format!("{} self in {count}", scaled(scale, own)));
    }
    if rows.is_empty() {
        answer.say("no functions: no samples");
    }
}

/// Returns an amount in the scale's unit, followed by the unit.
pub fn scaled(scale: &Scale, samples: u64) -> String {
    let number = scale.text(samples);
    match scale.unit {
        Unit::Share => format!("{number}%"),
        Unit::Machine => format!("{number}% of machine"),
        Unit::Samples | Unit::CpuMs | Unit::Cpus if scale.is_time() => scale.labelled(samples),
        Unit::Samples => format!("{number} samples"),
        Unit::CpuMs => format!("{number} CPU-ms/s"),
        Unit::Cpus => format!("{number} CPU"),
    }
}

/// Runs `sort`: sets the order of functions, and lists them in it.
pub fn sort(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let column = match words {
        "self" => FunctionColumn::SelfSamples,
        "total" => FunctionColumn::TotalSamples,
        "name" => FunctionColumn::Name,
        "module" => FunctionColumn::Module,
        _ => return Err(Trouble::usage("sort by what?")),
    };
    let app = &mut dialog.session.app;
    let report = std::sync::Arc::clone(&app.shown.report);
    app.views.functions.table.set_order(column, false, &report);
    top(dialog, "")
}

/// Runs `find`: lists the functions whose names match a regular expression, and the share of all of
/// them together.
pub fn find(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if words.is_empty() {
        return Err(Trouble::usage("find what?"));
    }
    let find = Find::new(words).map_err(|error| {
        let (at, what) = (error.position, error.message);
        Trouble::say(format!("at character {at}: {what}"))
    })?;
    dialog.session.order(Order::View(ViewId::Functions))?;
    let app = &dialog.session.app;
    let mut rows = sorted(app);
    rows.retain(|row| find.matches(&row.name));
    let scale = Scale::new(&app.context(), app.shown.report.samples);
    let own = rows.iter().map(|row| row.self_samples).sum();
    let mut answer = Answer::of(match rows.len() {
        0 => format!("NO MATCH no function here has /{words}/ in its name"),
        count => format!(
            "{} self in {} that match /{words}/",
            scaled(&scale, own),
            units::counted(count as u64, "function")
        ),
    });
    for row in rows.iter().take(2 * ROWS) {
        function(app, row, &scale, &mut answer);
    }
    if !rows.is_empty() {
        rest(&rows, 2 * ROWS, &scale, &mut answer);
    }
    Ok(answer)
}

/// Runs `processes`: lists the processes with most samples.
pub fn processes(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    people::<ProcessRow>(dialog, words, ViewId::Processes, |row| Person {
        part: CountedAlone::Processes(vec![row.id]),
        kernel: row.kernel_samples,
        threads: row.threads,
        top_function: row.top_function.as_deref(),
        activity: row.activity.as_ref(),
        tid: 0,
        note: {
            let ended = if row.exited { ", ended" } else { "" };
            format!("{}{ended}", on(row.details.host.as_deref()))
        },
    })
}

/// Runs `threads`: lists the threads with most samples. It is an error if the recording does not
/// distinguish threads.
pub fn threads(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if let Some(why) = ViewId::Threads.lacking(&dialog.session.app.shown) {
        return Err(Trouble::say(why));
    }
    let report = Arc::clone(&dialog.session.app.shown.report);
    let processes = report.processes.iter();
    let hosts: HashMap<ProcessId, Option<&str>> = processes
        .map(|row| (row.id, row.details.host.as_deref()))
        .collect();
    people::<ThreadRow>(dialog, words, ViewId::Threads, |row| Person {
        part: CountedAlone::Threads(vec![row.key()]),
        kernel: row.kernel_samples,
        threads: 0,
        top_function: row.top_function.as_deref(),
        activity: row.activity.as_ref(),
        tid: row.tid,
        note: on(hosts.get(&row.process).copied().flatten()),
    })
}

/// Runs `machines`: lists the machines with most samples, if there are several.
pub fn machines(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let count = count(words, ROWS)?;
    let app = &dialog.session.app;
    let report: &Report = &app.shown.report;
    if !are_of_several_machines(report) {
        return Ok(Answer::of("all that is counted is of one machine"));
    }
    let scale = Scale::new(&app.context(), report.samples);
    let numbers: Vec<usize> = (0..report.processes.len()).collect();
    let groups = groups::gather(&numbers, |at| report.processes[at].common(By::Host));
    let mut machines: Vec<(ProcessRow, usize)> = groups
        .iter()
        .filter_map(|group| {
            let rows: Vec<&ProcessRow> = group.iter().map(|at| &report.processes[*at]).collect();
            Some((ProcessRow::sum(&rows, By::Host)?, rows.len()))
        })
        .collect();
    machines.sort_by(|(a, _), (b, _)| {
        let by_name = || a.details.host.cmp(&b.details.host);
        b.samples.cmp(&a.samples).then_with(by_name)
    });
    let mut answer = Answer::default();
    for (machine, processes) in machines.iter().take(count) {
        let name = machine.group_name(By::Host);
        let processes = match processes {
            1 => "1 process".to_owned(),
            several => format!("{} processes", units::count(*several as u64)),
        };
        let mut text = format!("{}  {name}, {processes}", scaled(&scale, machine.samples));
        if let Some(function) = &machine.top_function {
            text += &format!(", most in {function}");
        }
        let why = explain::cpus(&app.context(), machine.samples, &name);
        match machine.part_of_group(By::Host) {
            Some(part) => {
                let words = (&*name).into();
                let narrowing = Narrowing { part, words };
                answer.row(Target::People(narrowing), &text, why);
            }
            None => answer.bare_row(&text),
        }
    }
    if let Some(rest) = machines.get(count..).filter(|rest| !rest.is_empty()) {
        let samples = rest.iter().map(|(machine, _)| machine.samples).sum();
        let rest = format!("{} in {} more", scaled(&scale, samples), rest.len());
        answer.bare_row(&rest);
    }
    Ok(answer)
}

/// Returns the words for the machine of a process, if the run has several machines.
fn on(host: Option<&str>) -> String {
    host.map_or_else(String::new, |host| format!(" on {host}"))
}

/// The properties of a row that processes and threads share.
struct Person<'a> {
    part: CountedAlone,
    /// Samples in the kernel.
    kernel: u64,
    /// How many threads a process has; 0 for a thread.
    threads: u32,
    top_function: Option<&'a str>,
    /// Its states, if time waited is counted.
    activity: Option<&'a Activity>,
    /// The thread; 0 for a process.
    tid: u32,
    /// A note on the end of a process or on its machine, which begins with a separator; or empty.
    note: String,
}

/// Lists processes or threads, those with most samples first, whatever the order on the screen is.
/// `scope` accepts the numbers of the rows.
fn people<I: Item>(
    dialog: &mut Dialog,
    words: &str,
    view: ViewId,
    person: impl for<'a> Fn(&'a I) -> Person<'a>,
) -> Result<Answer, Trouble> {
    let count = count(words, ROWS)?;
    dialog.session.order(Order::View(view))?;
    let app = &dialog.session.app;
    let report: &Report = &app.shown.report;
    let scale = Scale::new(&app.context(), report.samples);
    let mut rows: Vec<&I> = I::rows(report).iter().collect();
    few::sort_by(&mut rows, |a, b| I::compare(I::Column::default(), a, b));
    let mut answer = Answer::default();
    for row in rows.iter().take(count) {
        let person = person(row);
        let samples = row.samples();
        let mut text = format!(
            "{}  {}{}",
            scaled(&scale, samples),
            row.words(),
            person.note,
        );
        text += &match person.activity.filter(|_| app.shown.counts_time()) {
            Some(activity) => format!(", {}", states::sums(activity)),
            None => format!(", kernel {}%", units::percent(person.kernel, samples)),
        };
        let waited = app.shown.waited.as_deref();
        if let Some(now) = person
            .activity
            .and_then(|did| held::now(did, person.tid, waited))
        {
            text += &format!(", now {now}");
        }
        if person.threads > 0 {
            text += &format!(", {}", units::counted(person.threads.into(), "thread"));
        }
        if let Some(function) = person.top_function {
            text += &format!(", most in {function}");
        }
        let narrowing = Narrowing {
            part: person.part,
            words: row.scope_words(1).into(),
        };
        let why = explain::cpus(&app.context(), samples, &row.words());
        answer.row(Target::People(narrowing), &text, why);
    }
    let rest = rows.get(count..).unwrap_or_default();
    if !rest.is_empty() {
        let samples = rest.iter().map(|row| row.samples()).sum();
        answer.bare_row(&format!(
            "{} in {} more",
            scaled(&scale, samples),
            rest.len()
        ));
    }
    if rows.is_empty() {
        answer.say("none: no samples");
    }
    Ok(answer)
}

/// Runs `diff`: lists the functions that take more or less than in the baseline. It is an error if
/// there is no baseline.
pub fn difference(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let count = count(words, ROWS)?;
    if dialog.session.app.knobs.baseline.is_none() {
        return Err(Trouble::say(
            "nothing to compare with yet: baseline makes what is counted now A",
        ));
    }
    // The app computes a comparison only while it shows one. So it is shown for this answer, and
    // hidden before the next command.
    let shown = dialog.session.order(Order::Difference(true));
    let diff = dialog.session.app.shown.comparison.functions.clone();
    dialog.session.order(Order::Back)?;
    shown?;
    let diff = diff.ok_or_else(|| Trouble::say("no samples to compare"))?;
    let mut answer = Answer::of(format!("A: {}; B, now: {}", side(&diff.a), side(&diff.b)));
    changes(dialog, &diff, count, &mut answer);
    Ok(answer)
}

/// Describes one side of a comparison, as in `1,204 samples in 30.0 s`.
pub fn side(side: &Side) -> String {
    let samples = units::counted(side.samples, "sample");
    format!("{samples} in {:.1} s", side.seconds)
}

/// Lists the first `count` functions of the difference, and a line for the sum of the others.
pub fn changes(dialog: &Dialog, diff: &Diff, count: usize, answer: &mut Answer) {
    let sides = diff.sides();
    let change = |row: &DiffRow| sides.change(row.a_self, row.b_self);
    let unit = if sides.have_time() {
        "CPU-ms/s"
    } else {
        "points"
    };
    for row in diff.rows.iter().take(count) {
        let text = format!(
            "{:+.1} {unit} ({:.1} to {:.1}), {}  {}  {}{}",
            change(row),
            sides.amount(&diff.a, row.a_self),
            sides.amount(&diff.b, row.b_self),
            if row.sure { "sure" } else { "could be chance" },
            names::short(&row.name),
            names::module(&row.module),
            came_or_went(row)
        );
        let target = dialog.function_target(&row.name, &row.module);
        answer.row(
            target,
            &text,
            judgement(
                &row.name,
                (row.a_self, row.b_self),
                row.chance,
                diff,
                metric_told(&dialog.session.app.context()),
            ),
        );
    }
    let rest = diff.rows.get(count..).unwrap_or_default();
    if !rest.is_empty() {
        let sum: f64 = rest.iter().map(change).sum();
        answer.bare_row(&format!("{sum:+.1} {unit} in {} more", rest.len()));
    }
    if diff.rows.is_empty() {
        answer.say("nothing differs: no samples");
    }
}

/// Returns words if the function is on one side only, else an empty string.
fn came_or_went(row: &DiffRow) -> &'static str {
    match (row.is_new(), row.is_gone()) {
        (true, _) => ", new in B",
        (_, true) => ", gone in B",
        _ => "",
    }
}
