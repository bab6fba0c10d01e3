//! The commands about probes of functions: placing, listing and removing them.

use super::answer::{Answer, Target, Trouble};
use super::dialog::{Dialog, nothing, sentence};
use super::knobs::apply;
use crate::app::App;
use crate::order::{Kind, Order, ProbeChoice, Probed};
use crate::views::probes::words;
use crate::words::{names, units};
use engine::probes::{Latency, Probe, Seen, Stage};
use std::time::Duration;

/// How long to wait for the engine to carry out an order. To place a probe it has to search files
/// for the function, and the machine may be busy.
const CARRIED_OUT: Duration = Duration::from_secs(20);

/// Maximum number of callers that are listed of each probe, and of values.
const SHARES: usize = 5;

/// Runs `probe`: counts and times the calls of a function. It waits until the probe is placed, so
/// that the answer can say whether that worked.
pub fn probe(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let is_typed = !words.is_empty() && words.parse::<usize>().is_err();
    // A name without samples is searched in the files of the targets.
    let probed = match dialog.function(words) {
        Ok(function) => Probed::Function(function),
        Err(_) if is_typed => Probed::Named(words.to_owned()),
        Err(trouble) => return Err(trouble),
    };
    apply(dialog, Order::Probe(probed))?;
    wait_until_carried_out(dialog)?;
    let probes = &dialog.session.app.shown.probes;
    let is_placed = |probe: &&Probe| {
        probe.number == probes.touched && matches!(probe.stage, Stage::InPlace { .. })
    };
    if let Some(probe) = probes.list.iter().find(is_placed) {
        return sentence(format!(
            "probe {} is on {}, for {}; probes tells what it counts",
            probe.number,
            names::short(&probe.name),
            words::left(probe)
        ));
    }
    // The probe was refused, or removed at once.
    let why = probes.word.as_ref().map(|word| word.sentence.to_string());
    Err(Trouble::say(
        why.unwrap_or_else(|| "it is gone already".into()),
    ))
}

/// Waits until the engine has carried out all orders about probes.
fn wait_until_carried_out(dialog: &mut Dialog) -> Result<(), Trouble> {
    let session = &mut dialog.session;
    let sent = session.probe_orders();
    let is_carried_out = |app: &App| app.shown.probes.turn >= sent && !app.seeks_probe();
    session.wait(CARRIED_OUT, is_carried_out);
    if session.is_stopped() {
        Err(Trouble::Stopped)
    } else if !is_carried_out(&session.app) {
        let seconds = CARRIED_OUT.as_secs();
        Err(Trouble::say(format!(
            "not done within {seconds}s, and may still be: probes tells"
        )))
    } else {
        Ok(())
    }
}

/// Runs `probes`: lists the results of each probe: calls, times, values, callers.
pub fn probes(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    nothing(words)?;
    let app = &dialog.session.app;
    let cx = &app.context();
    let list = &app.shown.probes.list;
    if list.is_empty() && app.shown.source.recording.is_some() {
        return sentence("this recording has no probes");
    }
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

/// Returns the row of a probe, as in `probe 2  burn  work  52s left, 1,204 calls/s`.
fn line(probe: &Probe) -> String {
    let (name, module) = (names::short(&probe.name), names::module(&probe.module));
    let mut line = format!("probe {}  {name}  {module}", probe.number);
    if let Stage::InPlace { .. } = &probe.stage {
        line += &format!("  {} left", words::left(probe));
    }
    if let Some(seen) = &probe.seen {
        line += &format!(", {} calls/s", words::rate(seen.calls_per_second));
    }
    line
}

/// Lists how long calls took, their values, and their callers.
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

/// Returns the histogram of times as text: `1.02us 12, 2.05us 40` means 12 calls of at least 1.02
/// µs and less than 2.05 µs, and so on.
fn histogram(latency: &Latency) -> String {
    let buckets = crate::views::probes::buckets(latency, usize::MAX);
    let words = buckets.map(|(from, calls)| format!("{from} {}", units::count(calls)));
    let words: Vec<String> = words.collect();
    format!("calls that took at least: {}", words.join(", "))
}

/// Runs `unprobe`: removes one probe, or all.
pub fn unprobe(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let choice = choice(dialog, words)?;
    changed(dialog, Order::Unprobe(choice))
}

/// Runs `renew`: extends the life of one probe, or of all, to another 60 seconds.
pub fn renew(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let choice = choice(dialog, words)?;
    changed(dialog, Order::Renew(choice))
}

/// Runs `value`: sets the value that a probe reads at each call, as in `value arg1`, `value 2 arg1`
/// and `value none`. Without a number it is about the probe that was placed last.
pub fn value(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let (number, typed) = match words.split_once(' ') {
        Some((first, rest)) if first.parse::<u64>().is_ok() => (first, rest.trim()),
        _ => ("", words),
    };
    if typed.is_empty() {
        return Err(Trouble::usage("which value?"));
    }
    let order = Kind::Value
        .order(typed)
        .map_err(|why| Trouble::usage(why.clone()))?;
    // Without a number it is about the probe that was placed last.
    let choice = match number {
        "" => ProbeChoice::Selected,
        number => choice(dialog, number)?,
    };
    match order {
        Order::Value(_, expression) => changed(dialog, Order::Value(choice, expression)),
        _ => Err(Trouble::usage("which value?")),
    }
}

/// Lets the app carry out an order about probes, and waits until the engine has done so.
fn changed(dialog: &mut Dialog, order: Order) -> Result<Answer, Trouble> {
    let answer = apply(dialog, order)?;
    wait_until_carried_out(dialog)?;
    Ok(answer)
}

/// Parses which probes are meant: a number, or `all`; empty if there is only one.
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
