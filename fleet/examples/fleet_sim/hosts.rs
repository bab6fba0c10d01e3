//! Many hosts that send windows to one server, or files to one store: each goes on when its time has come, in the time of
//! the machine or in one that passes as fast as they do.

use crate::Sentence;
use proftop_fleet::config::Kind;
use proftop_fleet::simulate::{Counts, Pool, ShippingHost, Simulation};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub const MINUTE_MS: u64 = 60_000;

/// An agent writes a window so long after it began.
const WRITTEN_AFTER_MS: u64 = 65_000;

/// How many different windows there are in a minute, if hosts may have each other's.
pub const DIFFERENT: u32 = 8;

/// How many hosts send, and what.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub hosts: u32,
    /// Windows of each host, one a minute.
    pub minutes: u32,
    /// Windows of hosts begin within this time.
    pub spread_ms: u64,
    /// How many hosts have windows of their own, which others have as well.
    pub different: u32,
}

/// Hosts, their windows, and the queue of who goes on when.
pub struct Hosts {
    hosts: Vec<Mutex<Host>>,
    /// By minute, the files of windows.
    windows: Vec<Vec<PathBuf>>,
    queue: Mutex<BinaryHeap<Reverse<(u64, usize)>>>,
    /// When the first window of a host can come, in ms since 1970.
    pub start_ms: u64,
}

struct Host {
    host: ShippingHost,
    /// How far its windows are behind those of the first host.
    phase_ms: u64,
    /// The minute of the next window.
    minute: usize,
}

/// Something that a host did.
#[derive(Debug, Clone, Copy)]
pub struct Did {
    pub host: usize,
    pub at_ms: u64,
    pub until_ms: u64,
    /// What was taken by the server meanwhile.
    pub requests: u64,
    pub bytes: u64,
    /// Whether nothing is left to send.
    pub is_idle: bool,
}

impl Hosts {
    /// Makes hosts, and their windows.
    pub fn new(
        simulation: &Simulation,
        folder: &Path,
        sink: impl Fn() -> Result<Kind, Sentence>,
        load: Load,
    ) -> Result<Self, Sentence> {
        let pool = Pool::new(&folder.join("pool"))?;
        let mut windows = vec![Vec::new(); load.minutes as usize];
        // Making windows takes a while, and none is to come too late.
        let start_ms = now_ms() + if load.hosts > 500 { 60_000 } else { 0 };
        let hosts = (0..).filter_map(|it| simulation.host(it));
        for (number, mut host) in hosts.take(load.different as usize).enumerate() {
            for minute in 0..load.minutes {
                let mut window = host.window(minute);
                let begin_ms = start_ms + u64::from(minute) * MINUTE_MS - WRITTEN_AFTER_MS;
                window.begin_ms = begin_ms as i64;
                let file = pool.add(&format!("{number}-{minute}"), &window)?;
                windows[minute as usize].push(file);
            }
        }
        let mut all = Vec::new();
        let mut queue = BinaryHeap::new();
        for number in 0..load.hosts {
            // As when agents were started at any moment: at all times alike, in no order.
            let phase_ms = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) % load.spread_ms;
            let host = ShippingHost::new(folder, number, sink()?)?;
            queue.push(Reverse((start_ms + phase_ms, number as usize)));
            all.push(Mutex::new(Host {
                host,
                phase_ms,
                minute: 0,
            }));
        }
        Ok(Self {
            hosts: all,
            windows,
            queue: Mutex::new(queue),
            start_ms,
        })
    }

    /// Lets all hosts send all windows, as fast as they can: hours pass in seconds. `before` is
    /// called before each step with its time.
    pub fn run_compressed(
        &self,
        mut before: impl FnMut(u64) -> Result<(), Sentence>,
    ) -> Result<Vec<Did>, Sentence> {
        let mut all = Vec::new();
        while let Some((at_ms, host)) = self.next() {
            before(at_ms)?;
            all.push(self.step(at_ms, host)?);
        }
        Ok(all)
    }

    /// Lets all hosts send all windows in the time of the machine.
    pub fn run(&self, threads: usize) -> Result<Vec<Did>, Sentence> {
        let all = Mutex::new(Vec::new());
        let worker = || -> Result<(), Sentence> {
            while let Some((at_ms, host)) = self.next() {
                thread::sleep(Duration::from_millis(at_ms.saturating_sub(now_ms())));
                let did = self.step(at_ms.max(now_ms()), host)?;
                all.lock().expect("no thread panics").push(did);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            let ends = workers
                .into_iter()
                .map(|it| it.join().expect("no thread panics"));
            ends.collect::<Result<(), Sentence>>()
        })?;
        Ok(all.into_inner().expect("no thread panics"))
    }

    fn next(&self) -> Option<(u64, usize)> {
        let mut queue = self.queue.lock().expect("no thread panics");
        queue.pop().map(|Reverse(next)| next)
    }

    /// Lets a host do what it does at that moment.
    fn step(&self, at_ms: u64, number: usize) -> Result<Did, Sentence> {
        let mut host = self.hosts[number].lock().expect("no thread panics");
        while self.comes_at(&host).is_some_and(|it| it <= at_ms) {
            let files = &self.windows[host.minute];
            let file = &files[number % files.len()];
            host.host.spool(file)?;
            host.minute += 1;
        }
        let (requests, bytes) = (host.host.counts().requests, host.host.counts().bytes);
        let step = host.host.step(at_ms)?;
        // A host writes a Parquet file when the file's time is over. A host that has sent all of its windows
        // does nothing until its next window is in the spool.
        let next_ms = if step.is_idle && !host.host.is_waiting() {
            let pause = step.next_ms - at_ms;
            let wait = |it: u64| it.saturating_sub(step.next_ms).div_ceil(pause) * pause;
            self.comes_at(&host).map(|it| step.next_ms + wait(it))
        } else {
            Some(step.next_ms)
        };
        if let Some(next_ms) = next_ms {
            let mut queue = self.queue.lock().expect("no thread panics");
            queue.push(Reverse((next_ms, number)));
        }
        let taken = host.host.counts().requests - requests;
        Ok(Did {
            host: number,
            at_ms,
            until_ms: step.next_ms,
            requests: taken,
            // What was sent and not taken counts as well.
            bytes: if taken > 0 {
                host.host.counts().bytes - bytes
            } else {
                0
            },
            is_idle: step.is_idle,
        })
    }

    /// When the next window of a host comes; `None` after the last one.
    fn comes_at(&self, host: &Host) -> Option<u64> {
        let at_ms = self.start_ms + host.phase_ms + host.minute as u64 * MINUTE_MS;
        (host.minute < self.windows.len()).then_some(at_ms)
    }

    /// Returns the number of windows that hosts had.
    pub fn windows(&self) -> u64 {
        (self.hosts.len() * self.windows.len()) as u64
    }

    /// Returns what the shippers of all hosts have counted.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for host in &self.hosts {
            let host = host.lock().expect("no thread panics");
            let counts = host.host.counts();
            sum.windows += counts.windows;
            sum.requests += counts.requests;
            sum.bytes += counts.bytes;
            sum.samples += counts.samples;
            sum.lost += counts.lost;
            sum.expired += counts.expired;
            sum.unreadable += counts.unreadable;
            sum.refused += counts.refused;
            sum.retries += counts.retries;
        }
        sum
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_millis() as u64
}
