//! Debug information (DWARF 2 to 5): finds the functions and source lines of the code at an
//! address.
//!
//! ```text
//! address ──► index ──► unit ─┬► scopes ─┐
//!             which     DIEs  └► rows ───┴► flatten ──► UnitRanges ──► Table
//! ```
//!
//! A unit is read when one of its addresses is first looked up, and kept as a small [`Table`]: a
//! hot address costs one unit, not the whole file. [`DebugInfo::build`] makes the table of all
//! units.
//!
//! | module | holds |
//! |---|---|
//! | `sections` | the sections of a file: entries and lines by unit, strings later, others in memory |
//! | `ranges` | the address ranges of functions in several pieces |
//! | `strings` | reads the needed parts of `.debug_str` |
//! | `unit` | a unit, and the bytes of it |
//! | `reader` | all units of a file |
//! | `names` | the names of functions, from the entries of one unit |
//! | `elsewhere` | names that are in other units |
//! | `index` | finds the unit of an address |
//! | `entries` | the functions among a unit's entries |
//! | `scopes` | functions and what was inlined, from a unit's entries |
//! | `rows` | the lines of a unit |
//! | `files` | the names of its source files |
//! | `paint` | resolves overlapping intervals: which owner has an address |
//! | `flatten` | converts scopes and rows to ranges |
//! | `code` | everything a unit says about its code, from all of these together |
//! | `split` | units whose entries are in another file |
//! | `parallel` | distributes work over several threads |
//! | `types` | parameters of functions and members of structures |

mod code;
mod elsewhere;
mod entries;
mod files;
mod flatten;
mod index;
mod names;
mod paint;
mod parallel;
mod ranges;
mod reader;
mod rows;
mod scopes;
mod sections;
mod split;
mod strings;
mod types;
mod unit;

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::cache::Cache;
use crate::debug_file::DebugFiles;
use crate::object::Object;
use crate::table::pool::{KnownTexts, Pool};
use crate::table::{self, Extras, Table};
use crate::{LinkAddr, OpenError};

use flatten::{ReadUnit, Scratch, Wanted};
use index::Index;
use reader::Reader;
pub use sections::Sections;
use split::Split;
use strings::Strings;
pub use types::{Convention, DebugTypes, LeftOut, NoSignature, Parameter, Passed, Signature};

/// The debug information of one file.
#[derive(Debug)]
pub struct DebugInfo {
    sections: Sections,
    /// The sections that this file shares with others (dwz).
    supplementary: Option<Sections>,
    /// Whether the file names one, found or not.
    names_supplementary: bool,
    split: Split,
    /// Offsets in `.debug_info` at which units start.
    units: Vec<usize>,
    index: OnceLock<Index>,
    whole_index: OnceLock<Index>,
    tables: Cache<usize, Option<Arc<Table>>>,
    parts: Cache<usize, Part>,
    /// Maximum size of the tables of a cache, in bytes.
    kept_max: usize,
    /// The units of the addresses that were prepared for last.
    prepared: Mutex<HashMap<u64, usize>>,
    /// How often units of some addresses were looked for without an index of all.
    looks: AtomicU32,
    /// Bytes of the units that were read. A unit that was read twice counts twice.
    bytes_read: AtomicU64,
}

/// What a unit says about a few addresses.
#[derive(Debug, Clone)]
struct Part {
    /// The addresses, which ascend.
    addrs: Arc<[u64]>,
    table: Option<Arc<Table>>,
    /// How often the unit was read, for these addresses or for others before.
    reads: u32,
}

/// Fraction (1/6) of a file's memory limit that the tables of recently used units may take. A unit
/// that was dropped is read again when needed.
const TABLES_PART: u64 = 6;

/// Maximum number of units whose tables are kept: all of them are visited when another one is
/// added.
const TABLES_MAX: usize = 4096;

/// Maximum number of units of which only a few addresses were read: all of them are visited when
/// others are added.
const PARTS_MAX: usize = 4096;

/// Maximum number of times that a unit is read for a few addresses. Each time takes half of what the
/// table of the unit takes, which is made when it is asked about again.
const READS_MAX: u32 = 3;

/// Maximum number of addresses whose units are found without an index of all addresses.
const WITHOUT_INDEX_MAX: usize = 64;

/// Maximum number of times that this is done.
const LOOKS_MAX: u32 = 8;

impl DebugInfo {
    /// Reads the sections. At most `bytes_max` of a file are in memory at once, including the unit
    /// that is being read; larger units are left out. An error if there is more than sixteen times
    /// that; `None` if there is nothing useful.
    pub fn read(
        object: &Object,
        files: DebugFiles,
        bytes_max: u64,
    ) -> Result<Option<DebugInfo>, OpenError> {
        let sections = Sections::read(object, bytes_max)?;
        if sections.is_empty() {
            return Ok(None);
        }
        // Errors are ignored: without the file some names are missing, but no lines.
        let supplementary = files
            .supplementary(object)
            .and_then(|object| Sections::read_supplementary(&object, bytes_max).ok());
        let units = reader::unit_offsets(&sections);
        let kept_max = usize::try_from(bytes_max / TABLES_PART).unwrap_or(usize::MAX);
        Ok(Some(DebugInfo {
            sections,
            supplementary,
            names_supplementary: DebugFiles::supplementary_is_named(object),
            split: Split::new(files.named_in(object), bytes_max),
            units,
            index: OnceLock::new(),
            whole_index: OnceLock::new(),
            tables: Cache::new(TABLES_MAX, kept_max),
            parts: Cache::new(PARTS_MAX, kept_max),
            kept_max,
            prepared: Mutex::default(),
            looks: AtomicU32::new(0),
            bytes_read: AtomicU64::new(0),
        }))
    }

    /// Returns the table of the unit that has the code at `addr`; reads the unit if needed.
    pub fn table_at(&self, addr: LinkAddr) -> Option<Arc<Table>> {
        let unit = self.unit_at(addr.0)?;
        if let Some(table) = self.tables.get(&unit) {
            return table;
        }
        let slot = self.tables.slot(unit);
        let read = || self.read_table(unit, Wanted::All, &mut Scratch::default());
        let table = slot.get_or_init(read).clone();
        self.tables.trim(|table| heap_bytes(table.as_ref()));
        table
    }

    /// Returns a table that has the code at `addr`, and need not have any other. If the address was
    /// not prepared for, that is the table of its unit.
    pub fn part_at(&self, addr: LinkAddr) -> Option<Arc<Table>> {
        let known = self.prepared().get(&addr.0).copied();
        let unit = known.or_else(|| self.unit_at(addr.0))?;
        let part = self.parts.get(&unit);
        match part.filter(|part| part.addrs.binary_search(&addr.0).is_ok()) {
            Some(part) => part.table,
            None => self.table_at(addr),
        }
    }

    /// Makes tables of what is at these addresses alone, which takes half the time of tables of their
    /// units. Of a unit for which that was done several times, the whole table will be made.
    pub fn prepare(&self, addrs: &[LinkAddr]) {
        let mut wanted: Vec<u64> = addrs.iter().map(|addr| addr.0).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let is_enough = self.index.get().is_none()
            && wanted.len() <= WITHOUT_INDEX_MAX
            && self.looks.fetch_add(1, Ordering::Relaxed) < LOOKS_MAX;
        let listed = is_enough.then(|| Index::listed(&self.sections, &self.units, Some(&wanted)));
        let in_unit = |addr: u64| {
            let listed = listed.as_ref().and_then(|listed| listed.find(addr));
            Some((listed.or_else(|| self.unit_at(addr))?, addr))
        };
        let mut wanted: Vec<(usize, u64)> = wanted.into_iter().filter_map(in_unit).collect();
        *self.prepared() = wanted.iter().map(|(unit, addr)| (*addr, *unit)).collect();
        wanted.sort_unstable();
        let mut scratch = Scratch::default();
        let (mut parts, mut bytes) = (0, 0);
        for of_unit in wanted.chunk_by(|one, other| one.0 == other.0) {
            // The others are read when they are asked about.
            if parts == PARTS_MAX || bytes > self.kept_max {
                break;
            }
            let unit = of_unit[0].0;
            let known = self.parts.get(&unit);
            let reads = known.as_ref().map_or(0, |part| part.reads);
            let has_all = known.is_some_and(|part| {
                let has = |(_, addr): &(usize, u64)| part.addrs.binary_search(addr).is_ok();
                of_unit.iter().all(has)
            });
            if has_all || reads == READS_MAX || self.tables.get(&unit).is_some() {
                continue;
            }
            let addrs: Arc<[u64]> = of_unit.iter().map(|(_, addr)| *addr).collect();
            let table = self.read_table(unit, Wanted::At(&addrs), &mut scratch);
            (parts, bytes) = (parts + 1, bytes + heap_bytes(table.as_ref()));
            let reads = reads + 1;
            self.parts.forget(&unit);
            let slot = self.parts.slot(unit);
            slot.get_or_init(|| Part {
                addrs,
                table,
                reads,
            });
        }
        self.parts.trim(|part| heap_bytes(part.table.as_ref()));
    }

    /// Makes the table of one unit.
    fn read_table(
        &self,
        unit: usize,
        wanted: Wanted<'_>,
        scratch: &mut Scratch,
    ) -> Option<Arc<Table>> {
        let bytes = self.unit_bytes(unit) as u64;
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        let reader = self.reader();
        let pool = Mutex::default();
        let mut read = reader.read_unit(unit, &self.split, true, wanted, (&pool, scratch))?;
        elsewhere::resolve(&reader, std::slice::from_mut(&mut read), &pool, 1);
        let known = read_texts(&reader, pool, 1);
        if self.have_changed() {
            return None;
        }
        let extras = Extras {
            columns: true,
            in_memory: true,
            ..Extras::default()
        };
        let bytes = table::write(vec![read.ranges], &known, &extras).ok()?;
        Table::from_bytes(bytes).ok().map(Arc::new)
    }

    /// Makes the table of all units, without columns, with `threads` threads.
    pub fn build(&self, extras: &Extras<'_>, threads: usize) -> Result<Vec<u8>, OpenError> {
        let mut bytes = Vec::new();
        self.build_to(extras, threads, &mut bytes)?;
        Ok(bytes)
    }

    /// Makes the same table, and writes it piece by piece.
    pub fn build_to(
        &self,
        extras: &Extras<'_>,
        threads: usize,
        sink: &mut dyn Write,
    ) -> Result<(), OpenError> {
        let reader = self.reader();
        // Largest units first, so that the threads finish at about the same time.
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_unstable_by_key(|&unit| std::cmp::Reverse(self.unit_bytes(unit)));
        let pool = Mutex::default();
        let read = parallel::map(threads, order.len(), |index, scratch| {
            let unit = order[index];
            let room = (&pool, scratch);
            let read = reader.read_unit(unit, &self.split, extras.columns, Wanted::All, room);
            read.map(|read| (unit, read))
        });
        let mut by_unit: Vec<Option<ReadUnit>> = Vec::new();
        by_unit.resize_with(self.units.len(), || None);
        for (_, (unit, read)) in read {
            by_unit[unit] = Some(read);
        }
        let mut units: Vec<ReadUnit> = by_unit.into_iter().flatten().collect();
        elsewhere::resolve(&reader, &mut units, &pool, threads);
        let known = read_texts(&reader, pool, threads);
        drop(reader);
        if self.have_changed() {
            return Err(OpenError::Read {
                what: "debug information, which changed meanwhile",
                source: std::io::ErrorKind::UnexpectedEof.into(),
            });
        }
        let units = units.into_iter().map(|unit| unit.ranges).collect();
        table::write_to(units, &known, extras, sink)
    }

    /// Number of bytes that describe code: a measure of the cost of reading everything.
    pub fn bytes(&self) -> usize {
        self.sections.info_bytes()
    }

    /// Number of those bytes that were read for single addresses. What was read twice counts twice.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Whether parts of it are in other files, as far as was read, whether these files are there or
    /// not.
    pub fn needs_other_files(&self) -> bool {
        self.names_supplementary || self.split.is_needed()
    }

    /// Bytes of heap in use, without sections that are read on demand.
    pub fn heap_bytes(&self) -> usize {
        let tables = self.tables.bytes(|table| heap_bytes(table.as_ref()));
        let supplementary = self.supplementary.as_ref().map_or(0, Sections::heap_bytes);
        let parts = self.parts.bytes(|part| heap_bytes(part.table.as_ref()));
        self.sections.heap_bytes() + supplementary + tables + parts
    }

    /// Drops the tables of units: they are read again when needed.
    pub fn forget_units(&self) {
        self.tables.clear();
        self.parts.clear();
        self.prepared().clear();
    }

    /// Whether the file changed while it was read, so that its parts may not match.
    fn have_changed(&self) -> bool {
        let supplementary = self.supplementary.as_ref();
        self.sections.have_failed() || supplementary.is_some_and(Sections::have_failed)
    }

    fn unit_bytes(&self, unit: usize) -> usize {
        let end = self
            .units
            .get(unit + 1)
            .copied()
            .unwrap_or_else(|| self.sections.info_bytes());
        end - self.units[unit]
    }

    /// Finds the unit of an address in the section that lists addresses, and otherwise by searching
    /// the units that are not listed.
    fn unit_at(&self, addr: u64) -> Option<usize> {
        let listed = self
            .index
            .get_or_init(|| Index::listed(&self.sections, &self.units, None));
        listed.find(addr).or_else(|| {
            let whole = || Index::of_unlisted(&self.reader(), listed);
            self.whole_index.get_or_init(whole).find(addr)
        })
    }

    /// A poisoned lock is used all the same: no code panics while it holds the lock, and every
    /// state is consistent.
    fn prepared(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> Reader<'_> {
        Reader::new(&self.sections, self.supplementary.as_ref(), &self.units)
    }
}

fn heap_bytes(table: Option<&Arc<Table>>) -> usize {
    table.map_or(0, |table| table.heap_bytes())
}

/// Reads the texts that units refer to.
fn read_texts(reader: &Reader<'_>, pool: Mutex<Pool>, threads: usize) -> KnownTexts {
    let pool = pool.into_inner().unwrap_or_else(PoisonError::into_inner);
    pool.read(|places| match reader.strings() {
        Strings::InFile(section) => strings::read(section, places, threads),
        Strings::Held => Vec::new(),
    })
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<DebugInfo>();
};
