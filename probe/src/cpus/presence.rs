//! Notices CPUs that come and go. When a CPU is turned off, the kernel drops the perf events that
//! were opened for it, and does not bring them back with the CPU. So events have to be opened again
//! also if the CPU was off for a moment only, between two looks at the list of online CPUs, or
//! while this process slept with the machine. Such a CPU is recognized by its pulse: an event that
//! counts the time, and stands still once it is dropped.
//!
//! To read a pulse wakes its CPU up, so that while the machine is idle, when next to nothing is to
//! be sampled, it is read less often.

use super::online;
use crate::idle::IdleWatch;
use crate::perf_event::{Attributes, PerfEvent, Tasks, flags, kind};
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

/// What a pulse may be behind the time that has passed, and a hundredth of that time: both are
/// measured by different clocks, one a moment after the other. A CPU that was off for less is
/// recognized when its pulse is read the next time, as it stands still.
const BEHIND_MAX: Duration = Duration::from_millis(100);

/// How often pulses are read while the machine is idle; otherwise they are at each look.
const IDLE_CHECK: Duration = Duration::from_secs(8);

/// The CPUs of the machine, and how they were at the last look.
#[derive(Debug)]
pub struct Presence {
    pulses: Vec<Pulse>,
    idle: IdleWatch,
    looked: Instant,
    /// When the pulses were last read.
    checked: Instant,
    /// Time between that and the reading before.
    checked_after: Duration,
}

/// The CPUs at one look.
#[derive(Debug)]
pub struct Present {
    /// The CPUs that are online.
    pub online: BTreeSet<u32>,
    /// CPUs that are online, but were not all the time since their pulses were read before.
    were_off: Vec<u32>,
    /// Whether the machine was idle since the last look.
    pub is_idle: bool,
    /// Time at most since a CPU that has come, or come back, was last seen to be off.
    pub unseen_max: Duration,
}

impl Presence {
    /// Begins to watch. Does not recognize CPUs that were off for a moment if this process may not
    /// open events for all tasks.
    pub fn begin() -> Self {
        let now = Instant::now();
        let mut presence = Self {
            pulses: Vec::new(),
            idle: IdleWatch::default(),
            looked: now,
            checked: now,
            checked_after: Duration::ZERO,
        };
        if let Ok(online) = online() {
            presence.open_pulses(&online);
        }
        presence
    }

    /// Looks at all CPUs. Returns None if the kernel does not list them.
    pub fn look(&mut self) -> Option<Present> {
        let online = online().ok()?;
        let is_idle = self.idle.was_idle(online.len());
        let now = Instant::now();
        let since_look = now.duration_since(std::mem::replace(&mut self.looked, now));
        let since_check = now.duration_since(self.checked);
        self.pulses.retain(|pulse| online.contains(&pulse.cpu));
        let mut were_off = Vec::new();
        let mut unseen_max = since_look + BEHIND_MAX;
        if is_check_due(is_idle, since_check) {
            self.checked = now;
            let before = std::mem::replace(&mut self.checked_after, since_check);
            were_off = self.drop_still_pulses();
            if !were_off.is_empty() {
                unseen_max = unseen_since_check(since_check, before);
            }
        }
        self.open_pulses(&online);
        Some(Present {
            online,
            were_off,
            is_idle,
            unseen_max,
        })
    }

    /// Removes the pulses that have stood still, and returns the numbers of their CPUs.
    fn drop_still_pulses(&mut self) -> Vec<u32> {
        let mut were_off = Vec::new();
        self.pulses.retain_mut(|pulse| {
            let goes_on = pulse.goes_on();
            if !goes_on {
                were_off.push(pulse.cpu);
            }
            goes_on
        });
        were_off
    }

    /// Opens pulses for the CPUs that have none.
    fn open_pulses(&mut self, online: &BTreeSet<u32>) {
        for &cpu in online {
            if self.pulses.iter().all(|pulse| pulse.cpu != cpu) {
                // An error is ignored: a CPU without a pulse is taken for one that stays on.
                self.pulses.extend(Pulse::open(cpu));
            }
        }
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

/// Whether pulses are read at this look.
fn is_check_due(is_idle: bool, since_check: Duration) -> bool {
    !is_idle || since_check >= IDLE_CHECK
}

/// Returns for how long at most a CPU was not sampled whose pulse stands still now: all of the time
/// since that was read, and as much of the time before as it may have been behind then. `before` is
/// how long it had not been read at that time.
fn unseen_since_check(since: Duration, before: Duration) -> Duration {
    since + BEHIND_MAX + before / 100
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
    fn pulses_are_read_less_often_while_the_machine_is_idle() {
        let second = Duration::from_secs(1);
        assert!(is_check_due(false, second));
        assert!(!is_check_due(true, second));
        assert!(is_check_due(true, IDLE_CHECK));
    }

    #[test]
    fn no_time_is_unseen_that_the_note_does_not_count() {
        // A CPU that went off just before a check that it passed, and was found at the next one.
        let (before, since) = (IDLE_CHECK, Duration::from_secs(1));
        let passed = (0..200).map(|ms| Duration::from_millis(10) * ms);
        let off = passed.filter(|off| is_all(before - *off, before)).max();
        assert!(unseen_since_check(since, before) >= since + off.unwrap());
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
            is_idle: false,
            unseen_max: Duration::ZERO,
        };
        assert!(present.keeps_events_of(0));
        assert!(!present.keeps_events_of(1) && !present.keeps_events_of(2));
    }
}
