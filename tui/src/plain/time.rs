//! The commands about time: when samples were taken, and what was different then.

use super::answer::{Answer, Target, Trouble};
use super::dialog::Dialog;
use super::lists::{changes, side};
use crate::calendar::SECOND_NS;
use crate::view_id::ViewId;
use crate::views::time::TimeAnswer;
use crate::words::units;
use crate::{calendar, values};
use profile::diff::{Apart, Diff, apart};
use profile::{Query, TimeRange};

/// Maximum number of ranges of equal length into which the whole time is divided.
const ROWS: usize = 12;
/// The possible lengths of a range in seconds. The shortest one that gives at most [`ROWS`] ranges
/// is used.
const STEPS: [usize; 15] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400,
];
/// Maximum number of functions that are listed as different between two times.
const CHANGES: usize = 8;

/// Runs `time`: lists samples over time. With a row or a time of day, lists what was different
/// then. It is an error if the recording does not say when samples were taken.
pub fn time(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if let Some(why) = ViewId::Time.lacking(&dialog.session.app.shown) {
        return Err(Trouble::say(why));
    }
    match words {
        "" => trend(dialog),
        _ => different(dialog, words),
    }
}

/// Lists samples over all the time that is kept, in ranges of equal length.
fn trend(dialog: &Dialog) -> Result<Answer, Trouble> {
    let found = dialog.session.time()?;
    let seconds = seconds(&found);
    let total: u64 = seconds.iter().sum();
    let (Some(most), Some(least)) = (extreme(&seconds, true), extreme(&seconds, false)) else {
        return Ok(Answer::of("no samples in all that is kept"));
    };
    let first = found.all.first_second;
    let clock = |at: usize| clock(&found, (first + at as u64) * SECOND_NS);
    let cpus = |samples, seconds: usize| cpus(&found, samples, seconds);
    let mut answer = Answer::of(format!(
        "all that is kept: {} in {}, {} to {} {}{}",
        units::counted(total, "sample"),
        units::counted(seconds.len() as u64, "second"),
        clock(0),
        clock(seconds.len()),
        zone(&found, first * SECOND_NS),
        cpus(total, seconds.len())
    ));
    answer.say(format!(
        "most: {} at {}; least: {} at {}",
        units::count(seconds[most]),
        clock(most),
        units::count(seconds[least]),
        clock(least)
    ));
    // The shortest step with which all fit, else as many seconds as give at most `ROWS` rows.
    let step = STEPS
        .iter()
        .find(|step| seconds.len().div_ceil(**step) <= ROWS)
        .copied()
        .unwrap_or(seconds.len().div_ceil(ROWS));
    for (at, stretch) in seconds.chunks(step).enumerate() {
        let samples = stretch.iter().sum();
        let from = at * step;
        let text = format!(
            "{}  {} in {} s{}",
            clock(from),
            units::counted(samples, "sample"),
            stretch.len(),
            cpus(samples, stretch.len())
        );
        let start_ns = (first + from as u64) * SECOND_NS;
        let target = Target::Time(start_ns, start_ns + stretch.len() as u64 * SECOND_NS);
        let why = "samples of that time within scope and filter, whatever the window is";
        answer.row(target, &text, why);
    }
    answer.say("time ROW, or time CLOCK: what was different then; window ROW: only that");
    Ok(answer)
}

/// Returns the number of samples in each second. The last second may not be over yet.
fn seconds(found: &TimeAnswer) -> Vec<u64> {
    let map = &found.all;
    (0..map.columns()).map(|at| map.cell(at, 0)).collect()
}

/// Returns the position of the second with most samples, or with least. None if there are no
/// seconds.
fn extreme(seconds: &[u64], is_most: bool) -> Option<usize> {
    let whole = match seconds.len() {
        // The first and last second may be incomplete, so their counts may be too low.
        3.. => 1..seconds.len() - 1,
        all => 0..all,
    };
    let key = |at: &usize| seconds[*at];
    if is_most {
        whole.max_by_key(key)
    } else {
        whole.min_by_key(key)
    }
}

/// Returns how many CPUs were busy, as in `, 0.75 CPU`. Empty if the rate is not known.
fn cpus(found: &TimeAnswer, samples: u64, seconds: usize) -> String {
    let rate = found.all.rate_hz;
    let cpus = units::cpus(samples, rate, seconds as f64);
    cpus.map_or_else(String::new, |cpus| format!(", {cpus:.2} CPU"))
}

/// Returns a time of the profile as the local time of day, as in `14:02:40`.
fn clock(found: &TimeAnswer, ns: u64) -> String {
    calendar::of_day(unix_ms(found, ns))
}

/// Returns the name of the time zone in which [`clock`] gives times.
fn zone(found: &TimeAnswer, ns: u64) -> String {
    calendar::zone(unix_ms(found, ns))
}

/// Converts a time of the profile to milliseconds since 1970.
fn unix_ms(found: &TimeAnswer, ns: u64) -> i64 {
    ((ns / 1_000_000) as i64).saturating_add(found.epoch_unix_ms)
}

/// Parses a range of time: `14:02:40` (one second), `14:02:40 5s`, or the number of a row. Returns
/// its start and end in nanoseconds of the profile's clock.
pub fn stretch(dialog: &Dialog, words: &str) -> Result<(u64, u64), Trouble> {
    if let Ok(number) = words.parse() {
        return match dialog.row(number)?.target {
            Target::Time(start, end) => Ok((start, end)),
            _ => Err(Trouble::say(format!("row {number} is no time"))),
        };
    }
    let (clock_word, length) = words.split_once(' ').unwrap_or((words, ""));
    let wanted = read_clock(clock_word)
        .ok_or_else(|| Trouble::usage(format!("'{clock_word}' is no time of day as 14:02:40")))?;
    let length = match length.trim() {
        "" => 1,
        length => values::window(length).map_err(Trouble::Usage)?.as_secs(),
    };
    let found = dialog.session.time()?;
    let (first, count) = (found.all.first_second, found.all.columns() as u64);
    let is_it =
        |second: &u64| calendar::second_of_day(unix_ms(&found, second * SECOND_NS)) == wanted;
    // If more than a day is kept, a time of day occurs several times. The newest one is meant.
    let second = (first..first + count).rev().find(is_it).ok_or_else(|| {
        Trouble::say(format!(
            "{clock_word} is not in what is kept: that is {} to {} {}",
            clock(&found, first * SECOND_NS),
            clock(&found, (first + count) * SECOND_NS),
            zone(&found, first * SECOND_NS)
        ))
    })?;
    let start = second * SECOND_NS;
    Ok((
        start,
        start.saturating_add(length.saturating_mul(SECOND_NS)),
    ))
}

/// Parses `14:02` or `14:02:40` as seconds since midnight. None if it is not a time of day.
fn read_clock(word: &str) -> Option<u64> {
    let parts: Vec<&str> = word.split(':').collect();
    let number = |text: &str, below: u64| text.parse().ok().filter(|number| *number < below);
    let (hour, minute) = match parts[..] {
        [hour, minute] | [hour, minute, _] => (number(hour, 24)?, number(minute, 60)?),
        _ => return None,
    };
    let second = parts.get(2).map_or(Some(0), |second| number(second, 60))?;
    Some(hour * 3_600 + minute * 60 + second)
}

/// Compares a range of time with the time before or after it.
fn different(dialog: &Dialog, words: &str) -> Result<Answer, Trouble> {
    let (start, end) = stretch(dialog, words)?;
    let found = dialog.session.time()?;
    let map = &found.all;
    let first = map.first_second * SECOND_NS;
    let last = first + map.columns() as u64 * SECOND_NS;
    // The comparison is with the time before or after it, whichever is longer.
    let (before, after) = (start.saturating_sub(first), last.saturating_sub(end));
    let (rest, side_name) = if before >= after {
        ((first, start), "before")
    } else {
        ((end, last), "after")
    };
    if rest.1 <= rest.0 {
        return Err(Trouble::say("that is all the time there is to compare"));
    }
    let shown = &dialog.session.app.shown;
    let view = shown
        .view
        .as_ref()
        .ok_or_else(|| Trouble::say("no samples have come yet"))?;
    // `TimeRange::between` excludes its start and includes its end. Here the start is included and
    // the end excluded.
    let query = |(start, end): (u64, u64)| Query {
        window: TimeRange::between(start.saturating_sub(1), end.saturating_sub(1)),
        ..shown.asked.query.clone()
    };
    let cancel = dialog.session.cancel();
    let whole = view
        .select(&query((first, last)), cancel)
        .map_err(|_| Trouble::Stopped)?;
    let select = |range| {
        let selected = whole.part(&query(range), cancel);
        selected.map_err(|_| Trouble::Stopped)
    };
    let part = select((start, end))?;
    let mut diff = Diff::new(&select(rest)?, &part);
    diff.compare_time();
    let mut answer = Answer::of(format!(
        "{} to {} {}: {}; against {side_name} that: {}",
        clock(&found, start),
        clock(&found, end),
        zone(&found, start),
        side(&diff.b),
        side(&diff.a)
    ));
    answer.say(sure(&apart(&part, &whole)));
    changes(dialog, &diff, CHANGES, &mut answer);
    Ok(answer)
}

/// Says which functions differ significantly from all the other time, in the same words as the map
/// of time on the screen.
fn sure(apart: &[Apart]) -> String {
    if apart.is_empty() {
        return "nothing is surely different from all the other time".into();
    }
    let words = apart.iter().take(CHANGES);
    let words: Vec<String> = words
        .map(|each| format!("{} {:+.1} points", each.name, each.points))
        .collect();
    let words = words.join(", ");
    format!("surely different from all the other time: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day() {
        assert_eq!(read_clock("14:02:40"), Some(50_560));
        assert_eq!(read_clock("00:01"), Some(60));
        for bad in [
            "", "14", "24:00:00", "1:60", "1:2:60", "a:b", "1:2:3:4", "-1:2",
        ] {
            assert_eq!(read_clock(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_first_and_the_last_second_are_parts() {
        assert_eq!(extreme(&[1, 7, 5, 9, 0], true), Some(3));
        assert_eq!(extreme(&[1, 7, 5, 9, 0], false), Some(2));
        assert_eq!(extreme(&[4], true), Some(0));
        assert_eq!(extreme(&[], true), None);
    }
}
