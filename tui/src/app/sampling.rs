//! How samples are taken, and the rate while they are.

use super::{App, Effect};
use crate::screen::sampling::{Reply, SamplingDialog, check_rate};
use crate::screen::{Detail, Mode, Notice};
use crate::snapshot::TargetState;
use crossterm::event::KeyEvent;

impl App {
    pub(super) fn open_sampling(&mut self) {
        match (self.why_no_sampling(), SamplingDialog::new(&self.base)) {
            (None, Some(dialog)) => self.mode = Mode::Sampling(dialog),
            (Some(why), _) => self.detail = Detail::Notice(Notice::NoSampling(why)),
            (None, None) => {
                let why = "sampling has not begun".into();
                self.detail = Detail::Notice(Notice::NoSampling(why));
            }
        }
    }

    /// Why there is nothing to say about samples that come.
    fn why_no_sampling(&self) -> Option<String> {
        let base = &self.base;
        match (&base.recording, &base.target) {
            (Some(_), _) if base.report.rate_hz > 0 => {
                let hz = base.report.rate_hz;
                Some(format!("this is a recording, taken at {hz} Hz"))
            }
            (Some(_), _) => Some("this is a recording".into()),
            (None, TargetState::Exited(_) | TargetState::Failed(_)) => {
                Some("nothing is sampled any more".into())
            }
            (None, _) => None,
        }
    }

    /// Nothing if the key means nothing to the dialog.
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
                Some(self.set_rate(hz).into_iter().collect())
            }
        }
    }

    /// The same without a dialog.
    pub fn change_rate(&mut self, hz: u32) -> Result<Option<Effect>, String> {
        if let Some(why) = self.why_no_sampling() {
            return Err(why);
        }
        let sampler = self.base.sampler.as_ref();
        let sampler = sampler.ok_or("sampling has not begun")?;
        if let Some(why) = sampler.rate_is_fixed {
            return Err(format!("the rate stays as it is: {why}"));
        }
        let hz = check_rate(hz, sampler.rate_max_hz)?;
        Ok(self.set_rate(hz))
    }

    fn set_rate(&mut self, hz: u32) -> Option<Effect> {
        let is_new = hz != self.base.rate_hz;
        let notice = Notice::Rate { hz, is_new };
        self.detail = Detail::Notice(notice);
        is_new.then_some(Effect::SetRate(hz))
    }
}
