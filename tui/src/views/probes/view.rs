//! The probes as the app sees them: the implementation of [`View`].

use super::{Probes, words};
use crate::context::Context;
use crate::geometry::ViewArea;
use crate::lists::motion::Motion;
use crate::views::{FunctionHere, View};
use std::sync::Arc;

impl View for Probes {
    fn update(&mut self, cx: &Context<'_>, _: bool) -> bool {
        self.update(cx.shown);
        true
    }

    fn resize(&mut self, _: &Context<'_>, part: &ViewArea) {
        self.resize(part.height.into());
    }

    fn go(&mut self, _: &Context<'_>, motion: Motion) {
        self.go(motion);
    }

    fn select_at(&mut self, _: &Context<'_>, _: u16, line: usize) {
        self.select_line(line);
    }

    fn selected_name(&self, cx: &Context<'_>) -> Option<String> {
        Some(self.selected(cx.shown)?.name.to_string())
    }

    /// Returns the function of the selected probe. It has an id only if it has samples.
    fn selected_function(&self, cx: &Context<'_>) -> Option<FunctionHere> {
        let probe = self.selected(cx.shown)?;
        let mut rows = cx.shown.report.functions.iter();
        let own = rows.find(|row| row.name == probe.name && row.module == probe.module);
        Some(FunctionHere {
            id: own.map(|row| row.id),
            named: Some((Arc::clone(&probe.name), Arc::clone(&probe.module))),
        })
    }

    fn explain(&self, cx: &Context<'_>) -> Option<String> {
        self.selected(cx.shown).map(words::explain)
    }
}
