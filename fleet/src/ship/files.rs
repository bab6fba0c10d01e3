//! Writes windows to files of Parquet: the windows of some minutes are one file.
//!
//! The shipper first stores which file it is about to write, and writes samples last. If it is
//! killed in between, it checks at the next start whether the samples exist: no window is lost, and
//! none is written twice.
//!
//! A file that cannot be written is written again as it is, with the same windows. So a store of
//! which an answer was lost has the same file once, and not one with more windows later.

use super::{NOT_ALLOWED_WAIT, Shipper, Turn, queue};
use crate::backoff::Backoff;
use crate::bucket::{Bucket, Retries};
use crate::config::{self, Kind, Sink};
use crate::dates::date_and_hour;
use crate::failure::{Failure, shown};
use crate::sinks::parquet::{self, Known, TableFile, Target, Unwritten};
use crate::spool::{self, Entry};
use crate::state::Plan;
use crate::window::{Unreadable, Window};
use profile::cohort::draw;
use std::path::PathBuf;
use std::time::Duration;

/// A file is written this long after its time is over: the agent writes a window some seconds after
/// its end.
const GRACE: Duration = Duration::from_secs(15);

/// Maximum number of windows in one file: they are in memory together.
const WINDOWS_MAX: usize = 120;

/// Part of the time of a file within which hosts write it, each at a moment of its own. The times of
/// files end at the same moment on all hosts, and ten thousand would otherwise write then.
const SPREAD: f64 = 0.5;

/// A sink that is a folder or a bucket.
pub struct Files {
    shipper: Shipper,
    target: Target,
    roll_ms: i64,
    backoff: Backoff,
    /// Stacks and frames that the day's files already have.
    known: Known,
    /// Windows for the next file, and their entries in the spool.
    open: Vec<(Entry, Window)>,
    /// Whether the spool has windows after those of the open file.
    is_complete: bool,
    /// Whether the file of the open windows could not be written, and is to be written again.
    is_due: bool,
    /// The last window after the open ones that the schedule leaves out, and how many it leaves out
    /// since the first open one.
    left_out: Option<Entry>,
    left_out_count: u64,
}

impl Files {
    pub fn new(shipper: Shipper, sink: &Sink) -> Result<Self, Failure> {
        let Kind::Parquet { to, roll } = &sink.kind else {
            return Err(Failure::failed(format!("{} is no folder", sink.name)));
        };
        let target = match to {
            config::Target::Folder(dir) => Target::Folder(dir.clone()),
            config::Target::Bucket(url) => Target::Bucket(Bucket::open(url, Retries::ByCaller)?),
        };
        Ok(Self {
            shipper,
            target,
            roll_ms: roll.as_millis() as i64,
            backoff: Backoff::default(),
            known: Known::default(),
            open: Vec::new(),
            is_complete: false,
            is_due: false,
            left_out: None,
            left_out_count: 0,
        })
    }

    pub fn shipper(&self) -> &Shipper {
        &self.shipper
    }

    /// Reads one more window, or writes a file.
    pub fn turn(&mut self) -> Result<Turn, Failure> {
        if self.is_due {
            return self.write();
        }
        if self.open.is_empty()
            && let Some(plan) = self.shipper.state.memory.plan.clone()
        {
            return self.finish(&plan);
        }
        if self.is_complete {
            return self.write_if_due();
        }
        let Some(next) = self.next()? else {
            return self.write_if_due();
        };
        let belongs = self.open.first().is_none_or(|(first, window)| {
            first.id == next.0.id && self.slot(window.begin_ms) == self.slot(next.1.begin_ms)
        });
        if !belongs {
            // It is read again for the next file.
            self.is_complete = true;
            return Ok(Turn::Done);
        }
        if self.open.len() >= WINDOWS_MAX {
            return self.write();
        }
        self.open.push(next);
        self.left_out = None;
        Ok(Turn::Done)
    }

    fn slot(&self, begin_ms: i64) -> i64 {
        begin_ms.div_euclid(self.roll_ms)
    }

    /// Writes the open windows if no more will come for their file, and the host's moment has come.
    fn write_if_due(&mut self) -> Result<Turn, Failure> {
        if self.shipper.is_once {
            return self.write();
        }
        let now_ms = self.shipper.clock.now_ms();
        let late_ms = match self.due_ms() {
            Some(due_ms) => now_ms as i64 - due_ms,
            None => return Ok(Turn::Idle),
        };
        if late_ms <= 0 {
            return Ok(Turn::Idle);
        }
        // A store was away if the next file is due as well.
        let is_late = late_ms > self.roll_ms && matches!(self.target, Target::Bucket(_));
        let catch_up = &mut self.shipper.catch_up;
        if is_late && let Some(wait) = catch_up.wait(self.roll_ms as f64, now_ms) {
            return Ok(Turn::Wait(wait));
        }
        self.write()
    }

    /// When the file of the open windows is to be written (ms since 1970); `None` without any.
    fn due_ms(&self) -> Option<i64> {
        let (_, first) = self.open.first()?;
        let longest = self.open.iter().map(|it| it.1.duration_ms).max();
        let end_ms = (self.slot(first.begin_ms) + 1) * self.roll_ms;
        let spread_ms = draw(&first.host.name, 0) * SPREAD * self.roll_ms as f64;
        let wait_ms = longest.unwrap_or(0) as i64 + GRACE.as_millis() as i64 + spread_ms as i64;
        Some(end_ms + wait_ms)
    }

    /// Returns the window after the open ones.
    fn next(&mut self) -> Result<Option<(Entry, Window)>, Failure> {
        loop {
            let entries = match spool::list(&self.shipper.spool) {
                Ok(entries) => entries,
                Err(error) => {
                    self.shipper
                        .fail(&format!("cannot look into the spool: {error}"))?;
                    return Ok(None);
                }
            };
            let mut memory = self.shipper.state.memory.clone();
            let open = self.open.iter().map(|it| &it.0);
            for entry in open.chain(&self.left_out) {
                queue::advance(&mut memory, entry);
            }
            let Some(next) = queue::next(&entries, &memory) else {
                return Ok(None);
            };
            if next.lost > 0 {
                if !self.open.is_empty() {
                    // The windows before the gap are written first, and then the gap is counted.
                    return Ok(Some((
                        next.entry,
                        Window {
                            begin_ms: i64::MIN,
                            ..Window::default()
                        },
                    )));
                }
                let (lost, number) = (next.lost, next.entry.number);
                self.shipper.state.memory.counts.lost += lost;
                self.shipper.say(format_args!(
                    "{lost} windows before number {number} are lost: the spool has them no more"
                ));
                let memory = &mut self.shipper.state.memory;
                memory.next.insert(next.entry.id.clone(), number);
                self.shipper.state.write()?;
            }
            match self.shipper.read(&next.entry) {
                Ok(Some(window)) => return Ok(Some((next.entry, window))),
                Ok(None) if self.open.is_empty() => {
                    let memory = &mut self.shipper.state.memory;
                    memory.counts.left_out += 1;
                    queue::advance(memory, &next.entry);
                    self.shipper.state.write()?;
                }
                Ok(None) if self.open[0].0.id == next.entry.id => {
                    self.left_out = Some(next.entry);
                    self.left_out_count += 1;
                }
                // It is of another spool, whose windows come after the open ones are written.
                Ok(None) => {
                    return Ok(Some((
                        next.entry,
                        Window {
                            begin_ms: i64::MIN,
                            ..Window::default()
                        },
                    )));
                }
                Err(Unreadable::Gone) => {}
                Err(Unreadable::Closed(why)) => {
                    let number = next.entry.number;
                    self.shipper
                        .fail(&format!("window {number} cannot be opened: {why}"))?;
                    return Ok(None);
                }
                Err(Unreadable::Damaged(why)) if self.open.is_empty() => {
                    let number = next.entry.number;
                    self.shipper
                        .say(format_args!("window {number} cannot be read: {why}"));
                    let memory = &mut self.shipper.state.memory;
                    memory.counts.unreadable += 1;
                    queue::advance(memory, &next.entry);
                    self.shipper.state.write()?;
                }
                Err(Unreadable::Damaged(_)) => {
                    return Ok(Some((
                        next.entry,
                        Window {
                            begin_ms: i64::MIN,
                            ..Window::default()
                        },
                    )));
                }
            }
        }
    }

    /// Writes the open windows to a file.
    fn write(&mut self) -> Result<Turn, Failure> {
        let (Some((first, window)), Some((last, _))) = (self.open.first(), self.open.last()) else {
            return Ok(Turn::Idle);
        };
        let (date, hour) = date_and_hour(window.begin_ms);
        let name = name(&window.host.name, &first.id, first.number);
        let plan = Plan {
            id: first.id.clone(),
            first: first.number,
            last: self.left_out.as_ref().unwrap_or(last).number,
            windows: self.open.len() as u64,
            left_out: self.left_out_count,
            samples: self.open.iter().map(|it| it.1.total()).sum(),
            date,
            hour,
            name,
        };
        let last = self.left_out.as_ref().unwrap_or(last).clone();
        let counts = &self.shipper.state.memory.counts;
        let lost = counts.lost;
        self.shipper.state.memory.plan = Some(plan.clone());
        self.shipper.state.write()?;
        let place = TableFile {
            to: &self.target,
            date: &plan.date,
            hour: plan.hour,
            name: &plan.name,
        };
        let begun_ms = self.shipper.clock.now_ms();
        let (entries, windows): (Vec<Entry>, Vec<Window>) = self.open.drain(..).unzip();
        let written = parquet::write(
            &place,
            &windows,
            &self.shipper.labels,
            lost,
            &mut self.known,
        );
        match written {
            Ok(bytes) => {
                self.is_due = false;
                self.is_complete = false;
                self.left_out = None;
                self.left_out_count = 0;
                self.shipper.state.memory.counts.bytes += bytes;
                self.done(&plan, &last)?;
                if self.shipper.state.clear_error() {
                    self.shipper.say("files are written again");
                }
                self.shipper.state.write()?;
                self.backoff.reset();
                if matches!(self.target, Target::Bucket(_)) {
                    self.shipper.pace(bytes, begun_ms);
                    let now_ms = self.shipper.clock.now_ms();
                    self.shipper
                        .catch_up
                        .begin_pause(self.roll_ms as f64, now_ms);
                }
                Ok(Turn::Done)
            }
            Err(unwritten) => {
                self.open = entries.into_iter().zip(windows).collect();
                self.is_due = true;
                self.wait(unwritten)
            }
        }
    }

    /// Returns how long to wait after a failure.
    fn wait(&mut self, unwritten: Unwritten) -> Result<Turn, Failure> {
        self.shipper.state.memory.counts.retries += 1;
        let place = match &self.target {
            Target::Folder(dir) => format!("cannot write into {}", shown(dir)),
            Target::Bucket(bucket) => format!("cannot write to {}", bucket.url()),
        };
        match unwritten {
            Unwritten::Later(why) => {
                self.shipper.fail(&format!("{place}: {why}"))?;
                Ok(Turn::Wait(self.backoff.next(None)))
            }
            Unwritten::NotAllowed(why) => {
                self.shipper.fail(&format!("{place}: {why}"))?;
                Ok(Turn::Wait(NOT_ALLOWED_WAIT))
            }
        }
    }

    /// Counts the content of a file, and advances to the window after it.
    fn done(&mut self, plan: &Plan, last: &Entry) -> Result<(), Failure> {
        let memory = &mut self.shipper.state.memory;
        memory.plan = None;
        memory.counts.windows += plan.windows;
        memory.counts.samples += plan.samples;
        memory.counts.left_out += plan.left_out;
        memory.counts.requests += 1;
        queue::advance(memory, last);
        self.shipper.state.write()
    }

    /// Completes what an earlier run was about to write: if the samples exist, the whole file was
    /// written.
    fn finish(&mut self, plan: &Plan) -> Result<Turn, Failure> {
        let place = TableFile {
            to: &self.target,
            date: &plan.date,
            hour: plan.hour,
            name: &plan.name,
        };
        match self.target.has(&place.path("samples")) {
            Ok(true) => {
                let last = Entry {
                    id: plan.id.clone(),
                    number: plan.last,
                    path: PathBuf::new(),
                };
                self.done(plan, &last)?;
            }
            Ok(false) => {
                self.shipper.state.memory.plan = None;
                self.shipper.state.write()?;
            }
            // It is not known, and without that windows would be twice or lost.
            Err(unwritten) => return self.wait(unwritten),
        }
        Ok(Turn::Done)
    }
}

/// Returns the name of a file: it consists of the host and the first window, and has only
/// characters that are safe in paths. Readers leave out names that begin with `.` or `_`, and
/// programs take those that begin with `-` for options: such a host has `host` before it.
fn name(host: &str, id: &str, number: u64) -> String {
    let is_fine = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    let host = host.chars().take(100);
    let host: String = host.map(|it| if is_fine(it) { it } else { '_' }).collect();
    let prefix = if host.starts_with(|it: char| it.is_ascii_alphanumeric()) {
        ""
    } else {
        "host"
    };
    format!("{prefix}{host}-{id}-{number:010}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_folder() {
        assert_eq!(
            name("db-01.example", "ab", 7),
            "db-01.example-ab-0000000007"
        );
        assert_eq!(name("../x y", "ab", 7), "host.._x_y-ab-0000000007");
    }

    #[test]
    fn a_name_is_one_that_readers_take() {
        for host in ["_db", ".db", "-db", "", "дб", "/db"] {
            let name = name(host, "ab", 7);
            assert!(!name.starts_with(['_', '.', '-']), "{name}");
        }
    }
}
