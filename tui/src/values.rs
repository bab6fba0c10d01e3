//! Parsers for single values that a user types, such as ids, times and sizes, with their bounds.
//! Each error is a short sentence that says what was expected.

use crate::choices::{LiveOperand, Operand};
use crate::view_id::ViewId;
use clap::ValueEnum;
use profile::Filter;
use profile::filter::FilterError;
use profile::formats::Format;
use regex::{Regex, RegexBuilder};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The ids given with one `-p` or `-t`.
pub type Ids = Box<[u32]>;

/// The users given with one `-u`: names or numbers, not looked up yet.
pub type Users = Box<[String]>;

/// The CPUs given with one `-C`.
pub type Cpus = Box<[u32]>;

/// The highest sampling rate in samples per second.
pub const RATE_MAX: u32 = 10_000;
/// The largest number of frames of a stack. The BPF program has no room for more.
pub const DEPTH_MAX: u32 = 1024;

const MIB: u64 = 1 << 20;
/// The smallest amount of memory for samples: less would not hold a busy minute.
const MEMORY_MIN: u64 = 16 * MIB;
const KEEP_MIN: Duration = Duration::from_secs(1);
/// Minimum part of the hosts in a cohort; shippers have the same.
const SHARE_MIN: f64 = 1e-6;
/// The shortest time that a flight recorder keeps. Less would be cut into pieces of a few seconds.
const RING_MIN: Duration = Duration::from_secs(10);
/// The smallest size of a flight recorder: the names of functions alone take some hundred kB.
const RING_BYTES_MIN: u64 = MIB;
/// The longest window of a spool. The samples of a window stay in memory until it is written.
const SPOOL_WINDOW_MAX: Duration = Duration::from_secs(3600);
/// The longest note, in bytes.
const NOTE_BYTES_MAX: usize = 512;
/// The longest time that samples are kept. They are kept in buckets of a second, and a day of
/// buckets still fits the time axis of a screen.
const KEEP_MAX: Duration = Duration::from_secs(24 * 3600);
/// The shortest delay between reports. In less time there are hardly any samples at the default
/// rate.
const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(3600);
/// The largest size of a compiled pattern. Patterns are for names of 15 bytes, which need far less.
const REGEX_BYTES_MAX: usize = MIB as usize;

/// Parses the id of a process or thread, which is not 0.
pub fn id(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(id) if id > 0 => Ok(id),
        _ => Err("not a process or thread number".into()),
    }
}

/// Parses ids separated by commas, or by blanks as `pidof` prints them.
pub fn ids(text: &str) -> Result<Ids, String> {
    let words = text.split([',', ' ', '\n']).filter(|word| !word.is_empty());
    let ids: Vec<u32> = words.map(id).collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Err("no number given".into());
    }
    Ok(ids.into())
}

/// Parses users separated by commas.
pub fn users(text: &str) -> Result<Users, String> {
    let words = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let users: Vec<String> = words.map(String::from).collect();
    if users.is_empty() {
        return Err("no user given".into());
    }
    Ok(users.into())
}

/// Parses CPUs as the kernel writes them: `0-3,7`.
pub fn cpus(text: &str) -> Result<Cpus, String> {
    let cpus =
        probe::cpus::parse_list(text.trim()).ok_or("not a list of CPUs such as 1 or 0-3,7")?;
    Ok(cpus.into_iter().collect())
}

/// Parses the number of samples per second on each CPU: 1 to 10,000.
pub fn rate(text: &str) -> Result<u32, String> {
    number_in(text, 1, RATE_MAX)
}

/// Parses the largest number of frames of a stack: 1 to 1024.
pub fn depth(text: &str) -> Result<u32, String> {
    number_in(text, 1, DEPTH_MAX)
}

/// Parses a count: 1 or more.
pub fn count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("not a whole number, 1 or more".into()),
    }
}

/// Parses the maximum length of a report in Markdown, in tokens: 200 to 100,000.
pub fn tokens(text: &str) -> Result<u32, String> {
    number_in(text, 200, 100_000)
}

/// Parses how many arguments of a function are shown: 1 to 8.
pub fn arguments(text: &str) -> Result<u32, String> {
    number_in(text, 1, 8)
}

/// Parses the number of an argument that points to a text: 1 to 9.
pub fn argument(text: &str) -> Result<u32, String> {
    number_in(text, 1, 9)
}

/// Parses how much of a CPU a probe may cost, in percent: 1 to 1000.
pub fn cost(text: &str) -> Result<u32, String> {
    number_in(text, 1, 1000)
}

/// A share in hundredths of a percent; an integer, so that it can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percent(pub u32);

impl Percent {
    /// Returns the share in percent.
    pub fn percent(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

/// Parses how much of one CPU proftop may use: 0.1% to 100%. The sign may be left out.
pub fn budget(text: &str) -> Result<Percent, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.1..=100.0).contains(&percent) => {
            Ok(Percent((percent * 100.0).round() as u32))
        }
        _ => Err("not a share of one CPU from 0.1% to 100%".into()),
    }
}

/// Parses how long something is kept or done: 1 second to 24 hours, in whole seconds.
pub fn keep(text: &str) -> Result<Duration, String> {
    let time = whole_seconds(text)?;
    within(time, KEEP_MIN, KEEP_MAX, "1s to 24h")
}

/// Parses a note: one line of at most 512 bytes.
pub fn note(text: &str) -> Result<String, String> {
    if text.len() > NOTE_BYTES_MAX || text.chars().any(char::is_control) {
        return Err("a note is one line of 512 bytes at most".into());
    }
    Ok(text.into())
}

/// Parses the length of a window: 1 second to 24 hours, in whole seconds.
pub fn window(text: &str) -> Result<Duration, String> {
    let time = whole_seconds(text)?;
    within(time, KEEP_MIN, KEEP_MAX, "1s to 24h")
}

/// Parses how much time a flight recorder keeps: 10 seconds to 24 hours, in whole seconds.
pub fn ring(text: &str) -> Result<Duration, String> {
    let time = whole_seconds(text)?;
    within(time, RING_MIN, KEEP_MAX, "10s to 24h")
}

/// Parses the path of a folder, which is not empty.
pub fn folder(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("no path".into());
    }
    Ok(text.into())
}

/// Parses the length of a window of a spool: 1 second to 1 hour, in whole seconds.
pub fn spool_window(text: &str) -> Result<Duration, String> {
    let time = whole_seconds(text)?;
    within(time, KEEP_MIN, SPOOL_WINDOW_MAX, "1s to 1h")
}

/// Parses a part of all hosts, as in `0.05` or `5%`.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().map(|number| number / whole);
    match share {
        Ok(share) if (SHARE_MIN..=1.0).contains(&share) => Ok(share),
        _ => Err("not a part of the hosts, from 0.000001 to 1".into()),
    }
}

/// Parses how long a cohort has the same hosts: 10 seconds to 24 hours, in whole seconds.
pub fn cohort_period(text: &str) -> Result<Duration, String> {
    let time = whole_seconds(text)?;
    within(time, RING_MIN, KEEP_MAX, "10s to 24h")
}

/// Parses the maximum size of a flight recorder, as in `64M`. Returns bytes.
pub fn ring_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes >= RING_BYTES_MIN => Ok(bytes),
        _ => Err("at least 1M is needed".into()),
    }
}

/// Parses the delay between reports: 0.1 to 3600 seconds.
pub fn delay(text: &str) -> Result<Duration, String> {
    within(duration(text)?, DELAY_MIN, DELAY_MAX, "0.1 to 3600")
}

/// Parses the duration of a call, such as `10ms`, `250us` or `1.5s`: at most an hour. The unit is
/// required.
pub fn latency(text: &str) -> Result<Duration, String> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let found = units.iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * seconds)
    });
    let seconds = found.ok_or("not a time such as 10ms, 250us or 1.5s")?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| "not a time")?;
    within(
        time,
        Duration::ZERO,
        Duration::from_secs(3600),
        "0 to 3600s",
    )
}

/// Parses an amount of memory, at least 16 MiB. Returns bytes.
pub fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes >= MEMORY_MIN => Ok(bytes),
        _ => Err("at least 16M are needed".into()),
    }
}

/// Compiles a regular expression. The error is one line, without the drawing that points to the
/// place.
pub fn regex(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| {
            // The last line of the error is its cause; the others are the drawing.
            let text = error.to_string();
            let cause = text.lines().last().unwrap_or_default();
            cause.trim_start_matches("error: ").to_owned()
        })
}

/// Parses a filter expression.
pub fn filter(text: &str) -> Result<Filter, String> {
    text.parse().map_err(|error: FilterError| error.to_string())
}

/// Parses the name of a view that can be opened at the start. Code is not one of them, because it
/// always belongs to a function.
pub fn view(word: &str) -> Result<ViewId, String> {
    let mut views = ViewId::ALL.into_iter().filter(|view| *view != ViewId::Code);
    let known: Vec<&str> = views.clone().map(ViewId::word).collect();
    let found = views.find(|view| view.word() == word);
    found.ok_or_else(|| format!("there are {}", known.join(", ")))
}

/// Parses one of the words that the command line accepts for a choice, in upper or lower case. The
/// error lists the words.
pub fn word<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, true).map_err(|_| {
        let known = T::value_variants().iter().filter_map(T::to_possible_value);
        let known: Vec<String> = known.map(|value| value.get_name().to_owned()).collect();
        format!("there are {}", known.join(", "))
    })
}

/// Parses a share of all samples in percent: `5%`, `5` or `0.5`.
pub fn points(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).parse::<f64>() {
        Ok(points) if (0.0..=100.0).contains(&points) => Ok(points),
        _ => Err("not a share such as 5%".into()),
    }
}

/// Parses one side of a comparison: a file, or a process that is to be recorded now, as in
/// `pid:1234@30s`.
pub fn operand(word: OsString) -> Result<Operand, String> {
    let Some(live) = word.to_str().and_then(|word| word.strip_prefix("pid:")) else {
        return Ok(Operand::File(word.into()));
    };
    let (pid, duration) = live
        .split_once('@')
        .ok_or("for how long? as in pid:1234@30s")?;
    Ok(Operand::Live(LiveOperand {
        pid: id(pid)?,
        duration: keep(duration)?,
    }))
}

/// Parses the name of a file format. The error lists the names.
pub fn file_format(word: &str) -> Result<Format, String> {
    let words = || Format::ALL.map(Format::word).join(", ");
    let found = Format::ALL.into_iter().find(|format| format.word() == word);
    found.ok_or_else(|| format!("there are {}", words()))
}

/// Parses a time such as `30s`, `1.5m`, `1h` or `500ms`. A number without a unit means seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let bad = || "not a time such as 30s, 10m or 1h".to_owned();
    let (number, unit) = split_unit(text);
    let scale = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(bad()),
    };
    let seconds = number.parse::<f64>().map_err(|_| bad())? * scale;
    Duration::try_from_secs_f64(seconds).map_err(|_| bad())
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time.subsec_nanos() != 0 {
        return Err("must be whole seconds".into());
    }
    Ok(time)
}

/// Parses a size such as `256M`, `1G` or `64MiB`. Returns bytes. K, M and G are powers of 1024; a
/// number without a unit means bytes.
fn size(text: &str) -> Result<u64, String> {
    let bad = || "not a size such as 256M or 1G".to_owned();
    let (number, unit) = split_unit(text);
    let unit = unit.trim_end_matches(['b', 'B']).trim_end_matches('i');
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(1 << shift).ok_or_else(bad)
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

fn number_in(text: &str, min: u32, max: u32) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(format!("not a number from {min} to {max}")),
    }
}

fn within(time: Duration, min: Duration, max: Duration, range: &str) -> Result<Duration, String> {
    if time < min || time > max {
        return Err(format!("must be {range}"));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times() {
        let seconds = |text| duration(text).unwrap().as_secs_f64();
        for (text, expected) in [
            ("30s", 30.0),
            ("10m", 600.0),
            ("1h", 3600.0),
            ("2", 2.0),
            ("0.5", 0.5),
            ("1.5m", 90.0),
            ("500ms", 0.5),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
        for text in [
            "", "s", "10x", "-1", "1 h", "nan", "inf", "1e9", "1.2.3", "10mm",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reads_sizes() {
        assert_eq!(size("256M"), Ok(256 * MIB));
        assert_eq!(size("1g"), Ok(1024 * MIB));
        assert_eq!(size("64MiB"), Ok(64 * MIB));
        assert_eq!(size("64MB"), Ok(64 * MIB));
        assert_eq!(size("4096"), Ok(4096));
        for text in ["", "M", "1.5G", "12T", "99999999999G", "-1M"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bounds_are_part_of_the_value() {
        assert!(delay("0.05").is_err());
        assert!(delay("0.1").is_ok());
        assert!(delay("2h").is_err());
        assert!(window("1.5").is_err());
        assert!(window("0").is_err());
        assert!(keep("25h").is_err());
        assert!(memory("1M").is_err());
        assert!(rate("0").is_err());
        assert!(rate("10001").is_err());
        assert_eq!(rate("10000"), Ok(10_000));
        assert!(depth("1025").is_err());
    }

    #[test]
    fn reads_ids_as_people_and_pidof_write_them() {
        assert_eq!(*ids("12,13").unwrap(), [12, 13]);
        assert_eq!(*ids("12 13\n").unwrap(), [12, 13]);
        for text in ["", ",", "0", "12,x", "-3", "4294967296"] {
            assert!(ids(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reads_cpus_and_users() {
        assert_eq!(*cpus("0-2,7").unwrap(), [0, 1, 2, 7]);
        for text in ["", "x", "3-1", "-1", "1,", "0-99999999"] {
            let is_bad = text != "1,";
            assert_eq!(cpus(text).is_err(), is_bad, "{text}");
        }
        assert_eq!(*users("ann, 1000").unwrap(), ["ann", "1000"]);
        assert!(users(" ,").is_err());
    }

    #[test]
    fn a_bad_pattern_gives_its_cause_in_one_line() {
        assert_eq!(regex("a[").unwrap_err(), "unclosed character class");
        assert!(!regex("(a{1000}){1000}").unwrap_err().contains('\n'));
    }
}
