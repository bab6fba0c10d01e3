//! Reads what a unit says about its code: from its own entries or, if it is a skeleton, from those
//! of its split unit.

use std::sync::Mutex;

use gimli::Unit;

use super::files::Files;
use super::flatten::{self, ReadUnit, Scratch, Wanted};
use super::names::Names;
use super::reader::Reader;
use super::sections::Slice;
use super::split::{Split, SplitUnit};
use super::{elsewhere, rows, scopes};
use crate::table::pool::Pool;

impl Reader<'_> {
    /// Reads a unit; its texts are added to the pool.
    pub fn read_unit(
        &self,
        index: usize,
        split: &Split,
        columns: bool,
        wanted: Wanted<'_>,
        (pool, scratch): (&Mutex<Pool>, &mut Scratch),
    ) -> Option<ReadUnit> {
        let mut window = std::mem::take(&mut scratch.window);
        let read = self.open(index, &mut window).and_then(|unit| {
            let skeleton = Relocated::of(&unit);
            let dwarf = self.dwarf();
            let rows = rows::read(&unit, columns, std::mem::take(&mut scratch.rows));
            let strings = self.strings();
            let mut files = Files::new(dwarf, &unit, strings);
            let found = unit
                .dwo_id
                .and_then(|id| split.find(dwarf, &unit, strings, id));
            let read = match found {
                Some(found) => found.with(dwarf, |entries| {
                    let SplitUnit { reader, mut unit } = SplitUnit::new(entries, self.ranges())?;
                    skeleton.apply(&mut unit);
                    let room = (pool, &mut *scratch);
                    let mut read = reader.flat(&unit, &rows, &mut files, (columns, wanted), room);
                    elsewhere::resolve(&reader, std::slice::from_mut(&mut read), pool, 1);
                    Some(read)
                }),
                None => {
                    let room = (pool, &mut *scratch);
                    Some(self.flat(&unit, &rows, &mut files, (columns, wanted), room))
                }
            };
            scratch.rows = rows;
            read
        });
        scratch.window = window;
        read
    }

    /// Reads the entries of a unit and joins them with its rows.
    fn flat<'f>(
        &self,
        unit: &Unit<Slice<'_>>,
        rows: &[rows::Row],
        files: &mut Files<'_, '_, 'f>,
        (columns, wanted): (bool, Wanted<'_>),
        (pool, scratch): (&Mutex<Pool>, &mut Scratch),
    ) -> ReadUnit {
        let room = std::mem::take(&mut scratch.scopes);
        let lists = self.lists(&mut scratch.ranges);
        let mut scopes = scopes::read(self.dwarf(), unit, lists, columns, room);
        if self.may_be_thumb() {
            scopes.clear_thumb_bits();
        }
        let names = Names::new(self.dwarf(), unit, self.strings(), false);
        let read = flatten::flatten(&names, &mut scopes, rows, files, wanted, (pool, scratch));
        scratch.scopes = scopes;
        read
    }
}

/// What a split unit takes over from its skeleton.
struct Relocated {
    low_pc: u64,
    addr_base: gimli::DebugAddrBase,
    rnglists_base: gimli::DebugRngListsBase,
}

impl Relocated {
    fn of(skeleton: &Unit<Slice<'_>>) -> Relocated {
        Relocated {
            low_pc: skeleton.low_pc,
            addr_base: skeleton.addr_base,
            rnglists_base: skeleton.rnglists_base,
        }
    }

    fn apply(&self, unit: &mut Unit<Slice<'_>>) {
        unit.low_pc = self.low_pc;
        unit.addr_base = self.addr_base;
        if unit.header.version() < 5 {
            unit.rnglists_base = self.rnglists_base;
        }
    }
}
