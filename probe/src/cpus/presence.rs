//! Notices CPUs that come and go. When a CPU is turned off, the kernel drops the perf events that
//! were opened for it, and does not bring them back with the CPU. So events have to be opened again
//! also if the CPU was off for a moment only, between two looks at the list of online CPUs, or while
//! this process slept with the machine. Such a CPU is recognized by its pulse: an event that counts
//! the time, and stands still once it is dropped.

use super::online;
use crate::perf_event::{Attributes, PerfEvent, Tasks, flags, kind};
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

/// What a pulse may be behind the time that has passed, and a hundredth of that time: both are measured
/// by different clocks, one a moment after the other. A CPU that was off for less is recognized at the
/// next look, as its pulse stands still.
const BEHIND_MAX: Duration = Duration::from_millis(100);

/// The CPUs of the machine, and how they were at the last look.
#[derive(Debug)]
pub struct Presence {
    pulses: Vec<Pulse>,
    looked: Instant,
}

/// The CPUs at one look.
#[derive(Debug)]
pub struct Present {
    /// The CPUs that are online.
    pub online: BTreeSet<u32>,
    /// CPUs that are online, but were not all the time since the last look.
    were_off: Vec<u32>,
    /// Time at most since a CPU that has come, or come back, was last seen to be off.
    pub unseen_max: Duration,
}

impl Presence {
    /// Begins to watch. Does not recognize CPUs that were off for a moment if this process may not
    /// open events for all tasks.
    pub fn begin() -> Self {
        let mut presence = Self {
            pulses: Vec::new(),
            looked: Instant::now(),
        };
        if let Ok(online) = online() {
            presence.check_pulses(&online);
        }
        presence
    }

    /// Looks at all CPUs. Returns None if the kernel does not list them.
    pub fn look(&mut self) -> Option<Present> {
        let online = online().ok()?;
        let now = Instant::now();
        let unseen_max = now.duration_since(self.looked) + BEHIND_MAX;
        self.looked = now;
        Some(Present {
            were_off: self.check_pulses(&online),
            online,
            unseen_max,
        })
    }

    /// Returns the CPUs whose pulse has stood still. They get a new one, as do CPUs without.
    fn check_pulses(&mut self, online: &BTreeSet<u32>) -> Vec<u32> {
        let mut were_off = Vec::new();
        self.pulses.retain_mut(|pulse| {
            let is_online = online.contains(&pulse.cpu);
            let goes_on = is_online && pulse.goes_on();
            if is_online && !goes_on {
                were_off.push(pulse.cpu);
            }
            goes_on
        });
        for &cpu in online {
            if self.pulses.iter().all(|pulse| pulse.cpu != cpu) {
                // An error is ignored: a CPU without a pulse is taken for one that stays on.
                self.pulses.extend(Pulse::open(cpu));
            }
        }
        were_off
    }
}

impl Present {
    /// Whether events still count that were opened for a CPU before this look.
    pub fn keeps_events_of(&self, cpu: u32) -> bool {
        self.online.contains(&cpu) && !self.were_off.contains(&cpu)
    }
}

/// The event of one CPU that counts its time, and when it was read.
#[derive(Debug)]
struct Pulse {
    cpu: u32,
    event: PerfEvent,
    counted: Duration,
    /// Just after it was read.
    read: Instant,
}

impl Pulse {
    fn open(cpu: u32) -> io::Result<Self> {
        let attributes = Attributes {
            kind: kind::SOFTWARE,
            config: kind::SOFTWARE_CPU_CLOCK,
            flags: flags::DISABLED,
            ..Attributes::default()
        };
        let event = PerfEvent::open(attributes, Tasks::All, cpu)?;
        event.enable()?;
        let counted = Duration::from_nanos(event.count()?);
        Ok(Self {
            cpu,
            event,
            counted,
            read: Instant::now(),
        })
    }

    /// Whether the event has counted all of the time since it was last read.
    fn goes_on(&mut self) -> bool {
        let passed = self.read.elapsed();
        // A read that fails is that of an event without its CPU.
        let counted = self
            .event
            .count()
            .map_or(self.counted, Duration::from_nanos);
        let goes_on = is_all(counted.saturating_sub(self.counted), passed);
        self.counted = counted;
        self.read = Instant::now();
        goes_on
    }
}

/// Whether an event that has counted this time has counted all that has passed.
fn is_all(counted: Duration, passed: Duration) -> bool {
    counted + BEHIND_MAX + passed / 100 >= passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pulse_that_stood_still_is_no_whole_time() {
        let second = Duration::from_secs(1);
        assert!(is_all(second, second));
        assert!(is_all(second + BEHIND_MAX, second));
        assert!(is_all(second.saturating_sub(BEHIND_MAX), second));
        assert!(!is_all(second / 2, second));
        assert!(!is_all(Duration::ZERO, second));
    }

    #[test]
    fn cpus_that_stay_on_keep_their_events() {
        let mut presence = Presence::begin();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(10));
            let Some(present) = presence.look() else {
                test_support::skip("the kernel does not list its CPUs");
                return;
            };
            for &cpu in &present.online {
                assert!(present.keeps_events_of(cpu), "{present:?}");
            }
        }
        if presence.pulses.is_empty() {
            test_support::skip("no events for all tasks can be opened");
        }
    }

    #[test]
    fn events_of_a_cpu_that_is_gone_or_was_off_do_not_count() {
        let present = Present {
            online: BTreeSet::from([0, 1]),
            were_off: vec![1],
            unseen_max: Duration::ZERO,
        };
        assert!(present.keeps_events_of(0));
        assert!(!present.keeps_events_of(1) && !present.keeps_events_of(2));
    }
}
