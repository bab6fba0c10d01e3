//! `look`: samples for some seconds, or takes earlier samples, and reports what is hottest.

use super::arguments::Arguments;
use super::kept::Kept;
use super::samples::Lot;
use crate::choices::Format;
use crate::cli::{self, Request};
use crate::commands::{prepare, sampling};
use crate::config;
use crate::words::markdown;
use engine::snapshot::Snapshot;
use engine::{AwaitNames, Command, Consent, Schedule};
use probe::Happening;
use probe::channel::{RecvTimeoutError, channel};
use profile::Cancel;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// Default and maximum of the seconds to sample.
pub const SECONDS: u64 = 5;
pub const SECONDS_MAX: u64 = 60;
/// Time between two checks whether the call was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The memory limit for the samples of a look, as an option.
const MEMORY: &str = "--mem=64M";

/// Returns the report on the samples.
pub fn answer(
    arguments: &Arguments,
    kept: &mut Kept,
    cancel: &Cancel,
    tokens_max: usize,
) -> Result<String, String> {
    let lot = match arguments.text("samples")? {
        Some(name) => {
            let lot = kept.samples.find(name, arguments.text("metric")?)?;
            lot.narrowed(arguments.filter()?, cancel)?
        }
        None => sample(arguments, kept, cancel)?,
    };
    let name = format!("Samples: {}\n", markdown::quoted(&lot.name));
    let left = tokens_max - name.len().div_ceil(markdown::BYTES_PER_TOKEN);
    Ok(name + &lot.report(left).render(Format::Md, true))
}

/// Samples for the time in the arguments, and keeps the samples.
pub fn sample(arguments: &Arguments, kept: &mut Kept, cancel: &Cancel) -> Result<Lot, String> {
    // It uses the parser of the command line, so that values are checked in the same way.
    let words = cli::parse(words(arguments)?, config::load);
    let config = match words.map_err(|failure| failure.to_string())? {
        Request::Top(config) => config,
        _ => return Err("these arguments do not sample".into()),
    };
    let subject = prepare(&config).map_err(|failure| failure.to_string())?;
    let schedule = Schedule::Reports {
        delay: config.show.delay,
        count: Some(1),
        names: AwaitNames::Each,
    };
    let (send, reports) = channel::<Arc<Snapshot>>();
    let publish = Box::new(move |snapshot| send.send(snapshot).is_ok());
    let sampling = sampling::start(&config, subject, schedule, Consent::Given, publish)
        .map_err(|failure| failure.to_string())?;
    let found = loop {
        match reports.recv_timeout(LOOK_EVERY) {
            Ok(snapshot) => break Some(snapshot),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => {
                // Sending fails if the engine has ended by itself.
                let _ = sampling.commands.send(Command::Finish);
                break None;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    let failure = sampling.engine.finish();
    match (found, failure) {
        (Some(snapshot), _) => Ok(kept.samples.keep(snapshot)),
        (None, Some(why)) => Err(why),
        (None, None) => Err("nothing was sampled: the target has ended".into()),
    }
}

/// Returns the command line of a look. Each value is in the same word as its option, so that no
/// value can be read as another option.
fn words(arguments: &Arguments) -> Result<Vec<OsString>, String> {
    let seconds = arguments
        .number("seconds", 1, SECONDS_MAX)?
        .unwrap_or(SECONDS);
    let mut words = vec![
        "proftop".to_owned(),
        "--batch".to_owned(),
        "--reports=1".to_owned(),
        "--format=md".to_owned(),
        format!("--delay={seconds}"),
        MEMORY.to_owned(),
    ];
    if let Some(pid) = arguments.id("pid")? {
        words.push(format!("--pid={pid}"));
    }
    let times = ["on-cpu", "off-cpu", "wall", "kept-waiting"];
    let metrics: Vec<&str> = times.into_iter().chain(Happening::names()).collect();
    if let Some(metric) = arguments.word("metric", &metrics)? {
        words.push(format!("--metric={metric}"));
    }
    for name in ["comm", "cgroup", "user", "filter"] {
        if let Some(text) = arguments.text(name)? {
            words.push(format!("--{name}={text}"));
        }
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn no_value_becomes_an_option() {
        let sent = json!({ "comm": "--output=/tmp/x", "pid": 7, "metric": "wall" });
        let Value::Object(sent) = sent else {
            unreachable!()
        };
        let known = ["comm", "pid", "metric"];
        let arguments = Arguments::new(sent, &known).unwrap();
        let words = words(&arguments).unwrap();
        assert!(
            words.contains(&"--comm=--output=/tmp/x".into()),
            "{words:?}"
        );
        let Ok(Request::Top(config)) = cli::parse(words, Default::default) else {
            panic!("it samples")
        };
        assert_eq!(config.target.pids, [7]);
        assert_eq!(config.target.comm.unwrap().as_str(), "--output=/tmp/x");
        let cli::Mode::Batch(batch) = config.mode else {
            panic!("it prints reports")
        };
        assert_eq!((batch.file, batch.reports_max), (None, Some(1)));
    }
}
