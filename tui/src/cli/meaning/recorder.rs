//! The configuration of a flight recorder: of `record --ring`, and of `agent`, which runs it as a
//! service and has default paths of its own.

use super::super::args::{Agent, AgentTask, RingArgs};
use super::super::{
    AskAgent, CohortConfig, Config, Question, RecordConfig, Request, RingConfig, SampleConfig,
    SpoolConfig,
};
use super::{Configuration, RECORD_KEEP, recorded_format, recording, sample, target};
use crate::condition::{Condition, Gauge, What};
use crate::config::AgentSettings;
use crate::failure::Failure;
use engine::Counted;
use profile::Cohort;
use profile::formats::{Format, Packing};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Defaults of a flight recorder: its bytes on disk, how much of the time after a condition it
/// saves, and how many saved files it keeps.
const BYTES_DEFAULT: u64 = 64 << 20;
const AFTER_DEFAULT: Duration = Duration::from_secs(10);
const SAVES_DEFAULT: usize = 20;

/// The length of the windows of a spool, and the bytes of all of them: some days of windows on most
/// machines.
const SPOOL_WINDOW_DEFAULT: Duration = Duration::from_secs(60);
const SPOOL_BYTES_DEFAULT: u64 = 1 << 30;

/// How much time the ring of an agent covers.
const LENGTH_DEFAULT: Duration = Duration::from_secs(600);

/// Samples per second of an agent. bench/README.md has what they cost and what they find.
const RATE_DEFAULT: u32 = 19;

/// The part of all hosts that samples at another rate, and how long these are the same hosts.
const COHORT_SHARE_DEFAULT: f64 = 0.05;
const COHORT_PERIOD_DEFAULT: Duration = Duration::from_secs(3600);

/// The folder of an agent's ring, unless systemd or the user names another one.
const SERVICE_FOLDER: &str = "/var/lib/proftop";

/// The control socket of an agent, likewise. Clients connect to it by default.
pub const CONTROL: &str = "/run/proftop/control";

/// Returns what a flight recorder of `record` keeps and saves. None without `--ring`.
pub fn ring(length: Option<Duration>, words: RingArgs) -> Result<Option<RingConfig>, Failure> {
    let Some(length) = length else {
        let needs_ring = [
            (words.ring_size.is_some(), "--ring-size"),
            (!words.save_on.is_empty(), "--save-on"),
            (words.after.is_some(), "--after"),
            (words.saves.is_some(), "--saves"),
            (words.control.is_some(), "--control"),
        ];
        return match needs_ring.iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(Failure::usage(format!(
                "{option} is about a flight recorder: add --ring TIME"
            ))),
            None => Ok(None),
        };
    };
    Ok(Some(config(length, words, &AgentSettings::default())))
}

fn config(length: Duration, words: RingArgs, settings: &AgentSettings) -> RingConfig {
    let saves = words.saves.or(settings.saves);
    RingConfig {
        length,
        bytes_max: words
            .ring_size
            .or(settings.bytes_max)
            .unwrap_or(BYTES_DEFAULT),
        conditions: words.save_on,
        after: words.after.or(settings.after).unwrap_or(AFTER_DEFAULT),
        saves_max: saves.map_or(SAVES_DEFAULT, |saves| saves as usize),
        control: words.control,
        folders: Vec::new(),
        spool: None,
        cohort: None,
    }
}

/// Turns the arguments of `agent` into a request. For each setting the command line wins over the
/// section `[agent]` of the configuration, and the configuration over the default.
pub fn request(
    words: Agent,
    configuration: impl FnOnce() -> Configuration,
) -> Result<Request, Failure> {
    match words.task {
        Some(AgentTask::Save(words)) => Ok(Request::AskAgent(AskAgent {
            control: words.control,
            question: Question::Save {
                note: words.note.unwrap_or_default(),
            },
        })),
        Some(AgentTask::Status(words)) => Ok(Request::AskAgent(AskAgent {
            control: words.control,
            question: Question::Status {
                as_json: words.json,
            },
        })),
        None => {
            let folder = |name| std::env::var_os(name).filter(|path| !path.is_empty());
            let places = Places::new(folder("STATE_DIRECTORY"), folder("RUNTIME_DIRECTORY"));
            let config = agent(words, configuration(), &places)?;
            Ok(Request::Top(Box::new(config)))
        }
    }
}

/// The files of an agent.
struct Places {
    ring: PathBuf,
    control: PathBuf,
    /// The folders to make: those that systemd has not made.
    folders: Vec<PathBuf>,
}

impl Places {
    /// `state` and `runtime` are the values of `$STATE_DIRECTORY` and `$RUNTIME_DIRECTORY`, if
    /// systemd set them. If a value has several folders, with colons between them, the first is
    /// used (systemd.exec(5)).
    fn new(state: Option<std::ffi::OsString>, runtime: Option<std::ffi::OsString>) -> Self {
        let first = |paths: std::ffi::OsString| std::env::split_paths(&paths).next();
        let (state, runtime) = (state.and_then(first), runtime.and_then(first));
        let control = Path::new(CONTROL);
        let own = [
            (state.is_none(), Some(Path::new(SERVICE_FOLDER))),
            (runtime.is_none(), control.parent()),
        ];
        let missing = own.into_iter().filter(|(is_ours, _)| *is_ours);
        let folders = missing.filter_map(|(_, path)| path.map(PathBuf::from));
        Self {
            folders: folders.collect(),
            ring: state.unwrap_or(SERVICE_FOLDER.into()).join("ring.pft"),
            control: match runtime {
                Some(runtime) => runtime.join(control.file_name().unwrap_or_default()),
                None => control.into(),
            },
        }
    }
}

fn agent(words: Agent, configuration: Configuration, places: &Places) -> Result<Config, Failure> {
    let settings = configuration.0.agent.clone();
    let (target, command) = target(words.target, Vec::new())?;
    let length = words.ring.or(settings.length).unwrap_or(LENGTH_DEFAULT);
    let mut ring = config(length, words.ring_args, &settings);
    ring.spool = spool(words.spool, words.spool_window, words.spool_size, &settings)?;
    if ring.conditions.is_empty() {
        let conditions = settings.conditions.clone();
        ring.conditions = conditions.unwrap_or_else(conditions_default);
    }
    // A default folder is not made if the user names another path for what would be in it.
    let mut folders = places.folders.clone();
    if words.output.is_some() {
        folders.retain(|folder| folder != Path::new(SERVICE_FOLDER));
    }
    if ring.control.is_some() {
        folders.retain(|folder| Some(folder.as_path()) != Path::new(CONTROL).parent());
    }
    ring.folders = folders;
    ring.control = ring.control.or(Some(places.control.clone()));
    let file = words.output.unwrap_or(places.ring.clone());
    let format = recorded_format(Some(&file), "")?;
    let mut sample = sample(&words.sample, &configuration.0);
    // The rate in the section [sample] of the configuration is for the screen. An agent has its
    // own, lower default.
    sample.rate_hz = words
        .sample
        .rate
        .or(settings.rate_hz)
        .unwrap_or(RATE_DEFAULT);
    let period = words.cohort_period;
    ring.cohort = cohort(
        words.cohort_rate,
        words.cohort_share,
        period,
        &settings,
        &sample,
    )?;
    check(&ring, Some(&file), format, &sample)?;
    sample.keep = keep(&ring);
    let record = RecordConfig {
        duration: None,
        file: Some(file),
        format,
        overwrite: false,
        probes: engine::FirstProbes::default(),
        ring: Some(ring),
    };
    Ok(recording(record, target, sample, configuration, command))
}

/// Returns where an agent writes its windows. None if neither the command line nor the
/// configuration names a folder.
fn spool(
    folder: Option<PathBuf>,
    window: Option<Duration>,
    bytes_max: Option<u64>,
    settings: &AgentSettings,
) -> Result<Option<SpoolConfig>, Failure> {
    let folder = folder.or(settings.spool.clone());
    let Some(folder) = folder.filter(|path| !path.as_os_str().is_empty()) else {
        let needs_spool = [
            (window.is_some(), "--spool-window"),
            (bytes_max.is_some(), "--spool-size"),
        ];
        return match needs_spool.iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(Failure::usage(format!(
                "{option} is about a spool: add --spool DIR"
            ))),
            None => Ok(None),
        };
    };
    let window = window.or(settings.spool_window);
    let bytes_max = bytes_max.or(settings.spool_bytes_max);
    Ok(Some(SpoolConfig {
        folder,
        window: window.unwrap_or(SPOOL_WINDOW_DEFAULT),
        bytes_max: bytes_max.unwrap_or(SPOOL_BYTES_DEFAULT),
    }))
}

/// Returns the rates of an agent whose host is in a cohort from time to time. None if neither the
/// command line nor the configuration has a rate for that.
fn cohort(
    rate_hz: Option<u32>,
    share: Option<f64>,
    period: Option<Duration>,
    settings: &AgentSettings,
    sample: &SampleConfig,
) -> Result<Option<CohortConfig>, Failure> {
    let rate_hz = rate_hz.or(settings.cohort_rate_hz).filter(|hz| *hz > 0);
    let Some(rate_hz) = rate_hz else {
        let needs_rate = [
            (share.is_some(), "--cohort-share"),
            (period.is_some(), "--cohort-period"),
        ];
        return match needs_rate.iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(Failure::usage(format!(
                "{option} is about a cohort: add --cohort-rate HZ"
            ))),
            None => Ok(None),
        };
    };
    let usual_hz = sample.rate_hz;
    if rate_hz < usual_hz {
        return Err(Failure::usage(format!(
            "hosts of the cohort would be sampled at {rate_hz} Hz, and others at {usual_hz} Hz: the first \
             rate has to be the higher one"
        )));
    }
    if sample.counted != Counted::OnCpu {
        return Err(Failure::usage(
            "a cohort has another rate of clock ticks, which only --metric on-cpu counts",
        ));
    }
    let period = period.or(settings.cohort_period);
    let period = period.unwrap_or(COHORT_PERIOD_DEFAULT);
    let share = share.or(settings.cohort_share);
    Ok(Some(CohortConfig {
        cohort: Cohort {
            share: share.unwrap_or(COHORT_SHARE_DEFAULT),
            period_ms: i64::try_from(period.as_millis()).unwrap_or(i64::MAX),
        },
        rate_hz,
        usual_hz,
    }))
}

/// Returns the conditions for saving of an agent for which none are set.
fn conditions_default() -> Vec<Condition> {
    vec![Condition::parse("cpu>95% for 30s").expect("a condition")]
}

/// How long samples stay in memory: both saved files and windows of a spool are made of them.
pub fn keep(ring: &RingConfig) -> Duration {
    let saved = ring.length + ring.after;
    let window = ring.spool.as_ref().map_or(Duration::ZERO, |it| it.window);
    saved.max(window) + RECORD_KEEP
}

/// Returns an error if a flight recorder cannot write to this file, or if a condition is about the
/// CPU time of processes and the metric is another one.
pub fn check(
    ring: &RingConfig,
    file: Option<&Path>,
    format: Format,
    sample: &SampleConfig,
) -> Result<(), Failure> {
    if file.is_none() || format != Format::Pft || file.and_then(Packing::of_path).is_some() {
        return Err(Failure::usage(
            "a flight recorder keeps a .pft, which is written anew: -o FILE.pft",
        ));
    }
    if ring
        .control
        .as_ref()
        .is_some_and(|path| path.as_os_str().is_empty())
    {
        return Err(Failure::usage("--control needs the path of a socket"));
    }
    let counts_samples = |what: &What| {
        let What::Above { gauge, .. } = what else {
            return false;
        };
        matches!(gauge, Gauge::Process(_))
    };
    let by_samples = ring.conditions.iter().find(|it| counts_samples(&it.what));
    match by_samples {
        Some(condition) if sample.counted != Counted::OnCpu => Err(Failure::usage(format!(
            "--save-on '{condition}' goes by CPU time, which --metric on-cpu counts"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_systemd_come_first_and_only_others_are_made() {
        let own = Places::new(None, None);
        assert_eq!(own.ring, Path::new("/var/lib/proftop/ring.pft"));
        assert_eq!(own.control, Path::new(CONTROL));
        let folders = ["/var/lib/proftop", "/run/proftop"].map(PathBuf::from);
        assert_eq!(own.folders, folders);
        let given = Places::new(Some("/state/a:/state/b".into()), Some("/runtime".into()));
        assert_eq!(given.ring, Path::new("/state/a/ring.pft"));
        assert_eq!(given.control, Path::new("/runtime/control"));
        assert!(given.folders.is_empty());
    }
}
