//! The commands that explain numbers, and those about the dialog itself.

use super::answer::{Answer, Target, Trouble};
use super::dialog::{Dialog, count, nothing, sentence};
use crate::app::App;
use crate::status;
use crate::values;
use crate::views::health::{Topic, Value, cause_lines, findings, words as health_words};
use crate::words::{cpus, units};
use engine::snapshot::{Span, TargetState};
use profile::NoName;
use std::time::Duration;

/// Default for how many lines of the command's output are printed.
const LINES: usize = 20;

/// Runs `explain`: prints how the number in a row was obtained.
pub fn explain(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let number = words
        .parse()
        .map_err(|_| Trouble::usage("which row? give its number"))?;
    sentence(dialog.row(number)?.explain.clone())
}

/// Runs `health`: lists what is missing from the profile, and why.
pub fn health(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    let mut answer = Answer::default();
    for finding in findings(&dialog.session.app.shown) {
        match finding.topic {
            Topic::Heading(title) => answer.say(title),
            _ => {
                let words = health_words::entry(&finding);
                let words: Vec<&str> = words.split_whitespace().collect();
                answer.row(Target::Words, &words.join(" "), finding.explain);
            }
        }
        if let Topic::Unnamed(reason) = finding.topic {
            modules(dialog, reason, &mut answer)?;
        }
    }
    Ok(answer)
}

/// Lists the modules of frames without names for this reason, and what to type to get names.
fn modules(dialog: &mut Dialog, reason: NoName, answer: &mut Answer) -> Result<(), Trouble> {
    let found = dialog.session.cause(reason)?;
    for line in cause_lines(Some(&found)) {
        let number = match line.value {
            Value::Share(part, all) => {
                let share = units::completeness(part, all);
                format!("{} {share}% ", units::count(part))
            }
            _ => String::new(),
        };
        let words = match line.topic {
            // The label has no room for the whole name.
            Topic::CauseModule(_) => line.explain.trim_end_matches('.').to_owned(),
            _ => format!("{} {}", line.label.trim(), line.text),
        };
        let text = format!("  {number}{}", words.trim());
        answer.row(Target::Words, &text, line.explain);
    }
    Ok(())
}

/// Runs `status`: prints the target, the order of functions, and the state.
pub fn status(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    let app = &dialog.session.app;
    let (shown, host) = (&app.shown, &app.shown.source.host);
    let mut answer = Answer::of(format!("proftop {}", env!("CARGO_PKG_VERSION")));
    if host.cpus > 0 {
        answer.say(format!(
            "host {}, Linux {} {}, {}",
            host.name,
            host.kernel,
            host.arch,
            cpus::sampled(host)
        ));
    }
    let rate = match shown.source.rate_hz {
        0 => String::new(),
        rate => format!(", {rate} samples a second and busy CPU"),
    };
    answer.say(match &shown.source.recording {
        Some(recording) => format!("recording {}, {}{rate}", recording.name, time(app)),
        None => format!("sampling {} for {}{rate}", shown.run.scope, time(app)),
    });
    let column = app.views.functions.table.column();
    answer.say(format!("functions are in the order of {}", column.words()));
    match &app.lines.state {
        Some(state) => answer.say(status::state::sentence(app, state)),
        None => answer.say(match shown.run.target {
            TargetState::Starting => "starting",
            _ => "all is well",
        }),
    }
    if app.knobs.baseline.is_some() {
        answer.say("there is a baseline: diff compares with it");
    }
    Ok(answer)
}

/// Returns the duration of sampling, or of a recording.
fn time(app: &App) -> String {
    units::clock(app.shown.run.elapsed)
}

/// Runs `wait`: waits for the given time. Without one, waits until the window is full or a file is
/// read.
pub fn wait(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let limit = match words {
        "" => None,
        _ => Some(values::keep(words).map_err(Trouble::Usage)?),
    };
    // The window of a recording is full when all of it is read.
    let is_full = |app: &App| {
        let wanted = match app.shown.asked.window {
            Span::Seconds(seconds) => Duration::from_secs(seconds.into()),
            Span::All => Duration::ZERO,
        };
        let is_running = app.shown.run.target == TargetState::Running;
        let is_starting = app.shown.run.target == TargetState::Starting;
        !is_starting
            && (!is_running
                || app.shown.run.elapsed >= wanted && app.shown.source.recording.is_none())
    };
    let session = &mut dialog.session;
    match limit {
        None => session.wait(Duration::MAX, is_full),
        Some(limit) => session.wait(limit, |_| false),
    }
    if session.is_stopped() {
        Err(Trouble::Stopped)
    } else {
        sentence("waited")
    }
}

/// Runs `output`: prints the last lines that the started command has written.
pub fn output(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let count = count(words, LINES)?;
    let lines = &dialog.session.app.shown.run.command_output;
    if lines.is_empty() {
        return sentence("no command was started, or it printed nothing so far");
    }
    let mut answer = Answer::default();
    for line in &lines[lines.len().saturating_sub(count)..] {
        answer.say(format!("| {line}"));
    }
    Ok(answer)
}

/// Runs `quit`: ends the dialog after this command.
pub fn quit(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    dialog.is_over = true;
    Ok(Answer::default())
}
