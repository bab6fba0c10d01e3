//! Keys typed *ahead*. A view that was just opened has no rows before its first answer, but a user
//! who knows the keys, or a slow connection, sends the next key immediately. Keys that need rows
//! wait for the answer, and so do all keys behind them.

use super::keys;
use super::{Action, App, Effect};
use crate::app::mode::Mode;
use crossterm::event::KeyEvent;
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum time that a key waits for an answer. After that it is handled without rows.
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

impl App {
    /// Handles a key, or lets it wait for the rows that it needs.
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
            if !is_late && self.needs_rows(key) && self.awaits_rows() {
                break;
            }
            self.input.ahead.keys.pop_front();
            effects.extend(keys::press(self, key));
        }
        effects
    }

    /// Whether a key has to wait: it needs rows that are not there yet, or other keys wait before
    /// it. Keys that quit, suspend or go back never wait, and the keys before them are dropped.
    fn has_to_wait(&self, key: KeyEvent) -> bool {
        if !matches!(self.mode, Mode::Browse) || !self.awaits_rows() {
            return false;
        }
        let leaves = matches!(
            self.input.keymap.find(key, self.focus()),
            Some(Action::Quit | Action::Suspend | Action::Back)
        );
        !leaves && (!self.input.ahead.keys.is_empty() || self.needs_rows(key))
    }

    /// Whether a key acts on the rows of the view that has the keys.
    fn needs_rows(&self, key: KeyEvent) -> bool {
        let action = self.input.keymap.find(key, self.focus());
        action.is_some_and(|action| keys::as_motion(action).is_some() || action.is_of_row())
    }

    /// Whether the view that has the keys waits for the answer to its first question.
    fn awaits_rows(&self) -> bool {
        self.views.get(self.pane_here()).awaits_rows()
    }
}
