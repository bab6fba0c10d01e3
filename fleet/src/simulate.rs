//! Simulates a fleet of hosts, for measurements: the stacks are those that proftop has recorded of
//! real programs, and the windows go through the same code as those of an agent. The same seed gives
//! the same samples.
//!
//! A host runs some of the services, more often those that come first (Zipf's law), and how busy it
//! is follows the hour of the day. In the middle of the time all services get version B, host by
//! host. In B all code of their programs is another build, and one function can take more time.

/// A host and its windows.
mod host;
/// What was recorded.
mod recorded;
/// Hosts that send their windows somewhere.
mod shipping;
/// Writes windows as an agent does.
mod spooling;

pub use crate::state::Counts;
pub use host::SimulatedHost;
pub use recorded::{Recorded, RecordedService};
pub use shipping::{Pool, ShippingHost, Step, parquet, pyroscope};

use crate::generate::Random;
use recorded::Build;

/// The names of the two versions.
pub const VERSIONS: [&str; 2] = ["A", "B"];

/// Exponent of Zipf's law, for services of a host and for stacks of a service.
const ZIPF: f64 = 1.1;

/// Share of the hosts that are down, and of those whose clock is wrong.
const DOWN: f64 = 0.01;
const SKEWED: f64 = 0.005;

/// The planted function has this share of its service's own time, or as near to it as there is: a
/// function that is neither the only one nor hardly ever seen.
const PLANTED_SHARE: f64 = 0.03;

/// How often each stack of a service is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// By its place in the order of what was recorded: Zipf's law.
    Zipf,
    /// As often as it was recorded.
    Recorded,
}

impl Weighting {
    /// Returns the weights of all stacks of a service.
    fn weights(self, service: &RecordedService) -> Vec<f64> {
        let weight = |(place, (_, samples)): (usize, &(u32, u64))| match self {
            Weighting::Zipf => zipf(place + 1),
            Weighting::Recorded => *samples as f64,
        };
        service.stacks.iter().enumerate().map(weight).collect()
    }
}

/// The parameters of a fleet.
#[derive(Debug, Clone)]
pub struct Fleet {
    pub seed: u64,
    /// CPUs of each host.
    pub cpus: u32,
    /// Samples per second of a busy CPU.
    pub rate_hz: u32,
    /// How many services run on a host.
    pub services: usize,
    pub weighting: Weighting,
    /// When it begins, in ms since 1970, and how many minutes it lasts.
    pub begin_ms: i64,
    pub minutes: u32,
    /// Fraction of the samples of the first service in version B that are additionally in one
    /// function.
    pub planted: f64,
    /// Whether some hosts are down and some have a wrong clock.
    pub has_faults: bool,
}

/// A fleet whose hosts can be made.
pub struct Simulation<'a> {
    pub fleet: Fleet,
    recorded: &'a Recorded,
    /// The code of both versions.
    builds: [Build; 2],
    /// Stacks of the planted function, as indices in the list of the first service's stacks.
    planted: Vec<usize>,
    planted_function: String,
    /// Weights of the services.
    popularity: Weights,
}

impl<'a> Simulation<'a> {
    /// Prepares a fleet. What was recorded has at least one service.
    pub fn new(recorded: &'a Recorded, fleet: Fleet) -> Self {
        let weights = fleet.weighting.weights(&recorded.services[0]);
        let (planted_function, planted) = recorded.function_with_share(0, &weights, PLANTED_SHARE);
        let count = recorded.services.len();
        Self {
            recorded,
            builds: [recorded.build(0), recorded.build(1)],
            planted,
            planted_function,
            popularity: Weights::new((1..=count).map(zipf)),
            fleet,
        }
    }

    /// Makes a host; `None` if it is down all the time.
    pub fn host(&self, number: u32) -> Option<SimulatedHost<'_>> {
        SimulatedHost::new(self, number)
    }

    /// Returns the service with the planted function, and the function's name.
    pub fn planted(&self) -> (&str, &str) {
        (&self.recorded.services[0].name, &self.planted_function)
    }
}

/// Returns the weight of a place in an order, which begins at 1.
fn zipf(place: usize) -> f64 {
    (place as f64).powf(-ZIPF)
}

/// Weights by which indices are drawn.
struct Weights {
    /// The sums of all weights up to each one.
    sums: Vec<f64>,
    /// Where to begin to look: the sum of all weights is divided into as many equal parts as there are
    /// weights, and each part has the last index whose sum is not in it yet, or 0.
    begins: Vec<usize>,
}

impl Weights {
    /// Takes at least one weight.
    fn new(weights: impl Iterator<Item = f64>) -> Self {
        let sums = weights.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        let sums: Vec<f64> = sums.collect();
        let sum = sums.last().copied().unwrap_or(0.0);
        let part = sum / sums.len() as f64;
        let begin = |at: usize| {
            let begins = at as f64 * part;
            sums.partition_point(|end| *end <= begins).saturating_sub(1)
        };
        let begins = (0..sums.len()).map(begin).collect();
        Self { sums, begins }
    }

    fn len(&self) -> usize {
        self.sums.len()
    }

    fn draw(&self, random: &mut Random) -> usize {
        self.at(random.unit())
    }

    /// Returns the first index up to which the sum is greater than this part of all, from 0 to below 1.
    fn at(&self, part: f64) -> usize {
        let last = self.len() - 1;
        let sum = part * self.sums[last];
        let mut index = self.begins[((part * self.len() as f64) as usize).min(last)];
        while index < last && self.sums[index] <= sum {
            index += 1;
        }
        index
    }
}

#[cfg(test)]
mod tests;
