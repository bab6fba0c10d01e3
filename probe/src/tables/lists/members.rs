//! Which process has which layout, which processes a layout has, and which
//! files are in any of them.

use crate::ids::ModuleId;
use crate::tables::layout::Layout;
use std::collections::{HashMap, HashSet};

/// Which processes share a layout, and which was sampled last.
#[derive(Debug, Default)]
pub struct Members {
    by_tgid: HashMap<u32, Member>,
    by_layout: HashMap<Layout, Vec<u32>>,
    /// In how many layouts a file is.
    files: HashMap<ModuleId, usize>,
}

#[derive(Debug)]
struct Member {
    layout: Layout,
    used_ns: u64,
}

impl Members {
    /// Gives a process a layout, and returns the one that it had.
    pub fn join(&mut self, tgid: u32, layout: Layout, now_ns: u64) -> Option<Layout> {
        let left = self.leave(tgid);
        let tgids = self.by_layout.entry(layout.clone()).or_default();
        if tgids.is_empty() {
            for file in files_of(&layout) {
                *self.files.entry(file).or_default() += 1;
            }
        }
        tgids.push(tgid);
        let used_ns = now_ns;
        self.by_tgid.insert(tgid, Member { layout, used_ns });
        left
    }

    /// Takes a process out, and returns the layout that it had.
    pub fn leave(&mut self, tgid: u32) -> Option<Layout> {
        let Member { layout, .. } = self.by_tgid.remove(&tgid)?;
        let tgids = self.by_layout.get_mut(&layout)?;
        tgids.retain(|other| *other != tgid);
        if tgids.is_empty() {
            self.by_layout.remove(&layout);
            for file in files_of(&layout) {
                self.release(file);
            }
        }
        Some(layout)
    }

    /// The process was in use. False if it is not known.
    pub fn touch(&mut self, tgid: u32, now_ns: u64) -> bool {
        let member = self.by_tgid.get_mut(&tgid);
        member.map(|member| member.used_ns = now_ns).is_some()
    }

    /// The layout of a process, if it was published.
    pub fn layout_of(&self, tgid: u32) -> Option<&Layout> {
        self.by_tgid.get(&tgid).map(|member| &member.layout)
    }

    /// The processes that have a layout.
    pub fn of(&self, layout: &Layout) -> &[u32] {
        self.by_layout.get(layout).map_or(&[], Vec::as_slice)
    }

    /// Whether any process maps the file.
    pub fn is_mapped(&self, file: ModuleId) -> bool {
        self.files.contains_key(&file)
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.by_tgid.len()
    }

    /// The process whose last sample is oldest.
    pub fn least_recently_used(&self) -> Option<u32> {
        let oldest = self.by_tgid.iter().min_by_key(|(_, member)| member.used_ns);
        oldest.map(|(tgid, _)| *tgid)
    }

    fn release(&mut self, file: ModuleId) {
        if let Some(layouts) = self.files.get_mut(&file) {
            *layouts -= 1;
            if *layouts == 0 {
                self.files.remove(&file);
            }
        }
    }
}

/// Each file once.
fn files_of(layout: &Layout) -> HashSet<ModuleId> {
    layout.iter().filter_map(|range| range.file).collect()
}
