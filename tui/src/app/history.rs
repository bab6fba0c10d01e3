//! The *history*: the places where the screen has been. After narrowing, filtering or
//! opening something the user can go back, and forward again, and finds everything as it
//! was left.

use crate::knobs::Knobs;
use crate::view_id::ViewId;
use crate::views::PaneId;
use std::any::Any;
use std::sync::Arc;

/// How many steps are kept; the oldest are forgotten.
const STEPS_MAX: usize = 100;

/// All that is needed to show again what was shown at a moment.
#[derive(Debug, Clone)]
pub struct ScreenPosition {
    pub view: ViewId,
    pub knobs: Knobs,
    /// What each view with a tab needs to return to how it was.
    pub panes: Vec<(PaneId, Arc<dyn Any + Send + Sync>)>,
}

impl ScreenPosition {
    /// Returns what a pane has saved of itself. None if it saved nothing.
    pub fn of(&self, pane: PaneId) -> Option<&dyn Any> {
        let (_, place) = self.panes.iter().find(|(other, _)| *other == pane)?;
        Some(&**place)
    }
}

/// The places that one can go back and forward to.
#[derive(Debug, Default)]
pub struct History {
    back: Vec<ScreenPosition>,
    forward: Vec<ScreenPosition>,
    /// Whether the last step only changed the window. The next change of the window then
    /// belongs to the same step.
    is_window: bool,
}

impl History {
    /// Remembers the place that is about to be left.
    pub fn leave(&mut self, place: ScreenPosition) {
        self.is_window = false;
        self.push(place);
    }

    /// Remembers the place before the window changes. Several changes in a row are one
    /// step.
    pub fn leave_window(&mut self, place: ScreenPosition) {
        let is_same = |last: &ScreenPosition| last.view == place.view;
        if !(self.is_window && self.back.last().is_some_and(is_same)) {
            self.push(place);
        }
        self.is_window = true;
    }

    /// Returns the place that one step back would lead to.
    pub fn last(&self) -> Option<&ScreenPosition> {
        self.back.last()
    }

    /// Takes one step back from `here`, to which [`Self::forward`] then leads. None if
    /// there is no earlier place.
    pub fn back(&mut self, here: ScreenPosition) -> Option<ScreenPosition> {
        let place = self.back.pop()?;
        self.is_window = false;
        self.forward.push(here);
        Some(place)
    }

    /// Takes one step forward from `here`. None if there was no step back before, or
    /// something else was done since.
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
