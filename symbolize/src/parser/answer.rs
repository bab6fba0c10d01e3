//! Encodes the answers of a parser. The reading side does not trust the writing side.
//!
//! ```text
//! origin of the debug file that goes along, or none; origin of the names
//! places: their number, and each:
//!     a name, and the first byte of the file that has it and the one behind the last, or 0 and 0;
//!     or why there is none; or why, and where the function starts
//!     its chain of lines
//! ```

use super::chain::{self, read_text, write_text};
use super::names::{FileNames, PlaceName, PlaceNames};
use crate::wire::{Taken, put_u32, put_u64};
use crate::{FileOffset, Origin, Reason};
use std::ops::Range;

const NONE: u8 = u8::MAX;

const NAMED: u8 = 0;
const UNNAMED: u8 = 1;
const UNNAMED_IN: u8 = 2;

/// Maximum size of one message; what does not fit is requested again.
pub const BYTES_MAX: usize = 8 << 20;

/// Maximum size of a name. A symbol has at most 64 KiB, and each byte of it may become eight that
/// are safe to print.
const NAME_BYTES_MAX: usize = 512 << 10;

/// Encodes what is known about places, as many from the first on as fit into a message, and the
/// kind of the debug file that is sent along.
pub fn write(names: &FileNames, beside: Option<Origin>) -> Vec<u8> {
    let mut out = vec![
        beside.map_or(NONE, |origin| origin as u8),
        names.origin as u8,
    ];
    let at = out.len();
    put_u32(&mut out, 0);
    let mut count = 0u32;
    for place in &names.places {
        if out.len() > BYTES_MAX {
            break;
        }
        write_place(&mut out, place);
        count += 1;
    }
    out[at..at + 4].copy_from_slice(&count.to_le_bytes());
    out
}

/// Decodes the result of `write`; `None` if it is malformed.
pub fn read(bytes: &[u8]) -> Option<(FileNames, Option<Origin>)> {
    let mut bytes = Taken(bytes);
    let beside = match bytes.u8()? {
        NONE => None,
        origin => Some(*Origin::ALL.get(usize::from(origin))?),
    };
    let origin = *Origin::ALL.get(usize::from(bytes.u8()?))?;
    let count = bytes.u32()?;
    let places = (0..count)
        .map(|_| read_place(&mut bytes))
        .collect::<Option<_>>()?;
    Some((FileNames { origin, places }, beside))
}

fn write_place(out: &mut Vec<u8>, place: &PlaceNames) {
    match &place.name {
        PlaceName::Named { name, same } => {
            out.push(NAMED);
            write_text(out, name, NAME_BYTES_MAX);
            let Range { start, end } = same.clone().unwrap_or_default();
            put_u64(out, start);
            put_u64(out, end);
        }
        PlaceName::Unnamed {
            reason,
            start: None,
        } => out.extend([UNNAMED, *reason as u8]),
        PlaceName::Unnamed {
            reason,
            start: Some(start),
        } => {
            out.extend([UNNAMED_IN, *reason as u8]);
            put_u64(out, start.0);
        }
    }
    chain::write(out, &place.lines);
}

fn read_place(bytes: &mut Taken<'_>) -> Option<PlaceNames> {
    let name = match bytes.u8()? {
        NAMED => {
            let name = read_text(bytes)?;
            let same = bytes.u64()?..bytes.u64()?;
            let same = Some(same).filter(|same| !same.is_empty());
            PlaceName::Named { name, same }
        }
        kind @ (UNNAMED | UNNAMED_IN) => PlaceName::Unnamed {
            reason: *Reason::ALL.get(usize::from(bytes.u8()?))?,
            start: match kind {
                UNNAMED => None,
                _ => Some(FileOffset(bytes.u64()?)),
            },
        },
        _ => return None,
    };
    let lines = chain::read(bytes)?;
    Some(PlaceNames { name, lines })
}

#[cfg(test)]
mod tests {
    use super::super::names::SourceLine;
    use super::*;
    use proptest::prelude::*;

    fn named(name: &str, same: Option<Range<u64>>) -> PlaceName {
        let name = name.into();
        PlaceName::Named { name, same }
    }

    fn names() -> FileNames {
        let line = |function: &str| SourceLine {
            function: function.into(),
            file: "/src/a.go".into(),
            line: 7,
        };
        let place = |name, lines| PlaceNames { name, lines };
        let unnamed = |reason, start| PlaceName::Unnamed { reason, start };
        let same = Some(0x1000..0x1234);
        FileNames {
            origin: Origin::GoTable,
            places: vec![
                place(named("main.main", None), vec![line("inner"), line("")]),
                place(named("main", same), Vec::new()),
                place(unnamed(Reason::Stripped, None), Vec::new()),
                place(
                    unnamed(Reason::NotCovered, Some(FileOffset(u64::MAX))),
                    Vec::new(),
                ),
            ],
        }
    }

    #[test]
    fn answers_arrive_as_they_were_given() {
        for beside in [None, Some(Origin::MiniDebugInfo)] {
            let bytes = write(&names(), beside);
            assert_eq!(read(&bytes), Some((names(), beside)));
            for len in 0..bytes.len() {
                assert_eq!(read(&bytes[..len]), None, "{len}");
            }
        }
    }

    #[test]
    fn names_of_a_process_that_is_a_strangers_are_safe_to_print() {
        let mut hostile = names();
        hostile.places[0].name = named("\u{1b}]0;title\u{7}", None);
        let (read, _) = read(&write(&hostile, None)).expect("an answer");
        let safe = named("\\u{1b}]0;title\\u{7}", None);
        assert_eq!(read.places[0].name, safe);
    }

    #[test]
    fn what_does_not_fit_into_a_message_is_left_out() {
        let mut many = names();
        let long = "x".repeat(2 * NAME_BYTES_MAX);
        many.places = vec![many.places[0].clone(); 40];
        many.places[3].name = named(&long, None);
        for place in &mut many.places[4..] {
            place.name = named(&long, None);
        }
        let bytes = write(&many, None);
        assert!(bytes.len() < BYTES_MAX + 2 * NAME_BYTES_MAX);
        let (read, _) = read(&bytes).expect("an answer");
        assert_eq!(read.places[..3], many.places[..3]);
        assert!(read.places.len() < 40);
        assert_eq!(read.places[3].name, named(&long[..NAME_BYTES_MAX], None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = read(&bytes);
        }

        #[test]
        fn any_damage_is_harmless(at in 0usize..120, byte: u8) {
            let mut bytes = write(&names(), None);
            let at = at % bytes.len();
            bytes[at] = byte;
            _ = read(&bytes);
        }
    }
}
