//! The commands that change what is counted: scope, window, filter, unit, baseline, and whether the
//! newest samples are shown.

use super::answer::{Answer, Target, Trouble};
use super::dialog::{Dialog, nothing, sentence};
use super::time;
use crate::knobs::{CountedAlone, Narrowing, Window};
use crate::order::{Kind, Order};
use crate::status;
use crate::words::{metric, units, waits};
use profile::Role;
use profile::filter::{Action, Clause};

/// Lets the app carry out an order, and returns its notice as the answer.
pub fn apply(dialog: &mut Dialog, order: Order) -> Result<Answer, Trouble> {
    let Some(notice) = dialog.session.order(order)? else {
        return Ok(Answer::default());
    };
    let said = status::notice(&dialog.session.app, &notice);
    let back = if notice.is_a_step() {
        "; back undoes it"
    } else {
        ""
    };
    sentence(format!("{said}{back}"))
}

/// Parses the argument of an order, and lets the app carry it out.
fn parsed(dialog: &mut Dialog, kind: Kind, words: &str) -> Result<Answer, Trouble> {
    let order = kind.order(words);
    apply(
        dialog,
        order.map_err(|why| Trouble::usage(format!("'{words}': {why}")))?,
    )
}

/// Runs `pid`: counts only the samples of this process.
pub fn pid(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    parsed(dialog, Kind::Pid, words)
}

/// Runs `scope`: counts only the processes, or only the threads, with these row numbers. Without an
/// argument, prints the scope.
pub fn scope(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if words.is_empty() {
        let words = dialog.session.app.context().scope_words();
        return sentence(format!("what is counted: {words}"));
    }
    let mut chosen: Vec<Narrowing> = Vec::new();
    for word in words.split([' ', ',']).filter(|word| !word.is_empty()) {
        let number = word.parse();
        let number = number.map_err(|_| Trouble::usage(format!("'{word}' is no row's number")))?;
        match &dialog.row(number)?.target {
            Target::People(narrowing) => chosen.push(narrowing.clone()),
            target if target.function().is_some() => {
                return Err(Trouble::say(format!(
                    "row {number} is a function: focus {number}"
                )));
            }
            _ => {
                let what = format!("row {number} is no process and no thread");
                return Err(Trouble::say(what));
            }
        }
    }
    let narrowing = together(chosen)?;
    apply(dialog, Order::Narrow(narrowing))
}

/// Joins several rows into one selection. It is an error if processes and threads are mixed.
fn together(mut chosen: Vec<Narrowing>) -> Result<Narrowing, Trouble> {
    let mut all = chosen.pop().ok_or_else(|| Trouble::usage("which rows?"))?;
    let count = chosen.len() + 1;
    for other in chosen {
        match (&mut all.part, other.part) {
            (CountedAlone::Processes(all), CountedAlone::Processes(more)) => all.extend(more),
            (CountedAlone::Families(all), CountedAlone::Families(more)) => all.extend(more),
            (CountedAlone::Threads(all), CountedAlone::Threads(more)) => all.extend(more),
            (CountedAlone::Hosts(all), CountedAlone::Hosts(more)) => all.extend(more),
            _ => return Err(Trouble::say("processes and threads do not go together")),
        }
    }
    if count > 1 {
        let kind = match all.part {
            CountedAlone::Processes(_) | CountedAlone::Families(_) => "processes",
            CountedAlone::Threads(_) => "threads",
            CountedAlone::Hosts(_) => "machines",
        };
        all.words = format!("{count} {kind}").into();
    }
    Ok(all)
}

/// Runs `window`: sets the range of time that is counted, as a length, a row of `time`, a time of
/// day, or since the mark. Without an argument, prints it.
pub fn window(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let app = &dialog.session.app;
    if words.is_empty() {
        let report = &app.shown.report;
        let seconds = report.window.seconds();
        return sentence(format!(
            "{}: {seconds:.1} s of {:.0} s kept",
            units::window(app.knobs.window),
            report.kept_seconds
        ));
    }
    if words == "mark" {
        return mark(dialog, "");
    }
    if words.contains(':') || words.parse::<usize>().is_ok() {
        let (start_ns, end_ns) = time::stretch(dialog, words)?;
        return apply(dialog, Order::Window(Window::Between { start_ns, end_ns }));
    }
    parsed(dialog, Kind::Window, words)
}

/// Runs `mark`: counts only samples from now on.
pub fn mark(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    apply(dialog, Order::Mark)
}

/// Runs `filter`: sets or removes the filter. Without an argument, prints it.
pub fn filter(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if words.is_empty() {
        let filter = dialog.session.app.knobs.filter.to_string();
        return sentence(match filter.as_str() {
            "" => "no filter: all samples count".to_owned(),
            filter => format!("the filter is {filter}"),
        });
    }
    parsed(dialog, Kind::Filter, words)
}

/// Runs `focus`: counts only samples whose stack has this function.
pub fn focus(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    by_function(dialog, words, Action::Focus, "only stacks with")
}

/// Runs `exclude`: does not count samples whose stack has this function.
pub fn exclude(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    by_function(dialog, words, Action::Exclude, "no stacks with")
}

/// Adds a clause about a function to the filter. `what` begins the answer.
fn by_function(
    dialog: &mut Dialog,
    words: &str,
    action: Action,
    what: &str,
) -> Result<Answer, Trouble> {
    let id = dialog.function(words)?;
    let function = match &dialog.session.app.shown.view {
        Some(view) => view.function(view.function_of(id)),
        None => return Err(Trouble::say("no samples have come yet")),
    };
    let name = function.name;
    if function.role != Role::Function {
        let what = format!("{name} is no function: it stands for what is missing");
        return Err(Trouble::say(what));
    }
    let clause = Clause::function(action, &name);
    dialog.session.order(Order::Clause(clause))?;
    sentence(format!("{what} {name} count now; back undoes it"))
}

/// Runs `back`: undoes the last change of what is counted.
pub fn back(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    apply(dialog, Order::Back)
}

/// Runs `unit`: sets the unit in which amounts are printed. Without an argument, prints it.
pub fn unit(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if words.is_empty() {
        let words = dialog.session.app.context().unit_words();
        return sentence(format!("numbers are in {words}"));
    }
    parsed(dialog, Kind::Unit, words)
}

/// Runs `metric`: chooses one of the metrics of a recording or of this run, and prints it and the
/// others. Choosing a metric of waits starts to count waits.
pub fn metric(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if !words.is_empty() {
        dialog.session.order(Order::Metric(words.to_owned()))?;
    }
    let app = &dialog.session.app;
    let counted = metric::metric(&app.context());
    let others = app
        .shown
        .metrics
        .iter()
        .map(|metric| &*metric.name)
        .collect::<Vec<_>>();
    let since = waits::missing_before(&app.shown);
    let since = since.map_or_else(String::new, |since| {
        format!("; waits are counted since {since}")
    });
    sentence(match others.len() {
        0 | 1 => format!("counted is {counted}"),
        _ => format!("counted is {counted}, of {}{since}", others.join(", ")),
    })
}

/// Runs `rate`: sets the number of samples per second on each CPU. Without an argument, prints it.
pub fn rate(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if words.is_empty() {
        return sentence(match dialog.session.app.shown.source.rate_hz {
            0 => "the rate is not known".to_owned(),
            hz => format!("{hz} samples a second and busy CPU"),
        });
    }
    parsed(dialog, Kind::Rate, words)
}

/// Runs `baseline`: keeps the samples that are counted now as A, with which `diff` compares.
pub fn baseline(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    dialog.session.order(Order::Baseline)?;
    let samples = dialog.session.app.shown.report.samples;
    let samples = units::counted(samples, "sample");
    sentence(format!(
        "A is what is counted now, {samples}; diff: what differs from it"
    ))
}

/// Runs `freeze`: keeps the present samples while sampling goes on.
pub fn freeze(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    dialog.session.order(Order::Freeze(true))?;
    sentence("these samples stay; go on: the newest again")
}

/// Runs `go on`: shows the newest samples again, after `freeze`.
pub fn go_on(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if !matches!(words, "" | "on") {
        return Err(Trouble::usage("go on?"));
    }
    apply(dialog, Order::Freeze(false))
}
