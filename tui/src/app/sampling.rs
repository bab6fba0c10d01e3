//! How samples are taken, changing the rate, and fetching debug files.

use super::apply::Applied;
use super::{App, Effect};
use crate::app::mode::{Detail, Mode};
use crate::dialogs::sampling::{Reply, SamplingDialog, check_rate};
use crate::notice::Notice;
use crate::order::Order;
use crossterm::event::KeyEvent;
use engine::snapshot::{Sampler, TargetState};
use std::sync::Arc;

/// The user's decision about fetching debug files.
#[derive(Debug, Default)]
pub struct FetchConsent {
    /// The answer, or `None` if the user has given none in this run.
    pub answer: Option<bool>,
    /// Whether the user does not want to be asked again in this run.
    pub(super) is_put_away: bool,
}

impl App {
    /// Opens the dialog about sampling, or shows a notice that says why there is none.
    pub(super) fn open_sampling(&mut self) {
        match self.sampler() {
            Ok(sampler) => {
                let dialog = SamplingDialog::new(sampler, self.feed.base.source.rate_hz);
                self.mode = Mode::Sampling(dialog);
            }
            Err(why) => self.lines.detail = Detail::Notice(Notice::NoSampling(why)),
        }
    }

    /// Returns how samples are taken. The error says why none are.
    fn sampler(&self) -> Result<Arc<Sampler>, String> {
        let base = &self.feed.base;
        match (
            &base.source.recording,
            &base.run.target,
            &base.source.sampler,
        ) {
            (Some(_), ..) if base.report.rate_hz > 0 => {
                let hz = base.report.rate_hz;
                Err(format!("this is a recording, taken at {hz} Hz"))
            }
            (Some(_), ..) => Err("this is a recording".into()),
            (None, TargetState::Exited { .. } | TargetState::Failed(_), _) => {
                Err("nothing is sampled any more".into())
            }
            (None, _, Some(sampler)) => Ok(Arc::clone(sampler)),
            (None, _, None) => Err("sampling has not begun".into()),
        }
    }

    /// Handles a key in the dialog about sampling. Returns `None` if the dialog does not know the
    /// key.
    pub(super) fn press_in_sampling(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let Mode::Sampling(dialog) = &mut self.mode else {
            return None;
        };
        match dialog.press(key) {
            Reply::Unknown => None,
            Reply::Stay => Some(Vec::new()),
            Reply::Close => {
                self.mode = Mode::Browse;
                Some(Vec::new())
            }
            Reply::SetRate(hz) => {
                self.mode = Mode::Browse;
                Some(self.apply_for_key(Order::Rate(hz)))
            }
        }
    }

    /// Starts or stops fetching debug files from the configured servers. The error says that there
    /// are no servers.
    pub(super) fn allow_fetching(&mut self, is_allowed: bool) -> Result<Applied, Notice> {
        let is_possible = self.feed.base.names.fetching.is_some();
        if !is_possible && is_allowed {
            return Err(Notice::NoServers);
        }
        self.fetching.answer = Some(is_allowed);
        Ok(Applied {
            said: Some(Notice::Fetches(is_allowed)),
            effect: is_possible.then_some(Effect::Fetch(is_allowed)),
        })
    }

    /// Asks the user whether debug files may be fetched, if the detail line has no other notice.
    /// Called with each snapshot, until the user has answered or closed the question.
    pub(super) fn ask_to_fetch(&mut self) {
        let Some(state) = &self.feed.base.names.fetching else {
            return;
        };
        if let Some(file) = &state.asks_for
            && self.fetching.answer.is_none()
            && !self.fetching.is_put_away
            && self.lines.detail == Detail::Row
            && matches!(self.mode, Mode::Browse)
        {
            self.lines.detail = Detail::Notice(Notice::MayFetch {
                file: Arc::clone(file),
                servers: Arc::clone(&state.servers),
            });
        }
    }

    /// Returns the effect that changes the rate of samples. The error says why the rate cannot be
    /// changed, or not to this one.
    pub(super) fn change_rate(&mut self, hz: u32) -> Result<Applied, String> {
        let sampler = self.sampler()?;
        if let Some(why) = sampler.why_fixed() {
            return Err(why);
        }
        let hz = check_rate(hz, sampler.rate_max_hz)?;
        let is_new = hz != self.feed.base.source.rate_hz;
        Ok(Applied {
            said: Some(Notice::Rate { hz, is_new }),
            effect: is_new.then_some(Effect::SetRate(hz)),
        })
    }
}
