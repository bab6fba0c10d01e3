//! What the selected row leads to, and the find.

use super::{Code, CodeRow, Follow, NoSource, rows};
use crate::lists::find::Find;
use std::path::PathBuf;

impl Code {
    /// Where following the selected row leads: to the code of what is called there.
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

    /// The file and the line that an editor is to open.
    pub fn source_here(&self) -> Result<(PathBuf, u32), NoSource> {
        let answer = self.answer().ok_or(NoSource)?;
        let text = answer.body.text.as_ref().ok_or(NoSource)?;
        let line = self.selected().and_then(|row| rows::line_of(row, answer));
        Ok((text.path.clone(), line.unwrap_or(1)))
    }

    /// The selected row as text.
    pub fn text_here(&self) -> Option<String> {
        let text = self.text(self.selected()?)?;
        Some(text.trim().to_owned())
    }

    /// What find looks at.
    fn text(&self, row: &CodeRow) -> Option<String> {
        rows::text(row, self.answer()?, self.syntax)
    }

    pub fn find(&self) -> Option<&Find> {
        self.find.as_ref()
    }

    pub fn set_find(&mut self, find: Option<Find>) {
        self.find = find;
        self.find_rows();
    }

    pub fn is_found(&self, row: &CodeRow) -> bool {
        let text = || self.text(row);
        self.find
            .as_ref()
            .is_some_and(|find| text().is_some_and(|text| find.matches(&text)))
    }

    /// Once for many frames: a long function has many rows.
    pub(super) fn find_rows(&mut self) {
        self.found = match self.find {
            Some(_) => { self.selectable() }
                .filter(|at| self.is_found(&self.rows[*at]))
                .collect(),
            None => Vec::new(),
        };
    }

    /// Rows that match, and all that could.
    pub fn found(&self) -> (usize, usize) {
        (self.found.len(), self.selectable().count())
    }

    /// As in the tables.
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
