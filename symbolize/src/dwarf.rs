//! Debug information (DWARF 2 to 5): which functions, and which lines of
//! source text, the code at an address is from.
//!
//! ```text
//! address ──► index ──► unit ─┬► scopes ─┐
//!             which     DIEs  └► rows ───┴► flatten ──► UnitRanges ──► Table
//! ```
//!
//! A unit is read when an address of it is first asked for, and kept as a
//! small [`Table`]: a hot address costs one unit, not the file.
//! [`DebugInfo::build`] makes the table of all units.
//!
//! | module | holds |
//! |---|---|
//! | `sections` | the sections of a file, in memory |
//! | `reader` | units, and the names of functions anywhere in the file |
//! | `index` | which unit has an address |
//! | `entries` | the functions among a unit's entries |
//! | `scopes` | functions and what was inlined, from a unit's entries |
//! | `rows` | the lines of a unit |
//! | `files` | the names of its source files |
//! | `paint` | intervals over intervals: who has an address |
//! | `flatten` | scopes and rows as ranges |
//! | `split` | units whose entries are in another file |

mod entries;
mod files;
mod flatten;
mod index;
mod paint;
mod reader;
mod rows;
mod scopes;
mod sections;
mod split;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::debug_file::DebugFiles;
use crate::object::Object;
use crate::table::unit::UnitRanges;
use crate::table::{self, Extras, Table};
use crate::{LinkAddr, OpenError};

use flatten::Scratch;
use index::Index;
use reader::Reader;
pub use sections::Sections;
use split::Split;

/// The debug information of one file.
#[derive(Debug)]
pub struct DebugInfo {
    sections: Sections,
    /// What this file has in common with others (dwz).
    supplementary: Option<Sections>,
    split: Split,
    /// Where in `.debug_info` units start.
    units: Vec<usize>,
    index: OnceLock<Index>,
    whole_index: OnceLock<Index>,
    tables: Box<[OnceLock<Option<Arc<Table>>>]>,
}

impl DebugInfo {
    /// Reads the sections, of each file no more than `bytes_max`; `None` if
    /// there is nothing of use in them.
    pub fn read(
        object: &Object,
        files: DebugFiles,
        bytes_max: u64,
    ) -> Result<Option<DebugInfo>, OpenError> {
        let sections = Sections::read(object, bytes_max)?;
        if sections.is_empty() {
            return Ok(None);
        }
        // Without it a part of the names is missing, and no line.
        let supplementary = files
            .supplementary(object)
            .and_then(|object| Sections::read(&object, bytes_max).ok());
        let units = reader::unit_offsets(&sections);
        let tables = units.iter().map(|_| OnceLock::new()).collect();
        Ok(Some(DebugInfo {
            sections,
            supplementary,
            split: Split::new(files, bytes_max),
            units,
            index: OnceLock::new(),
            whole_index: OnceLock::new(),
            tables,
        }))
    }

    /// The table of the unit that has the code at `addr`, read now or before.
    pub fn table_at(&self, addr: LinkAddr) -> Option<Arc<Table>> {
        let unit = self.unit_at(addr.0)?;
        let read = || {
            let ranges =
                self.reader()
                    .unit_ranges(unit, &self.split, true, &mut Scratch::default())?;
            let extras = Extras {
                columns: true,
                in_memory: true,
                ..Extras::default()
            };
            let bytes = table::write(vec![ranges], &extras).ok()?;
            Table::from_bytes(bytes).ok().map(Arc::new)
        };
        self.tables.get(unit)?.get_or_init(read).clone()
    }

    /// The table of all units, without columns, by so many threads.
    pub fn build(&self, extras: &Extras<'_>, threads: usize) -> Result<Vec<u8>, OpenError> {
        let reader = self.reader();
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(self.units.len()));
        // The largest first, so that the threads end together.
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_by_key(|&unit| std::cmp::Reverse(self.unit_bytes(unit)));
        let work = || {
            let mut mine = Vec::new();
            let mut scratch = Scratch::default();
            while let Some(&unit) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                let ranges = reader.unit_ranges(unit, &self.split, extras.columns, &mut scratch);
                mine.extend(ranges.map(|ranges| (unit, ranges)));
            }
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.extend(mine);
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.max(1) {
                scope.spawn(work);
            }
            work();
        });
        drop(reader);
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Whoever finished first, the table is the same.
        done.sort_unstable_by_key(|(unit, _)| *unit);
        let units: Vec<UnitRanges> = done.into_iter().map(|(_, ranges)| ranges).collect();
        table::write(units, extras)
    }

    /// How many bytes of it describe code: what reading it all costs.
    pub fn bytes(&self) -> usize {
        self.sections.info_bytes()
    }

    pub fn heap_bytes(&self) -> usize {
        let tables = self.tables.iter().filter_map(|table| table.get()?.as_ref());
        let tables: usize = tables.map(|table| table.heap_bytes()).sum();
        let supplementary = self.supplementary.as_ref().map_or(0, Sections::heap_bytes);
        self.sections.heap_bytes() + supplementary + tables
    }

    fn unit_bytes(&self, unit: usize) -> usize {
        let end = self.units.get(unit + 1).copied();
        let end = end.unwrap_or_else(|| self.sections.info_bytes());
        end - self.units[unit]
    }

    /// By the section that lists addresses; of what is not there by asking
    /// each unit.
    fn unit_at(&self, addr: u64) -> Option<usize> {
        let listed = self
            .index
            .get_or_init(|| Index::listed(&self.sections, &self.units));
        listed.find(addr).or_else(|| {
            let whole = || Index::of_unlisted(&self.reader(), listed);
            self.whole_index.get_or_init(whole).find(addr)
        })
    }

    fn reader(&self) -> Reader<'_> {
        Reader::new(&self.sections, self.supplementary.as_ref(), &self.units)
    }
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<DebugInfo>();
};
