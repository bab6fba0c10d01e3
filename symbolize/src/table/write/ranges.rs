//! The ranges of all units as one ascending list.

use super::Extras;
use crate::OpenError;
use crate::table::format::NONE;
use crate::table::unit::UnitRanges;

/// A stretch of addresses of one unit.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: u32,
    end: u32,
    place: u32,
}

/// The lowest address that is told of.
pub fn base(units: &[UnitRanges<'_>], extras: &Extras<'_>) -> u64 {
    let code = units.iter().filter(|unit| !unit.ranges.is_empty());
    let code = code.map(|unit| unit.first);
    let symbols = extras.symbols.first().map(|symbol| symbol.start);
    code.chain(symbols).min().unwrap_or(0)
}

/// Of all units, by start; places are numbered through.
fn stretches(units: &[UnitRanges<'_>], base: u64) -> Result<Vec<Stretch>, OpenError> {
    let count = units.iter().map(|unit| unit.ranges.len()).sum();
    let mut all = Vec::with_capacity(count);
    let mut before: u32 = 0;
    for unit in units {
        // Beyond 4 GiB from the start of its code no file has any.
        let first = u32::try_from(unit.first.saturating_sub(base)).ok();
        let addr = |rel: u32| first?.checked_add(rel);
        for pair in unit.ranges.windows(2) {
            let [range, next] = pair else { continue };
            if range.place != NONE
                && let Some((start, end)) = addr(range.start).zip(addr(next.start))
            {
                let place = range.place + before;
                all.push(Stretch { start, end, place });
            }
        }
        before = u32::try_from(unit.places.len())
            .ok()
            .and_then(|places| before.checked_add(places))
            .filter(|&before| before < NONE)
            .ok_or(OpenError::Refused("too much debug information"))?;
    }
    // Units mostly come in the order of their code, which this sort likes.
    all.sort_by_key(|stretch| stretch.start);
    Ok(all)
}

/// Gives `take` the ranges of all units without overlaps: where each starts, and
/// its place. Of units that claim the same code the first one counts.
pub fn joined(
    units: &[UnitRanges<'_>],
    base: u64,
    take: impl FnMut(u32, u32),
) -> Result<(), OpenError> {
    let mut out = Joining {
        latest: None,
        before: NONE,
        take,
    };
    let mut end = 0;
    for stretch in stretches(units, base)? {
        let start = stretch.start.max(end);
        if start >= stretch.end {
            continue;
        }
        if start > end {
            out.push(end, NONE);
        }
        out.push(start, stretch.place);
        end = stretch.end;
    }
    out.push(end, NONE);
    if let Some((start, place)) = out.latest {
        (out.take)(start, place);
    }
    Ok(())
}

/// Puts ranges out of which it is known that they stay.
struct Joining<F> {
    latest: Option<(u32, u32)>,
    /// The place of the range before that.
    before: u32,
    take: F,
}

impl<F: FnMut(u32, u32)> Joining<F> {
    fn push(&mut self, start: u32, place: u32) {
        self.latest = self.latest.filter(|latest| latest.0 != start);
        if self.latest.map_or(self.before, |latest| latest.1) == place {
            return;
        }
        if let Some((start, place)) = self.latest.replace((start, place)) {
            (self.take)(start, place);
            self.before = place;
        }
    }
}
