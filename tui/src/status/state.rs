//! The state of the whole screen as a sentence.

use crate::app::App;
use crate::app::state::StateLine;
use crate::calendar;
use crate::failure::without_numbers;
use crate::knobs::Window;
use crate::view_id::ViewId;
use crate::words::{text, units, waits as wait_words};
use std::time::Duration;

/// Returns the state as a sentence, without keys.
pub fn sentence(app: &App, state: &StateLine) -> String {
    match state {
        StateLine::Failed(why) => format!("FAILED {}", without_numbers(why)),
        StateLine::Exited { words, at_ns } => exited(app, words, *at_ns),
        // The number of newer samples is that of all that is sampled, not of the scope.
        StateLine::Frozen { ago, .. } if !app.knobs.scope.is_empty() => {
            format!("FROZEN {} ago; newer samples wait.", units::clock(*ago))
        }
        StateLine::Frozen { ago, newer } => format!(
            "FROZEN {} ago; {} wait{}.",
            units::clock(*ago),
            units::counted(*newer, "newer sample"),
            if *newer == 1 { "s" } else { "" }
        ),
        StateLine::NoMatch { pattern, rows } => {
            let rows = units::counted(*rows as u64, "row");
            match app.focus() {
                // Only processes and threads with samples have rows.
                ViewId::Processes | ViewId::Threads => format!(
                    "NO MATCH /{}/ is in none of {rows} with samples.",
                    text::cut_end(pattern, 17)
                ),
                _ => format!(
                    "NO MATCH /{}/ finds nothing in {rows}.",
                    text::cut_end(pattern, 30)
                ),
            }
        }
        StateLine::Behind(took) => format!(
            "BEHIND the terminal takes {:.1} s for a frame; some are left out",
            took.as_secs_f64()
        ),
        StateLine::KeepsNothing { offered } => format!(
            "NO MATCH filter {} keeps 0 of {}.",
            text::cut_middle(&app.knobs.filter.to_string(), 16),
            units::count(*offered)
        ),
        StateLine::Stopped => format!(
            "STOPPED {} (SIGSTOP or a debugger): no CPU until it goes on.",
            app.shown.run.scope
        ),
        StateLine::Ended(who) => format!("ENDED  {who} has ended; its samples stay for a while."),
        StateLine::Deadlock(deadlock) => {
            format!("DEADLOCK {} for {}.", deadlock.all(), deadlock.since)
        }
        StateLine::Idle => {
            // The narrowest part of the scope, because that is the part without samples.
            let scope = match app.knobs.scope.last() {
                Some(narrowed) => &narrowed.words,
                None => &app.shown.run.scope,
            };
            format!("IDLE   {scope} {}", nothing(app))
        }
        StateLine::Lost { lost, taken } => format!(
            "LOST   {} of {} ({}%): a buffer was full.",
            units::count(*lost),
            units::count(lost + taken),
            units::percent(*lost, lost + taken)
        ),
        StateLine::Broken(why) => format!("CUT    {why}"),
        StateLine::Gone {
            machine,
            why,
            others,
        } => {
            let others = match others {
                0 => String::new(),
                several => format!(" (and {several} more, see Health)"),
            };
            format!("GONE   {machine}{others}: {}", without_numbers(why))
        }
        StateLine::File { reading: true, .. } => {
            "READING more is coming; what is whole is shown".into()
        }
        StateLine::File { lacks, taken, .. } => file(app, *lacks, *taken),
        StateLine::Cut { cut, stacks, cause } => format!(
            "CUT    {}% of stacks end early ({}).",
            units::percent(*cut, *stacks),
            cause.label().replace('_', " ")
        ),
    }
}

/// Returns what the target did not do in the window: `used no CPU in 10s.`
pub fn nothing(app: &App) -> String {
    // A recording may have been made with other metrics than time on a CPU.
    let used = match (&app.shown.source.recording, app.shown.counts_time()) {
        (Some(_), _) => "has no samples",
        (None, true) => "ended no wait",
        (None, false) => "used no CPU",
    };
    // Waits may be recorded in only a part of the window.
    let since = wait_words::missing_before(&app.shown).filter(|_| app.shown.counts_time());
    let time = match app.knobs.window {
        Window::Last(span) => match since {
            Some(since) => format!("since {since}"),
            None => format!("in {}", units::span(span)),
        },
        Window::Since { .. } => "since the mark".into(),
        Window::Between { .. } => "in the marked time".into(),
    };
    format!("{used} {time}.")
}

/// Returns the sentence about a target that has ended, such as `EXITED postgres[4121] was killed by
/// SIGSEGV at 14:05:10 UTC. Data kept.`
fn exited(app: &App, words: &str, at_ns: u64) -> String {
    let words = words.trim_end_matches('.');
    let view = app.shown.view.as_ref();
    let epoch_ms = view.map_or(0, |view| view.info().epoch_unix_ms);
    if epoch_ms == 0 {
        return format!("EXITED {words}. Data kept.");
    }
    let ms = (at_ns / 1_000_000) as i64 + epoch_ms;
    let (time, zone) = (calendar::of_day(ms), calendar::zone(ms));
    format!("EXITED {words} at {time} {zone}. Data kept.")
}

/// Returns the sentence about a recording, such as `FILE   60 s from db-01, 3 days ago (2026-11-18
/// 14:03:02 UTC). Not live.`
fn file(app: &App, lacks: Option<&str>, taken: Option<(u64, Duration)>) -> String {
    let snapshot = &app.shown;
    let mut words = vec![match snapshot.run.elapsed.as_secs() {
        0 => "a recording".to_owned(),
        seconds => format!("{seconds} s"),
    }];
    let host = text::clean(&snapshot.source.host.name);
    if !host.is_empty() {
        words.push(format!("from {}", text::cut_middle(&host, 24)));
    }
    let mut line = format!("FILE   {}", words.join(" "));
    if let Some((seconds, ago)) = taken {
        let when = calendar::words(seconds);
        line += &format!(", {} ({when})", units::ago(ago));
    }
    line + &match lacks {
        Some(lacks) => format!(". {lacks}."),
        None => ". Not live.".into(),
    }
}
