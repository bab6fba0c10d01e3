//! The samples of the function's code in the baseline. Addresses are comparable only between equal
//! builds of the file; with another build, lines are compared by their numbers.

use super::CodeRow;
use super::lines::{line_at, line_of};
use crate::code::{Body, BodyLine};
use profile::diff::{Sides, same_function};
use profile::query::CodePlace;
use profile::{Cancel, Function, Selection};

/// What the function as a whole had in the baseline. What each line and instruction had is in
/// [`super::Spot`].
#[derive(Debug)]
pub struct Before {
    pub sides: Sides,
    /// Number of samples in the function's code.
    pub samples: u64,
    /// The baseline comes from the same build of the file, so that an address is the same place in
    /// both.
    pub is_same_build: bool,
}

/// The samples that one address of the function had in the baseline.
pub(super) struct Counted {
    /// `None` if the baseline comes from another build, in which the address is another place.
    pub address: Option<u64>,
    /// The place in source text, as the baseline has it.
    place: Option<CodePlace>,
    pub samples: u64,
}

impl Before {
    /// Returns the sums, and the samples of each address. All are 0 if the function is not in the
    /// baseline. Returns `None` if it was cancelled.
    pub(super) fn new(
        was: &Selection,
        now: &Selection,
        is_of_here: bool,
        function: &Function,
        cancel: &Cancel,
    ) -> Option<(Self, Vec<Counted>)> {
        let mut before = Before {
            sides: Sides::of(was, now),
            samples: 0,
            is_same_build: true,
        };
        let Some(id) = same_function(was, function) else {
            return Some((before, Vec::new()));
        };
        let then = was.view().function(id);
        before.is_same_build = is_of_here || is_same_build(was, now, &then, function);
        let code = was.code(id, cancel).ok()?;
        before.samples = code.self_samples + code.inlined_samples;
        let counted = code.addresses.into_iter().map(|address| Counted {
            samples: address.samples(),
            address: before.is_same_build.then_some(address.address),
            place: address.place,
        });
        let counted = counted.filter(|counted| counted.samples > 0).collect();
        Some((before, counted))
    }
}

impl Before {
    /// Returns the row's samples in the baseline. Returns `None` if they are not known: for
    /// instructions of another build, and for rows that are not a place in the code.
    pub fn of(&self, row: &CodeRow) -> Option<u64> {
        match row {
            CodeRow::Instruction { .. } | CodeRow::Address { .. } if !self.is_same_build => None,
            CodeRow::Call { .. } | CodeRow::Gap(_) | CodeRow::Piece(_) => None,
            row => Some(row.before()),
        }
    }
}

impl Counted {
    /// Returns the line of the shown code that the samples belong to, or `None` if there is none.
    pub fn line(&self, body: &Body) -> Option<BodyLine> {
        let found = self.address.and_then(|address| line_at(address, body));
        found.or_else(|| line_of(self.place.as_ref()?, body))
    }
}

/// Whether both sides ran the same build of the file. It compares build ids. If neither side has
/// one, the builds count as the same only if both sides were recorded on the same machine since its
/// last start: host name and the time at which its clock was 0 are equal.
fn is_same_build(was: &Selection, now: &Selection, then: &Function, function: &Function) -> bool {
    if !(then.build_id.is_empty() && function.build_id.is_empty()) {
        return then.build_id == function.build_id;
    }
    let (a, b) = (was.view().info(), now.view().info());
    a.host == b.host && a.epoch_unix_ms == b.epoch_unix_ms
}
