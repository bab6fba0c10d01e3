//! Whether the machine is *idle*: its CPUs had next to nothing to do for some time.

use crate::time::now_ns;
use std::fs;
use std::time::Duration;

/// The machine is idle if all its CPUs together work less than this part of the time of one.
const BUSY_MAX: f64 = 0.1;

/// Compares the time that has passed with that for which CPUs did nothing.
///
/// It must not depend on samples: a program in step with a clock can work without being sampled.
/// Where CPUs sleep without a tick, as is usual, the kernel measures for how long they do; otherwise
/// it counts ticks, which a program can be in step with as well.
#[derive(Debug, Default)]
pub struct IdleWatch {
    /// The clock, and the idle time of all CPUs together, when they were last read.
    last: Option<(Duration, Duration)>,
}

impl IdleWatch {
    /// Returns whether these `cpus` CPUs were idle since the last call; false at the first call, and
    /// if the kernel does not tell.
    pub fn was_idle(&mut self, cpus: usize) -> bool {
        let text = fs::read_to_string("/proc/uptime").ok();
        let idle = text.and_then(|text| read_idle_time(&text));
        // Not the first number of the file: it is cut to 10 ms, and that for each CPU.
        let now = idle.map(|idle| (Duration::from_nanos(now_ns()), idle));
        let last = std::mem::replace(&mut self.last, now);
        let (Some(last), Some(now)) = (last, now) else {
            return false;
        };
        is_idle(last, now, cpus)
    }
}

/// Returns the idle time of all CPUs in `/proc/uptime` (proc_uptime(5)).
fn read_idle_time(text: &str) -> Option<Duration> {
    let seconds = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn is_idle(last: (Duration, Duration), now: (Duration, Duration), cpus: usize) -> bool {
    let passed = now.0.saturating_sub(last.0).as_secs_f64();
    let idle = now.1.saturating_sub(last.1).as_secs_f64();
    passed > 0.0 && passed * cpus as f64 - idle < passed * BUSY_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_after(seconds: f64, idle: f64, cpus: usize) -> bool {
        let last = (Duration::from_secs(100), Duration::from_secs(150));
        let passed = [seconds, idle].map(Duration::from_secs_f64);
        is_idle(last, (last.0 + passed[0], last.1 + passed[1]), cpus)
    }

    #[test]
    fn cpus_that_did_nothing_were_idle() {
        assert!(idle_after(1.0, 1.95, 2));
        assert!(idle_after(1.003, 128.38, 128));
        // One of them was busy, or a fifth of one.
        assert!(!idle_after(1.0, 1.0, 2));
        assert!(!idle_after(1.0, 1.8, 2));
        assert!(!idle_after(1.003, 127.38, 128));
        assert!(!idle_after(0.0, 0.0, 2), "no time has passed");
    }

    #[test]
    fn text_without_two_times_is_refused() {
        assert_eq!(
            read_idle_time("7.00 1.50\n"),
            Some(Duration::from_millis(1500))
        );
        for text in ["", "1.0", "1.0 x", "2.0 -1.0", "1.0 1e400", "1 nan"] {
            assert_eq!(read_idle_time(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_machine_with_a_busy_thread_is_not_idle() {
        let mut watch = IdleWatch::default();
        let cpus = crate::cpus::online().expect("CPUs").len();
        assert!(!watch.was_idle(cpus), "nothing to compare with");
        let begun = now_ns();
        while now_ns() - begun < 1_000_000_000 {}
        assert!(!watch.was_idle(cpus));
    }
}
