//! The *history*: where the screen has been. Whoever narrows, filters or opens
//! something can go back, and forth again, and finds it as it was left.

use crate::knobs::Knobs;
use crate::view_id::ViewId;
use crate::views::PaneId;
use std::any::Any;
use std::sync::Arc;

/// Beyond that many steps the first are forgotten.
const STEPS_MAX: usize = 100;

/// All that is needed to come back.
#[derive(Debug, Clone)]
pub struct Place {
    pub view: ViewId,
    pub knobs: Knobs,
    /// What each view with a tab needs.
    pub panes: Vec<(PaneId, Arc<dyn Any + Send + Sync>)>,
}

impl Place {
    pub fn of(&self, pane: PaneId) -> Option<&dyn Any> {
        let (_, place) = self.panes.iter().find(|(other, _)| *other == pane)?;
        Some(&**place)
    }
}

#[derive(Debug, Default)]
pub struct History {
    back: Vec<Place>,
    forward: Vec<Place>,
    /// The last step only changed the window: the next one of the kind belongs
    /// to it.
    is_window: bool,
}

impl History {
    /// Something else is about to be shown.
    pub fn leave(&mut self, place: Place) {
        self.is_window = false;
        self.push(place);
    }

    /// The window is about to change; several steps in a row are one.
    pub fn leave_window(&mut self, place: Place) {
        let is_same = |last: &Place| last.view == place.view;
        if !(self.is_window && self.back.last().is_some_and(is_same)) {
            self.push(place);
        }
        self.is_window = true;
    }

    /// Where one step back would lead.
    pub fn last(&self) -> Option<&Place> {
        self.back.last()
    }

    pub fn back(&mut self, here: Place) -> Option<Place> {
        let place = self.back.pop()?;
        self.is_window = false;
        self.forward.push(here);
        Some(place)
    }

    pub fn forward(&mut self, here: Place) -> Option<Place> {
        let place = self.forward.pop()?;
        self.is_window = false;
        self.back.push(here);
        Some(place)
    }

    fn push(&mut self, place: Place) {
        self.forward.clear();
        if self.back.len() == STEPS_MAX {
            self.back.remove(0);
        }
        self.back.push(place);
    }
}
