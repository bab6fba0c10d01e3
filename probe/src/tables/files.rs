//! What is known of each file: whether its table is wanted, loaded, or why
//! there is none.

use super::file_table::{Loaded, TableHandle};
use super::layout::{self, MappedRange};
use super::no_table::NoTable;
use super::pool::Run;
use crate::ids::ModuleId;
use probe_ebpf::table::Mapping;
use std::cell::Cell;
use std::collections::HashMap;
use symbolize::Segments;

/// All files that anybody asked about.
#[derive(Debug, Default)]
pub struct Files {
    by_id: HashMap<ModuleId, File>,
    /// Lists that were too long.
    cut: Cell<u64>,
}

#[derive(Debug)]
struct File {
    state: State,
    /// Since when no process has it in its layout.
    unused_since_ns: Option<u64>,
}

#[derive(Debug)]
enum State {
    Wanted,
    Ready { loaded: Loaded, segments: Segments },
    None(NoTable),
}

impl Files {
    /// What has become of a file; `None` while that is not known.
    pub fn table_of(&self, file: ModuleId) -> Option<Result<TableHandle, NoTable>> {
        match &self.by_id.get(&file)?.state {
            State::Wanted => None,
            State::Ready { loaded, .. } => Some(Ok(loaded.handle)),
            State::None(reason) => Some(Err(*reason)),
        }
    }

    /// Whether its table was asked for and has not come.
    pub fn is_wanted(&self, file: ModuleId) -> bool {
        self.by_id
            .get(&file)
            .is_some_and(|file| matches!(file.state, State::Wanted))
    }

    /// Its table has been asked for.
    pub fn set_wanted(&mut self, file: ModuleId) {
        self.set(file, State::Wanted);
    }

    /// Its table has been loaded.
    pub fn set_ready(&mut self, file: ModuleId, loaded: Loaded, segments: Segments) {
        self.set(file, State::Ready { loaded, segments });
    }

    /// It has no table, and why.
    pub fn set_none(&mut self, file: ModuleId, reason: NoTable) {
        self.set(file, State::None(reason));
    }

    /// It may be asked for again.
    pub fn forget(&mut self, file: ModuleId) {
        self.by_id.remove(&file);
    }

    /// Files that found no room may be asked about again.
    pub fn forget_those_without_room(&mut self) {
        self.by_id
            .retain(|_, file| !matches!(file.state, State::None(NoTable::NoRoom)));
    }

    /// Forgets the files that nobody has mapped for so long, and returns where
    /// their tables were.
    pub fn take_unused(
        &mut self,
        is_mapped: impl Fn(ModuleId) -> bool,
        patience_ns: u64,
        now_ns: u64,
    ) -> Vec<Run> {
        let mut runs = Vec::new();
        self.by_id.retain(|id, file| {
            if is_mapped(*id) {
                file.unused_since_ns = None;
                return true;
            }
            let since_ns = *file.unused_since_ns.get_or_insert(now_ns);
            let is_wanted = matches!(file.state, State::Wanted);
            if is_wanted || now_ns.saturating_sub(since_ns) < patience_ns {
                return true;
            }
            if let State::Ready { loaded, .. } = &mut file.state {
                runs.append(&mut loaded.runs);
            }
            false
        });
        runs
    }

    /// The list for a layout, by the tables that there are.
    pub fn resolve(&self, ranges: &[MappedRange]) -> Vec<Mapping> {
        let table_of = |file: ModuleId| match &self.by_id.get(&file)?.state {
            State::Ready { loaded, segments } => Some((loaded.handle, segments)),
            State::Wanted | State::None(_) => None,
        };
        let (mappings, was_cut) = layout::resolve(ranges, table_of);
        self.cut.set(self.cut.get() + u64::from(was_cut));
        mappings
    }

    /// Tables that are loaded, and their rows.
    pub fn loaded(&self) -> (usize, usize) {
        let tables = self.by_id.values().filter_map(|file| match &file.state {
            State::Ready { loaded, .. } => Some(loaded.rows),
            State::Wanted | State::None(_) => None,
        });
        tables.fold((0, 0), |(tables, rows), more| (tables + 1, rows + more))
    }

    /// Files for whose tables there is no room.
    pub fn without_room(&self) -> usize {
        let no_room = |file: &&File| matches!(file.state, State::None(NoTable::NoRoom));
        self.by_id.values().filter(no_room).count()
    }

    /// Lists that were longer than a walk can search.
    pub fn cut(&self) -> u64 {
        self.cut.get()
    }

    fn set(&mut self, file: ModuleId, state: State) {
        let file = self.by_id.entry(file).or_insert(File {
            state: State::Wanted,
            unused_since_ns: None,
        });
        file.state = state;
    }
}
