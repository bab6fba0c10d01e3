//! Hosts that send their windows somewhere, with the code of the shipper: each has a spool, a state
//! and a time of its own.

use super::spooling;
use crate::bucket::BucketUrl;
use crate::config::{CATCH_UP_DEFAULT, Config, Kind, Labels, Server, Sink, Target, Version};
use crate::schedule::Schedule;
use crate::ship::{Clock, PAUSE, Turn, Work};
use crate::state::Counts;
use crate::window::Window;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// Returns the sink for a server of Pyroscope.
pub fn pyroscope(url: &str) -> Kind {
    Kind::Pyroscope(Server {
        url: url.into(),
        tenant: String::new(),
        token_file: None,
        ca: None,
        identity: None,
    })
}

/// Returns the sink for files of Parquet of a quarter of an hour, in a folder or at `s3://…`.
pub fn parquet(place: &Path) -> Result<Kind, String> {
    let to = if BucketUrl::is_meant(place) {
        Target::Bucket(BucketUrl::read(&place.to_string_lossy())?)
    } else {
        Target::Folder(place.into())
    };
    let roll = Duration::from_secs(15 * 60);
    Ok(Kind::Parquet { to, roll })
}

/// A host with one sink.
pub struct ShippingHost {
    spool: PathBuf,
    id: String,
    windows: u64,
    now_ms: Arc<AtomicU64>,
    work: Work,
}

/// What a host did at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// When it goes on, in ms since 1970.
    pub next_ms: u64,
    /// Whether it has nothing to do.
    pub is_idle: bool,
}

impl ShippingHost {
    /// Makes a host with an empty spool in a folder.
    pub fn new(folder: &Path, number: u32, kind: Kind) -> Result<Self, String> {
        let spool = folder.join(format!("spool-{number}"));
        fs::create_dir_all(&spool).map_err(|error| told(&spool, &error))?;
        let config = Config {
            spool: spool.clone(),
            state: folder.join(format!("state-{number}")),
            labels: Labels {
                version: Version::BuildId,
                ..Labels::default()
            },
            schedule: Schedule::Always,
            catch_up: CATCH_UP_DEFAULT,
            sinks: vec![Sink {
                name: kind.word().into(),
                kind,
            }],
        };
        let now_ms = Arc::new(AtomicU64::new(0));
        let clock = Clock::Simulated(Arc::clone(&now_ms));
        let work = Work::new(&config, &config.sinks[0], clock, false);
        let work = work.map_err(|failure| failure.to_string())?;
        Ok(Self {
            spool,
            id: format!("{number:016x}"),
            windows: 0,
            now_ms,
            work,
        })
    }

    /// Puts a window into the spool.
    pub fn spool(&mut self, file: &Path) -> Result<(), String> {
        self.windows += 1;
        let name = format!("{}-{:010}.20261121T140312Z.pft", self.id, self.windows);
        let path = self.spool.join(name);
        fs::hard_link(file, &path).map_err(|error| told(&path, &error))
    }

    /// Does what the shipper does at that moment: sends a window or a file, or finds none.
    pub fn step(&mut self, now_ms: u64) -> Result<Step, String> {
        self.now_ms.store(now_ms, Ordering::Relaxed);
        let turn = self.work.turn().map_err(|failure| failure.to_string())?;
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

    /// Whether windows of the spool are still to be sent, also if nothing can be done now.
    pub fn is_waiting(&self) -> bool {
        let counts = self.counts();
        counts.windows + counts.expired + counts.lost + counts.unreadable < self.windows
    }

    /// Returns what the shipper has counted.
    pub fn counts(&self) -> &Counts {
        &self.work.shipper().state.memory.counts
    }
}

fn told(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("cannot write {}: {error}", path.display())
}
