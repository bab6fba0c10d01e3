//! What is missing, and why, as the app sees it.

use super::{Health, findings};
use crate::context::Context;
use crate::geometry::Part;
use crate::lists::motion::Motion;
use crate::views::View;

impl View for Health {
    fn update(&mut self, cx: &Context<'_>, _: bool) -> bool {
        self.update(cx.shown);
        true
    }

    fn resize(&mut self, _: &Context<'_>, part: &Part) {
        self.resize(part.height.into());
    }

    fn go(&mut self, _: &Context<'_>, motion: Motion) {
        self.go(motion);
    }

    fn select_at(&mut self, _: &Context<'_>, _: u16, line: usize) {
        self.select_line(line);
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        let finding = findings(cx.shown).into_iter().nth(self.index())?;
        Some(finding.explain)
    }
}
