//! *Scopes*: functions and the functions inlined into them, from the entries of a unit.

use gimli::{AttributeValue, DebugAddrIndex, DebugRngListsIndex, Dwarf, RawRangeListsOffset, Unit};

use super::entries::{Entries, Event, Function, Value};
use super::names::EntryPlace;
use super::paint::Interval;
use super::ranges::Lists;
use super::sections::Slice;

/// Maximum number of scopes of one unit. LTO makes the largest, with a million.
const SCOPES_MAX: usize = 16 << 20;

/// A function, or a function inlined into another.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// The entry that has its name or refers to it.
    pub name: Option<EntryPlace>,
    /// The inlined call; `None` for a function that was not inlined.
    pub call: Option<Call>,
}

/// The source location of a call that was inlined. Line and column are 0 if they are unknown.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Index of the caller in `Scopes::scopes`; `None` if the call is not in any function.
    pub caller: Option<u32>,
    /// Number of the file in the list of the unit's line number program.
    pub file: u64,
    pub line: u32,
    pub column: u32,
}

/// The scopes of a unit and their address intervals. If two contain an address, the later one is
/// the inner one.
#[derive(Debug, Default)]
pub struct Scopes {
    pub scopes: Vec<Scope>,
    pub intervals: Vec<Interval>,
}

impl Scopes {
    /// Clears the lowest bit of all addresses, which marks Thumb code.
    pub fn clear_thumb_bits(&mut self) {
        for interval in &mut self.intervals {
            interval.start &= !1;
            interval.end &= !1;
        }
    }
}

/// Reads all entries of a unit. What follows a damaged entry is lost. `room` is the buffer of
/// another unit, which is reused.
pub fn read<'d>(
    dwarf: &Dwarf<Slice<'d>>,
    unit: &Unit<Slice<'d>>,
    lists: Lists<'_>,
    columns: bool,
    mut room: Scopes,
) -> Scopes {
    room.scopes.clear();
    room.intervals.clear();
    let mut pass = Pass {
        dwarf,
        unit,
        lists,
        columns,
        start: unit.header.debug_info_offset().map_or(0, |o| o.0),
        out: room,
        open: Vec::new(),
    };
    if let Some(mut entries) = Entries::new(unit) {
        pass.run(&mut entries);
    }
    pass.out
}

struct Pass<'p, 'd> {
    dwarf: &'p Dwarf<Slice<'d>>,
    unit: &'p Unit<Slice<'d>>,
    lists: Lists<'p>,
    columns: bool,
    /// Offset in the section at which the unit starts.
    start: usize,
    out: Scopes,
    /// The functions that contain the current entry: depth, and scope if the function has code.
    open: Vec<(isize, Option<u32>)>,
}

impl<'d> Pass<'_, 'd> {
    fn run(&mut self, entries: &mut Entries<'_, 'd>) {
        while self.out.scopes.len() < SCOPES_MAX
            && let Some(event) = entries.next()
        {
            match event {
                Event::Function => self.function(entries.function(), entries.depth()),
                Event::Closed => {
                    let depth = entries.depth();
                    while self.open.pop_if(|(outer, _)| *outer >= depth).is_some() {}
                }
            }
        }
    }

    fn function(&mut self, function: &Function, depth: isize) {
        let owner = self.out.scopes.len() as u32;
        let has_code = self.add_code(function, owner);
        if has_code {
            let is_inlined = function.is_inlined;
            let own = || Value::InUnit(function.offset).entry(self.start);
            let origin = || function.origin?.entry(self.start);
            self.out.scopes.push(Scope {
                name: if is_inlined { origin() } else { own() },
                call: is_inlined.then(|| self.call(function)),
            });
        }
        if function.has_children() {
            self.open.push((depth, has_code.then_some(owner)));
        }
    }

    fn call(&self, function: &Function) -> Call {
        let number = |value: Option<Value>| value.and_then(Value::number).unwrap_or(0);
        let short = |value| number(value).try_into().unwrap_or(0);
        Call {
            caller: self.open.last().and_then(|(_, scope)| *scope),
            file: number(function.call_file),
            line: short(function.call_line),
            column: if self.columns {
                short(function.call_column)
            } else {
                0
            },
        }
    }

    /// Adds the intervals of a scope; returns `false` if there are none.
    fn add_code(&mut self, function: &Function, owner: u32) -> bool {
        let before = self.out.intervals.len();
        let add = |intervals: &mut Vec<Interval>, start: u64, end: u64| {
            if is_code(start, end) {
                intervals.push(Interval { start, end, owner });
            }
        };
        if let Some(ranges) = function.ranges {
            let intervals = &mut self.out.intervals;
            let add = |start, end| add(intervals, start, end);
            _ = self.lists.each(self.dwarf, self.unit, list(ranges), add);
        } else if let Some((low, high)) = function.low.zip(function.high)
            && let Some(start) = self.address(low)
        {
            let end = match high.number() {
                Some(len) => start.checked_add(len),
                None => self.address(high),
            };
            add(&mut self.out.intervals, start, end.unwrap_or(start));
        }
        self.out.intervals.len() > before
    }

    fn address(&self, value: Value) -> Option<u64> {
        match value {
            Value::Address(address) => Some(address),
            Value::AddressIndex(index) => {
                let index = DebugAddrIndex(index.try_into().ok()?);
                self.dwarf.address(self.unit, index).ok()
            }
            _ => None,
        }
    }
}

/// Converts the reference to a range list to gimli's type.
fn list(value: Value) -> AttributeValue<Slice<'static>> {
    let list = match value {
        Value::Number(offset) => offset
            .try_into()
            .map(|offset| AttributeValue::RangeListsRef(RawRangeListsOffset(offset))),
        Value::RangesIndex(index) => index
            .try_into()
            .map(|index| AttributeValue::DebugRngListsIndex(DebugRngListsIndex(index))),
        _ => Ok(AttributeValue::Flag(false)),
    };
    list.unwrap_or(AttributeValue::Flag(false))
}

/// Whether the interval is code: linkers write 0, 1 or the highest address where they removed it.
pub fn is_code(start: u64, end: u64) -> bool {
    start > 1 && start < end && end < u64::MAX - 1
}
