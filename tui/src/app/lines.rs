//! The contents of the two lines of text: the detail line and the state line.

use super::mode::Detail;
use super::state::StateLine;

/// What the detail line and the state line say.
#[derive(Debug, Default)]
pub struct Lines {
    pub detail: Detail,
    /// How far the detail line is scrolled to the right, in half lines.
    pub detail_shift: usize,
    /// The state line, if there is one.
    pub state: Option<StateLine>,
    /// Whether the state line says that stacks are cut. It stays until their share is clearly lower.
    pub(super) cut_shown: bool,
    /// The number of the last sentence about probes that was shown.
    pub(super) probes_said: u64,
}
