//! Hosts that send windows to a server, with the code of the shipper: each has a spool, a state and
//! a time of its own.

use super::spooling;
use crate::config::{Config, Kind, Labels, Server as Address, Sink, Version};
use crate::schedule::Schedule;
use crate::ship::{Clock, PAUSE, Push, Shipper, Turn};
use crate::sinks::server::Server;
use crate::state::Counts;
use crate::window::Window;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Windows that several hosts have: making each for each host would take more time than sending it.
pub struct Pool {
    folder: PathBuf,
}

impl Pool {
    pub fn new(folder: &Path) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(|error| told(folder, &error))?;
        Ok(Self {
            folder: folder.into(),
        })
    }

    /// Writes a window as an agent does. Returns its file.
    pub fn add(&self, name: &str, window: &Window) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        spooling::write(window, &path).map_err(|error| told(&path, &error))?;
        Ok(path)
    }
}

/// A host with a sink that is a server.
pub struct PushingHost {
    spool: PathBuf,
    id: String,
    windows: u64,
    now_ms: Arc<AtomicU64>,
    push: Push,
}

/// What a host did at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// When it goes on, in ms since 1970.
    pub next_ms: u64,
    /// Whether it has nothing to do.
    pub is_idle: bool,
}

impl PushingHost {
    /// Makes a host with an empty spool in a folder. `url` is that of Pyroscope.
    pub fn new(folder: &Path, number: u32, url: &str) -> Result<Self, String> {
        let spool = folder.join(format!("spool-{number}"));
        fs::create_dir_all(&spool).map_err(|error| told(&spool, &error))?;
        let address = Address {
            url: url.into(),
            tenant: String::new(),
            token_file: None,
            ca: None,
            identity: None,
        };
        let config = Config {
            spool: spool.clone(),
            state: folder.join(format!("state-{number}")),
            labels: Labels {
                version: Version::BuildId,
                ..Labels::default()
            },
            schedule: Schedule::Always,
            sinks: vec![Sink {
                name: "pyroscope".into(),
                kind: Kind::Pyroscope(address),
            }],
        };
        let now_ms = Arc::new(AtomicU64::new(0));
        let clock = Clock::Simulated(Arc::clone(&now_ms));
        let sink = &config.sinks[0];
        let failed = |failure: crate::failure::Failure| failure.to_string();
        let shipper = Shipper::new(&config, sink, clock, false).map_err(failed)?;
        let server = Server::of_sink(sink, &config.labels).map_err(failed)?;
        let server = server.expect("Pyroscope is a server");
        Ok(Self {
            spool,
            id: format!("{number:016x}"),
            windows: 0,
            now_ms,
            push: Push::new(shipper, server),
        })
    }

    /// Puts a window into the spool.
    pub fn spool(&mut self, file: &Path) -> Result<(), String> {
        self.windows += 1;
        let name = format!("{}-{:010}.20261121T140312Z.pft", self.id, self.windows);
        let path = self.spool.join(name);
        fs::hard_link(file, &path).map_err(|error| told(&path, &error))
    }

    /// Does what the shipper does at that moment: sends a window, or finds none.
    pub fn step(&mut self, now_ms: u64) -> Result<Step, String> {
        self.now_ms.store(now_ms, Ordering::Relaxed);
        let turn = self.push.turn().map_err(|failure| failure.to_string())?;
        // The shipper has waited if it was too fast.
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        let (wait, is_idle) = match turn {
            Turn::Done => (0, false),
            Turn::Idle => (PAUSE.as_millis() as u64, true),
            Turn::Wait(time) => (time.as_millis() as u64, false),
        };
        Ok(Step {
            next_ms: now_ms + wait,
            is_idle,
        })
    }

    /// Returns what the shipper has counted.
    pub fn counts(&self) -> &Counts {
        &self.push.shipper().state.memory.counts
    }
}

fn told(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("cannot write {}: {error}", path.display())
}
