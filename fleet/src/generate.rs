//! Generates windows of an artificial fleet, for tests and measurements: they go through the same
//! encoder as those of an agent. The same seed gives the same samples.
//!
//! A host has more of one function and less of another than other hosts, as real ones do, so
//! samples of one host are correlated. Stacks are weighted by Zipf's law.

use crate::config::Labels;
use crate::sinks::parquet::{self, Known, TableFile, Target, Unwritten};
use crate::window::{Frame, Function, Host, Kind, Service, Stack, Window, ids};
use std::path::Path;
use std::sync::Arc;

/// Samples per second of a busy CPU.
const RATE_HZ: u32 = 19;

/// When the first window begins: 2026-11-21 14:00 UTC.
const BEGIN_MS: i64 = 1_795_269_600_000;

/// Variation of a function among hosts: the standard deviation of the logarithm of its weight.
const HOSTS_DIFFER: f64 = 0.1;

/// The parameters of the fleet.
#[derive(Debug, Clone)]
pub struct Fleet {
    pub seed: u64,
    pub hosts: u32,
    /// Number of windows of each host, each a minute.
    pub windows: u32,
    pub services: u32,
    /// Number of different stacks of each service; each ends in a function of its own.
    pub stacks: u32,
    /// Number of samples of a service in a window.
    pub samples: u32,
    /// Number of versions: host n has version `n % versions`.
    pub versions: u32,
    /// Fraction of the samples of the last version that are additionally in the function `planted`.
    pub planted: f64,
}

impl Fleet {
    /// Writes the files of all hosts. Returns the number of rows of samples.
    pub fn write(&self, dir: &Path) -> Result<u64, Unwritten> {
        let to = &Target::Folder(dir.into());
        let mut rows = 0;
        for host in 0..self.hosts {
            let windows = self.windows_of(host);
            let mut known = Known::default();
            // The same as with `roll = "15m"`.
            for quarter in windows.chunks(15) {
                write_file(quarter, to, &mut known)?;
                let services = quarter.iter().flat_map(|it| &it.services);
                rows += services.map(|it| it.samples.len() as u64).sum::<u64>();
            }
        }
        Ok(rows)
    }

    /// Generates all windows of a host.
    fn windows_of(&self, host: u32) -> Vec<Window> {
        let mut random = Random::of_host(self.seed, host);
        let version = host % self.versions.max(1);
        let planted = if version + 1 == self.versions {
            self.planted
        } else {
            0.0
        };
        let (frames, stacks) = self.code();
        let weights: Vec<Vec<f64>> = (0..self.services)
            .map(|_| self.weights(planted, &mut random))
            .collect();
        let window = |number: u32| Window {
            spool: "5eed5eed5eed5eed".into(),
            number: u64::from(number) + 1,
            host: Host {
                name: format!("host-{host:05}"),
                kernel: "6.18.44".into(),
                arch: "x86-64".into(),
                cpus: 8,
            },
            begin_ms: BEGIN_MS + i64::from(number) * 60_000,
            duration_ms: 60_000,
            event: "cpu".into(),
            unit: "samples".into(),
            period_ns: 1_000_000_000 / u64::from(RATE_HZ),
            rate_hz: RATE_HZ,
            frames: frames.clone(),
            stacks: stacks.clone(),
            ..Window::default()
        };
        let mut windows: Vec<Window> = (0..self.windows).map(window).collect();
        for window in &mut windows {
            for (service, weights) in (0..self.services).zip(&weights) {
                window.services.push(Service {
                    name: format!("service-{service}"),
                    version: format!("v{version}"),
                    container: String::new(),
                    samples: self.draw(service, weights, &mut random),
                });
            }
        }
        windows
    }

    /// Generates the frames and stacks of all services: a main function, one of ten in the middle
    /// that calls itself in every third stack, and a leaf.
    fn code(&self) -> (Vec<Frame>, Vec<Stack>) {
        let (mut frames, mut stacks) = (Vec::new(), Vec::new());
        for service in 0..self.services {
            let mut frame = |address: u64, name: String| {
                let mut frame = Frame {
                    id: 0,
                    kind: Kind::Native,
                    module: format!("service-{service}").into(),
                    path: format!("/usr/bin/service-{service}").into(),
                    build_id: [service as u8; 20].into(),
                    address,
                    functions: [Function {
                        name: name.into(),
                        file: Arc::default(),
                        line: 0,
                    }]
                    .into(),
                };
                frame.id = ids::frame(&frame);
                frames.push(frame);
                frames.len() as u32 - 1
            };
            let main = frame(0x100, format!("service_{service}::main"));
            let middles: Vec<u32> = (0..10)
                .map(|at| frame(0x1000 + at, format!("service_{service}::middle_{at}")))
                .collect();
            for stack in 0..self.stacks {
                let name = match stack {
                    7 => "planted".to_string(),
                    other => format!("service_{service}::leaf_{other}"),
                };
                let leaf = frame(0x1_0000 + u64::from(stack), name);
                let middle = middles[stack as usize % middles.len()];
                let mut path = vec![leaf, middle];
                if stack % 3 == 0 {
                    path.push(middle);
                }
                path.push(main);
                stacks.push(path);
            }
        }
        let stack = |path: Vec<u32>| Stack {
            id: ids::stack(path.iter().map(|it| frames[*it as usize].id)),
            frames: path,
        };
        let stacks = stacks.into_iter().map(stack).collect();
        (frames, stacks)
    }

    /// Returns the cumulative weights of the stacks of a service on one host.
    fn weights(&self, planted: f64, random: &mut Random) -> Vec<f64> {
        let of = |rank: u32, random: &mut Random| {
            (f64::from(rank) + 1.0).powf(-1.1) * (HOSTS_DIFFER * random.normal()).exp()
        };
        let mut weights: Vec<f64> = (0..self.stacks).map(|rank| of(rank, random)).collect();
        let sum: f64 = weights.iter().sum();
        if let Some(of_planted) = weights.get_mut(7) {
            *of_planted += sum * planted / (1.0 - planted);
        }
        let mut end = 0.0;
        for weight in &mut weights {
            end += *weight;
            *weight = end;
        }
        weights
    }

    /// Generates the samples of a service in a window.
    fn draw(&self, service: u32, weights: &[f64], random: &mut Random) -> Vec<(u32, u64)> {
        let mut counts = vec![0; weights.len()];
        let sum = weights.last().copied().unwrap_or(0.0);
        for _ in 0..self.samples {
            let at = random.unit() * sum;
            let stack = weights.partition_point(|end| *end <= at);
            counts[stack.min(weights.len() - 1)] += 1;
        }
        let first = service * self.stacks;
        let drawn = (0..).zip(counts).filter(|it| it.1 > 0);
        drawn.map(|(stack, count)| (first + stack, count)).collect()
    }
}

/// Writes windows of a host to one file of each table, as the shipper does. Returns the total size
/// of the files.
pub fn write_file(windows: &[Window], to: &Target, known: &mut Known) -> Result<u64, Unwritten> {
    let first = &windows[0];
    let (date, hour) = crate::dates::date_and_hour(first.begin_ms);
    let (host, spool, number) = (&first.host.name, &first.spool, first.number);
    let name = format!("{host}-{spool}-{number:010}");
    let place = TableFile {
        to,
        date: &date,
        hour,
        name: &name,
    };
    parquet::write(&place, windows, &Labels::default(), 0, known)
}

/// SplitMix64: random numbers that depend only on the seed.
pub(crate) struct Random(u64);

impl Random {
    /// Returns the numbers of a host.
    pub(crate) fn of_host(seed: u64, host: u32) -> Self {
        Self(seed ^ (u64::from(host) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number of the normal distribution, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.unit(), self.unit());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}
