//! A host of a simulated fleet, and its windows.

use super::{DOWN, SKEWED, Simulation, VERSIONS, Weights};
use crate::generate::Random;
use crate::window::{Host, Service, Stack, Window};

/// Variation of a stack among hosts: the standard deviation of the logarithm of its weight.
const HOSTS_DIFFER: f64 = 0.1;

/// How busy the CPUs are: the mean over a day, how much more at the busiest hour, and that hour.
const BUSY_MEAN: f64 = 0.5;
const BUSY_MORE: f64 = 0.3;
const BUSY_HOUR: f64 = 15.0;

/// Standard deviation of how busy a host is, as a factor.
const BUSY_DIFFER: f64 = 0.1;

/// Greatest deviation of a wrong clock.
const SKEW_MS: f64 = 600_000.0;

const HOUR_MS: f64 = 3_600_000.0;
const MINUTE_MS: i64 = 60_000;

/// Part of the time, around its middle, in which hosts get version B one after the other.
const DEPLOY_TIME: f64 = 0.2;

/// A host that is not down.
pub struct SimulatedHost<'a> {
    simulation: &'a Simulation<'a>,
    pub number: u32,
    pub name: String,
    random: Random,
    services: Vec<HostService>,
    busy: f64,
    skew_ms: i64,
    /// The first minute with version B.
    deployed: u32,
    cut: Cut,
}

/// A service on a host.
struct HostService {
    index: usize,
    /// Its part of the host's samples.
    share: f64,
    /// Weights of its stacks.
    weights: Weights,
}

impl<'a> SimulatedHost<'a> {
    pub(super) fn new(simulation: &'a Simulation<'a>, number: u32) -> Option<Self> {
        let fleet = &simulation.fleet;
        let mut random = Random::of_host(fleet.seed, number);
        let fate = random.unit();
        if fleet.has_faults && fate < DOWN {
            return None;
        }
        let is_skewed = fleet.has_faults && fate < DOWN + SKEWED;
        let skew = (2.0 * random.unit() - 1.0) * SKEW_MS;
        let minutes = f64::from(fleet.minutes);
        let deployed = minutes * (0.5 + DEPLOY_TIME * (random.unit() - 0.5));
        let busy = (BUSY_DIFFER * random.normal()).exp();
        let services = services(simulation, &mut random);
        Some(Self {
            simulation,
            number,
            name: format!("host-{number:05}"),
            random,
            services,
            busy,
            skew_ms: if is_skewed { skew as i64 } else { 0 },
            deployed: deployed.round() as u32,
            cut: Cut::default(),
        })
    }

    /// Makes the next window: those of a host are made in their order, from minute 0 on.
    pub fn window(&mut self, minute: u32) -> Window {
        let fleet = &self.simulation.fleet;
        let begin_ms = fleet.begin_ms + i64::from(minute) * MINUTE_MS;
        let samples = f64::from(fleet.rate_hz * fleet.cpus * 60) * self.busy_at(begin_ms);
        let version = usize::from(minute >= self.deployed);
        let mut window = Window {
            spool: format!("{:016x}", self.number),
            number: u64::from(minute) + 1,
            host: Host {
                name: self.name.clone(),
                kernel: "6.18.44".into(),
                arch: "x86-64".into(),
                cpus: fleet.cpus,
            },
            begin_ms: begin_ms + self.skew_ms,
            duration_ms: MINUTE_MS as u64,
            event: "cpu".into(),
            unit: "samples".into(),
            period_ns: 1_000_000_000 / u64::from(fleet.rate_hz),
            rate_hz: fleet.rate_hz,
            ..Window::default()
        };
        for at in 0..self.services.len() {
            let drawn = self.draw(at, version, samples);
            let index = self.services[at].index;
            let recorded = &self.simulation.recorded.services[index];
            let stacks = drawn
                .into_iter()
                .map(|(stack, value)| (recorded.stacks[stack].0, value));
            let samples = self.cut.take(self.simulation, version, stacks, &mut window);
            window.services.push(Service {
                name: recorded.name.clone(),
                version: VERSIONS[version].into(),
                container: String::new(),
                samples,
            });
        }
        self.cut.end();
        window.services.sort_by(|a, b| a.name.cmp(&b.name));
        window
    }

    /// How busy the CPUs of the host are, from 0 to 1.
    fn busy_at(&self, unix_ms: i64) -> f64 {
        let hour = unix_ms as f64 / HOUR_MS % 24.0;
        let wave = ((hour - BUSY_HOUR) / 24.0 * std::f64::consts::TAU).cos();
        ((BUSY_MEAN + BUSY_MORE * wave) * self.busy).clamp(0.0, 1.0)
    }

    /// Draws samples of a service in a window: indices in the list of its stacks, and values.
    fn draw(&mut self, at: usize, version: usize, samples: f64) -> Vec<(usize, u64)> {
        let service = &self.services[at];
        let planted = if version == 1 && service.index == 0 {
            self.simulation.fleet.planted
        } else {
            0.0
        };
        let planted_stacks = &self.simulation.planted;
        let mut counts = vec![0; service.weights.len()];
        for _ in 0..(samples * service.share).round() as u64 {
            let is_planted = planted > 0.0 && self.random.unit() < planted;
            let stack = if is_planted && !planted_stacks.is_empty() {
                planted_stacks[(self.random.unit() * planted_stacks.len() as f64) as usize]
            } else {
                service.weights.draw(&mut self.random)
            };
            counts[stack] += 1;
        }
        let drawn = counts.into_iter().enumerate();
        drawn.filter(|it| it.1 > 0).collect()
    }
}

/// Draws the services of a host, and how much of its time each takes.
fn services(simulation: &Simulation, random: &mut Random) -> Vec<HostService> {
    let all = &simulation.recorded.services;
    let count = simulation.fleet.services.min(all.len());
    let mut services: Vec<HostService> = Vec::new();
    while services.len() < count {
        let index = simulation.popularity.draw(random);
        if services.iter().any(|it| it.index == index) {
            continue;
        }
        let weights = simulation.fleet.weighting.weights(&all[index]).into_iter();
        let weights = weights.map(|it| it * (HOSTS_DIFFER * random.normal()).exp());
        let weights = Weights::new(weights);
        services.push(HostService {
            index,
            share: 0.2 + random.unit(),
            weights,
        });
    }
    let sum: f64 = services.iter().map(|it| it.share).sum();
    services.iter_mut().for_each(|it| it.share /= sum);
    services
}

/// Gives a window the stacks and frames that its samples have, and no others.
#[derive(Default)]
struct Cut {
    /// By the index in what was recorded, the index in the window plus one; 0 if it is not there.
    stacks: Vec<u32>,
    frames: Vec<u32>,
    used_stacks: Vec<usize>,
    used_frames: Vec<usize>,
}

impl Cut {
    /// Adds stacks to a window. Returns the samples with the indices that they have there.
    fn take(
        &mut self,
        simulation: &Simulation,
        version: usize,
        samples: impl Iterator<Item = (u32, u64)>,
        window: &mut Window,
    ) -> Vec<(u32, u64)> {
        let (recorded, build) = (simulation.recorded, &simulation.builds[version]);
        self.stacks.resize(recorded.stacks.len(), 0);
        self.frames.resize(recorded.frames.len(), 0);
        let mut taken = Vec::new();
        for (stack, value) in samples {
            let stack = stack as usize;
            if self.stacks[stack] == 0 {
                let mut frames = Vec::with_capacity(recorded.stacks[stack].frames.len());
                for frame in &recorded.stacks[stack].frames {
                    let frame = *frame as usize;
                    if self.frames[frame] == 0 {
                        window.frames.push(build.frames[frame].clone());
                        self.frames[frame] = window.frames.len() as u32;
                        self.used_frames.push(frame);
                    }
                    frames.push(self.frames[frame] - 1);
                }
                window.stacks.push(Stack {
                    id: build.stack_ids[stack],
                    frames,
                });
                self.stacks[stack] = window.stacks.len() as u32;
                self.used_stacks.push(stack);
            }
            taken.push((self.stacks[stack] - 1, value));
        }
        taken.sort_unstable();
        taken
    }

    /// Forgets the window.
    fn end(&mut self) {
        for stack in self.used_stacks.drain(..) {
            self.stacks[stack] = 0;
        }
        for frame in self.used_frames.drain(..) {
            self.frames[frame] = 0;
        }
    }
}
