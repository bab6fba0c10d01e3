//! `record --ring` and `agent`: a flight recorder. The last minutes are in one file, which is a
//! whole recording at every moment, also after a crash; when a condition is met, or somebody asks
//! for it, they are saved in a file of their own beside it.
//!
//! ```text
//!            every second                 condition, and --after later;
//!  engine ───────────────► ring.pft       SIGUSR2, agent save: at the next second
//!  (memory: the last minutes)  │           ─────────────────► ring.DATE.pft
//!                              │ written anew when it has twice the time,
//!                              └ or a half of the bytes that it may take
//! ```

/// Saves that somebody has asked for.
mod asks;
/// Whether the clock of the machine was set.
mod clock;
/// The file that has the last minutes.
mod file;
/// What conditions look at.
mod gauges;
/// Waits for CPUs.
mod run_queue;
/// The files in which minutes were saved.
mod saves;
/// The folder in which each window is a recording of its own.
mod spool;
/// What a recorder says of itself.
mod status;
/// Whether conditions are met.
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
    /// Where each window goes as well.
    spool: Option<Spool>,
    watches: Watches,
    clock: Clock,
    /// What is to be saved once its time has come.
    pending: Option<Pending>,
    /// What somebody has asked for, and the next reports will have.
    asks: Asks,
    /// It was said what is recorded.
    is_begun: bool,
    samples: u64,
    is_shown: bool,
}

/// Minutes that are to be saved.
struct Pending {
    /// When they were asked for, and until when samples are waited for, on the clock of
    /// samples.
    asked_ns: u64,
    until_ns: u64,
    /// A sentence.
    why: String,
    /// It was said that it could not be saved yet.
    is_late: bool,
}

impl Pending {
    /// One save for two reasons, with the time of both.
    fn with(self, other: Self) -> Self {
        Self {
            asked_ns: self.asked_ns.min(other.asked_ns),
            until_ns: self.until_ns.max(other.until_ns),
            why: format!("{}; {}", self.why, other.why),
            is_late: self.is_late || other.is_late,
        }
    }
}

/// How long after a failure saving is tried again.
const RETRY_NS: u64 = 10_000_000_000;

/// A moment on the clock of samples as the time of day, with the zone.
fn time_of_day(view: &View, at_ns: u64) -> String {
    let since_ms = at_ns / 1_000_000;
    let unix_ms = view.info().epoch_unix_ms.saturating_add_unsigned(since_ms);
    format!("{} {}", calendar::of_day(unix_ms), calendar::zone(unix_ms))
}

/// Makes a folder of the service, if it is missing, which only its user can look into.
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
    /// Begins with nothing. Whatever can be refused is refused here, before a sample is
    /// taken.
    pub fn open(record: &RecordConfig, config: &RingConfig) -> Result<Self, Failure> {
        let path = record.file.clone().unwrap_or_default();
        config.folders.iter().try_for_each(|it| make_folder(it))?;
        let spool = config.spool.as_ref().map(Spool::open).transpose()?;
        Ok(Self {
            config: config.clone(),
            spool,
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

    /// Appends the samples up to `until_ns`, and saves what is to be saved. Returns true if
    /// something is to be saved from now on: its lines are to be read until then.
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

    /// Saves with one of the next reports, because SIGUSR2 asked for it.
    pub fn save_soon(&mut self) {
        self.asks.add_signal(probe::now_ns());
    }

    /// Does what somebody asks for at the control socket. `last` is the last report.
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

    /// Saves what was asked for before the end of a report, and tells those who wait for it.
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

    /// Saves what was asked for and did not come to its end, and closes the ring's file.
    pub fn finish(&mut self, snapshot: &Snapshot) {
        self.clear_line();
        let Some(view) = &snapshot.view else {
            return;
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
        match self.file.contents(end_ns) {
            Some(contents) => stderr::say(format_args!("{contents} in {name}, {lost} lost")),
            None => stderr::say(format_args!(
                "{name} could not be written at the end, and is older"
            )),
        }
    }

    /// Returns how many samples were taken so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Prints time and size over the last line of the terminal, if standard error is one.
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

    /// What one more reason asks for while something is waited for is in that file as well.
    fn save_later(&mut self, view: &View, now_ns: u64, why: String) {
        self.clear_line();
        let why = format!("{why}, at {}", time_of_day(view, now_ns));
        // Whoever finds only the ring, after a crash, reads it there.
        self.file
            .add_note(now_ns, format!("a condition was met: {why}"));
        let length_ns = self.config.length.as_nanos() as u64;
        let after_ns = self.config.after.as_nanos() as u64;
        match &mut self.pending {
            Some(pending) => {
                // One condition after the other does not put a save off for ever.
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

    /// Saves what was asked for. If that fails it is tried again as long as memory has it.
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

    /// Says what is recorded where, and when it is saved.
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
    }

    fn clear_line(&self) {
        if self.is_shown {
            stderr::write_over_line("");
        }
    }
}
