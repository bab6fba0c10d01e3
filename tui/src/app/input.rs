//! The state of keys and mouse.

use super::ahead::Ahead;
use super::calm::Calm;
use super::mouse::Mouse;
use crate::action::Keymap;
use crate::notice::Notice;
use std::time::Duration;

/// The meaning of the keys, and what the user did with keys and mouse.
#[derive(Debug)]
pub struct Input {
    pub keymap: Keymap,
    pub mouse: Mouse,
    pub(super) calm: Calm,
    pub(super) ahead: Ahead,
    /// When the find key was last pressed where there is no find, or a letter was typed shortly
    /// after it. These letters must not be taken for actions.
    pub(super) find_in_vain: Option<Duration>,
    /// The result of the last order that did not come from a key, until `take_reply` takes it.
    pub(super) reply: Option<Result<Option<Notice>, Notice>>,
}

impl Input {
    /// Starts with the default keys. `mouse` says whether the terminal reports clicks.
    pub fn new(mouse: bool) -> Self {
        Input {
            keymap: Keymap::default(),
            mouse: Mouse::new(mouse),
            calm: Calm::default(),
            ahead: Ahead::default(),
            find_in_vain: None,
            reply: None,
        }
    }
}
