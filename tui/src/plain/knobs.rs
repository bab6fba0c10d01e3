//! What is counted: scope, window, filter, unit, baseline, and whether the
//! newest samples are shown.

use super::answer::{Answer, Target, Trouble};
use super::dialog::{Dialog, nothing, sentence};
use super::time;
use crate::app::App;
use crate::app::mode::Detail;
use crate::knobs::{Narrowing, Part, Unit, Window};
use crate::notice::Notice;
use crate::values;
use crate::view_id::ViewId;
use crate::words::{metric, units};
use clap::ValueEnum as _;
use engine::snapshot::Span;
use profile::filter::{Action, Clause};
use profile::{Filter, ProcessId, Role};
use std::mem::take;

pub fn pid(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let pid = values::id(words).map_err(|why| Trouble::usage(format!("'{words}': {why}")))?;
    let report = &dialog.session.app.shown.report;
    let lives: Vec<_> = report
        .processes
        .iter()
        .filter(|row| row.pid == pid)
        .collect();
    let Some(newest) = lives.first() else {
        let what = format!("no process {pid} has samples in what is counted");
        return Err(Trouble::say(what));
    };
    let narrowing = Narrowing {
        words: format!("{}[{pid}]", newest.comm).into(),
        part: Part::Processes(lives.iter().map(|row| row.id).collect::<Vec<ProcessId>>()),
    };
    narrow(dialog, narrowing)
}

/// To one row, or several of a kind.
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
    narrow(dialog, narrowing)
}

fn together(mut chosen: Vec<Narrowing>) -> Result<Narrowing, Trouble> {
    let mut all = chosen.pop().ok_or_else(|| Trouble::usage("which rows?"))?;
    let count = chosen.len() + 1;
    for other in chosen {
        match (&mut all.part, other.part) {
            (Part::Processes(all), Part::Processes(more)) => all.extend(more),
            (Part::Threads(all), Part::Threads(more)) => all.extend(more),
            _ => return Err(Trouble::say("processes and threads do not go together")),
        }
    }
    if count > 1 {
        let kind = match all.part {
            Part::Processes(_) => "processes",
            Part::Threads(_) => "threads",
        };
        all.words = format!("{count} {kind}").into();
    }
    Ok(all)
}

fn narrow(dialog: &mut Dialog, narrowing: Narrowing) -> Result<Answer, Trouble> {
    let words = narrowing.words.clone();
    dialog.session.change(|app| {
        app.open(ViewId::Functions);
        app.turn(|knobs| knobs.scope.push(narrowing));
    })?;
    sentence(format!("only {words} counts now; back undoes it"))
}

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
    if let Some(recording) = &app.shown.recording
        && recording.lacks.time
    {
        return Err(Trouble::say(
            "this file does not say when a sample was taken: it has one window",
        ));
    }
    if words == "mark" {
        return mark(dialog, "");
    }
    let window = match words {
        "all" => Window::Last(Span::All),
        _ if words.contains(':') || words.parse::<usize>().is_ok() => {
            let (start_ns, end_ns) = time::stretch(dialog, words)?;
            Window::Between { start_ns, end_ns }
        }
        _ => {
            let time = values::window(words).map_err(Trouble::Usage)?;
            let seconds = time.as_secs().clamp(1, u64::from(u32::MAX) - 1);
            Window::Last(Span::Seconds(seconds as u32))
        }
    };
    dialog.session.change(|app| app.set_window(window))?;
    sentence("the window is set; back undoes it")
}

pub fn mark(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    tell(dialog, App::set_mark)?;
    sentence("the window begins now; back undoes it")
}

/// What an action has to say against it is the trouble.
fn tell(dialog: &mut Dialog, action: impl FnOnce(&mut App)) -> Result<(), Trouble> {
    dialog.session.app.detail = Detail::Row;
    dialog.session.change(action)?;
    let said = take(&mut dialog.session.app.detail);
    Err(Trouble::say(match said {
        Detail::Notice(Notice::NoNow) => "no samples come in that could be counted from now on",
        Detail::Notice(Notice::NoBack) => "this is where it began: there is nothing to undo",
        Detail::Notice(Notice::NothingToWrite) => "no samples have come yet",
        _ => return Ok(()),
    }))
}

pub fn filter(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let filter: Filter = match words {
        "" => {
            return sentence(match dialog.session.app.knobs.filter.to_string().as_str() {
                "" => "no filter: all samples count".to_owned(),
                filter => format!("the filter is {filter}"),
            });
        }
        "none" => Filter::default(),
        _ => values::filter(words).map_err(Trouble::Usage)?,
    };
    dialog.session.change(|app| app.set_filter(filter))?;
    sentence("the filter is set; back undoes it")
}

pub fn focus(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    by_function(dialog, words, Action::Focus, "only stacks with")
}

pub fn exclude(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    by_function(dialog, words, Action::Exclude, "no stacks with")
}

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
    let push = |app: &mut App| app.turn(|knobs| knobs.filter.push(clause));
    dialog.session.change(push)?;
    sentence(format!("{what} {name} count now; back undoes it"))
}

pub fn back(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    tell(dialog, App::go_back)?;
    sentence("as it was before")
}

pub fn unit(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let unit = match words {
        "usual" => None,
        "" => {
            let words = dialog.session.app.context().unit().words();
            return sentence(format!("numbers are in {words}"));
        }
        _ => match Unit::from_str(words, true) {
            Ok(unit) => Some(unit),
            Err(_) => return Err(Trouble::usage(format!("'{words}' is no unit"))),
        },
    };
    if !dialog.session.app.context().has_time() && unit.is_some_and(Unit::needs_time) {
        return Err(Trouble::say(
            "without a rate and a time there are only % and samples",
        ));
    }
    dialog
        .session
        .change(|app| app.turn(|knobs| knobs.unit = unit))?;
    sentence("lists are in this unit from now on")
}

pub fn metric(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if !words.is_empty() {
        let mut chosen = Ok(());
        dialog
            .session
            .change(|app| chosen = app.choose_metric(words))?;
        chosen.map_err(Trouble::say)?;
    }
    let app = &dialog.session.app;
    let counted = metric::metric(&app.context());
    let others = { app.shown.metrics.iter() }
        .map(|metric| &*metric.name)
        .collect::<Vec<_>>();
    sentence(match others.len() {
        0 | 1 => format!("counted is {counted}"),
        _ => format!("counted is {counted}, of {}", others.join(", ")),
    })
}

pub fn rate(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if words.is_empty() {
        return sentence(match dialog.session.app.shown.rate_hz {
            0 => "the rate is not known".to_owned(),
            hz => format!("{hz} samples a second and busy CPU"),
        });
    }
    let hz = values::rate(words).map_err(|why| Trouble::usage(format!("'{words}': {why}")))?;
    dialog.session.set_rate(hz).map_err(Trouble::say)?;
    sentence(format!(
        "{hz} samples a second and busy CPU from now on; a window that has several rates \
         counts all at the highest"
    ))
}

pub fn baseline(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    tell(dialog, App::set_baseline)?;
    let samples = dialog.session.app.shown.report.samples;
    let samples = units::counted(samples, "sample");
    sentence(format!(
        "A is what is counted now, {samples}; diff: what differs from it"
    ))
}

pub fn freeze(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    if dialog.session.app.frozen.is_none() {
        dialog.session.change(App::freeze_or_go_on)?;
    }
    sentence("these samples stay; go on: the newest again")
}

pub fn go_on(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if !matches!(words, "" | "on") {
        return Err(Trouble::usage("go on?"));
    }
    if dialog.session.app.frozen.is_some() {
        dialog.session.change(App::freeze_or_go_on)?;
    }
    sentence("the newest samples are shown")
}
