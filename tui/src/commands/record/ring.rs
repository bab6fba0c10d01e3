//! `record --ring` and `agent`: a flight recorder. One file has the last minutes and is a whole
//! recording at every moment, even after a crash. When a condition is met, or a user or program
//! requests it, the minutes are saved in a file of their own beside it.
//!
//! ```text
//!            every second                 condition, and --after later;
//!  engine ───────────────► ring.pft       SIGUSR2, agent save: at the next second
//!  (memory: the last minutes)  │           ─────────────────► ring.DATE.pft
//!                              │ written anew when it has twice the time,
//!                              └ or a half of the bytes that it may take
//! ```

/// Saves by request, of a signal or a client.
mod asks;
/// Detects that the clock of the machine was set.
mod clock;
/// The rate while this host is in a cohort.
mod cohort;
/// The ring file, which has the last minutes.
mod file;
/// The measured values of conditions.
mod gauges;
/// The waits for CPUs, as the kernel counts them.
mod run_queue;
/// The files of saved minutes.
mod saves;
/// The folder with one recording for each window of time.
mod spool;
/// The answers at the control socket.
mod status;
/// Evaluates conditions.
mod watches;

use super::control::{Request, Wish};
use crate::calendar;
use crate::cli::{RecordConfig, RingConfig};
use crate::commands::agent::with_ways_to_start;
use crate::failure::Failure;
use crate::stderr;
use crate::user_files::UserFiles;
use crate::words::units::{bytes, counted};
use asks::Asks;
use clock::Clock;
use cohort::CohortRate;
use engine::snapshot::Snapshot;
use file::RingFile;
use probe::privilege::UserRights;
use profile::View;
use saves::Saves;
use spool::Spool;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use watches::Watches;

/// A flight recorder.
pub struct Ring {
    config: RingConfig,
    file: RingFile,
    saves: Saves,
    /// The folder of windows, if the user wants one.
    spool: Option<Spool>,
    /// The rates, if they depend on a cohort.
    cohort: Option<CohortRate>,
    /// The rate to sample at, until it is taken.
    wanted_hz: Option<u32>,
    watches: Watches,
    clock: Clock,
    /// The save that waits for its time.
    pending: Option<Pending>,
    /// Requested saves, which are written after one of the next reports.
    asks: Asks,
    /// Whether the message about what is recorded was printed.
    is_begun: bool,
    samples: u64,
    is_shown: bool,
}

/// Minutes that will be saved.
struct Pending {
    /// When the save was triggered, and until when samples are awaited, on the clock of samples.
    asked_ns: u64,
    until_ns: u64,
    /// Why they are saved, as a sentence.
    why: String,
    /// Whether the message about a failed save was printed.
    is_late: bool,
}

impl Pending {
    /// Joins two saves in one, which covers the time of both.
    fn with(self, other: Self) -> Self {
        Self {
            asked_ns: self.asked_ns.min(other.asked_ns),
            until_ns: self.until_ns.max(other.until_ns),
            why: format!("{}; {}", self.why, other.why),
            is_late: self.is_late || other.is_late,
        }
    }
}

/// Time between a failed save and the next attempt.
const RETRY_NS: u64 = 10_000_000_000;

/// Returns a time on the clock of samples as the time of day, with the zone.
fn time_of_day(view: &View, at_ns: u64) -> String {
    let since_ms = at_ns / 1_000_000;
    let unix_ms = view.info().epoch_unix_ms.saturating_add_unsigned(since_ms);
    format!("{} {}", calendar::of_day(unix_ms), calendar::zone(unix_ms))
}

/// Creates a folder of the service, if it is missing, with access for its user only.
fn make_folder(path: &Path) -> Result<(), Failure> {
    let made = UserFiles::current().make_folder(path, 0o700);
    made.map_err(|error| {
        let name = path.display();
        let failure = Failure::failed(format!("cannot make the folder {name}: {error}"));
        let failure = match UserRights::current().user() {
            Some(user) => failure.detail(format!(
                "under sudo files are made with the rights of {}",
                symbolize::sanitize(user.name.as_bytes())
            )),
            None => failure,
        };
        with_ways_to_start(failure)
    })
}

impl Ring {
    /// Opens an empty recorder. All that can be refused is refused here, before the first sample.
    pub fn open(record: &RecordConfig, config: &RingConfig) -> Result<Self, Failure> {
        let path = record.file.clone().unwrap_or_default();
        config.folders.iter().try_for_each(|it| make_folder(it))?;
        let spool = config.spool.as_ref().map(Spool::open).transpose()?;
        Ok(Self {
            config: config.clone(),
            spool,
            cohort: config.cohort.map(CohortRate::new),
            wanted_hz: None,
            file: RingFile::open(&path, config)?,
            saves: Saves::new(path, config.saves_max),
            watches: Watches::new(&config.conditions)?,
            clock: Clock::default(),
            pending: None,
            asks: Asks::default(),
            is_begun: false,
            samples: 0,
            is_shown: io::stderr().is_terminal(),
        })
    }

    /// Appends the samples up to `until_ns`, and saves what is due. Returns true if a new save
    /// waits: the source lines have to be read until then.
    pub fn append(&mut self, snapshot: &Snapshot, until_ns: u64) -> bool {
        let Some(view) = &snapshot.view else {
            return false;
        };
        if !std::mem::replace(&mut self.is_begun, true) {
            self.say_what_is_recorded(snapshot);
        }
        if let Some(sentence) = self.clock.look(view.info().epoch_unix_ms) {
            self.clear_line();
            stderr::say(&sentence);
            self.file.add_note(until_ns, sentence);
        }
        let was_pending = self.pending.is_some();
        self.samples = snapshot.health.taken_run;
        self.file.append(view, until_ns, &self.saves);
        if let Some(spool) = &mut self.spool {
            spool.append(view, until_ns);
        }
        self.turn_cohort(view, until_ns);
        if let Some(why) = self.watches.look(snapshot) {
            self.save_later(view, until_ns, why);
        }
        let is_due = |pending: &mut Pending| until_ns >= pending.until_ns;
        if let Some(pending) = self.pending.take_if(is_due) {
            self.save(view, pending, until_ns);
        }
        self.answer(view, until_ns, false);
        self.pending.is_some() && !was_pending
    }

    /// Looks which rate is wanted now. Where there is a spool its windows decide by their beginning,
    /// as the program that sends them does: so the windows of a period have its rate.
    fn turn_cohort(&mut self, view: &View, until_ns: u64) {
        let Some(cohort) = &mut self.cohort else {
            return;
        };
        let window_ns = self.spool.as_ref().and_then(Spool::window_begin_ns);
        let since_ms = window_ns.unwrap_or(until_ns) / 1_000_000;
        let info = view.info();
        let unix_ms = info.epoch_unix_ms.saturating_add_unsigned(since_ms);
        if let Some(hz) = cohort.turn(&info.host.name, unix_ms) {
            self.wanted_hz = Some(hz);
        }
    }

    /// Returns the rate to sample at from now on. None if it stays as it is.
    pub fn take_rate(&mut self) -> Option<u32> {
        self.wanted_hz.take()
    }

    /// Requests a save for SIGUSR2, with one of the next reports.
    pub fn save_soon(&mut self) {
        self.asks.add_signal(probe::now_ns());
    }

    /// Handles a request at the control socket. `last` is the last report.
    pub fn handle(&mut self, request: Request, last: Option<&Snapshot>) {
        let Request {
            wish,
            uid,
            at_ns,
            reply,
        } = request;
        match wish {
            Wish::Save(note) => self.asks.add(at_ns, &note, uid, reply),
            Wish::Status => reply.send(&self.status(last)),
        }
    }

    /// Saves what was requested before the end of a report, and answers the clients.
    fn answer(&mut self, view: &View, until_ns: u64, is_last: bool) {
        for ask in self.asks.take_due(view, until_ns, is_last) {
            let pending = Pending {
                asked_ns: ask.at_ns,
                until_ns: ask.at_ns,
                why: format!("{} at {}", ask.why, time_of_day(view, ask.at_ns)),
                is_late: false,
            };
            let end_ns = ask.end_ns(until_ns);
            let Some(reply) = ask.reply else {
                self.save(view, pending, end_ns);
                continue;
            };
            self.clear_line();
            let saved = self.write(view, &pending, end_ns);
            match &saved {
                Ok(sentence) => stderr::say(sentence),
                Err(error) => stderr::say(format_args!("not saved ({}): {error}", pending.why)),
            }
            reply.send(&status::Saved::new(saved, self.saves.last()));
        }
    }

    /// Saves what still waits, and closes the ring file. An error says that it lacks the end.
    pub fn finish(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        self.clear_line();
        let Some(view) = &snapshot.view else {
            return Ok(());
        };
        let end_ns = snapshot.report.window.end_ns;
        if let Some(pending) = self.pending.take() {
            self.save(view, pending, end_ns);
        }
        self.answer(view, end_ns, true);
        snapshot.health.notes.iter().for_each(stderr::say);
        self.file.finish(view, end_ns, &self.saves);
        if let Some(spool) = &mut self.spool {
            spool.finish(snapshot);
        }
        let lost = snapshot.health.lost_run;
        let name = self.file.name();
        let Some(contents) = self.file.contents(end_ns) else {
            let what = if self.file.is_there() {
                "and is older"
            } else {
                "and is not there"
            };
            let sentence = format!("{name} could not be written at the end, {what}");
            return Err(Failure::failed(sentence));
        };
        stderr::say(format_args!("{contents} in {name}, {lost} lost"));
        Ok(())
    }

    /// Returns the number of samples so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Prints time and size over the last line of the terminal, if standard error is a terminal.
    pub fn show_progress(&self, snapshot: &Snapshot) {
        if self.is_shown {
            let seconds = snapshot.run.elapsed.as_secs();
            let (minutes, seconds) = (seconds / 60, seconds % 60);
            let (size, name) = (bytes(self.file.bytes()), self.file.name());
            let saves = counted(self.saves.written(), "save");
            stderr::write_over_line(format_args!(
                "{minutes}:{seconds:02}  {size} in {name}, {saves}  (^C ends)"
            ));
        }
    }

    /// Schedules a save. If one already waits, that one also covers this reason.
    fn save_later(&mut self, view: &View, now_ns: u64, why: String) {
        self.clear_line();
        let why = format!("{why}, at {}", time_of_day(view, now_ns));
        // After a crash, only the ring file is left to say it.
        self.file
            .add_note(now_ns, format!("a condition was met: {why}"));
        let length_ns = self.config.length.as_nanos() as u64;
        let after_ns = self.config.after.as_nanos() as u64;
        match &mut self.pending {
            Some(pending) => {
                // A sequence of conditions does not postpone a save forever.
                let latest_ns = pending.asked_ns.saturating_add(length_ns.max(after_ns));
                let until_ns = now_ns.saturating_add(after_ns).min(latest_ns);
                pending.until_ns = pending.until_ns.max(until_ns);
                pending.why = format!("{}; {why}", pending.why);
                let seconds = pending
                    .until_ns
                    .saturating_sub(now_ns)
                    .div_ceil(1_000_000_000);
                stderr::say(format_args!(
                    "{why}: to be saved with the one before, in {seconds}s"
                ));
            }
            None => {
                let after = self.config.after;
                stderr::say(format_args!("{why}: to be saved in {}s", after.as_secs()));
                self.pending = Some(Pending {
                    asked_ns: now_ns,
                    until_ns: now_ns.saturating_add(after_ns),
                    why,
                    is_late: false,
                });
            }
        }
    }

    /// Saves minutes. After a failure, saving is tried again for as long as memory has the samples.
    fn save(&mut self, view: &View, mut pending: Pending, end_ns: u64) {
        self.clear_line();
        match self.write(view, &pending, end_ns) {
            Ok(saved) => stderr::say(saved),
            Err(error) => {
                let (name, why) = (self.file.name(), &pending.why);
                if view
                    .begin_ns()
                    .is_some_and(|begin| begin > pending.asked_ns)
                {
                    stderr::say(format_args!("given up, and not saved ({why}): {error}"));
                    return;
                }
                if !std::mem::replace(&mut pending.is_late, true) {
                    stderr::say(format_args!(
                        "cannot save beside {name} yet ({why}): {error}; it is tried again as \
                         long as memory has it"
                    ));
                }
                pending.until_ns = end_ns.saturating_add(RETRY_NS);
                self.pending = Some(match self.pending.take() {
                    Some(other) => pending.with(other),
                    None => pending,
                });
            }
        }
    }

    fn write(&self, view: &View, pending: &Pending, end_ns: u64) -> Result<String, String> {
        let length_ns = self.config.length.as_nanos() as u64;
        let begin_ns = pending.asked_ns.saturating_sub(length_ns);
        let needed_ns = pending.until_ns.min(end_ns);
        self.saves
            .write(view, begin_ns, needed_ns, end_ns, &pending.why)
    }

    /// Prints what is recorded, where, and when it is saved.
    fn say_what_is_recorded(&self, snapshot: &Snapshot) {
        self.clear_line();
        let seconds = self.config.length.as_secs();
        let (scope, name) = (&snapshot.run.scope, self.file.name());
        let pid = std::process::id();
        let mut when: Vec<String> = self
            .config
            .conditions
            .iter()
            .map(|it| it.to_string())
            .collect();
        when.push(format!("SIGUSR2 to {pid}"));
        if let Some(control) = &self.config.control {
            let path = symbolize::sanitize(control.as_os_str().as_encoded_bytes());
            when.push(format!("`proftop agent save` at {path}"));
        }
        stderr::say(format_args!(
            "records {scope}: the last {seconds}s in {name}, saved on {}",
            when.join(", ")
        ));
        if let Some(spool) = &self.spool {
            stderr::say(spool.what());
        }
        if let Some(cohort) = &self.cohort {
            stderr::say(cohort.what());
        }
    }

    fn clear_line(&self) {
        if self.is_shown {
            stderr::write_over_line("");
        }
    }
}
