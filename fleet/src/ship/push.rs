//! Sends a window to a server: its requests one after the other, each until it is accepted or given
//! up.

use super::{NOT_ALLOWED_WAIT, Shipper, Turn, queue};
use crate::backoff::Backoff;
use crate::encode::Piece;
use crate::failure::Failure;
use crate::sinks::server::{Server, halves};
use crate::sinks::{Outcome, pyroscope};
use crate::spool::Entry;
use crate::window::{Unreadable, Window};
use std::time::Duration;

/// How often the token's file is checked while nothing is accepted.
const TOKEN_PAUSE: Duration = Duration::from_secs(1);

/// A sink that is a server.
pub struct Push {
    shipper: Shipper,
    server: Server,
    backoff: Backoff,
    /// The window that is being sent, which is kept so that it is not read again for each attempt.
    current: Option<(Entry, Window)>,
    /// Whether it was reported that windows are too old.
    is_expiry_said: bool,
    /// No request is sent before this time (ms since 1970), unless there is another token.
    not_allowed_until: Option<u64>,
}

/// The result of sending some pieces.
enum Sending {
    /// They were accepted or given up.
    Over,
    Wait(Duration),
}

impl Push {
    pub fn new(shipper: Shipper, server: Server) -> Self {
        Self {
            shipper,
            server,
            backoff: Backoff::default(),
            current: None,
            is_expiry_said: false,
            not_allowed_until: None,
        }
    }

    pub fn shipper(&self) -> &Shipper {
        &self.shipper
    }

    /// Sends the rest of one window.
    pub fn turn(&mut self) -> Result<Turn, Failure> {
        let now_ms = self.shipper.clock.now_ms();
        // If the clock was set back, it does not wait for longer than it would have.
        let left_ms = |at: u64| at.saturating_sub(now_ms);
        let is_waiting = self
            .not_allowed_until
            .is_some_and(|at| (1..=NOT_ALLOWED_WAIT.as_millis() as u64).contains(&left_ms(at)));
        if is_waiting && !self.server.has_new_token() {
            return Ok(Turn::Wait(TOKEN_PAUSE));
        }
        self.not_allowed_until = None;
        let Some((entry, window)) = self.next()? else {
            return Ok(Turn::Idle);
        };
        if self.is_expired(&window) {
            self.shipper.state.memory.counts.expired += 1;
            self.over(&entry)?;
            return Ok(Turn::Done);
        }
        let each_ms = window.duration_ms as f64 * self.shipper.schedule.windows_for_one();
        if self.is_late(&window)
            && let Some(wait) = self.shipper.catch_up.wait(each_ms, now_ms)
        {
            self.current = Some((entry, window));
            return Ok(Turn::Wait(wait));
        }
        let requests = self.server.requests(&window);
        let done = self.shipper.state.memory.requests_done as usize;
        for pieces in requests.iter().skip(done) {
            match self.send(&window, pieces)? {
                Sending::Over => {
                    self.shipper.state.memory.requests_done += 1;
                    self.shipper.state.write()?;
                }
                Sending::Wait(time) => {
                    self.current = Some((entry, window));
                    return Ok(Turn::Wait(time));
                }
            }
        }
        self.shipper.state.memory.counts.windows += 1;
        self.over(&entry)?;
        if !requests.is_empty() {
            let now_ms = self.shipper.clock.now_ms();
            self.shipper.catch_up.begin_pause(each_ms, now_ms);
        }
        Ok(Turn::Done)
    }

    /// Whether a window has waited, so that others may wait as well: it ended longer ago than it is
    /// long. With `is_once` nothing waits.
    fn is_late(&self, window: &Window) -> bool {
        let begun_ms = u64::try_from(window.begin_ms).unwrap_or(0);
        let age_ms = self.shipper.clock.now_ms().saturating_sub(begun_ms);
        !self.shipper.is_once && age_ms > window.duration_ms.saturating_mul(2)
    }

    /// Returns the window to send now; windows that cannot be read are counted and skipped.
    fn next(&mut self) -> Result<Option<(Entry, Window)>, Failure> {
        if let Some(current) = self.current.take() {
            return Ok(Some(current));
        }
        loop {
            let entries = match crate::spool::list(&self.shipper.spool) {
                Ok(entries) => entries,
                Err(error) => {
                    self.shipper
                        .fail(&format!("cannot look into the spool: {error}"))?;
                    return Ok(None);
                }
            };
            let Some(next) = queue::next(&entries, &self.shipper.state.memory) else {
                return Ok(None);
            };
            if next.lost > 0 {
                // The window that was partly sent no longer exists.
                self.shipper.state.memory.requests_done = 0;
                self.shipper.state.memory.counts.lost += next.lost;
                let (lost, number) = (next.lost, next.entry.number);
                self.shipper.say(format_args!(
                    "{lost} windows before number {number} are lost: the spool has them no more"
                ));
                let memory = &mut self.shipper.state.memory;
                memory.next.insert(next.entry.id.clone(), number);
                self.shipper.state.write()?;
            }
            match self.shipper.read(&next.entry) {
                Ok(Some(window)) => return Ok(Some((next.entry, window))),
                Ok(None) => {
                    self.shipper.state.memory.counts.left_out += 1;
                    self.over(&next.entry)?;
                }
                // The list is read again, and missing windows are counted then.
                Err(Unreadable::Gone) => {}
                Err(Unreadable::Closed(why)) => {
                    let number = next.entry.number;
                    self.shipper
                        .fail(&format!("window {number} cannot be opened: {why}"))?;
                    return Ok(None);
                }
                Err(Unreadable::Damaged(why)) => {
                    let number = next.entry.number;
                    self.shipper
                        .say(format_args!("window {number} cannot be read: {why}"));
                    self.shipper.state.memory.counts.unreadable += 1;
                    self.over(&next.entry)?;
                }
            }
        }
    }

    fn over(&mut self, entry: &Entry) -> Result<(), Failure> {
        queue::advance(&mut self.shipper.state.memory, entry);
        self.shipper.state.write()
    }

    /// Whether a server would refuse a window because it is too old.
    fn is_expired(&mut self, window: &Window) -> bool {
        if !matches!(self.server, Server::Pyroscope(_)) {
            return false;
        }
        let now_s = self.shipper.clock.now_ms() / 1000;
        let age_s = (now_s as i64).saturating_sub(window.begin_ms / 1000);
        let is_expired = age_s > pyroscope::AGE_MAX.as_secs() as i64;
        if is_expired && !self.is_expiry_said {
            self.shipper.say(
                "windows of more than 55 minutes ago are left out: Pyroscope refuses what is older \
                 than an hour",
            );
        }
        self.is_expiry_said = is_expired;
        is_expired
    }

    /// Sends some pieces. If they are too large for one request, sends them as two halves, once.
    fn send(&mut self, window: &Window, pieces: &[Piece]) -> Result<Sending, Failure> {
        let why = match self.send_once(window, pieces)? {
            Ok(sending) => return Ok(sending),
            Err(why) => why,
        };
        let Some(halves) = halves(pieces) else {
            self.refuse(window, pieces, &why);
            return Ok(Sending::Over);
        };
        for half in halves {
            match self.send_once(window, &half)? {
                Ok(Sending::Over) => {}
                // The first half may have been accepted: it has the same UUIDs when it is sent
                // again.
                Ok(Sending::Wait(time)) => return Ok(Sending::Wait(time)),
                Err(why) => self.refuse(window, &half, &why),
            }
        }
        Ok(Sending::Over)
    }

    /// Sends some pieces once. The inner error says why they are too large for one request.
    fn send_once(
        &mut self,
        window: &Window,
        pieces: &[Piece],
    ) -> Result<Result<Sending, String>, Failure> {
        let begun_ms = self.shipper.clock.now_ms();
        let sent = self.server.send(window, pieces);
        let counts = &mut self.shipper.state.memory.counts;
        counts.bytes += sent.bytes;
        let sending = match sent.outcome {
            Outcome::Taken { refused } => {
                counts.requests += 1;
                counts.refused += refused;
                counts.samples += samples(window, pieces);
                if refused > 0 {
                    self.shipper
                        .say(format_args!("it took a request but for {refused} profiles"));
                }
                if self.shipper.state.clear_error() {
                    self.shipper.say("it takes windows again");
                }
                self.backoff.reset();
                self.shipper.pace(sent.bytes, begun_ms);
                Sending::Over
            }
            Outcome::Later { after, why } => {
                counts.retries += 1;
                self.shipper.fail(&why)?;
                Sending::Wait(self.backoff.next(after))
            }
            Outcome::NotAllowed { why } => {
                counts.retries += 1;
                self.shipper.fail(&format!(
                    "{why}; nothing is sent until url, token and certificates are right"
                ))?;
                let wait_ms = NOT_ALLOWED_WAIT.as_millis() as u64;
                self.not_allowed_until = Some(begun_ms + wait_ms);
                Sending::Wait(TOKEN_PAUSE)
            }
            Outcome::Refused { why } => {
                self.refuse(window, pieces, &why);
                Sending::Over
            }
            Outcome::TooLarge { why } => return Ok(Err(why)),
        };
        Ok(Ok(sending))
    }

    fn refuse(&mut self, window: &Window, pieces: &[Piece], why: &str) {
        self.shipper.state.memory.counts.refused += 1;
        let (number, samples) = (window.number, samples(window, pieces));
        self.shipper.say(format_args!(
            "{samples} samples of window {number} are refused: {why}"
        ));
    }
}

/// Returns the sum of the samples of some pieces.
fn samples(window: &Window, pieces: &[Piece]) -> u64 {
    let samples = pieces.iter().flat_map(|piece| piece.samples(window));
    samples.map(|(_, value)| value).sum()
}
