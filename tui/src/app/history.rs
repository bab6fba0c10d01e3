//! The *history* contains the earlier positions of the screen. After narrowing, filtering or
//! opening something the user can go back and forward again, and finds everything as it was.

use crate::knobs::Knobs;
use crate::view_id::ViewId;
use crate::views::PaneId;
use std::any::Any;
use std::sync::Arc;

/// Maximum number of steps. The oldest are dropped.
const STEPS_MAX: usize = 100;

/// Everything that is needed to show again what was shown at one time.
#[derive(Debug, Clone)]
pub struct ScreenPosition {
    pub view: ViewId,
    pub knobs: Knobs,
    /// What each pane needs in order to restore its state.
    pub panes: Vec<(PaneId, Arc<dyn Any + Send + Sync>)>,
}

impl ScreenPosition {
    /// Returns what a pane has stored about its state, or `None` if it stored nothing.
    pub fn of(&self, pane: PaneId) -> Option<&dyn Any> {
        let (_, place) = self.panes.iter().find(|(other, _)| *other == pane)?;
        Some(&**place)
    }
}

/// The positions that the user can go back and forward to.
#[derive(Debug, Default)]
pub struct History {
    back: Vec<ScreenPosition>,
    forward: Vec<ScreenPosition>,
    /// Whether the last step only changed the window. The next change of the window then belongs to
    /// the same step.
    is_window: bool,
}

impl History {
    /// Stores the position that is about to be left.
    pub fn leave(&mut self, place: ScreenPosition) {
        self.is_window = false;
        self.push(place);
    }

    /// Stores the position before the window changes. Several changes in a row are one step.
    pub fn leave_window(&mut self, place: ScreenPosition) {
        let is_same = |last: &ScreenPosition| last.view == place.view;
        if !(self.is_window && self.back.last().is_some_and(is_same)) {
            self.push(place);
        }
        self.is_window = true;
    }

    /// Returns the position that one step back would lead to.
    pub fn last(&self) -> Option<&ScreenPosition> {
        self.back.last()
    }

    /// Takes one step back from `here`, to which [`Self::forward`] then leads. Returns `None` if
    /// there is no earlier position.
    pub fn back(&mut self, here: ScreenPosition) -> Option<ScreenPosition> {
        let place = self.back.pop()?;
        self.is_window = false;
        self.forward.push(here);
        Some(place)
    }

    /// Takes one step forward from `here`. Returns `None` if the user did not step back before, or
    /// has done something else since.
    pub fn forward(&mut self, here: ScreenPosition) -> Option<ScreenPosition> {
        let place = self.forward.pop()?;
        self.is_window = false;
        self.back.push(here);
        Some(place)
    }

    fn push(&mut self, place: ScreenPosition) {
        self.forward.clear();
        if self.back.len() == STEPS_MAX {
            self.back.remove(0);
        }
        self.back.push(place);
    }
}
