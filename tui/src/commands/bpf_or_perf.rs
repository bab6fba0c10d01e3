//! The choice of what takes the samples of a run: BPF, or perf where BPF is not possible. As far as
//! possible, it is made before the screen opens.

use crate::choices::EngineChoice;
use crate::failure::rights::{Invocation, cannot_open_clocks, cannot_sample, not_even_by_perf};
use crate::failure::{Exit, Failure};
use engine::Counted;
use engine::probes::check_point;
use probe::privilege::Rights;
use probe::{BpfSource, Happening, PerfSource, Source, features};
use rustix::io::Errno;

/// The sampler that will be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sampler {
    Bpf,
    /// BPF, or perf if the kernel refuses the BPF programs.
    BpfElsePerf,
    /// Perf. The text says why it is not BPF; None if the user chose perf.
    Perf(Option<String>),
}

impl Sampler {
    /// Chooses a sampler for this target, by the rights of this process. For a command that is not
    /// started yet the target is this process, which has the same owner.
    pub fn choose(choice: EngineChoice, target: &probe::Target) -> Result<Self, Failure> {
        match choice {
            EngineChoice::Bpf => {
                may_use_bpf(target, true).map_err(|why| *why.0)?;
                Ok(Self::Bpf)
            }
            EngineChoice::Perf => match PerfSource::may_sample(target) {
                Ok(()) => Ok(Self::Perf(None)),
                Err(error) => Err(not_even_by_perf(&error, features::perf_event_paranoid())),
            },
            EngineChoice::Auto => match may_use_bpf(target, false) {
                Ok(()) => Ok(Self::BpfElsePerf),
                Err(WithoutBpf(failure, why)) => match PerfSource::may_sample(target) {
                    Ok(()) => Ok(Self::Perf(Some(format!(
                        "sampling by perf, not BPF: {why}"
                    )))),
                    // If neither works, the message says what BPF needs, because BPF shows more.
                    Err(_) => Err(*failure),
                },
            },
        }
    }

    /// Returns an error if this sampler cannot count the metric here: the numbers would be 0 and
    /// look like an answer.
    pub fn check_counted(&self, counted: &Counted) -> Result<(), Failure> {
        let Self::Perf(why) = self else {
            return counted.happening().map_or(Ok(()), check_happening);
        };
        let what = match counted {
            Counted::OnCpu => return Ok(()),
            Counted::OffCpu | Counted::Wall if PerfSource::FOLLOWS_WAITS => return Ok(()),
            Counted::OffCpu | Counted::Wall => "the time that threads wait".to_owned(),
            Counted::KeptWaiting => "who keeps others waiting".to_owned(),
            Counted::Happening(happening) => happening.name(),
        };
        let sentence = format!("cannot count {what}: only BPF sees it");
        let failure = Failure::new(Exit::NotPossible, sentence);
        Err(match why {
            Some(why) => failure
                .detail(why)
                .remedy(format!("sudo {}", Invocation::current()), "this run"),
            None => failure.detail("--engine perf was asked for: leave it out"),
        })
    }

    /// Starts sampling. The error is the whole sentence for the user.
    pub fn start(self, config: &probe::Config) -> Result<Box<dyn Source>, String> {
        let cannot = |error: probe::Error| format!("cannot sample: {error}");
        let because = match self {
            Self::Perf(because) => because,
            Self::Bpf | Self::BpfElsePerf => match BpfSource::start(config) {
                Ok(source) => return Ok(Box::new(source)),
                // Perf counts time only.
                Err(error) if self == Self::Bpf || config.happening.is_some() => {
                    return Err(format!("{}{}", cannot(error), what_is_missing()));
                }
                Err(error) => Some(format!("sampling by perf, not BPF: {error}")),
            },
        };
        let source = PerfSource::start(config).map_err(|error| {
            let by_bpf = because.as_ref().map(|why| format!("\n  {why}"));
            format!("{}{}", cannot(error), by_bpf.unwrap_or_default())
        })?;
        Ok(Box::new(match because {
            Some(reason) => source.because(reason),
            None => source,
        }))
    }
}

/// Returns an error if this machine cannot count this kind of event.
fn check_happening(happening: &Happening) -> Result<(), Failure> {
    let name = happening.name();
    let failure =
        |why: &str| Failure::new(Exit::NotPossible, format!("cannot count {name}: {why}"));
    let counter = match happening {
        Happening::Counter(counter) => counter,
        Happening::Point { subsystem, name } => {
            return check_point(subsystem.as_deref(), name).map_err(|why| failure(&why));
        }
    };
    let Err(error) = happening.try_open() else {
        return Ok(());
    };
    let is_missing = matches!(
        Errno::from_io_error(&error),
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV)
    );
    Err(if counter.is_hardware() && is_missing {
        failure("this machine shows no hardware counters, as most virtual machines do")
            .detail("page-faults, context-switches and cpu-migrations are counted by the kernel, and tracepoints are there as well")
    } else {
        failure(&error.to_string())
    })
}

/// Why BPF is not possible: as the failure of the run, and in a few words.
struct WithoutBpf(Box<Failure>, String);

/// Returns an error if BPF cannot sample this target, because of missing rights, or in a container
/// that has its own namespaces. `needs_bpf` says that there is no fallback to perf.
fn may_use_bpf(target: &probe::Target, needs_bpf: bool) -> Result<(), WithoutBpf> {
    let rights = Rights::current().map_err(|error| {
        let sentence = format!("failed to read `/proc/self/status`: {error}");
        WithoutBpf(Box::new(Failure::failed(sentence.clone())), sentence)
    })?;
    rights.can_sample().map_err(|missing| {
        let paranoid = features::perf_event_paranoid();
        let failure = cannot_sample(&missing, paranoid, &Invocation::current(), needs_bpf);
        WithoutBpf(Box::new(failure), missing.to_string())
    })?;
    if let Some(level) = features::level_that_keeps_clocks() {
        let failure = cannot_open_clocks(level, &Invocation::current());
        let why = failure.message.clone();
        return Err(WithoutBpf(Box::new(failure), why));
    }
    same_numbers_as_the_kernel(target)
}

/// Returns an error in a container with its own pid or cgroup namespace: the BPF program sees the
/// ids of the host, which differ from those in the container.
fn same_numbers_as_the_kernel(target: &probe::Target) -> Result<(), WithoutBpf> {
    if !features::in_host_pid_namespace() {
        let why = "this container has a pid namespace of its own";
        let failure = Failure::new(Exit::NotPossible, format!("cannot sample: {why}"))
            .detail("process numbers in here differ from those in the kernel's samples")
            .remedy("docker run --pid=host …", "starts it in the host's");
        return Err(WithoutBpf(Box::new(failure), why.into()));
    }
    if target.cgroup.is_some() && !features::in_host_cgroup_namespace() {
        let why = "this container has a cgroup namespace of its own";
        let failure = Failure::new(Exit::NotPossible, format!("cannot use -g: {why}"))
            .remedy("docker run --cgroupns=host …", "starts it in the host's");
        return Err(WithoutBpf(Box::new(failure), why.into()));
    }
    Ok(())
}

/// Returns what this machine lacks, in the words of `doctor`, because the kernel's error seldom
/// says it.
fn what_is_missing() -> String {
    let Ok(rights) = Rights::current() else {
        return String::new();
    };
    features::survey(&rights)
        .into_iter()
        .filter(|finding| finding.level == features::Level::Fail)
        .map(|finding| format!("\n  {}", finding.what))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_cannot_count_is_refused() {
        for why in [None, Some("sampling by perf, not BPF: uid 1000".to_owned())] {
            let sampler = Sampler::Perf(why);
            assert!(sampler.check_counted(&Counted::OnCpu).is_ok());
            let faults = Happening::parse("page-faults").unwrap();
            let waits = [Counted::OffCpu, Counted::Wall];
            for counted in &waits {
                let is_counted = sampler.check_counted(counted).is_ok();
                assert_eq!(is_counted, PerfSource::FOLLOWS_WAITS);
            }
            for counted in [Counted::KeptWaiting, Counted::Happening(faults)] {
                let failure = sampler.check_counted(&counted).unwrap_err();
                assert_eq!(failure.exit, Exit::NotPossible);
                let text = failure.to_string();
                assert!(
                    text.contains("sudo") || text.contains("leave it out"),
                    "{text}"
                );
            }
        }
        assert!(Sampler::BpfElsePerf.check_counted(&Counted::Wall).is_ok());
    }
}
