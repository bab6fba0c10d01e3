//! The conditions under which a flight recorder saves the ring: `cpu>80%`, `queue>20ms`,
//! `pressure:io>20%`, `process:nginx>150%`, `file:/run/save`. Those with a number may be followed
//! by the time over which it is averaged: `cpu>80% for 5s`.

use crate::values;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum time over which a condition is averaged.
const OVER_MAX: Duration = Duration::from_secs(60);

/// Maximum length of a process's name in the kernel, in bytes.
const COMM_LEN: usize = 15;

const EXPECTED: &str = "expected cpu>80%, queue>20ms, pressure:cpu>50% (or io, memory), \
    process>150%, process:NAME>150% or file:PATH, those with a number perhaps with the time that is looked \
    at: cpu>80% for 5s";

/// A condition under which the ring is saved.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub what: What,
    /// The condition as it was typed.
    text: String,
}

/// What a condition is about.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// The mean of a gauge is above a limit.
    Above {
        gauge: Gauge,
        /// The limit in the unit of the gauge.
        limit: f64,
        /// The time over which the gauge is averaged, in whole seconds.
        over: Duration,
    },
    /// A file is created or changed.
    File(PathBuf),
}

/// A measured quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gauge {
    /// CPU time in use, in percent of all sampled CPUs.
    Cpu,
    /// How long runnable threads waited for a CPU, in milliseconds: the mean over all times that a
    /// thread was taken, on all CPUs, as the kernel counts it (`/proc/schedstat`).
    Queue,
    /// Time in which some thread waited for a resource, in percent, as the kernel counts it
    /// (`/proc/pressure`).
    Pressure(Resource),
    /// CPU time of processes, in percent of one CPU: of all with this name together, or, without a
    /// name, of the one that uses most.
    Process(Option<String>),
}

/// A resource that threads wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Cpu,
    Io,
    Memory,
}

impl Resource {
    /// Returns its name in a condition, and in `/proc/pressure`.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Io => "io",
            Resource::Memory => "memory",
        }
    }
}

impl Condition {
    /// Parses a condition. The error says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let what = match text.strip_prefix("file:") {
            Some("") => return Err(EXPECTED.into()),
            Some(path) => What::File(path.into()),
            None => above(text)?,
        };
        let text = text.into();
        Ok(Condition { what, text })
    }

    /// Returns the condition as it was written: not safe to print.
    pub fn written(&self) -> &str {
        &self.text
    }

    /// Whether the condition is about the CPU time of processes.
    pub fn is_of_a_process(&self) -> bool {
        matches!(
            self.what,
            What::Above {
                gauge: Gauge::Process(_),
                ..
            }
        )
    }
}

/// Parses a gauge, its limit, and the time after them, if there is one.
fn above(text: &str) -> Result<What, String> {
    let (text, over) = match text.rsplit_once(" for ") {
        Some((text, time)) => (text, values::window(time.trim())?),
        None => (text, Duration::from_secs(1)),
    };
    if over > OVER_MAX {
        return Err("a condition looks at 60s at most".into());
    }
    let (gauge, limit) = text.rsplit_once('>').ok_or(EXPECTED)?;
    let (kind, name) = match gauge.trim().split_once(':') {
        Some((kind, name)) => (kind, Some(name)),
        None => (gauge.trim(), None),
    };
    let gauge = match (kind, name) {
        ("cpu", None) => Gauge::Cpu,
        ("queue", None) => Gauge::Queue,
        ("pressure", Some("cpu")) => Gauge::Pressure(Resource::Cpu),
        ("pressure", Some("io")) => Gauge::Pressure(Resource::Io),
        ("pressure", Some("memory")) => Gauge::Pressure(Resource::Memory),
        ("process", None) => Gauge::Process(None),
        ("process", Some(name)) if !name.is_empty() => Gauge::Process(Some(name.into())),
        _ => return Err(EXPECTED.into()),
    };
    let limit = match gauge {
        Gauge::Queue => milliseconds(limit.trim())?,
        Gauge::Cpu | Gauge::Pressure(_) | Gauge::Process(_) => percent(limit.trim())?,
    };
    match &gauge {
        Gauge::Cpu | Gauge::Pressure(_) if limit >= 100.0 => Err("it is never above 100%".into()),
        Gauge::Process(Some(name)) if name.len() > COMM_LEN => Err(format!(
            "the kernel keeps {COMM_LEN} bytes of a name: process:{}",
            name.chars().take(COMM_LEN).collect::<String>()
        )),
        _ => Ok(What::Above { gauge, limit, over }),
    }
}

fn percent(limit: &str) -> Result<f64, String> {
    let number = limit
        .strip_suffix('%')
        .ok_or("the limit needs a % behind it, as in cpu>80%")?
        .trim_end()
        .parse::<f64>()
        .ok();
    let limit = number.filter(|limit| limit.is_finite() && *limit >= 0.0);
    limit.ok_or_else(|| EXPECTED.into())
}

fn milliseconds(limit: &str) -> Result<f64, String> {
    match values::latency(limit) {
        Ok(limit) => Ok(limit.as_secs_f64() * 1e3),
        Err(_) => Err("the limit is a time, as in queue>20ms".into()),
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&symbolize::sanitize(self.text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let parse = |text| Condition::parse(text).unwrap().what;
        let above = |gauge, limit, seconds| What::Above {
            gauge,
            limit,
            over: Duration::from_secs(seconds),
        };
        assert_eq!(parse("cpu>80%"), above(Gauge::Cpu, 80.0, 1));
        let pressure = Gauge::Pressure(Resource::Io);
        assert_eq!(
            parse("pressure:io > 2.5% for 10s"),
            above(pressure, 2.5, 10)
        );
        assert_eq!(parse("process>150%"), above(Gauge::Process(None), 150.0, 1));
        let named = Gauge::Process(Some("a > b".into()));
        assert_eq!(parse("process:a > b>15% for 5s"), above(named, 15.0, 5));
        assert_eq!(parse("queue>20ms"), above(Gauge::Queue, 20.0, 1));
        assert_eq!(parse("queue > 1.5s for 2s"), above(Gauge::Queue, 1500.0, 2));
        assert_eq!(parse("file:/run/save"), What::File("/run/save".into()));
        assert_eq!(Condition::parse("cpu>80%").unwrap().to_string(), "cpu>80%");
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in [
            "",
            "cpu",
            "cpu>",
            "cpu>80",
            "cpu>80ms",
            "queue>5%",
            "queue>5",
            "queue:a>5ms",
            "queue>-5ms",
            "pressure>5%",
            "cpu<5%",
            "load>5%",
            "file:",
            "cpu>NaN%",
            "cpu>-1%",
            "process:>5%",
            "cpu>5% for 61s",
            "cpu>100%",
            "pressure:io>200%",
            "process:sixteen-letters->5%",
            "cpu>5% for x",
        ] {
            assert!(Condition::parse(text).is_err(), "{text:?}");
        }
    }
}
