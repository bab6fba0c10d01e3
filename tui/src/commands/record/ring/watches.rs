//! Evaluates conditions. Each triggers once, and again only after it was not met.

use super::gauges::{Gauges, Reading, mean};
use crate::condition::{Condition, Gauge, What};
use crate::failure::Failure;
use crate::user_files::UserFiles;
use engine::snapshot::Snapshot;
use probe::channel::{Receiver, Sender, channel};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

/// Time between two checks of a file.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// All conditions.
pub struct Watches {
    conditions: Vec<Watched>,
    gauges: Gauges,
    /// The readings, the newest last: as many as the longest condition needs.
    readings: VecDeque<Reading>,
    keep_seconds: f64,
    /// The numbers of conditions whose files have changed.
    files: Receiver<usize>,
}

struct Watched {
    condition: Condition,
    is_met: bool,
}

impl Watches {
    /// Starts watching. A gauge that this machine does not measure is an error.
    pub fn new(conditions: &[Condition]) -> Result<Self, Failure> {
        let gauges = Gauges::new();
        let (tell, files) = channel();
        let mut keep_seconds = 0f64;
        for (number, condition) in conditions.iter().enumerate() {
            match &condition.what {
                What::Above { gauge, over, .. } => {
                    gauges.check(gauge)?;
                    keep_seconds = keep_seconds.max(over.as_secs_f64());
                }
                What::File(path) => watch_file(number, path.clone(), tell.clone())?,
            }
        }
        let watched = |condition: &Condition| Watched {
            condition: condition.clone(),
            is_met: false,
        };
        Ok(Self {
            conditions: conditions.iter().map(watched).collect(),
            gauges,
            readings: VecDeque::new(),
            keep_seconds,
            files,
        })
    }

    /// Evaluates all conditions. Returns a sentence on why to save if a condition is met that was
    /// not met before.
    pub fn look(&mut self, snapshot: &Snapshot) -> Option<String> {
        let reading = self.gauges.read(snapshot);
        self.judge(reading)
    }

    fn judge(&mut self, newest: Reading) -> Option<String> {
        self.readings.push_back(newest);
        let mut seconds: f64 = self.readings.iter().map(|reading| reading.seconds).sum();
        while let Some(oldest) = self.readings.front()
            && seconds - oldest.seconds >= self.keep_seconds
        {
            seconds -= oldest.seconds;
            self.readings.pop_front();
        }
        let changed: Vec<usize> = self.files.try_iter().collect();
        let mut whys = Vec::new();
        for (number, watched) in self.conditions.iter_mut().enumerate() {
            let why = match &watched.condition.what {
                What::File(_) => changed
                    .contains(&number)
                    .then(|| watched.condition.to_string()),
                What::Above { gauge, limit, over } => {
                    let measured = measured(&self.readings, gauge, *over);
                    let met = measured.filter(|(value, _)| value > limit);
                    let was_met = std::mem::replace(&mut watched.is_met, met.is_some());
                    let new = met.filter(|_| !was_met);
                    new.map(|(_, words)| format!("{}: {words}", watched.condition))
                }
            };
            whys.extend(why);
        }
        (!whys.is_empty()).then(|| whys.join("; "))
    }
}

/// Returns the mean of the newest readings that cover the time. None while they do not cover it.
fn measured(readings: &VecDeque<Reading>, gauge: &Gauge, over: Duration) -> Option<(f64, String)> {
    let mut seconds = 0.0;
    let mut count = 0;
    // A report may be a little shorter than a second.
    while seconds < 0.9 * over.as_secs_f64() {
        seconds += readings.iter().rev().nth(count)?.seconds;
        count += 1;
    }
    mean(gauge, readings.iter().rev().take(count))
}

/// Starts a thread that checks a file with the user's rights, and sends `number` when the file
/// appears or changes. The thread may block on a file server forever, but no other thread waits for
/// it.
fn watch_file(number: usize, path: PathBuf, tell: Sender<usize>) -> Result<(), Failure> {
    // Time stamps of files may be a few milliseconds behind the clock.
    let begun = SystemTime::now() - Duration::from_millis(20);
    let look = move || {
        let changed = || UserFiles::current().changed(&path).ok();
        // A file that existed before has not appeared.
        let mut last = changed().filter(|at| *at <= begun);
        loop {
            let now = changed();
            if now.is_some() && now != last && tell.send(number).is_err() {
                return;
            }
            last = now;
            thread::sleep(LOOK_EVERY);
        }
    };
    let started = thread::Builder::new()
        .name("watch".into())
        .spawn(look)
        .map(drop);
    started.map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the reading of a second in which a process used this share of a CPU.
    fn second(percent: u32) -> Reading {
        Reading {
            seconds: 1.0,
            processes: vec![(7, "worker".into(), f64::from(percent) / 100.0)],
            ..Reading::default()
        }
    }

    fn watches(condition: &str) -> Watches {
        Watches::new(&[Condition::parse(condition).unwrap()]).unwrap()
    }

    #[test]
    fn a_condition_asks_once_until_it_was_not_met() {
        let mut watches = watches("process:worker>50%");
        let looks = [20, 60, 80, 40, 51].map(|percent| watches.judge(second(percent)));
        let why = "process:worker>50%: worker took 60% of a CPU".to_string();
        let again = "process:worker>50%: worker took 51% of a CPU".to_string();
        assert_eq!(looks, [None, Some(why), None, None, Some(again)]);
    }

    #[test]
    fn a_mean_is_of_its_whole_time() {
        let mut watches = watches("process>50% for 3s");
        let looks = [90, 90, 0, 0, 90, 90].map(|percent| watches.judge(second(percent)).is_some());
        assert_eq!(looks, [false, false, true, false, false, true]);
        assert_eq!(watches.readings.len(), 3);
    }

    #[test]
    fn a_file_asks_when_it_appears_and_when_it_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("save");
        let mut watches = watches(&format!("file:{}", path.display()));
        assert_eq!(watches.judge(second(0)), None);
        // The two time stamps must differ.
        for content in ["now", "again"] {
            std::fs::write(&path, content).unwrap();
            test_support::wait_for("the file to be seen", || watches.judge(second(0)));
        }
    }
}
