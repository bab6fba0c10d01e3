//! What the selected row leads to, and the search for text in rows.

use super::{Code, CodeRow, Follow, NoSource, rows};
use crate::lists::find::Find;
use std::path::PathBuf;

impl Code {
    /// Returns where Enter on the selected row leads: to the code of a function that is called
    /// there, or to the end of a jump.
    pub fn follow(&self) -> Follow {
        let Some((answer, row)) = self.answer().zip(self.selected()) else {
            return Follow::Nothing;
        };
        if let CodeRow::Call { callee, .. } = row {
            return Follow::Code(*callee);
        }
        let spot = answer.spot(row);
        if let Some((callee, _)) = spot.and_then(|spot| spot.calls.first()) {
            return Follow::Code(*callee);
        }
        let from = self.selected_row();
        if let Some(jump) = self.jumps.iter().find(|jump| Some(jump.from) == from) {
            return Follow::Row(jump.to);
        }
        let instruction = match row {
            CodeRow::Instruction { at, .. } => answer.body.instruction(*at),
            _ => None,
        };
        let called = instruction.filter(|instruction| instruction.is_call());
        match called.and_then(|instruction| instruction.target.clone()) {
            Some(name) => Follow::Name(name),
            None => Follow::Nothing,
        }
    }

    /// Returns the file and the line that an editor opens. It is line 1 if the selected row has no
    /// line.
    pub fn source_here(&self) -> Result<(PathBuf, u32), NoSource> {
        let answer = self.answer().ok_or(NoSource)?;
        let text = answer.body.text.as_ref().ok_or(NoSource)?;
        let line = self.selected().and_then(|row| rows::line_of(row, answer));
        Ok((text.path.clone(), line.unwrap_or(1)))
    }

    /// Returns the text of the selected row, to be copied, or `None` if it has none.
    pub fn text_here(&self) -> Option<String> {
        let text = self.text(self.selected()?)?;
        Some(text.trim().to_owned())
    }

    /// Returns the text of a row that a search looks at.
    fn text(&self, row: &CodeRow) -> Option<String> {
        rows::text(row, self.answer()?, self.syntax)
    }

    /// Returns the pattern of the search, or `None` if there is no search.
    pub fn find(&self) -> Option<&Find> {
        self.find.as_ref()
    }

    /// Starts a search for a pattern, or ends it with `None`. The selection stays.
    pub fn set_find(&mut self, find: Option<Find>) {
        self.find = find;
        self.find_rows();
    }

    /// Whether the text of a row matches the search. False if there is no search.
    pub fn is_found(&self, row: &CodeRow) -> bool {
        let text = || self.text(row);
        self.find
            .as_ref()
            .is_some_and(|find| text().is_some_and(|text| find.matches(&text)))
    }

    /// Finds the rows that match the search. Called when rows or pattern change, and not for each
    /// drawing, because a long function has many rows.
    pub(super) fn find_rows(&mut self) {
        self.found = match self.find {
            Some(_) => self
                .selectable()
                .filter(|at| self.is_found(&self.rows[*at]))
                .collect(),
            None => Vec::new(),
        };
    }

    /// Returns how many rows match the search, and how many rows can be selected.
    pub fn found(&self) -> (usize, usize) {
        (self.found.len(), self.selectable().count())
    }

    /// Selects the next match below the selected row, or above it if `down` is false, and goes on
    /// at the other end. With `including` and `down`, the selected row itself may be the match.
    /// Returns the position of the match among all matches, counted from 1, or `None` if there is
    /// none.
    pub fn select_found(&mut self, down: bool, including: bool) -> Option<usize> {
        let found = &self.found;
        let here = self.selected_index()?;
        let place = if down {
            found
                .iter()
                .position(|at| *at > here || (including && *at == here))
                .or(Some(0))
        } else {
            found
                .iter()
                .rposition(|at| *at < here)
                .or(found.len().checked_sub(1))
        }?;
        self.select(*found.get(place)?);
        Some(place + 1)
    }
}
