//! Which line of source text an address or a place of the profile is on.

use crate::code::{Body, BodyLine};
use profile::query::CodePlace;

/// The line of an address, as the file on disk tells.
pub(super) fn line_at(address: u64, body: &Body) -> Option<BodyLine> {
    body.instruction(body.find(address)?)?.place
}

/// The line of a place that a profile knows, in a file that is known here.
pub(super) fn line_of(place: &CodePlace, body: &Body) -> Option<BodyLine> {
    let file = place.file.as_ref().filter(|_| place.line > 0)?;
    let number = body.files.iter().position(|known| known == file)?;
    Some(BodyLine {
        file: number as u32,
        line: place.line,
    })
}
