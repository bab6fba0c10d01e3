//! The state of each file: whether its table is requested or loaded, or why there is none.

use super::file_table::{Loaded, TableHandle};
use super::layout::{self, MappedRange};
use super::no_table::NoTable;
use super::pool::{Pool, Run};
use crate::ids::ModuleId;
use probe_ebpf::table::Mapping;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use symbolize::Segments;

/// How long tables are kept that no process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Whatever the size of all of them.
    pub least_ns: u64,
    /// Maximum number of words of all that are unused for longer: those that are so longest leave
    /// first.
    pub words_max: u64,
    /// However small all of them are.
    pub all_ns: u64,
}

impl Patience {
    /// Keeps none of them.
    pub const NONE: Patience = Patience {
        least_ns: 0,
        words_max: 0,
        all_ns: 0,
    };
}

/// What was moved out of a chunk.
#[derive(Debug, Default)]
pub struct Moved {
    /// Places that are in use no more.
    pub left: Vec<Run>,
    /// Files whose handles are others now.
    pub elsewhere: HashSet<ModuleId>,
    /// Whether something had to stay.
    pub is_part: bool,
}

/// All files for which a table was requested.
#[derive(Debug, Default)]
pub struct Files {
    by_id: HashMap<ModuleId, File>,
    /// Number of words of the tables of each user's files.
    words: HashMap<u32, u64>,
    /// Number of lists that were too long.
    cut: Cell<u64>,
    /// The files that were forgotten because no process had them mapped, since the last call of
    /// [`Files::take_dropped`].
    dropped: Vec<ModuleId>,
}

#[derive(Debug)]
struct File {
    state: TableState,
    /// The user who controls the file's content.
    user: u32,
    /// Since when no process has it in its layout.
    unused_since_ns: Option<u64>,
}

#[derive(Debug)]
enum TableState {
    Wanted,
    Ready { loaded: Loaded, segments: Segments },
    None(NoTable),
}

impl Files {
    /// Returns the table of a file, or why there is none; `None` while that is unknown.
    pub fn table_of(&self, file: ModuleId) -> Option<Result<TableHandle, NoTable>> {
        match &self.by_id.get(&file)?.state {
            TableState::Wanted => None,
            TableState::Ready { loaded, .. } => Some(Ok(loaded.handle)),
            TableState::None(reason) => Some(Err(*reason)),
        }
    }

    /// Whether its table was requested and has not arrived.
    pub fn is_wanted(&self, file: ModuleId) -> bool {
        self.by_id
            .get(&file)
            .is_some_and(|file| matches!(file.state, TableState::Wanted))
    }

    /// Records that its table was requested.
    pub fn set_wanted(&mut self, file: ModuleId, user: u32) {
        self.set(file, user, TableState::Wanted);
    }

    /// Stores the loaded table of a user's file.
    pub fn set_ready(&mut self, file: ModuleId, user: u32, loaded: Loaded, segments: Segments) {
        *self.words.entry(user).or_default() += words_of(&loaded);
        self.set(file, user, TableState::Ready { loaded, segments });
    }

    /// Records that a user's file has no table, and why.
    pub fn set_none(&mut self, file: ModuleId, user: u32, reason: NoTable) {
        self.set(file, user, TableState::None(reason));
    }

    /// Returns the number of words of the tables of a user's files.
    pub fn words_of(&self, user: u32) -> u64 {
        self.words.get(&user).copied().unwrap_or_default()
    }

    /// Returns the user whose tables have most words, and their number.
    pub fn who_has_most(&self) -> Option<(u32, u64)> {
        let users = self.words.iter().map(|(user, words)| (*user, *words));
        users.max_by_key(|(_, words)| *words)
    }

    /// Removes the table of a user's newest file that has one, and returns its place.
    pub fn take_newest(&mut self, user: u32) -> Option<(ModuleId, Vec<Run>)> {
        let has_table = |(_, file): &(&ModuleId, &mut File)| {
            file.user == user && matches!(file.state, TableState::Ready { .. })
        };
        let all = self.by_id.iter_mut().filter(has_table);
        let (id, file) = all.max_by_key(|(id, _)| **id)?;
        let before = std::mem::replace(&mut file.state, TableState::None(NoTable::OverShare));
        let TableState::Ready { loaded, .. } = before else {
            return None;
        };
        give_back(&mut self.words, user, words_of(&loaded));
        Some((*id, loaded.runs))
    }

    /// Returns users some of whose files have no table because others of theirs use up a share, and
    /// the number of these files.
    pub fn over_share(&self) -> BTreeMap<u32, usize> {
        let mut users = BTreeMap::new();
        for file in self.by_id.values() {
            if matches!(file.state, TableState::None(NoTable::OverShare)) {
                *users.entry(file.user).or_default() += 1;
            }
        }
        users
    }

    /// Forgets a file, so that its table may be requested again.
    pub fn forget(&mut self, file: ModuleId) {
        self.by_id.remove(&file);
    }

    /// Forgets files for which there was no room, so that they may be requested again, and if room
    /// `is_ample` also those whose users had used up their share.
    pub fn forget_those_without_room(&mut self, is_ample: bool) {
        self.by_id.retain(|_, file| match file.state {
            TableState::None(NoTable::NoRoom) => false,
            TableState::None(NoTable::OverShare) => !is_ample,
            _ => true,
        });
    }

    /// Forgets the files that were not mapped for as long as the patience allows, and returns where
    /// their tables were.
    pub fn take_unused(
        &mut self,
        is_mapped: impl Fn(ModuleId) -> bool,
        patience: Patience,
        now_ns: u64,
    ) -> Vec<Run> {
        let mut runs = Vec::new();
        let (words, dropped) = (&mut self.words, &mut self.dropped);
        let mut unused = Vec::new();
        self.by_id.retain(|id, file| {
            if is_mapped(*id) {
                file.unused_since_ns = None;
                return true;
            }
            let since_ns = *file.unused_since_ns.get_or_insert(now_ns);
            let is_wanted = matches!(file.state, TableState::Wanted);
            if is_wanted || now_ns.saturating_sub(since_ns) < patience.all_ns {
                if let TableState::Ready { loaded, .. } = &file.state {
                    unused.push((since_ns, *id, words_of(loaded)));
                }
                return true;
            }
            if let TableState::Ready { loaded, .. } = &mut file.state {
                give_back(words, file.user, words_of(loaded));
                runs.append(&mut loaded.runs);
            }
            dropped.push(*id);
            false
        });
        unused.sort_unstable();
        let mut left: u64 = unused.iter().map(|(.., words)| words).sum();
        for (since_ns, id, of_file) in unused {
            if left <= patience.words_max || now_ns.saturating_sub(since_ns) < patience.least_ns {
                break;
            }
            left -= of_file;
            runs.extend(self.take(id));
        }
        runs
    }

    /// Returns the files that [`Files::take_unused`] has forgotten since the last call: if a process
    /// maps one of them again, its table has to be requested again.
    pub fn take_dropped(&mut self) -> Vec<ModuleId> {
        std::mem::take(&mut self.dropped)
    }

    /// Forgets a file, and returns where its table was.
    fn take(&mut self, id: ModuleId) -> Vec<Run> {
        let Some(File {
            state: TableState::Ready { loaded, .. },
            user,
            ..
        }) = self.by_id.remove(&id)
        else {
            return Vec::new();
        };
        give_back(&mut self.words, user, words_of(&loaded));
        self.dropped.push(id);
        loaded.runs
    }

    /// Moves parts of tables out of a chunk, as far as others have room.
    pub fn move_out_of(&mut self, chunk: usize, pool: &mut Pool) -> Moved {
        let mut all = Moved::default();
        for (id, file) in &mut self.by_id {
            let TableState::Ready { loaded, .. } = &mut file.state else {
                continue;
            };
            let table = loaded.handle;
            if loaded.move_out_of(chunk, pool, &mut all.left).is_none() {
                all.is_part = true;
            }
            if loaded.handle != table {
                all.elsewhere.insert(*id);
            }
            if all.is_part {
                break;
            }
        }
        all
    }

    /// Returns the list for a layout, with the current tables.
    pub fn resolve(&self, ranges: &[MappedRange]) -> Vec<Mapping> {
        let (mappings, was_cut) = layout::resolve(ranges, |file| self.ready(file));
        self.cut.set(self.cut.get() + u64::from(was_cut));
        mappings
    }

    /// Returns a range in the form of the walk, with the current tables.
    pub fn mapping(&self, range: &MappedRange) -> Mapping {
        layout::mapping(range, range.file.and_then(|file| self.ready(file)))
    }

    fn ready(&self, file: ModuleId) -> Option<layout::TableOf<'_>> {
        match &self.by_id.get(&file)?.state {
            TableState::Ready { loaded, segments } => Some((loaded.handle, segments)),
            TableState::Wanted | TableState::None(_) => None,
        }
    }

    /// Returns the number of loaded tables, and of their rows.
    pub fn loaded(&self) -> (usize, usize) {
        let tables = self.by_id.values().filter_map(|file| match &file.state {
            TableState::Ready { loaded, .. } => Some(loaded.rows),
            TableState::Wanted | TableState::None(_) => None,
        });
        tables.fold((0, 0), |(tables, rows), more| (tables + 1, rows + more))
    }

    /// Returns the number of files for whose tables there is no room.
    pub fn without_room(&self) -> usize {
        let no_room = |file: &&File| matches!(file.state, TableState::None(NoTable::NoRoom));
        self.by_id.values().filter(no_room).count()
    }

    /// Returns the number of lists that were longer than a walk can search.
    pub fn cut(&self) -> u64 {
        self.cut.get()
    }

    fn set(&mut self, file: ModuleId, user: u32, state: TableState) {
        let file = self.by_id.entry(file).or_insert(File {
            state: TableState::Wanted,
            user,
            unused_since_ns: None,
        });
        file.state = state;
        file.user = user;
    }
}

fn words_of(loaded: &Loaded) -> u64 {
    loaded.runs.iter().map(|run| u64::from(run.words)).sum()
}

fn give_back(words: &mut HashMap<u32, u64>, user: u32, given: u64) {
    if let Some(left) = words.get_mut(&user) {
        *left = left.saturating_sub(given);
        if *left == 0 {
            words.remove(&user);
        }
    }
}
