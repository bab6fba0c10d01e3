//! Keys typed *ahead*: a view that was just opened has no rows before its first answer, and a
//! user who knows the keys, or a slow line, sends the next one at once. Keys that need rows
//! wait for the answer, and the keys behind them wait with them.

use super::keys;
use super::{Action, App, Effect};
use crate::app::mode::Mode;
use crossterm::event::KeyEvent;
use std::collections::VecDeque;
use std::time::Duration;

/// A key waits no longer than this for an answer: then it says that nothing is selected.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// More keys than this were not typed.
const KEYS_MAX: usize = 32;

/// Keys that wait, the first one first.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    keys: VecDeque<KeyEvent>,
    since: Duration,
}

impl App {
    /// Presses a key, or lets it wait for the rows that it needs.
    pub(super) fn press_in_turn(&mut self, key: KeyEvent) -> Vec<Effect> {
        if !self.has_to_wait(key) {
            self.ahead.keys.clear();
            return keys::press(self, key);
        }
        if self.ahead.keys.is_empty() {
            self.ahead.since = self.now;
        }
        if self.ahead.keys.len() < KEYS_MAX {
            self.ahead.keys.push_back(key);
        }
        Vec::new()
    }

    /// Presses the keys that need not wait any more.
    pub(super) fn press_those_ahead(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(key) = self.ahead.keys.front().copied() {
            let is_late = self.now.saturating_sub(self.ahead.since) >= WAIT_MAX;
            if !is_late && self.needs_rows(key) && self.awaits_rows() {
                break;
            }
            self.ahead.keys.pop_front();
            effects.extend(keys::press(self, key));
        }
        effects
    }

    /// Whether a key waits: it needs rows that are not there yet, or others wait before it.
    /// What leaves, or undoes, never does, and the keys before it are forgotten.
    fn has_to_wait(&self, key: KeyEvent) -> bool {
        if !matches!(self.mode, Mode::Browse) || !self.awaits_rows() {
            return false;
        }
        let leaves = matches!(
            self.keymap.find(key, self.focus()),
            Some(Action::Quit | Action::Suspend | Action::Back)
        );
        !leaves && (!self.ahead.keys.is_empty() || self.needs_rows(key))
    }

    /// Whether a key does something with the rows of the view that has the keys.
    fn needs_rows(&self, key: KeyEvent) -> bool {
        let action = self.keymap.find(key, self.focus());
        action.is_some_and(|action| keys::as_motion(action).is_some() || action.is_of_row())
    }

    /// Whether the view that has the keys has asked for its first answer.
    fn awaits_rows(&self) -> bool {
        self.views.get(self.pane_here()).awaits_rows()
    }
}
