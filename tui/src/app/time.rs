//! From the map of time to the window of every view.

use super::App;
use crate::screen::knobs::Window;
use crate::screen::{Detail, Notice, View};

impl App {
    pub(super) fn go_sideways(&mut self, right: bool) {
        match self.focus() {
            View::Flame => {
                let pane = self.in_pane();
                self.views.flame_in_mut(pane).go_sideways(right);
            }
            View::Time => self.views.time.go_sideways(right),
            _ => {}
        }
    }

    /// What is marked becomes the window.
    pub(super) fn use_time(&mut self) {
        if let Some((start_ns, end_ns)) = self.views.time.stretch() {
            self.set_window(Window::Between { start_ns, end_ns });
            self.views.time.use_up();
            self.detail = Detail::Notice(Notice::TimeUsed);
        }
    }
}
