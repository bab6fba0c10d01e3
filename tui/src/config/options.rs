//! The *options*: a table of all settings, with their defaults and the functions that read and
//! write their values. Values are parsed as on the command line.

use super::Settings;
use super::quote::quote;
use crate::condition::Condition;
use crate::values;
use crate::values::word;
use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

/// An option of the configuration.
pub struct Choice {
    pub section: &'static str,
    pub key: &'static str,
    /// Its default value, as TOML.
    pub default: &'static str,
    pub help: &'static str,
    /// Parses a value into the settings. The error says what is wrong with it.
    pub read: fn(&mut Settings, &str) -> Result<(), String>,
    /// Returns the present value as TOML. None if it is the default.
    pub show: fn(&Settings) -> Option<String>,
}

/// Every option, in the order in which they are written to a file.
pub const OPTIONS: &[Choice] = &[
    Choice {
        section: "sample",
        key: "rate",
        default: "99",
        help: "samples per second on each busy CPU, 1 to 10000",
        read: |settings, text| put(&mut settings.rate_hz, values::rate(text)),
        show: |settings| settings.rate_hz.map(|rate| rate.to_string()),
    },
    Choice {
        section: "sample",
        key: "engine",
        default: "\"auto\"",
        help: "how samples are taken: auto, bpf, perf",
        read: |settings, text| put(&mut settings.engine, word(text)),
        show: |settings| settings.engine.and_then(quoted),
    },
    Choice {
        section: "sample",
        key: "max-depth",
        default: "512",
        help: "longest user stack that is walked, 1 to 1024 frames",
        read: |settings, text| put(&mut settings.depth_max, values::depth(text)),
        show: |settings| settings.depth_max.map(|depth| depth.to_string()),
    },
    Choice {
        section: "sample",
        key: "budget",
        default: "\"none\"",
        help: "what proftop may take of one CPU, such as 1%, or none",
        read: |settings, text| {
            if text == "none" {
                settings.budget = None;
                return Ok(());
            }
            put(&mut settings.budget, values::budget(text))
        },
        show: |settings| {
            settings
                .budget
                .map(|budget| format!("\"{}%\"", budget.percent()))
        },
    },
    Choice {
        section: "sample",
        key: "keep",
        default: "\"10m\"",
        help: "how long samples are kept",
        read: |settings, text| put(&mut settings.keep, values::keep(text)),
        show: |settings| settings.keep.map(|time| format!("\"{}s\"", time.as_secs())),
    },
    Choice {
        section: "sample",
        key: "mem",
        default: "\"256M\"",
        help: "memory for samples; when it is full the oldest leave first",
        read: |settings, text| put(&mut settings.memory_bytes_max, values::memory(text)),
        show: |settings| settings.memory_bytes_max.map(|bytes| bytes.to_string()),
    },
    Choice {
        section: "view",
        key: "start",
        default: "\"functions\"",
        help: "the view that opens: functions, tree, flame, processes, threads, time, health, probes",
        read: |settings, text| put(&mut settings.start, values::view(text)),
        show: |settings| settings.start.map(|view| format!("\"{}\"", view.word())),
    },
    Choice {
        section: "view",
        key: "window",
        default: "\"10s\"",
        help: "the last stretch of time that is shown",
        read: |settings, text| put(&mut settings.window, values::window(text)),
        show: |settings| {
            settings
                .window
                .map(|time| format!("\"{}s\"", time.as_secs()))
        },
    },
    Choice {
        section: "view",
        key: "refresh",
        default: "\"1s\"",
        help: "time between redraws",
        read: |settings, text| put(&mut settings.refresh, values::delay(text)),
        show: |settings| {
            let time = settings.refresh?;
            Some(format!("\"{}s\"", time.as_secs_f64()))
        },
    },
    Choice {
        section: "view",
        key: "sort",
        default: "\"self\"",
        help: "order of functions: self, total, name",
        read: |settings, text| put(&mut settings.sort, word(text)),
        show: |settings| settings.sort.and_then(quoted),
    },
    Choice {
        section: "view",
        key: "unit",
        default: "\"usual\"",
        help: "unit of the numbers: usual (that of each view), percent, machine, samples, cpu-ms, cpus",
        read: |settings, text| match text {
            "usual" => {
                settings.unit = None;
                Ok(())
            }
            _ => put(&mut settings.unit, word(text)),
        },
        show: |settings| settings.unit.and_then(quoted),
    },
    Choice {
        section: "view",
        key: "mouse",
        default: "true",
        help: "false leaves the mouse to the terminal",
        read: |settings, text| put(&mut settings.mouse, switch(text)),
        show: |settings| settings.mouse.map(|on| on.to_string()),
    },
    Choice {
        section: "theme",
        key: "name",
        default: "\"auto\"",
        help: "colors to draw with: auto, dark, light, 16, mono",
        read: |settings, text| put(&mut settings.theme, word(text)),
        show: |settings| settings.theme.and_then(quoted),
    },
    Choice {
        section: "theme",
        key: "color",
        default: "\"auto\"",
        help: "when to use colors: auto, always, never",
        read: |settings, text| put(&mut settings.color, word(text)),
        show: |settings| settings.color.and_then(quoted),
    },
    Choice {
        section: "theme",
        key: "ascii",
        default: "false",
        help: "true draws with ASCII characters only",
        read: |settings, text| put(&mut settings.ascii, switch(text)),
        show: |settings| settings.ascii.map(|on| on.to_string()),
    },
    Choice {
        section: "agent",
        key: "rate",
        default: "19",
        help: "samples per second of proftop agent",
        read: |settings, text| put(&mut settings.agent.rate_hz, values::rate(text)),
        show: |settings| settings.agent.rate_hz.map(|rate| rate.to_string()),
    },
    Choice {
        section: "agent",
        key: "cohort-rate",
        default: "\"none\"",
        help: "samples per second while this host is in the cohort, or none",
        read: |settings, text| put(&mut settings.agent.cohort_rate_hz, cohort_rate(text)),
        show: |settings| {
            let hz = settings.agent.cohort_rate_hz?;
            Some(if hz == 0 {
                "\"none\"".into()
            } else {
                hz.to_string()
            })
        },
    },
    Choice {
        section: "agent",
        key: "cohort-share",
        default: "0.05",
        help: "the part of all hosts that is in the cohort",
        read: |settings, text| put(&mut settings.agent.cohort_share, values::share(text)),
        show: |settings| settings.agent.cohort_share.map(|share| share.to_string()),
    },
    Choice {
        section: "agent",
        key: "cohort-period",
        default: "\"1h\"",
        help: "how long it has the same hosts",
        read: |settings, text| {
            put(
                &mut settings.agent.cohort_period,
                values::cohort_period(text),
            )
        },
        show: |settings| settings.agent.cohort_period.map(seconds),
    },
    Choice {
        section: "agent",
        key: "ring",
        default: "\"10m\"",
        help: "how much time it has at least",
        read: |settings, text| put(&mut settings.agent.length, values::ring(text)),
        show: |settings| settings.agent.length.map(seconds),
    },
    Choice {
        section: "agent",
        key: "ring-size",
        default: "\"64M\"",
        help: "what the file of the ring may take, with the one that takes its place",
        read: |settings, text| put(&mut settings.agent.bytes_max, values::ring_size(text)),
        show: |settings| settings.agent.bytes_max.map(|bytes| bytes.to_string()),
    },
    Choice {
        section: "agent",
        key: "save-on",
        default: "\"cpu>95% for 30s\"",
        help: "when it saves, with commas between the conditions, or none",
        read: |settings, text| put(&mut settings.agent.conditions, conditions(text)),
        show: |settings| {
            let conditions = settings.agent.conditions.as_ref()?;
            let words: Vec<&str> = conditions.iter().map(Condition::written).collect();
            Some(if words.is_empty() {
                "\"none\"".into()
            } else {
                quote(&words.join(", "))
            })
        },
    },
    Choice {
        section: "agent",
        key: "after",
        default: "\"10s\"",
        help: "how much of the time after a condition is saved with it",
        read: |settings, text| put(&mut settings.agent.after, values::keep(text)),
        show: |settings| settings.agent.after.map(seconds),
    },
    Choice {
        section: "agent",
        key: "saves",
        default: "20",
        help: "how many saved files there may be",
        read: |settings, text| put(&mut settings.agent.saves, values::count(text)),
        show: |settings| settings.agent.saves.map(|saves| saves.to_string()),
    },
    Choice {
        section: "agent",
        key: "spool",
        default: "\"none\"",
        help: "a folder into which each minute is written as a recording of its own, for others to send, or none",
        read: |settings, text| put(&mut settings.agent.spool, spool(text)),
        show: |settings| {
            let folder = settings.agent.spool.as_ref()?.to_string_lossy();
            Some(quote(if folder.is_empty() { "none" } else { &folder }))
        },
    },
    Choice {
        section: "agent",
        key: "spool-window",
        default: "\"60s\"",
        help: "how long a window is",
        read: |settings, text| put(&mut settings.agent.spool_window, values::spool_window(text)),
        show: |settings| settings.agent.spool_window.map(seconds),
    },
    Choice {
        section: "agent",
        key: "spool-size",
        default: "\"1G\"",
        help: "what all windows may take; of more the oldest are removed",
        read: |settings, text| put(&mut settings.agent.spool_bytes_max, values::ring_size(text)),
        show: |settings| {
            settings
                .agent
                .spool_bytes_max
                .map(|bytes| bytes.to_string())
        },
    },
];

/// Parses a rate. `none` gives 0.
fn cohort_rate(text: &str) -> Result<u32, String> {
    match text {
        "none" => Ok(0),
        text => values::rate(text).map_err(|why| format!("{why}, or none")),
    }
}

/// Parses a folder. `none` gives an empty path.
fn spool(text: &str) -> Result<PathBuf, String> {
    match text {
        "none" => Ok(PathBuf::new()),
        text if text.starts_with('/') => Ok(text.into()),
        _ => Err("a path from the root, such as /var/spool/proftop, or none".into()),
    }
}

fn seconds(time: Duration) -> String {
    format!("\"{}s\"", time.as_secs())
}

fn conditions(text: &str) -> Result<Vec<Condition>, String> {
    match text.trim() {
        "none" => Ok(Vec::new()),
        some => some
            .split(',')
            .map(|one| Condition::parse(one.trim()))
            .collect(),
    }
}

fn put<T>(place: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    *place = Some(value?);
    Ok(())
}

fn quoted<T: ValueEnum>(value: T) -> Option<String> {
    Some(format!("\"{}\"", value.to_possible_value()?.get_name()))
}

fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "true or false".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view_id::ViewId;

    #[test]
    fn the_views_that_are_listed_are_those_that_can_open() {
        let option = OPTIONS.iter().find(|option| option.key == "start");
        let (_, listed) = option.unwrap().help.split_once(": ").unwrap();
        let listed: Vec<&str> = listed.split(", ").collect();
        for word in &listed {
            assert!(values::view(word).is_ok(), "{word}");
        }
        let can_open = |view: &ViewId| values::view(view.word()).is_ok();
        for view in ViewId::ALL.into_iter().filter(can_open) {
            assert!(listed.contains(&view.word()), "{}", view.word());
        }
    }
}
