//! Places that did not answer. They are avoided, and retried at growing intervals.

use std::time::{Duration, Instant};
use symbolize::opener::Blocker;

/// Time before the first retry. Each failed retry doubles it.
const FIRST: Duration = Duration::from_secs(60);
const DOUBLED_MAX: u32 = 5;

/// Maximum number of avoided places: as many as fit in the message to a reader. More at once would
/// not be an accident.
pub const PLACES_MAX: usize = 32;

#[derive(Debug)]
struct Entry {
    place: Blocker,
    failures: u32,
    until: Instant,
}

/// The avoided places, the one that failed last at the end.
#[derive(Debug, Default)]
pub struct Avoided(Vec<Entry>);

impl Avoided {
    /// Adds a place at which a reader was abandoned, or doubles its time.
    pub fn add(&mut self, place: Blocker, now: Instant) {
        let known = self.0.iter().position(|entry| entry.place == place);
        let failures = known.map_or(0, |at| self.0.remove(at).failures);
        if self.0.len() == PLACES_MAX {
            self.0.remove(0);
        }
        self.0.push(Entry {
            place,
            failures: failures + 1,
            until: now + FIRST * 2u32.pow(failures.min(DOUBLED_MAX)),
        });
    }

    /// Removes a place that has answered.
    pub fn remove(&mut self, place: Blocker) {
        self.0.retain(|entry| entry.place != place);
    }

    /// Iterates over the places that must not be tried at `now`.
    pub fn at(&self, now: Instant) -> impl Iterator<Item = Blocker> {
        let is_due = move |entry: &&Entry| now < entry.until;
        self.0.iter().filter(is_due).map(|entry| entry.place)
    }

    /// Iterates over all places, including those that may be tried again.
    pub fn all(&self) -> impl Iterator<Item = Blocker> {
        self.0.iter().map(|entry| entry.place)
    }

    /// Returns a sentence about each file system, and one about all processes.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut pids = Vec::new();
        for place in self.all() {
            match place {
                Blocker::FileSystem(major, minor) => notes.push(format!(
                    "the file system with device {major}:{minor} does not answer: what is on it has \
                     no names"
                )),
                Blocker::Process(pid) => pids.push(pid.to_string()),
            }
        }
        notes.extend(unread(&pids));
        notes
    }
}

/// Says of which processes the memory could not be read in time, and names the first of them.
fn unread(pids: &[String]) -> Option<String> {
    let words = match pids {
        [] => return None,
        [pid] => format!("process {pid} could not be read in time: functions may lack names"),
        [a, b] => {
            format!("processes {a} and {b} could not be read in time: functions may lack names")
        }
        [a, b, c] => format!(
            "processes {a}, {b} and {c} could not be read in time: functions may lack names"
        ),
        [a, b, others @ ..] => format!(
            "processes {a}, {b} and {} others could not be read in time: functions may lack names",
            others.len()
        ),
    };
    Some(format!("the memory of {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_again_waits_longer() {
        let (mut avoided, mut now) = (Avoided::default(), Instant::now());
        let place = Blocker::FileSystem(0, 39);
        for minutes in [1, 2, 4, 8, 16, 32, 32] {
            avoided.add(place, now);
            now += minutes * FIRST;
            let before = now - Duration::from_millis(1);
            assert_eq!(avoided.at(before).collect::<Vec<_>>(), [place], "{minutes}");
            assert_eq!(avoided.at(now).next(), None, "{minutes}");
        }
        avoided.remove(place);
        assert_eq!(avoided.all().next(), None);
    }

    #[test]
    fn the_oldest_leave_first() {
        let (mut avoided, now) = (Avoided::default(), Instant::now());
        for pid in 0..=PLACES_MAX as u32 {
            avoided.add(Blocker::Process(pid), now);
        }
        assert_eq!(avoided.all().count(), PLACES_MAX);
        assert_eq!(avoided.all().next(), Some(Blocker::Process(1)));
    }

    #[test]
    fn many_processes_are_one_note() {
        let mut avoided = Avoided::default();
        let mut notes = Vec::new();
        for pid in 1..=5 {
            avoided.add(Blocker::Process(pid), Instant::now());
            notes.push(avoided.notes());
        }
        assert_eq!(
            notes[0],
            ["the memory of process 1 could not be read in time: functions may lack names"]
        );
        assert_eq!(
            notes[2],
            [
                "the memory of processes 1, 2 and 3 could not be read in time: functions may lack names"
            ]
        );
        assert_eq!(
            notes[4],
            [
                "the memory of processes 1, 2 and 3 others could not be read in time: functions may lack names"
            ]
        );
        avoided.add(Blocker::FileSystem(0, 39), Instant::now());
        assert_eq!(avoided.notes().len(), 2);
    }
}
