//! Finds the line of source text of an address, or of a place in the profile.

use crate::code::{Body, BodyLine};
use profile::query::CodePlace;

/// Returns the line of an address according to the file on disk.
pub(super) fn line_at(address: u64, body: &Body) -> Option<BodyLine> {
    body.instruction(body.find(address)?)?.place
}

/// Returns the line of a place in the profile, if its file is one of the files of the code.
pub(super) fn line_of(place: &CodePlace, body: &Body) -> Option<BodyLine> {
    let file = place.file.as_ref().filter(|_| place.line > 0)?;
    let number = body.files.iter().position(|known| known == file)?;
    Some(BodyLine {
        file: number as u32,
        line: place.line,
    })
}
