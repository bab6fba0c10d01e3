//! The scopes and rows of a unit together, as ranges.

use std::collections::HashMap;

use super::files::Files;
use super::paint::{self, Painted};
use super::reader::{EntryPlace, Names};
use super::rows::{NO_FILE, Row};
use super::scopes::Scopes;
use crate::hash::FastState;
use crate::table::CHAIN_MAX;
use crate::table::unit::{Place, UnitRanges, UnitScratch};

const NONE: u32 = u32::MAX;

/// What one unit after the other needs while it is read: memory that the kernel
/// gives anew for each costs as much as reading.
#[derive(Debug, Default)]
pub struct Scratch {
    pub rows: Vec<Row>,
    pub scopes: Scopes,
    names: HashMap<EntryPlace, u32, FastState>,
    painted: Vec<Painted>,
    calls: Vec<Option<u32>>,
    unit: UnitScratch,
}

/// The names of functions and of files may be from different sections.
pub fn flatten<'d: 'o, 'f: 'o, 'o>(
    names: &Names<'_, 'd>,
    scopes: &mut Scopes,
    rows: &[Row],
    files: &mut Files<'_, 'f>,
    scratch: &mut Scratch,
) -> UnitRanges<'o> {
    paint::paint_into(&mut scratch.painted, &mut scopes.intervals);
    scratch.names.clear();
    scratch.calls.clear();
    scratch.calls.resize(scopes.scopes.len(), None);
    let mut builder = Builder {
        names,
        scopes,
        files,
        known: &mut scratch.names,
        calls: &mut scratch.calls,
        latest: None,
        out: UnitRanges::new(std::mem::take(&mut scratch.unit)),
    };
    let (mut painted, mut rows) = (scratch.painted.iter().peekable(), rows.iter().peekable());
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
    let (unit, rest) = builder.out.finish();
    scratch.unit = rest;
    unit
}

struct Builder<'b, 'u, 'd, 'f, 'o> {
    names: &'b Names<'b, 'd>,
    scopes: &'b Scopes,
    files: &'b mut Files<'u, 'f>,
    /// In the texts of `out`, or `NONE`.
    known: &'b mut HashMap<EntryPlace, u32, FastState>,
    /// By scope: the place of the call that was inlined.
    calls: &'b mut Vec<Option<u32>>,
    latest: Option<(u32, (u32, u32))>,
    out: UnitRanges<'o>,
}

impl<'d: 'o, 'f: 'o, 'o> Builder<'_, '_, 'd, 'f, 'o> {
    fn place(&mut self, scope: Option<u32>, row: Option<&Row>) -> u32 {
        if scope.is_none() && row.is_none() {
            return NONE;
        }
        let file = row.and_then(|row| self.files.add_to(&mut self.out, row.file));
        let (function, parent) = scope.map_or((NONE, NONE), |scope| self.scope(scope));
        self.out.add_place(Place {
            function,
            file: file.unwrap_or(NONE),
            line: row.map_or(0, |row| row.line),
            column: row.map_or(0, |row| row.column),
            parent,
        })
    }

    /// The function of a scope, and the place where that was inlined. Mostly of the
    /// one that was asked for before.
    fn scope(&mut self, scope: u32) -> (u32, u32) {
        match self.latest {
            Some((latest, known)) if latest == scope => known,
            _ => {
                let found = (self.name(scope), self.call(scope));
                self.latest = Some((scope, found));
                found
            }
        }
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
        if let Some(known) = self.known.get(&entry) {
            return *known;
        }
        let name = self.names.function_name(entry);
        let text = name.map_or(NONE, |name| self.out.add_text(name.into()));
        self.known.insert(entry, text);
        text
    }
}
