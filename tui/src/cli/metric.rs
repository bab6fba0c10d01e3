//! Parses the metric: the value of `--metric`.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use engine::{Counted, nearest};
use probe::Happening;
use std::ffi::OsStr;

/// The parser that clap uses for `--metric`.
#[derive(Debug, Clone, Copy)]
pub struct MetricParser;

/// Metrics that count time, with their descriptions in the help.
const TIMES: [(&str, Counted, &str); 4] = [
    ("on-cpu", Counted::OnCpu, "Time on CPUs"),
    (
        "off-cpu",
        Counted::OffCpu,
        "Time that threads waited: for a lock, a disk, a socket, a timer or a free CPU",
    ),
    ("wall", Counted::Wall, "Both together"),
    (
        "kept-waiting",
        Counted::KeptWaiting,
        "Time that threads waited until others ended that, by who did",
    ),
];

/// Returns the metric of a word. The error lists all metrics.
pub fn metric(word: &str) -> Result<Counted, String> {
    let time = TIMES.iter().find(|(name, ..)| *name == word);
    if let Some((_, counted, _)) = time {
        return Ok(counted.clone());
    }
    if let Some(happening) = Happening::parse(word) {
        return Ok(Counted::Happening(happening));
    }
    let like = nearest(word, names());
    let meant = like.map_or_else(String::new, |name| format!("; did you mean {name}?"));
    Err(format!(
        "there is on-cpu, off-cpu, wall, kept-waiting, {} and tracepoint:SUBSYSTEM:NAME{meant}",
        Happening::names().collect::<Vec<_>>().join(", ")
    ))
}

fn names() -> impl Iterator<Item = &'static str> {
    TIMES
        .iter()
        .map(|(name, ..)| *name)
        .chain(Happening::names())
}

impl TypedValueParser for MetricParser {
    type Value = Counted;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Counted, Error> {
        metric.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let times = TIMES
            .iter()
            .map(|(name, _, help)| PossibleValue::new(*name).help(*help));
        let happenings = Happening::names().map(PossibleValue::new);
        Some(Box::new(times.chain(happenings)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_something_and_others_say_what_there_is() {
        for name in names() {
            assert!(metric(name).is_ok(), "{name}");
        }
        assert_eq!(metric("wall"), Ok(Counted::Wall));
        assert!(metric("tracepoint:sched:sched_switch").is_ok());
        let why = metric("page-fault").unwrap_err();
        assert!(why.contains("did you mean page-faults?"), "{why}");
    }
}
