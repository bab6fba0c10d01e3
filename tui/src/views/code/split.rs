//! Source text and instructions *side by side*: two panes with one list each, in which the same
//! place is selected.

use super::{Code, CodePosition, CodeRow, Layout, rows};
use std::sync::Arc;

impl Code {
    /// Whether the user wants both source text and instructions, and both are available.
    pub fn can_split(&self) -> bool {
        self.layout == Layout::Both && self.answer().is_some() && self.layout() == Layout::Both
    }

    /// Shows the instructions in a pane beside the source text, or as rows below its lines. The
    /// selected place stays selected.
    pub fn set_split(&mut self, is_split: bool) {
        if self.is_split == is_split {
            return;
        }
        self.is_split = is_split;
        let Some(row) = self.selected().cloned() else {
            return self.rebuild();
        };
        self.rebuild_at(Some(row.clone()));
        let here = || self.selected().and_then(CodeRow::key);
        if is_split {
            self.unsplit = row.key().zip(here());
        } else if let Some((before, became)) = self.unsplit.take()
            && row.key() == Some(became)
            && let Some(at) = self.rows.iter().position(|row| row.key() == Some(before))
        {
            self.center(at);
        }
    }

    /// Returns the layout of this pane's own rows: only source text while the pane beside it shows
    /// the instructions.
    pub(super) fn drawn(&self) -> Layout {
        if self.is_split && self.can_split() {
            Layout::Source
        } else {
            self.layout
        }
    }

    /// Makes this the pane with the instructions of the code that `other` shows. It takes the
    /// answer of `other` and asks no question itself.
    pub fn mirror(&mut self, other: &Code) {
        let (Some(place), Some(answer)) = (&other.place, other.desk.shown()) else {
            return;
        };
        self.layout = Layout::Assembly;
        if self.syntax != other.syntax {
            self.syntax = other.syntax;
            self.find_rows();
        }
        let is_same =
            |mine: &CodePosition| (mine.function, mine.visit) == (place.function, place.visit);
        if !self.place.as_ref().is_some_and(is_same) {
            self.followed = None;
            self.place = Some(CodePosition {
                function: place.function,
                held: None,
                offset: 0,
                is_untouched: false,
                visit: place.visit,
            });
            self.rebuild();
        }
        if self
            .desk
            .shown()
            .is_none_or(|mine| !Arc::ptr_eq(mine, answer))
        {
            self.desk.show(Arc::clone(answer));
            self.rebuild();
        }
    }

    /// Selects the place that is selected in `other`, once for each selection made there. If the
    /// selected row belongs to the same source line already, it stays selected.
    pub fn follow_row(&mut self, other: &Code) {
        let (Some(row), Some(answer)) = (other.selected(), self.answer()) else {
            return;
        };
        if row.key() == self.followed {
            return;
        }
        let line = rows::line_of(row, answer);
        let here = self.selected().and_then(|row| rows::line_of(row, answer));
        let at = if line.is_some() && line == here {
            None
        } else {
            rows::same_place(row, answer, &self.rows)
        };
        self.followed = row.key();
        match at {
            Some(at) if self.is_seen(at) => self.select(at),
            Some(at) => self.center(at),
            None => {}
        }
    }

    /// Returns the line of source text that the selected row shows or belongs to, if any.
    pub fn line_here(&self) -> Option<u32> {
        rows::line_of(self.selected()?, self.answer()?)
    }

    /// In the pane with the instructions: returns the line that is selected in the source text. Its
    /// instructions are highlighted.
    pub fn line_beside(&self) -> Option<u32> {
        self.line_beside
    }

    /// Sets the line that [`Code::line_beside`] returns. Called when the selection in the source
    /// text may have changed.
    pub fn set_line_beside(&mut self, line: Option<u32>) {
        self.line_beside = line;
    }

    /// Returns the line of source text that a row belongs to, or `None` if it is not known or in
    /// another file than the shown one.
    pub fn line_of(&self, row: &CodeRow) -> Option<u32> {
        rows::line_of(row, self.answer()?)
    }
}
