//! Keys typed *ahead*. A view that was just opened has no rows before its first answer, and after a
//! change of the window or the filter the report of before is shown for a moment; but a user who
//! knows the keys, or a slow connection, sends the next key immediately. Keys that need what is not
//! there yet wait for the answer, and so do all keys behind them.

use super::keys;
use super::{Action, App, Effect};
use crate::app::mode::Mode;
use crossterm::event::KeyEvent;
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum time that a key waits for an answer. After that it is handled with what is there.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Maximum number of keys that wait. More keys are dropped: nobody types that many ahead.
const KEYS_MAX: usize = 32;

/// The keys that wait, in the order in which they were pressed.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    keys: VecDeque<KeyEvent>,
    /// When the first of these keys was pressed.
    since: Duration,
}

impl Ahead {
    /// Whether no key waits.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl App {
    /// Handles a key, or lets it wait for the answer that it needs.
    pub(super) fn press_in_turn(&mut self, key: KeyEvent) -> Vec<Effect> {
        if !self.has_to_wait(key) {
            self.input.ahead.keys.clear();
            return keys::press(self, key);
        }
        if self.input.ahead.keys.is_empty() {
            self.input.ahead.since = self.now;
        }
        if self.input.ahead.keys.len() < KEYS_MAX {
            self.input.ahead.keys.push_back(key);
        }
        Vec::new()
    }

    /// Handles the keys that need not wait any more.
    pub(super) fn press_those_ahead(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(key) = self.input.ahead.keys.front().copied() {
            let is_late = self.now.saturating_sub(self.input.ahead.since) >= WAIT_MAX;
            if !is_late && self.lacks_answer(key) {
                break;
            }
            self.input.ahead.keys.pop_front();
            effects.extend(keys::press(self, key));
        }
        effects
    }

    /// Whether a key has to wait: it needs an answer that is not there yet, or other keys wait
    /// before it. Keys that quit, suspend or go back never wait, and the keys before them are
    /// dropped.
    fn has_to_wait(&self, key: KeyEvent) -> bool {
        if !matches!(self.mode, Mode::Browse) {
            return false;
        }
        let leaves = matches!(
            self.input.keymap.find(key, self.focus()),
            Some(Action::Quit | Action::Suspend | Action::Back)
        );
        !leaves && (!self.input.ahead.keys.is_empty() || self.lacks_answer(key))
    }

    /// Whether a key acts on rows of the view that has the keys, and these are not there yet; or on
    /// all that is shown, and the report that was asked for is not.
    fn lacks_answer(&self, key: KeyEvent) -> bool {
        let Some(action) = self.input.keymap.find(key, self.focus()) else {
            return false;
        };
        let needs_rows = keys::as_motion(action).is_some() || action.is_of_row();
        let awaits_rows = self.views.get(self.pane_here()).awaits_rows();
        needs_rows && awaits_rows || action.is_of_all_shown() && self.is_catching_up()
    }
}
