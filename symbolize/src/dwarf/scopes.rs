//! *Scopes*: functions and the functions inlined into them, from the entries
//! of a unit.

use gimli::{AttributeValue, Dwarf, EntriesRaw, Unit};

use super::paint::Interval;
use super::reader::{self, EntryPlace};
use super::sections::Slice;

/// Of one unit. LTO makes the largest, with a million.
const SCOPES_MAX: usize = 16 << 20;

/// Ranges of one scope. Real ones have some hundreds.
const RANGES_MAX: usize = 1 << 20;

/// A function, or a function inlined there.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// The entry that has, or leads to, its name.
    pub name: Option<EntryPlace>,
    /// What it was inlined into; `None` for a function.
    pub call: Option<Call>,
}

/// Where a function was inlined.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// In `Scopes::scopes`; `None` if it is not in any function.
    pub caller: Option<u32>,
    pub file: u64,
    pub line: u32,
    pub column: u32,
}

/// The scopes of a unit, and where they are. Of two at an address the later
/// one is the inner.
#[derive(Debug, Default)]
pub struct Scopes {
    pub scopes: Vec<Scope>,
    pub intervals: Vec<Interval>,
}

/// Reads all entries of a unit. What is behind a damaged one is lost.
pub fn read<'d>(dwarf: &Dwarf<Slice<'d>>, unit: &Unit<Slice<'d>>, columns: bool) -> Scopes {
    let mut pass = Pass {
        dwarf,
        unit,
        columns,
        out: Scopes::default(),
        open: Vec::new(),
    };
    if let Ok(entries) = unit.entries_raw(None) {
        // What was read up to a mistake is as good as ever.
        _ = pass.run(entries);
    }
    pass.out
}

struct Pass<'p, 'd> {
    dwarf: &'p Dwarf<Slice<'d>>,
    unit: &'p Unit<Slice<'d>>,
    columns: bool,
    out: Scopes,
    /// The functions that the pass is in: depth, and scope if it has code.
    open: Vec<(isize, Option<u32>)>,
}

impl<'d> Pass<'_, 'd> {
    fn run(&mut self, mut entries: EntriesRaw<'_, Slice<'d>>) -> gimli::Result<()> {
        let start = self.unit.header.debug_info_offset().map_or(0, |o| o.0);
        while !entries.is_empty() && self.out.scopes.len() < SCOPES_MAX {
            let (depth, offset) = (entries.next_depth(), entries.next_offset());
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            // Before the tag: what follows a block is not in what was before it.
            while self.open.pop_if(|(outer, _)| *outer >= depth).is_some() {}
            let tag = abbreviation.tag();
            if tag != gimli::DW_TAG_subprogram && tag != gimli::DW_TAG_inlined_subroutine {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut code = Code::default();
            let mut call = Call {
                caller: self.open.last().and_then(|(_, scope)| *scope),
                file: 0,
                line: 0,
                column: 0,
            };
            let mut origin = None;
            for &spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(spec)?;
                let number = || attribute.udata_value().unwrap_or(0);
                match attribute.name() {
                    gimli::DW_AT_low_pc => code.low = Some(attribute.value()),
                    gimli::DW_AT_high_pc => code.high = Some(attribute.value()),
                    gimli::DW_AT_ranges => code.ranges = Some(attribute.value()),
                    gimli::DW_AT_abstract_origin => {
                        origin = reader::reference(self.unit, attribute.value(), false);
                    }
                    gimli::DW_AT_call_file => {
                        call.file = match attribute.value() {
                            AttributeValue::FileIndex(file) => file,
                            _ => number(),
                        };
                    }
                    gimli::DW_AT_call_line => call.line = number().try_into().unwrap_or(0),
                    gimli::DW_AT_call_column if self.columns => {
                        call.column = number().try_into().unwrap_or(0);
                    }
                    _ => {}
                }
            }
            let owner = self.out.scopes.len() as u32;
            let has_code = self.add_code(&code, owner);
            if has_code {
                let is_function = tag == gimli::DW_TAG_subprogram;
                let own = EntryPlace {
                    supplementary: false,
                    offset: start + offset.0,
                };
                self.out.scopes.push(Scope {
                    name: if is_function { Some(own) } else { origin },
                    call: (!is_function).then_some(call),
                });
            }
            if abbreviation.has_children() {
                self.open.push((depth, has_code.then_some(owner)));
            }
        }
        Ok(())
    }

    /// Adds the intervals of a scope; `false` if there are none.
    fn add_code(&mut self, code: &Code<'d>, owner: u32) -> bool {
        let before = self.out.intervals.len();
        let mut add = |start: u64, end: u64| {
            if is_code(start, end) {
                self.out.intervals.push(Interval { start, end, owner });
            }
        };
        if let Some(ranges) = code.ranges {
            let ranges = self.dwarf.attr_ranges(self.unit, ranges);
            if let Ok(Some(mut ranges)) = ranges {
                let mut left = RANGES_MAX;
                while let Ok(Some(range)) = ranges.next()
                    && left > 0
                {
                    left -= 1;
                    add(range.begin, range.end);
                }
            }
        } else if let Some((low, high)) = code.low.zip(code.high) {
            let address = |value| self.dwarf.attr_address(self.unit, value).ok().flatten();
            if let Some(start) = address(low) {
                let end = match high.udata_value() {
                    Some(len) => start.checked_add(len),
                    None => address(high),
                };
                add(start, end.unwrap_or(start));
            }
        }
        self.out.intervals.len() > before
    }
}

/// The attributes that say where code is.
#[derive(Default)]
struct Code<'d> {
    low: Option<AttributeValue<Slice<'d>>>,
    high: Option<AttributeValue<Slice<'d>>>,
    ranges: Option<AttributeValue<Slice<'d>>>,
}

/// Whether there is code: linkers leave 0, 1 or the highest address where they
/// removed it.
pub fn is_code(start: u64, end: u64) -> bool {
    start > 1 && start < end && end < u64::MAX - 1
}
