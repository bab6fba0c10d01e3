//! Measures what proftop itself costs, and how busy the machine is.

use probe::Counters;
use std::fs;
use std::time::{Duration, Instant};

/// CPU time used between two measurements, as shares of a CPU.
///
/// Measured for each snapshot and shown in the header.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Percent of one CPU used by our threads, the parser processes, and the BPF program.
    pub own_cpu_percent: f64,
    /// Resident memory of this process, in bytes.
    pub own_rss_bytes: u64,
    /// Number of busy CPUs, of those that are sampled.
    pub busy_cpus: f64,
}

/// Measures the cost between successive calls of [`Meter::look`].
#[derive(Debug)]
pub struct Meter {
    /// CPUs whose use is measured; empty for all.
    cpus: Vec<u16>,
    looked: Instant,
    /// Our CPU time, including the parser processes; that of the BPF program; and the ticks that
    /// CPUs were busy; all at the last measurement.
    own: Duration,
    kernel_ns: u64,
    busy_ticks: u64,
    /// Available and used time of the CPUs since the first measurement.
    used: profile::Busy,
    /// Whether two measurements were far enough apart.
    has_measured: bool,
    last: Cost,
}

/// Minimum time between two measurements, because /proc counts in units of 10 ms. The first result
/// may be less exact, since the user waits for it.
const LOOK_MIN: Duration = Duration::from_millis(500);
const FIRST_LOOK_MIN: Duration = Duration::from_millis(150);

impl Meter {
    /// Measures these CPUs, or all if the list is empty.
    pub fn new(cpus: &[u16]) -> Self {
        Self {
            cpus: cpus.to_vec(),
            looked: Instant::now(),
            own: own_cpu_time(),
            kernel_ns: 0,
            busy_ticks: read_busy(cpus).ticks,
            used: profile::Busy::default(),
            has_measured: false,
            last: Cost {
                own_rss_bytes: rss_bytes(),
                ..Cost::default()
            },
        }
    }

    /// CPU time used so far by us, by parser processes and by the BPF program.
    pub fn spent(counters: &Counters) -> Duration {
        own_cpu_time() + Duration::from_nanos(counters.kernel_ns)
    }

    /// How much of the time of its CPUs was used, from the first measurement to the last one.
    pub fn used(&self) -> profile::Busy {
        self.used
    }

    /// Measures the cost since the last measurement; returns the last result if that was just now.
    pub fn look(&mut self, counters: &Counters) -> Cost {
        let elapsed = self.looked.elapsed();
        let wait = if self.has_measured {
            LOOK_MIN
        } else {
            FIRST_LOOK_MIN
        };
        if elapsed < wait {
            return self.last;
        }
        let (own, busy) = (own_cpu_time(), read_busy(&self.cpus));
        let kernel = Duration::from_nanos(counters.kernel_ns.saturating_sub(self.kernel_ns));
        let spent = own.saturating_sub(self.own) + kernel;
        let ticks = busy.ticks.saturating_sub(self.busy_ticks) as f64;
        let ms = |seconds: f64| (seconds * 1000.0) as u64;
        self.used = self.used.and(profile::Busy {
            busy_ms: ms(ticks / ticks_per_second()),
            of_ms: ms(elapsed.as_secs_f64() * busy.cpus as f64),
        });
        let busy_cpus = ticks / ticks_per_second() / elapsed.as_secs_f64();
        self.last = Cost {
            own_cpu_percent: 100.0 * spent.as_secs_f64() / elapsed.as_secs_f64(),
            own_rss_bytes: rss_bytes(),
            // The kernel counts in ticks of 10 ms, and may add a part of the time before.
            busy_cpus: busy_cpus.min(busy.cpus as f64),
        };
        (self.looked, self.own, self.busy_ticks) = (Instant::now(), own, busy.ticks);
        self.kernel_ns = counters.kernel_ns;
        self.has_measured = true;
        self.last
    }
}

/// CPU time of all our threads and of the parser processes, including those that have ended.
fn own_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32) + probe::files::cpu_time()
}

/// Reads the second field of /proc/self/statm, which is in pages.
fn rss_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|field| field.parse().ok())
        .unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Unit of /proc/stat (`_SC_CLK_TCK`).
fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// Use of some CPUs from `/proc/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Busy {
    /// Number of ticks in which they were busy since the machine started.
    ticks: u64,
    /// Number of them that are online.
    cpus: usize,
}

/// Reads how long these CPUs were busy, or all if the list is empty; 0 if that cannot be read.
fn read_busy(cpus: &[u16]) -> Busy {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    parse_busy(&stat, cpus)
}

/// Parses `cpu0 user nice system idle iowait irq softirq steal …`: all but idle, iowait and steal
/// counts as busy. A CPU that is offline has no line; the line `cpu` has the sum.
fn parse_busy(stat: &str, cpus: &[u16]) -> Busy {
    let mut busy = Busy::default();
    for line in stat.lines() {
        let Some((number, rest)) = line
            .strip_prefix("cpu")
            .and_then(|line| line.split_once(' '))
        else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        if cpus.is_empty() || cpus.contains(&number) {
            busy.ticks += line_busy(rest).unwrap_or(0);
            busy.cpus += 1;
        }
    }
    busy
}

/// Returns user, nice, system, irq and softirq of one line. The time of guests is already in user.
fn line_busy(line: &str) -> Option<u64> {
    let fields: Vec<u64> = line
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let all: u64 = fields.get(..7)?.iter().sum();
    Some(all - fields[3] - fields[4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_iowait_are_not_busy() {
        let stat = "cpu  20 1 5 1000 100 2 3 50 7 0\ncpu0 1 1 1 1 1 1 1 1\n\
                    cpu10 7 0 0 9 9 0 0 0\ncpu1 2 0 0 9 9 0 0 0\nintr 1 2\n";
        let busy = |ticks, cpus| Busy { ticks, cpus };
        assert_eq!(parse_busy(stat, &[]), busy(5 + 7 + 2, 3));
        assert_eq!(parse_busy(stat, &[1]), busy(2, 1));
        assert_eq!(
            parse_busy(stat, &[0, 2, 10]),
            busy(5 + 7, 2),
            "2 is offline"
        );
        assert_eq!(parse_busy("", &[]), Busy::default());
    }

    #[test]
    fn we_have_memory() {
        assert!(rss_bytes() > 1 << 20);
    }
}
