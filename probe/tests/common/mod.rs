//! What the tests of all sources need. Each uses a part of it.
#![allow(dead_code, reason = "the other tests use the rest of it")]

use probe::{Counters, ModuleKind, Sample, Source, Target};
use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// One at a time: each counts what the machine does.
static ALONE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Says why a test has seen nothing. Not by `eprintln`: the test harness would
/// keep it to itself.
pub fn skipped(why: impl Display) {
    _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// What was started, or nothing where rights are missing.
pub fn unless_forbidden<S>(started: Result<S, probe::Error>, needs: &str) -> Option<S> {
    match started {
        Ok(source) => Some(source),
        Err(error) if error.is_permission() => {
            skipped(format_args!("{needs}: {error}"));
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

/// Everything that a source gave in a while.
#[derive(Default)]
pub struct Seen {
    pub samples: Vec<Sample>,
    pub modules: HashMap<u32, ModuleKind>,
    pub pids: HashMap<u32, u32>,
    pub counters: Counters,
    pub targets_alive: Option<usize>,
}

impl Seen {
    pub fn take(&mut self, source: &mut dyn Source) {
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
    }

    /// Until it is enough, or half a minute is over.
    pub fn until(source: &mut dyn Source, enough: impl Fn(&Seen) -> bool) -> Seen {
        let mut seen = Seen::default();
        let end = Instant::now() + Duration::from_secs(30);
        while !enough(&seen) && Instant::now() < end {
            seen.take(source);
        }
        seen
    }

    pub fn pid_of(&self, sample: &Sample) -> u32 {
        self.pids[&sample.process.0]
    }
}

/// Two shells that are always busy, one of them somebody else's.
pub struct TwoUsers {
    pub uid: u32,
    pub theirs: Child,
    ours: Child,
}

impl TwoUsers {
    /// Nothing where we may not become another user.
    pub fn start() -> Option<Self> {
        let uid = 60_123;
        let burn = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]);
            shell
        };
        let theirs = burn().uid(uid).spawn();
        let Ok(theirs) = theirs else {
            skipped("only root can start a program as another user");
            return None;
        };
        let ours = burn().spawn().unwrap();
        Some(Self { uid, theirs, ours })
    }
}

impl Drop for TwoUsers {
    fn drop(&mut self) {
        for child in [&mut self.theirs, &mut self.ours] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Everybody, but only on the last CPU that there is.
pub fn on_one_cpu() -> (Target, u32) {
    let online = probe::cpus::online().unwrap();
    let last = *online.last().unwrap();
    let target = Target {
        cpus: Some([last].into()),
        ..Target::default()
    };
    (target, last)
}
