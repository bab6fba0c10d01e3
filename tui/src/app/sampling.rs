//! How samples are taken, and the rate while they are.

use super::obey::Obeyed;
use super::{App, Effect};
use crate::app::mode::{Detail, Mode};
use crate::dialogs::sampling::{Reply, SamplingDialog, check_rate};
use crate::notice::Notice;
use crate::order::Order;
use crossterm::event::KeyEvent;
use engine::snapshot::{Sampler, TargetState};
use std::sync::Arc;

impl App {
    pub(super) fn open_sampling(&mut self) {
        match self.sampler() {
            Ok(sampler) => {
                let dialog = SamplingDialog::new(sampler, self.base.rate_hz);
                self.mode = Mode::Sampling(dialog);
            }
            Err(why) => self.detail = Detail::Notice(Notice::NoSampling(why)),
        }
    }

    /// How the samples are taken that come, or why none do.
    fn sampler(&self) -> Result<Arc<Sampler>, String> {
        let base = &self.base;
        match (&base.recording, &base.target, &base.sampler) {
            (Some(_), ..) if base.report.rate_hz > 0 => {
                let hz = base.report.rate_hz;
                Err(format!("this is a recording, taken at {hz} Hz"))
            }
            (Some(_), ..) => Err("this is a recording".into()),
            (None, TargetState::Exited(_) | TargetState::Failed(_), _) => {
                Err("nothing is sampled any more".into())
            }
            (None, _, Some(sampler)) => Ok(Arc::clone(sampler)),
            (None, _, None) => Err("sampling has not begun".into()),
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
                Some(self.obey_key(Order::Rate(hz)))
            }
        }
    }

    /// Has samples taken at another rate, if the source of samples can do that.
    pub(super) fn change_rate(&mut self, hz: u32) -> Result<Obeyed, String> {
        let sampler = self.sampler()?;
        if let Some(why) = sampler.why_fixed() {
            return Err(why);
        }
        let hz = check_rate(hz, sampler.rate_max_hz)?;
        let is_new = hz != self.base.rate_hz;
        Ok(Obeyed {
            said: Some(Notice::Rate { hz, is_new }),
            effect: is_new.then_some(Effect::SetRate(hz)),
        })
    }
}
