//! The scopes and rows of a unit together, as ranges.

use std::collections::HashMap;

use super::files::Files;
use super::paint::{self, Painted};
use super::reader::{EntryPlace, Reader};
use super::rows::{NO_FILE, Row};
use super::scopes::Scopes;
use crate::hash::FastState;
use crate::table::CHAIN_MAX;
use crate::table::unit::{Place, PlaceIds, UnitRanges};

const NONE: u32 = u32::MAX;

/// What one unit after the other needs while it is read.
#[derive(Debug, Default)]
pub struct Scratch {
    names: HashMap<EntryPlace, u32, FastState>,
    places: PlaceIds,
}

/// The names of functions and of files may be from different sections.
pub fn flatten<'d, 'f>(
    reader: &Reader<'d>,
    mut scopes: Scopes,
    rows: &[Row],
    files: &mut Files<'f, 'f>,
    scratch: &mut Scratch,
) -> UnitRanges {
    let painted = paint::paint(std::mem::take(&mut scopes.intervals));
    scratch.names.clear();
    let mut builder = Builder {
        reader,
        scopes: &scopes,
        files,
        names: &mut scratch.names,
        calls: vec![None; scopes.scopes.len()],
        out: UnitRanges::new(std::mem::take(&mut scratch.places)),
    };
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
        let place = builder.place(scope, row);
        builder.out.add_range(start, place);
    }
    let (unit, places) = builder.out.finish();
    scratch.places = places;
    unit
}

struct Builder<'b, 'd, 'f> {
    reader: &'b Reader<'d>,
    scopes: &'b Scopes,
    files: &'b mut Files<'f, 'f>,
    /// In the texts of `out`, or `NONE`.
    names: &'b mut HashMap<EntryPlace, u32, FastState>,
    /// By scope: the place of the call that was inlined.
    calls: Vec<Option<u32>>,
    out: UnitRanges,
}

impl Builder<'_, '_, '_> {
    fn place(&mut self, scope: Option<u32>, row: Option<&Row>) -> u32 {
        if scope.is_none() && row.is_none() {
            return NONE;
        }
        let file = row.and_then(|row| self.files.add_to(&mut self.out, row.file));
        let function = scope.map_or(NONE, |scope| self.name(scope));
        let parent = scope.map_or(NONE, |scope| self.call(scope));
        self.out.add_place(Place {
            function,
            file: file.unwrap_or(NONE),
            line: row.map_or(0, |row| row.line),
            column: row.map_or(0, |row| row.column),
            parent,
        })
    }

    /// The place where a scope was inlined, and, by its parents, where that
    /// was. From the outermost in, without recursion: chains of strangers may
    /// be long.
    fn call(&mut self, scope: u32) -> u32 {
        let mut missing = Vec::new();
        let mut next = Some(scope);
        while let Some(scope) = next {
            let index = scope as usize;
            if self.calls[index].is_some() || missing.len() >= CHAIN_MAX {
                break;
            }
            missing.push(index);
            next = self.scopes.scopes[index].call.and_then(|call| call.caller);
        }
        for index in missing.into_iter().rev() {
            let place = self.call_of(index);
            self.calls[index] = Some(place);
        }
        self.calls[scope as usize].unwrap_or(NONE)
    }

    fn call_of(&mut self, index: usize) -> u32 {
        let Some(call) = self.scopes.scopes[index].call else {
            return NONE;
        };
        let Some(caller) = call.caller else {
            return NONE;
        };
        let file = call.file.try_into().unwrap_or(NO_FILE);
        let file = self.files.add_to(&mut self.out, file);
        let function = self.name(caller);
        self.out.add_place(Place {
            function,
            file: file.unwrap_or(NONE),
            line: call.line,
            column: call.column,
            parent: self.calls[caller as usize].unwrap_or(NONE),
        })
    }

    fn name(&mut self, scope: u32) -> u32 {
        let Some(entry) = self.scopes.scopes[scope as usize].name else {
            return NONE;
        };
        if let Some(known) = self.names.get(&entry) {
            return *known;
        }
        let name = self.reader.function_name(entry);
        let text = name.map_or(NONE, |name| self.out.add_text(name));
        self.names.insert(entry, text);
        text
    }
}
