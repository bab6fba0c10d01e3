//! The *lists* of mappings that the walk reads: one for each layout, shared by
//! all processes that have it.
//!
//! A list never changes. Another one is written at a new place, the processes
//! are pointed to it, and the old place rests before it is used again.
//!
//! The walk caches rules by `(generation, address)`, so a generation must be unambiguous: a list
//! gets a new one unless it only adds to the list that its process had *alone*. Two processes with
//! one generation may map different files at the same address after a fork.

mod members;
mod room;

use super::layout::{Layout, MappedRange, is_addition};
use super::maps::Processes;
use crate::ids::ModuleId;
use crate::shared::Shared;
use crate::shares::SHARES;
use members::{Members, Use};
use probe_ebpf::table::{MAPPING_UNIT, Mapping, MappingList, NO_TABLE, PROCESSES_MAX};
use room::{Room, units_of};
use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use std::sync::Arc;

/// Converts a layout to a list, with the current tables.
pub type Resolve<'a> = &'a dyn Fn(&[MappedRange]) -> Vec<Mapping>;

/// All lists, and the processes that have them.
pub struct Lists {
    room: Room,
    processes: Box<dyn Processes>,
    members: Members,
    lists: HashMap<Layout, List>,
    generation: u32,
    /// Number of layouts that wait for room.
    waiting: usize,
    counts: ListCounts,
    hasher: RandomState,
    /// The list for processes for which there is no room: it refers to a place that is always
    /// empty.
    nothing: Option<MappingList>,
    /// The processes that have this empty list.
    without: HashSet<u32>,
}

/// Counts of what did not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListCounts {
    /// Processes that lost their list to others, least recently used first.
    pub evicted: u64,
    /// Lists for which there was no room at first.
    pub postponed: u64,
    /// Processes for which the kernel had no room.
    pub refused: u64,
    /// Lists that were not written because their user has used up a share.
    pub over_share: u64,
}

/// The list of a layout.
#[derive(Debug, Default)]
struct List {
    /// The list to which its processes refer.
    published: Option<MappingList>,
    /// Whether there was no room for its current content.
    is_waiting: bool,
}

impl Lists {
    /// Makes lists in the value of the map `MAPPINGS`.
    pub fn new(mappings: Arc<Shared>, processes: Box<dyn Processes>) -> Self {
        let mut room = Room::new(mappings);
        let nowhere = Mapping {
            start: 1,
            end: 2,
            table: NO_TABLE,
            ..Mapping::default()
        };
        let nothing = room.write(&[nowhere], 1);
        // Processes with small lists are not evicted to make room.
        let much = room.mappings() / SHARES / SHARES;
        Self {
            room,
            processes,
            members: Members::new(much),
            lists: HashMap::new(),
            generation: 1,
            waiting: 0,
            counts: ListCounts::default(),
            hasher: RandomState::new(),
            nothing,
            without: HashSet::new(),
        }
    }

    /// Sets the layout of a process of a user. Returns false if that user's processes have used up
    /// their share, and the remaining room is reserved for others.
    pub fn publish(
        &mut self,
        tgid: u32,
        user: u32,
        layout: &[MappedRange],
        now_ns: u64,
        resolve: Resolve<'_>,
    ) -> bool {
        let layout = Layout::new(layout, &self.hasher);
        if self.members.touch(tgid, now_ns) {
            let before = self.members.layout_of(tgid);
            if before.is_some_and(|before| *before == layout) {
                return true;
            }
        } else if self.members.processes() >= PROCESSES_MAX {
            self.evict(now_ns);
        }
        let layout = match self.lists.get_key_value(&layout) {
            Some((known, _)) => known.clone(),
            None => {
                let mappings = resolve(&layout);
                if !self.may_have(tgid, user, &layout, mappings.len()) {
                    self.refuse(tgid, now_ns);
                    return false;
                }
                self.add(tgid, layout, &mappings, now_ns)
            }
        };
        self.without.remove(&tgid);
        let left = self.members.join(tgid, user, layout.clone(), now_ns);
        self.point(tgid, &layout);
        self.abandon(left, now_ns);
        true
    }

    /// Whether a list of that length may be written for a user: there is enough room for others, or
    /// the user has less than a share.
    fn may_have(&self, tgid: u32, user: u32, layout: &Layout, length: usize) -> bool {
        let units = units_of(length as u32).unwrap_or(0);
        if self.room.available() >= units + self.room.reserve() {
            return true;
        }
        // The place of the process's present list becomes free.
        let before = self
            .members
            .layout_of(tgid)
            .filter(|layout| self.members.of(layout).len() == 1);
        let others = self
            .members
            .use_of(user)
            .mappings
            .saturating_sub(before.map_or(0, |before| before.len()));
        others + layout.len() <= self.share().mappings
    }

    /// Returns the maximum that one user has while others want more.
    fn share(&self) -> Use {
        Use {
            mappings: self.room.mappings() / SHARES,
            processes: PROCESSES_MAX / SHARES,
        }
    }

    /// Gives a process the empty list: it is not walked, and its stack is not copied either.
    fn refuse(&mut self, tgid: u32, now_ns: u64) {
        self.unpublish(tgid, now_ns);
        self.counts.over_share += 1;
        if let Some(nothing) = self.nothing {
            let told = self.processes.set(tgid, nothing);
            self.counts.refused += u64::from(told.is_err());
            self.without.insert(tgid);
        }
    }

    /// Removes a process that has ended.
    pub fn unpublish(&mut self, tgid: u32, now_ns: u64) {
        if self.without.remove(&tgid) {
            _ = self.processes.remove(tgid);
        }
        if self.members.layout_of(tgid).is_none() {
            return;
        }
        // If the kernel keeps the entry, nothing can be done: the place is not used again for as
        // long as a sample takes.
        _ = self.processes.remove(tgid);
        let left = self.members.leave(tgid);
        self.abandon(left, now_ns);
    }

    /// Records that a process was seen running.
    pub fn touch(&mut self, tgid: u32, now_ns: u64) {
        self.members.touch(tgid, now_ns);
    }

    /// Rewrites the lists that contain these files, which have got tables.
    pub fn refresh(&mut self, files: &HashSet<ModuleId>, now_ns: u64, resolve: Resolve<'_>) {
        let concerned = |layout: &&Layout| {
            let mut of = layout.iter().filter_map(|range| range.file);
            of.any(|file| files.contains(&file))
        };
        let layouts: Vec<Layout> = self.lists.keys().filter(concerned).cloned().collect();
        for layout in layouts {
            self.replace(&layout, now_ns, resolve);
        }
    }

    /// Removes the tables of these files from all lists.
    pub fn withdraw(&mut self, files: &HashSet<ModuleId>, now_ns: u64, resolve: Resolve<'_>) {
        self.refresh(files, now_ns, resolve);
        let is_old = |(layout, list): (&Layout, &List)| {
            let mut of = layout.iter().filter_map(|range| range.file);
            (list.is_waiting && of.any(|file| files.contains(&file))).then(|| layout.clone())
        };
        // For some there was no room to rewrite them.
        let old: Vec<Layout> = self.lists.iter().filter_map(is_old).collect();
        for layout in old {
            for tgid in self.members.of(&layout).to_vec() {
                self.unpublish(tgid, now_ns);
                self.counts.evicted += 1;
            }
        }
    }

    /// Makes room, and writes the lists that waited for it.
    pub fn sweep(&mut self, now_ns: u64, resolve: Resolve<'_>) {
        self.room.sweep(now_ns);
        self.evict_until(self.room.reserve(), now_ns);
        if self.waiting == 0 {
            return;
        }
        let is_waiting = |(layout, list): (&Layout, &List)| list.is_waiting.then(|| layout.clone());
        let layouts: Vec<Layout> = self.lists.iter().filter_map(is_waiting).collect();
        for layout in layouts {
            self.replace(&layout, now_ns, resolve);
        }
        if self.waiting > 0 && !self.room.is_any_resting() {
            // Everything that can be free is free, but in pieces that are too small.
            self.evict_until(self.room.available() + self.room.reserve(), now_ns);
        }
    }

    /// Whether any process has this file in its layout.
    pub fn is_mapped(&self, file: ModuleId) -> bool {
        self.members.is_mapped(file)
    }

    /// Returns the position of the list of a process, if it has one.
    pub fn list_of(&self, tgid: u32) -> Option<MappingList> {
        self.lists.get(self.members.layout_of(tgid)?)?.published
    }

    /// Returns the user to whom a process is charged.
    pub fn user_of(&self, tgid: u32) -> Option<u32> {
        self.members.user_of(tgid)
    }

    /// Number of processes that have a list.
    pub fn processes(&self) -> usize {
        self.members.processes()
    }

    /// Number of lists: processes with the same mappings share one.
    pub fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Returns the counts of what did not fit.
    pub fn counts(&self) -> ListCounts {
        self.counts
    }

    /// Writes the list of a layout that no process has yet.
    fn add(&mut self, tgid: u32, layout: Layout, mappings: &[Mapping], now_ns: u64) -> Layout {
        let kept = self.generation_to_keep(tgid, mappings);
        let published = self.write(mappings, kept);
        let is_waiting = published.is_none();
        let list = List {
            published,
            is_waiting,
        };
        self.lists.insert(layout.clone(), list);
        if is_waiting {
            self.postponed(mappings.len(), now_ns);
        }
        layout
    }

    /// Rewrites the list of a layout, at another place.
    fn replace(&mut self, layout: &Layout, now_ns: u64, resolve: Resolve<'_>) {
        let mappings = resolve(layout);
        let written = self.write(&mappings, None);
        let Some(list) = self.lists.get_mut(layout) else {
            return;
        };
        let was_waiting = std::mem::replace(&mut list.is_waiting, written.is_none());
        let Some(written) = written else {
            // The old list is still valid, but incomplete.
            if !was_waiting {
                self.postponed(mappings.len(), now_ns);
            }
            return;
        };
        self.waiting -= usize::from(was_waiting);
        let before = list.published.replace(written);
        for tgid in self.members.of(layout).to_vec() {
            self.point(tgid, layout);
        }
        if let Some(before) = before {
            self.room.free(before, now_ns);
        }
    }

    fn postponed(&mut self, mappings: usize, now_ns: u64) {
        self.waiting += 1;
        self.counts.postponed += 1;
        let units = mappings.div_ceil(MAPPING_UNIT) as u32;
        self.evict_until(units.max(self.room.reserve()), now_ns);
    }

    fn write(&mut self, mappings: &[Mapping], kept: Option<u32>) -> Option<MappingList> {
        let generation = match kept {
            Some(generation) => generation,
            // Numbers are never used twice; 32 bits last for years.
            None => self.generation.checked_add(1)?,
        };
        let list = self.room.write(mappings, generation)?;
        self.generation = self.generation.max(generation);
        Some(list)
    }

    /// Returns the generation of the list that a process has alone, if `mappings` only adds to it.
    fn generation_to_keep(&self, tgid: u32, mappings: &[Mapping]) -> Option<u32> {
        let layout = self.members.layout_of(tgid)?;
        let list = self.lists.get(layout)?.published?;
        let alone = self.members.of(layout).len() == 1;
        let kept = alone && is_addition(&self.room.read(list), mappings);
        kept.then_some(list.generation())
    }

    /// Sets the list of a process in the kernel's map.
    fn point(&mut self, tgid: u32, layout: &Layout) {
        let published = self.lists.get(layout).and_then(|list| list.published);
        let told = match published {
            Some(list) => self.processes.set(tgid, list),
            None => self.processes.remove(tgid),
        };
        self.counts.refused += u64::from(told.is_err());
    }

    /// Removes the list of a layout that a process had, if no other process has it.
    fn abandon(&mut self, left: Option<Layout>, now_ns: u64) {
        let Some(layout) = left.filter(|layout| self.members.of(layout).is_empty()) else {
            return;
        };
        let Some(list) = self.lists.remove(&layout) else {
            return;
        };
        self.waiting -= usize::from(list.is_waiting);
        if let Some(published) = list.published {
            self.room.free(published, now_ns);
        }
    }

    /// Evicts lists until this much room is free, or will be after its rest.
    fn evict_until(&mut self, units: u32, now_ns: u64) {
        while self.room.available() < units && self.evict(now_ns) {}
    }

    fn evict(&mut self, now_ns: u64) -> bool {
        let Some(tgid) = self.members.who_leaves(self.share()) else {
            return false;
        };
        self.unpublish(tgid, now_ns);
        self.counts.evicted += 1;
        true
    }
}

#[cfg(test)]
mod tests;
