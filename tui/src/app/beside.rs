//! The page of the selected function *beside* the functions, where the screen is
//! wide enough: who calls it costs no key there.

use super::App;
use crate::screen::View;
use crate::screen::geometry::WIDTH_WIDE;
use crate::screen::page::Place;

impl App {
    /// How wide the pane is, if there is one. Nothing where no store could fill
    /// it.
    pub fn pane(&self) -> Option<u16> {
        let is_wanted = self.has_pane
            && self.view == View::Functions
            && self.difference().is_none()
            && self.shown.view.is_some();
        (is_wanted && self.size.width >= WIDTH_WIDE).then_some(self.size.width * 3 / 8)
    }

    /// What is left for the view, without the line between both.
    pub fn view_width(&self) -> u16 {
        self.pane()
            .map_or(self.size.width, |pane| self.size.width - pane - 1)
    }

    pub(super) fn toggle_pane(&mut self) {
        self.has_pane = !self.has_pane;
    }

    /// The pane follows the selection.
    pub(super) fn settle_pane(&mut self, height: usize) {
        let Some(width) = self.pane() else {
            return self.views.beside.release();
        };
        let function = self.function_here();
        let beside = &mut self.views.beside;
        if let Some(function) = function.filter(|function| beside.function() != Some(*function)) {
            beside.open(Place::new(function));
        }
        beside.resize(width, height);
    }
}
