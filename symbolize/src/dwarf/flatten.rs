//! Joins the scopes and the rows of a unit to ranges.

use std::collections::HashMap;
use std::sync::Mutex;

use super::files::Files;
use super::names::{EntryPlace, Names};
use super::paint::{self, Painted};
use super::ranges::Stretch;
use super::rows::{NO_FILE, Row};
use super::scopes::Scopes;
use super::unit::Window;
use crate::hash::FastState;
use crate::table::CHAIN_MAX;
use crate::table::leaf::{NO_PLACE, Numbers};
use crate::table::place::FunctionPlace;
use crate::table::pool::Pool;
use crate::table::unit::{UnitBuilder, UnitRanges, UnitScratch};

const NONE: u32 = u32::MAX;

/// Buffers that are reused from unit to unit: memory that the kernel provides anew for each unit
/// costs as much as reading the unit.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Rows of the unit's line number program.
    pub rows: Vec<Row>,
    /// Functions and inlined functions of the unit.
    pub scopes: Scopes,
    /// Bytes of the unit that is read.
    pub window: Window,
    /// The part of the section with range lists that is in memory.
    pub ranges: Stretch,
    names: HashMap<EntryPlace, u32, FastState>,
    painted: Vec<Painted>,
    calls: Numbers,
    missing: Vec<u32>,
    unit: UnitScratch,
}

/// A unit that was read, except for names that are in other units.
#[derive(Debug)]
pub struct ReadUnit {
    /// Functions and source lines of the unit, by address.
    pub ranges: UnitRanges,
    /// Index of the text that is to be replaced by the name at each of these entries.
    pub elsewhere: Vec<(u32, EntryPlace)>,
}

/// Which code of a unit is wanted.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// All of it.
    All,
    /// What is at these addresses, which ascend. Nothing is said about others.
    At(&'a [u64]),
}

/// Joins scopes and rows. The names of functions and of files may be from different sections, so
/// they have different lifetimes.
pub fn flatten<'d: 'o, 'f: 'o, 'o>(
    names: &Names<'_, '_, 'd>,
    scopes: &mut Scopes,
    rows: &[Row],
    files: &mut Files<'_, '_, 'f>,
    wanted: Wanted<'_>,
    (pool, scratch): (&Mutex<Pool>, &mut Scratch),
) -> ReadUnit {
    if let Wanted::At(addrs) = wanted {
        scopes.intervals.retain(|interval| interval.has_any(addrs));
    }
    paint::paint_into(&mut scratch.painted, &mut scopes.intervals);
    scratch.names.clear();
    scratch.calls.reset(scopes.scopes.len());
    let mut builder = Builder {
        names,
        scopes,
        files,
        known: &mut scratch.names,
        calls: &mut scratch.calls,
        missing: &mut scratch.missing,
        latest: None,
        elsewhere: Vec::new(),
        out: UnitBuilder::new(std::mem::take(&mut scratch.unit)),
    };
    match wanted {
        Wanted::All => builder.add_all(&scratch.painted, rows),
        Wanted::At(addrs) => builder.add_some(&scratch.painted, rows, addrs),
    }
    let elsewhere = builder.elsewhere;
    let (ranges, rest) = builder.out.finish(pool);
    scratch.unit = rest;
    ReadUnit { ranges, elsewhere }
}

struct Builder<'b, 'n, 'u, 'v, 'd, 'f, 'o> {
    names: &'b Names<'b, 'n, 'd>,
    scopes: &'b Scopes,
    files: &'b mut Files<'u, 'v, 'f>,
    /// Index of each name in the texts of `out`, or `NONE`.
    known: &'b mut HashMap<EntryPlace, u32, FastState>,
    /// The place of the inlined call of each scope.
    calls: &'b mut Numbers,
    missing: &'b mut Vec<u32>,
    /// The last scope and the name of its function: mostly the next range has the same.
    latest: Option<(u32, u32)>,
    elsewhere: Vec<(u32, EntryPlace)>,
    out: UnitBuilder<'o>,
}

impl<'d: 'o, 'f: 'o, 'o> Builder<'_, '_, '_, '_, 'd, 'f, 'o> {
    /// Adds all code of the unit.
    fn add_all(&mut self, painted: &[Painted], rows: &[Row]) {
        let (mut painted, mut rows) = (painted.iter().peekable(), rows.iter().peekable());
        let (mut scope, mut row) = (None, None::<&Row>);
        loop {
            let starts = [
                painted.peek().map(|painted: &&Painted| painted.start),
                rows.peek().map(|row| row.start),
            ];
            let Some(start) = starts.into_iter().flatten().min() else {
                break;
            };
            if let Some(next) = painted.next_if(|painted| painted.start == start) {
                scope = next.owner;
            }
            while let Some(next) = rows.next_if(|row| row.start == start) {
                row = Some(next).filter(|row| row.file != NO_FILE);
            }
            if scope.is_some() || row.is_some() {
                self.out.skip_gap(start);
            }
            self.add(start, scope, row);
        }
    }

    /// Adds what is at these addresses. The range of each address reaches up to the next address: those
    /// between them are looked up in other tables.
    fn add_some(&mut self, painted: &[Painted], rows: &[Row], addrs: &[u64]) {
        for &addr in addrs {
            let behind = painted.partition_point(|painted| painted.start <= addr);
            let scope = painted[..behind].last().and_then(|last| last.owner);
            let behind = rows.partition_point(|row| row.start <= addr);
            let row = rows[..behind].last().filter(|row| row.file != NO_FILE);
            self.add(addr, scope, row);
        }
        let end = addrs.last().and_then(|last| last.checked_add(1));
        if let Some(end) = end {
            self.add(end, None, None);
        }
    }

    /// Begins a range at `start` with that scope and row.
    fn add(&mut self, start: u64, scope: Option<u32>, row: Option<&Row>) {
        if scope.is_none() && row.is_none() {
            self.out.leaf(0);
            return self.out.add_range(start, NO_PLACE);
        }
        let file = row.and_then(|row| self.files.add_to(&mut self.out, row.file));
        let place = FunctionPlace {
            function: scope.map_or(NONE, |scope| self.name(scope)),
            file: file.unwrap_or(NONE),
            line: row.map_or(0, |row| row.line),
            column: row.map_or(0, |row| row.column),
        };
        let parent = self.parent(scope);
        let number = self.out.leaf(1).add_place(&place, parent);
        self.out.add_range(start, number);
    }

    /// Puts the call chain of an inlined scope into a leaf that has room for one more call, and
    /// returns the number of the innermost one. Chains are processed from the outermost call on,
    /// without recursion, because a hostile file can make them long.
    fn parent(&mut self, scope: Option<u32>) -> u16 {
        let Some(parent) = self.missing(scope) else {
            // The next leaf has none of the calls yet.
            return self.parent(scope);
        };
        let mut parent = parent;
        while let Some(scope) = self.missing.pop() {
            let place = self.call(scope);
            let leaf = self.out.leaf(2);
            parent = leaf.add_place(&place, parent);
            self.calls.set(leaf, scope as usize, parent);
        }
        parent
    }

    /// Collects the calls of a scope that the leaf does not have into `missing`, innermost first;
    /// returns the number of the call after them. `None` if there was no room for them, and another
    /// leaf was begun.
    fn missing(&mut self, scope: Option<u32>) -> Option<u16> {
        self.missing.clear();
        let mut parent = NO_PLACE;
        let leaf = self.out.leaf(0);
        let mut next = scope;
        while let Some(scope) = next
            && let Some(call) = self.scopes.scopes[scope as usize].call
            && call.caller.is_some()
            && self.missing.len() < CHAIN_MAX - 1
        {
            if let Some(known) = self.calls.get(leaf, scope as usize) {
                parent = known;
                break;
            }
            self.missing.push(scope);
            next = call.caller;
        }
        let places = self.missing.len() + 1;
        let has_room = leaf.has_room(places);
        if !has_room {
            self.out.leaf(places);
        }
        has_room.then_some(parent)
    }

    /// Returns the place of the call that a scope stands for.
    fn call(&mut self, scope: u32) -> FunctionPlace {
        let call = self.scopes.scopes[scope as usize].call;
        let file = call.map_or(NO_FILE, |call| call.file.try_into().unwrap_or(NO_FILE));
        let file = self.files.add_to(&mut self.out, file);
        let caller = call.and_then(|call| call.caller);
        FunctionPlace {
            function: caller.map_or(NONE, |caller| self.name(caller)),
            file: file.unwrap_or(NONE),
            line: call.map_or(0, |call| call.line),
            column: call.map_or(0, |call| call.column),
        }
    }

    fn name(&mut self, scope: u32) -> u32 {
        match self.latest {
            Some((latest, name)) if latest == scope => name,
            _ => {
                let name = self.find_name(scope);
                self.latest = Some((scope, name));
                name
            }
        }
    }

    fn find_name(&mut self, scope: u32) -> u32 {
        let Some(entry) = self.scopes.scopes[scope as usize].name else {
            return NONE;
        };
        if let Some(known) = self.known.get(&entry) {
            return *known;
        }
        let name = self.names.function_name(entry);
        let text = if name.text.is_some() || name.next.is_some() {
            self.out.add_text(name.text)
        } else {
            NONE
        };
        self.elsewhere.extend(name.next.map(|place| (text, place)));
        self.known.insert(entry, text);
        text
    }
}
