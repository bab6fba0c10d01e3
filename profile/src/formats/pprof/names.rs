//! Sets the names of places, after the store has their stacks.

use super::reader::{Reader, Step};
use super::tables::Line;
use crate::formats::FormatError;
use crate::{NameState, NoName, SourceFrame};
use std::sync::Arc;

/// Number of functions at one place that are read.
const LINES_MAX: usize = 256;

/// Upper limit of the bytes of all names, each counted wherever it is used.
const LETTERS_MAX: usize = 1 << 30;

impl Reader<'_> {
    /// Sets the functions and lines of all locations whose frames the store kept.
    ///
    /// The lines of a location are innermost first; the last one is the function that contains the
    /// code and gives the frame its name. A location without lines has no name.
    pub(super) fn add_names(&mut self) -> Result<(), FormatError> {
        let mut lines: Vec<Line> = Vec::new();
        let mut letters = 0;
        for at in 0..self.tables.locations.len() {
            let (id, location) = self.tables.locations[at];
            let Some(Step::Frame(frame)) = self.steps.get(&id) else {
                continue;
            };
            let Some(frame) = self.store.find_frame(frame) else {
                continue;
            };
            location.lines(&mut lines)?;
            let Some(own) = lines.pop() else {
                self.store
                    .set_name(frame, NameState::Unnamed(NoName::NotTold));
                continue;
            };
            // The innermost ones are kept, and the function that contains the code, which was taken
            // out before.
            lines.truncate(LINES_MAX);
            let mut chain = Vec::with_capacity(lines.len() + 1);
            for line in lines.iter().chain([&own]) {
                let function = self.tables.function(line.function)?;
                let name = self.tables.text(function.name)?;
                let file = self.tables.text(function.file)?;
                letters += name.len() + file.len();
                chain.push((name, file, u32::try_from(line.line).unwrap_or(0)));
            }
            if letters > LETTERS_MAX {
                return Err(FormatError::TooLarge("the names of its functions"));
            }
            if let Some((name, _, _)) = chain.last() {
                self.store
                    .set_name(frame, NameState::Named(Arc::clone(name)));
            }
            let has_source =
                |(_, file, line): &(Arc<str>, Arc<str>, u32)| *line > 0 || !file.is_empty();
            if chain.len() > 1 || chain.iter().any(has_source) {
                let told = chain.iter().map(|(function, file, line)| SourceFrame {
                    function,
                    file,
                    line: *line,
                });
                self.store.set_source(frame, &told.collect::<Vec<_>>());
            }
        }
        Ok(())
    }
}
