//! Helpers for the tests of all sources. Each test uses a part of them.
#![allow(dead_code, reason = "the other tests use the rest of it")]

use crate::burn;
use probe::{Counters, Ending, ModuleKind, Sample, Source, Target, now_ns};
use std::collections::{BTreeSet, HashMap};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use test_support::{Process, skip, wait_for, wait_until};

static MACHINE: Mutex<()> = Mutex::new(());

/// Excludes the other tests of this program: for a test that samples its own process, or counts
/// what the whole machine does.
pub fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the result of starting; `None`, with a message, if rights are missing.
pub fn unless_forbidden<S>(started: Result<S, probe::Error>, needs: &str) -> Option<S> {
    match started {
        Ok(source) => Some(source),
        Err(error) if error.is_permission() => {
            skip(format_args!("{needs}: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub fn only(pid: u32) -> Target {
    Target {
        pids: vec![pid],
        ..Target::default()
    }
}

/// Everything that a source has returned.
#[derive(Default)]
pub struct Seen {
    pub samples: Vec<Sample>,
    pub modules: HashMap<u32, ModuleKind>,
    pub pids: HashMap<u32, u32>,
    pub counters: Counters,
    pub targets_alive: Option<usize>,
}

impl Seen {
    /// Takes the next batch of a source, and returns the time until which it is complete.
    pub fn take(&mut self, source: &mut dyn Source) -> u64 {
        let batch = source.poll(Duration::from_millis(20)).unwrap();
        self.samples.extend(batch.samples);
        self.modules.extend(
            batch
                .modules
                .into_iter()
                .map(|module| (module.id.0, module.kind)),
        );
        self.pids.extend(
            batch
                .processes
                .iter()
                .map(|process| (process.id.0, process.pid)),
        );
        self.counters = batch.counters;
        self.targets_alive = batch.targets_alive;
        batch.complete_until_ns
    }

    /// Collects what a source returns until `enough` is true. Fails if it never is.
    #[track_caller]
    pub fn until(source: &mut dyn Source, what: &str, enough: impl Fn(&Seen) -> bool) -> Seen {
        let mut seen = Seen::default();
        wait_for(what, || {
            seen.take(source);
            enough(&seen).then(|| std::mem::take(&mut seen))
        })
    }

    /// Collects what a source returns until it has `count` samples.
    #[track_caller]
    pub fn samples(source: &mut dyn Source, count: usize) -> Seen {
        let what = format!("{count} samples");
        Seen::until(source, &what, |seen| seen.samples.len() >= count)
    }

    pub fn pid_of(&self, sample: &Sample) -> u32 {
        self.pids[&sample.process.0]
    }
}

/// The CPU time of burning threads, and how often they were sampled meanwhile.
pub struct Burnt {
    /// CPU time.
    pub seconds: f64,
    pub samples: f64,
    /// Number of the samples that were not in the kernel: an interrupt, possibly for another
    /// program, causes a sample of the thread that it interrupts, but does not use that thread's
    /// CPU time.
    pub in_user: f64,
    pub lost: u64,
}

impl Burnt {
    /// Samples until the threads have used that much CPU time.
    #[track_caller]
    pub fn of(source: &mut dyn Source, threads: &burn::Threads, seconds: f64) -> Self {
        let (from_ns, before) = (now_ns(), threads.cpu_seconds());
        let mut seen = Seen::until(source, "CPU time of the burning threads", |_| {
            threads.cpu_seconds() >= before + seconds
        });
        let (seconds, to_ns) = (threads.cpu_seconds() - before, now_ns());
        wait_until("all samples up to then", || seen.take(source) >= to_ns);
        let tids = threads.tids();
        let is_meant = |sample: &&Sample| {
            (from_ns..to_ns).contains(&sample.time_ns) && tids.contains(&sample.tid)
        };
        let samples = seen.samples.iter().filter(is_meant);
        let in_user = samples.clone().filter(|sample| sample.kernel_frames == 0);
        Self {
            seconds,
            samples: samples.clone().count() as f64,
            in_user: in_user.count() as f64,
            lost: seen.counters.lost,
        }
    }
}

/// Two shells that are always busy, one of them of another user.
pub struct TwoUsers {
    uid: u32,
    theirs: Process,
    _ours: Process,
}

impl TwoUsers {
    /// Starts the shells; `None` if this process may not become another user.
    pub fn start() -> Option<Self> {
        let uid = 60_123;
        let burn = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]);
            shell
        };
        let theirs = Process::try_start(burn().uid(uid));
        let Ok(theirs) = theirs else {
            skip("only root can start a program as another user");
            return None;
        };
        let ours = Process::start(&mut burn());
        Some(Self {
            uid,
            theirs,
            _ours: ours,
        })
    }

    /// Returns a target with the processes of the other user.
    pub fn target(&self) -> Target {
        Target {
            uids: vec![self.uid],
            ..Target::default()
        }
    }

    pub fn assert_only_theirs(&self, seen: &Seen) {
        assert!(!seen.samples.is_empty());
        let pids: BTreeSet<u32> = seen
            .samples
            .iter()
            .map(|sample| seen.pid_of(sample))
            .collect();
        assert_eq!(pids, BTreeSet::from([self.theirs.pid()]));
        assert!(seen.counters.filtered > 0, "others ran as well");
    }
}

/// Returns a target with all processes, but only on the last CPU, and the number of that CPU.
pub fn on_one_cpu() -> (Target, u32) {
    let online = probe::cpus::online().unwrap();
    let last = *online.last().unwrap();
    let target = Target {
        cpus: Some([last].into()),
        ..Target::default()
    };
    (target, last)
}

/// Checks that threads that burn on all CPUs were sampled on one only.
pub fn assert_only_on(cpu: u32, seen: &Seen) {
    assert!(seen.samples.len() > 20, "{} samples", seen.samples.len());
    let cpus: BTreeSet<u32> = seen.samples.iter().map(|sample| sample.cpu).collect();
    assert_eq!(cpus, BTreeSet::from([cpu]));
    // Other samples are not checked: mappings may have been made on any CPU.
    let burning = seen
        .samples
        .iter()
        .filter(|sample| &*sample.comm == burn::THREAD_NAME);
    let whole = burning
        .clone()
        .filter(|sample| sample.ending == Ending::Root)
        .count();
    assert!(whole * 10 >= burning.count() * 8, "{whole} whole");
}
