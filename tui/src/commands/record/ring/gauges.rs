//! The measured values of conditions, for the time of each report.

use super::run_queue::{self, RunQueue};
use crate::condition::{Gauge, Resource};
use crate::failure::{Exit, Failure};
use engine::snapshot::Snapshot;
use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::Instant;

/// The measurements of one report's time: its length, and the use of CPUs and other resources.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub seconds: f64,
    /// CPU time that was used, and that was available, in seconds.
    pub busy: f64,
    pub capacity: f64,
    /// Time in which some thread waited for a resource, and the time between two reads of the
    /// kernel's counters, in seconds. These reads are not at the same moments as the ends of
    /// reports.
    pub waited: [f64; 3],
    pub clock: f64,
    /// How long threads waited in the run queue.
    pub queue: RunQueue,
    /// CPU time in seconds, by pid and name.
    pub processes: Vec<(u32, Arc<str>, f64)>,
}

const RESOURCES: [Resource; 3] = [Resource::Cpu, Resource::Io, Resource::Memory];

/// Reads the gauges once for each report.
#[derive(Debug)]
pub struct Gauges {
    /// Microseconds in which some thread waited for a resource, at the last reading.
    totals: [Option<u64>; 3],
    /// The kernel's counters of waits for CPUs at the last reading.
    queue: Option<RunQueue>,
    /// The time of the last reading.
    read: Instant,
}

impl Gauges {
    /// Starts measuring.
    pub fn new() -> Self {
        let totals = RESOURCES.map(total_us);
        Self {
            totals,
            queue: run_queue::total(),
            read: Instant::now(),
        }
    }

    /// Returns an error for a gauge that this machine does not measure.
    pub fn check(&self, gauge: &Gauge) -> Result<(), Failure> {
        match gauge {
            Gauge::Pressure(resource) if self.totals[*resource as usize].is_none() => {
                let name = resource.name();
                Err(Failure::new(
                    Exit::NotPossible,
                    format!(
                        "this kernel does not tell of pressure: /proc/pressure/{name} cannot be \
                         read (psi=1 on its command line may help)"
                    ),
                ))
            }
            Gauge::Queue if self.queue.is_none() => Err(Failure::new(
                Exit::NotPossible,
                "this kernel does not tell how long threads wait for a CPU: /proc/schedstat cannot \
                 be read (CONFIG_SCHEDSTATS); pressure:cpu>50% tells how often they do",
            )),
            Gauge::Pressure(_) | Gauge::Queue | Gauge::Cpu | Gauge::Process(_) => Ok(()),
        }
    }

    /// Reads all gauges for the time of a report.
    pub fn read(&mut self, snapshot: &Snapshot) -> Reading {
        let report = &snapshot.report;
        let seconds = report.window.seconds();
        let cpus = f64::from(snapshot.source.host.cpus_sampled());
        let now = Instant::now();
        let clock = now.duration_since(std::mem::replace(&mut self.read, now));
        let mut waited = [0.0; 3];
        for ((total, waited), resource) in self.totals.iter_mut().zip(&mut waited).zip(RESOURCES) {
            let now = total_us(resource);
            if let (Some(now), Some(before)) = (now, *total) {
                *waited = now.saturating_sub(before) as f64 / 1e6;
            }
            *total = now.or(*total);
        }
        let queue = run_queue::total();
        let waits = match (queue, self.queue) {
            (Some(now), Some(before)) => now.since(before),
            _ => RunQueue::default(),
        };
        self.queue = queue.or(self.queue);
        let rate = f64::from(report.rate_hz.max(1));
        let process = |row: &profile::ProcessRow| {
            let cpu = row.samples as f64 / rate;
            (row.pid, row.comm.clone(), cpu)
        };
        Reading {
            seconds,
            busy: snapshot.run.busy_cpus * seconds,
            capacity: cpus * seconds,
            waited,
            clock: clock.as_secs_f64(),
            queue: waits,
            processes: report.processes.iter().map(process).collect(),
        }
    }
}

/// Returns the mean of a gauge over some readings, in the unit of its limits, and a sentence about
/// it. None without readings.
pub fn mean<'a>(
    gauge: &Gauge,
    readings: impl Iterator<Item = &'a Reading> + Clone,
) -> Option<(f64, String)> {
    let sum = |part: &dyn Fn(&Reading) -> f64| readings.clone().map(part).sum::<f64>();
    let seconds = sum(&|reading| reading.seconds);
    if seconds <= 0.0 {
        return None;
    }
    Some(match gauge {
        Gauge::Cpu => {
            let capacity = sum(&|reading| reading.capacity).max(f64::MIN_POSITIVE);
            let busy = sum(&|reading| reading.busy);
            // The busy time is measured at other moments than the ends of reports, so it may exceed
            // the capacity.
            let percent = (100.0 * busy / capacity).min(100.0);
            (percent, format!("the CPUs were {} busy", words(percent)))
        }
        Gauge::Queue => {
            let all = readings
                .clone()
                .map(|reading| reading.queue)
                .sum::<RunQueue>();
            let ms = all.mean_ms();
            (ms, format!("threads waited {ms:.1} ms for a CPU"))
        }
        Gauge::Pressure(resource) => {
            let waited = sum(&|reading| reading.waited[*resource as usize]);
            let clock = sum(&|reading| reading.clock).max(f64::MIN_POSITIVE);
            let percent = (100.0 * waited / clock).min(100.0);
            let name = resource.name();
            (
                percent,
                format!("threads waited for {name} {} of the time", words(percent)),
            )
        }
        Gauge::Process(Some(name)) => {
            let of_name = |reading: &Reading| {
                let named = reading
                    .processes
                    .iter()
                    .filter(|(_, comm, _)| **comm == **name);
                named.map(|(_, _, cpu)| cpu).sum()
            };
            let percent = 100.0 * sum(&of_name) / seconds;
            let name = symbolize::sanitize(name.as_bytes()).into_owned();
            (percent, format!("{name} took {} of a CPU", words(percent)))
        }
        Gauge::Process(None) => {
            let mut by_process: HashMap<(u32, &str), f64> = HashMap::new();
            for (pid, comm, cpu) in readings.clone().flat_map(|reading| &reading.processes) {
                *by_process.entry((*pid, comm)).or_default() += cpu;
            }
            let most = by_process.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
            let ((pid, comm), cpu) = most?;
            let percent = 100.0 * cpu / seconds;
            (
                percent,
                format!("{comm}[{pid}] took {} of a CPU", words(percent)),
            )
        }
    })
}

/// Formats a number of percent. Small numbers get a decimal place, as limits may be small, too.
fn words(percent: f64) -> String {
    if percent < 9.95 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

/// Returns the microseconds since boot in which some thread waited for a resource.
fn total_us(resource: Resource) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/pressure/{}", resource.name())).ok()?;
    parse_total(&text)
}

/// Parses the total in `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
fn parse_total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = line
        .split(' ')
        .find_map(|field| field.strip_prefix("total="));
    total?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(busy: f64, processes: &[(u32, &str, f64)]) -> Reading {
        let process = |(pid, name, cpu): &(u32, &str, f64)| (*pid, Arc::from(*name), *cpu);
        Reading {
            seconds: 1.0,
            busy,
            capacity: 4.0,
            waited: [0.25, 0.0, 0.5],
            clock: 1.0,
            queue: RunQueue {
                waited_ns: 30_000_000,
                turns: if busy > 2.0 { 1 } else { 3 },
            },
            processes: processes.iter().map(process).collect(),
        }
    }

    #[test]
    fn means_are_of_the_whole_time() {
        let readings = [
            reading(4.0, &[(1, "a", 0.5), (2, "b", 0.25)]),
            reading(1.0, &[(2, "b", 0.75), (3, "a", 0.25)]),
        ];
        let mean = |gauge: &Gauge| mean(gauge, readings.iter()).unwrap();
        assert_eq!(mean(&Gauge::Cpu), (62.5, "the CPUs were 62% busy".into()));
        let named = |name: &str| Gauge::Process(Some(name.into()));
        assert_eq!(mean(&named("a")).0, 37.5);
        assert_eq!(mean(&named("c")).0, 0.0);
        let most = (50.0, "b[2] took 50% of a CPU".into());
        assert_eq!(mean(&Gauge::Process(None)), most);
        assert_eq!(mean(&Gauge::Pressure(Resource::Memory)).0, 50.0);
        let waited = "threads waited 15.0 ms for a CPU".to_string();
        assert_eq!(mean(&Gauge::Queue), (15.0, waited));
        assert_eq!(super::mean(&Gauge::Cpu, [].iter()), None);
    }

    #[test]
    fn pressure_is_that_of_some_threads() {
        let text = "some avg10=1.00 avg60=2.00 avg300=3.00 total=20472720147\nfull avg10=0.00 \
                    avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(parse_total(text), Some(20_472_720_147));
        assert_eq!(parse_total("full avg10=0.00 total=7\n"), None);
        assert_eq!(parse_total(""), None);
    }
}
