//! Which process has which layout, which processes a layout has, which files are in
//! any of them, and how much of the room each user has.

use crate::ids::ModuleId;
use crate::tables::layout::Layout;
use std::collections::{HashMap, HashSet};

/// Which processes share a layout, and which was sampled last.
#[derive(Debug, Default)]
pub struct Members {
    by_tgid: HashMap<u32, Member>,
    by_layout: HashMap<Layout, Sharers>,
    /// In how many layouts a file is.
    files: HashMap<ModuleId, usize>,
    users: HashMap<u32, Use>,
}

#[derive(Debug)]
struct Member {
    layout: Layout,
    user: u32,
    used_ns: u64,
}

/// The processes that share a layout, and the user that it is counted as: of the first
/// one that had it.
#[derive(Debug)]
struct Sharers {
    tgids: Vec<u32>,
    user: u32,
}

/// What the processes of a user have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    pub mappings: usize,
    pub processes: usize,
}

impl Members {
    /// Gives a process a layout, and returns the one that it had.
    pub fn join(&mut self, tgid: u32, user: u32, layout: Layout, now_ns: u64) -> Option<Layout> {
        let left = self.leave(tgid);
        let sharers = { self.by_layout.entry(layout.clone()) }.or_insert_with(|| Sharers {
            tgids: Vec::new(),
            user,
        });
        if sharers.tgids.is_empty() {
            for file in files_of(&layout) {
                *self.files.entry(file).or_default() += 1;
            }
            self.users.entry(user).or_default().mappings += layout.len();
        }
        sharers.tgids.push(tgid);
        self.users.entry(user).or_default().processes += 1;
        let used_ns = now_ns;
        let member = Member {
            layout,
            user,
            used_ns,
        };
        self.by_tgid.insert(tgid, member);
        left
    }

    /// Takes a process out, and returns the layout that it had.
    pub fn leave(&mut self, tgid: u32) -> Option<Layout> {
        let Member { layout, user, .. } = self.by_tgid.remove(&tgid)?;
        self.give_back(user, 0, 1);
        let sharers = self.by_layout.get_mut(&layout)?;
        sharers.tgids.retain(|other| *other != tgid);
        if sharers.tgids.is_empty() {
            let payer = sharers.user;
            self.by_layout.remove(&layout);
            self.give_back(payer, layout.len(), 0);
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
        let sharers = self.by_layout.get(layout);
        sharers.map_or(&[], |sharers| &sharers.tgids)
    }

    /// Whether any process maps the file.
    pub fn is_mapped(&self, file: ModuleId) -> bool {
        self.files.contains_key(&file)
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.by_tgid.len()
    }

    /// The user that a process is counted as.
    pub fn user_of(&self, tgid: u32) -> Option<u32> {
        self.by_tgid.get(&tgid).map(|member| member.user)
    }

    /// What the processes of a user have together.
    pub fn use_of(&self, user: u32) -> Use {
        self.users.get(&user).copied().unwrap_or_default()
    }

    /// The process that is to make room. One of the user who has most, if that is more
    /// than a share; else one that has much itself, if there is one. Of those the least
    /// recently used.
    pub fn who_leaves(&self, share: Use, much: usize) -> Option<u32> {
        let is_over = |of: &&(u32, Use)| {
            let (_, of) = of;
            of.mappings > share.mappings || of.processes > share.processes
        };
        let users: Vec<(u32, Use)> = { self.users.iter() }.map(|(u, of)| (*u, *of)).collect();
        let most =
            { users.iter().filter(is_over) }.max_by_key(|(_, of)| (of.mappings, of.processes));
        let oldest = |wanted: &dyn Fn(&Member) -> bool| {
            let members = self.by_tgid.iter().filter(|(_, member)| wanted(member));
            let oldest = members.min_by_key(|(_, member)| member.used_ns);
            oldest.map(|(tgid, _)| *tgid)
        };
        match most {
            Some((user, _)) => oldest(&|member| member.user == *user),
            None => oldest(&|member| member.layout.len() >= much).or_else(|| oldest(&|_| true)),
        }
    }

    fn give_back(&mut self, user: u32, mappings: usize, processes: usize) {
        let Some(of) = self.users.get_mut(&user) else {
            return;
        };
        of.mappings -= mappings;
        of.processes -= processes;
        if *of == Use::default() {
            self.users.remove(&user);
        }
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
