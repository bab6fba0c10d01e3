//! From the map of time to the window of every view.

use super::App;
use crate::app::mode::{Detail, Notice};
use crate::knobs::Window;
use crate::view_id::ViewId;

impl App {
    pub(super) fn go_sideways(&mut self, right: bool) {
        match self.focus() {
            ViewId::Flame => {
                let pane = self.in_pane();
                self.views.flame_in_mut(pane).go_sideways(right);
            }
            ViewId::Time => self.views.time.go_sideways(right),
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
