//! Probes of functions: placed, told, taken away.

use super::answer::{Answer, Target, Trouble};
use super::dialog::{Dialog, nothing, sentence};
use super::knobs::apply;
use crate::app::App;
use crate::order::{Kind, Order, ProbeChoice, Probed};
use crate::views::probes::words;
use crate::words::units;
use engine::probes::{Latency, Probe, Seen, Stage};
use std::time::Duration;

/// How long a probe is waited for: its function is looked for in files.
const PLACED: Duration = Duration::from_secs(20);

/// How long it takes the engine to hear of an order.
const HEARD: Duration = Duration::from_secs(3);

/// Callers and values that are told of each.
const SHARES: usize = 5;

pub fn probe(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let is_typed = !words.is_empty() && words.parse::<usize>().is_err();
    // A name that has no samples is looked for in the files of the targets.
    let probed = match dialog.function(words) {
        Ok(function) => Probed::Function(function),
        Err(_) if is_typed => Probed::Named(words.to_owned()),
        Err(trouble) => return Err(trouble),
    };
    let before = known(&dialog.session.app);
    apply(dialog, Order::Probe(probed))?;
    let session = &mut dialog.session;
    session.wait(HEARD, |app| known(app) != before);
    session.wait(PLACED, |app| !app.seeks_probe());
    if session.is_stopped() {
        return Err(Trouble::Stopped);
    }
    let probes = &session.app.shown.probes;
    let (_, word) = known(&session.app);
    if let Some(said) = probes.word.as_ref().filter(|_| word != before.1) {
        return Err(Trouble::say(said.sentence.to_string()));
    }
    let placed = probes
        .list
        .iter()
        .find(|probe| probe.number == probes.touched);
    match placed {
        Some(probe) => sentence(format!(
            "probe {} is on {}, for {}; probes tells what it counts",
            probe.number,
            probe.name,
            words::left(probe)
        )),
        None => Err(Trouble::say("it was not placed in time")),
    }
}

/// The orders and the sentences about probes that are known.
fn known(app: &App) -> (u64, u64) {
    let probes = &app.shown.probes;
    (
        probes.turn,
        probes.word.as_ref().map_or(0, |word| word.number),
    )
}

pub fn probes(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    let app = &dialog.session.app;
    let cx = &app.context();
    let list = &app.shown.probes.list;
    if list.is_empty() {
        return sentence("no function is probed: probe NAME, or the number of a row of top");
    }
    let mut answer = Answer::default();
    for probe in list {
        let target = dialog.function_target(&probe.name, &probe.module);
        let target = match target {
            Target::Function(id) => Target::Function(id),
            _ => Target::Words,
        };
        answer.row(target, &line(probe), words::explain(probe));
        for sentence in words::sentences(cx, probe) {
            answer.bare_row(&sentence);
        }
        if let Some(seen) = &probe.seen {
            tell_shares(seen, &mut answer);
        }
    }
    Ok(answer)
}

/// `probe 2  burn  work  52s left, 1,204 calls/s, p50 12us, p99 40us`
fn line(probe: &Probe) -> String {
    let mut line = format!("probe {}  {}  {}", probe.number, probe.name, probe.module);
    if let Stage::InPlace { .. } = &probe.stage {
        line += &format!("  {} left", words::left(probe));
    }
    if let Some(seen) = &probe.seen {
        line += &format!(", {} calls/s", words::rate(seen.calls_per_second));
    }
    line
}

fn tell_shares(seen: &Seen, answer: &mut Answer) {
    if let Some(latency) = &seen.latency {
        answer.bare_row(&histogram(latency));
    }
    for value in &seen.values {
        let all = value.others + value.top.iter().map(|(_, count)| count).sum::<u64>();
        for (shown, count) in value.top.iter().take(SHARES) {
            let share = units::percent(*count, all);
            answer.bare_row(&format!("{} {share}% {shown}", value.expression));
        }
    }
    for (names, count) in seen.callers.rows.iter().take(SHARES) {
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let share = units::percent(*count, seen.callers.all);
        answer.bare_row(&format!("{share}% called from {}", names.join(" < ")));
    }
}

/// `1.02us 12, 2.05us 40`: calls from each time on.
fn histogram(latency: &Latency) -> String {
    let buckets = crate::views::probes::buckets(latency, usize::MAX);
    let words = buckets.map(|(from, calls)| format!("{from} {}", units::count(calls)));
    let words: Vec<String> = words.collect();
    format!("calls that took at least: {}", words.join(", "))
}

pub fn unprobe(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let choice = choice(dialog, words)?;
    changed(dialog, Order::Unprobe(choice))
}

pub fn renew(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let choice = choice(dialog, words)?;
    changed(dialog, Order::Renew(choice))
}

/// `value arg1`, `value 2 arg1`, `value none`
pub fn value(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let (number, typed) = match words.split_once(' ') {
        Some((first, rest)) if first.parse::<u64>().is_ok() => (first, rest.trim()),
        _ => ("", words),
    };
    if typed.is_empty() {
        return Err(Trouble::usage("which value?"));
    }
    let order = Kind::Value.order(typed);
    let order = order.map_err(|why| Trouble::usage(why.clone()))?;
    // Without a number the one that was placed last.
    let choice = match number {
        "" => ProbeChoice::Selected,
        number => choice(dialog, number)?,
    };
    match order {
        Order::Value(_, expression) => changed(dialog, Order::Value(choice, expression)),
        _ => Err(Trouble::usage("which value?")),
    }
}

/// Has an order about probes done, and waits until it is.
fn changed(dialog: &mut Dialog, order: Order) -> Result<Answer, Trouble> {
    let before = known(&dialog.session.app);
    let answer = apply(dialog, order)?;
    let session = &mut dialog.session;
    session.wait(HEARD, |app| known(app) != before);
    session.wait(PLACED, |app| !app.seeks_probe());
    match session.is_stopped() {
        true => Err(Trouble::Stopped),
        false => Ok(answer),
    }
}

fn choice(dialog: &Dialog, words: &str) -> Result<ProbeChoice, Trouble> {
    match words {
        "all" => Ok(ProbeChoice::All),
        "" => match &dialog.session.app.shown.probes.list[..] {
            [only] => Ok(ProbeChoice::One(only.number)),
            [] => Ok(ProbeChoice::All),
            _ => Err(Trouble::usage("which one, or all?")),
        },
        _ => match words.parse() {
            Ok(number) => Ok(ProbeChoice::One(number)),
            Err(_) => Err(Trouble::usage(format!("'{words}' is no number of a probe"))),
        },
    }
}
