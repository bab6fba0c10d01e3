//! Maps processes to layouts, layouts to processes, counts the layouts with each file, and the room
//! that each user has.

use crate::ids::ModuleId;
use crate::tables::layout::Layout;
use foldhash::{HashMap, HashMapExt as _, HashSet};
use std::collections::BTreeSet;

/// The processes that share each layout, and the order in which processes were last sampled.
#[derive(Debug)]
pub struct Members {
    /// A process with at least this many mappings is a large one (see `who_leaves`).
    much: usize,
    by_tgid: HashMap<u32, Member>,
    by_layout: HashMap<Layout, Sharers>,
    /// Number of layouts that contain a file.
    files: HashMap<ModuleId, usize>,
    users: HashMap<u32, User>,
    /// The large processes.
    large: ByAge,
}

/// Processes with the time at which each was last used, the least recently used first. With
/// thousands of processes, more than there is room for, one has to be found for each new one.
type ByAge = BTreeSet<(u64, u32)>;

/// The processes of a user.
#[derive(Debug, Default)]
struct User {
    has: Use,
    processes: ByAge,
}

#[derive(Debug)]
struct Member {
    layout: Layout,
    user: u32,
    used_ns: u64,
}

/// The processes that share a layout, and the user to whom it is charged: that of the first process
/// that had it.
#[derive(Debug)]
struct Sharers {
    tgids: Vec<u32>,
    user: u32,
}

/// The room that the processes of a user have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Use {
    /// Number of mappings in the layouts that the user is charged for.
    pub mappings: usize,
    /// Number of processes that have a layout.
    pub processes: usize,
}

impl Members {
    /// Starts without processes. A process with at least `much` mappings is evicted before others.
    pub fn new(much: usize) -> Self {
        Self {
            much,
            by_tgid: HashMap::new(),
            by_layout: HashMap::new(),
            files: HashMap::new(),
            users: HashMap::new(),
            large: ByAge::new(),
        }
    }

    /// Gives a process a layout, and returns the one that it had.
    pub fn join(&mut self, tgid: u32, user: u32, layout: Layout, now_ns: u64) -> Option<Layout> {
        let left = self.leave(tgid);
        let sharers = self
            .by_layout
            .entry(layout.clone())
            .or_insert_with(|| Sharers {
                tgids: Vec::new(),
                user,
            });
        if sharers.tgids.is_empty() {
            for file in files_of(&layout) {
                *self.files.entry(file).or_default() += 1;
            }
            self.users.entry(user).or_default().has.mappings += layout.len();
        }
        sharers.tgids.push(tgid);
        let of_user = self.users.entry(user).or_default();
        of_user.has.processes += 1;
        of_user.processes.insert((now_ns, tgid));
        if layout.len() >= self.much {
            self.large.insert((now_ns, tgid));
        }
        let used_ns = now_ns;
        let member = Member {
            layout,
            user,
            used_ns,
        };
        self.by_tgid.insert(tgid, member);
        left
    }

    /// Removes a process, and returns the layout that it had.
    pub fn leave(&mut self, tgid: u32) -> Option<Layout> {
        let Member {
            layout,
            user,
            used_ns,
        } = self.by_tgid.remove(&tgid)?;
        if let Some(of_user) = self.users.get_mut(&user) {
            of_user.processes.remove(&(used_ns, tgid));
        }
        self.large.remove(&(used_ns, tgid));
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

    /// Records that the process was used. Returns false if it is unknown.
    pub fn touch(&mut self, tgid: u32, now_ns: u64) -> bool {
        let Some(member) = self.by_tgid.get_mut(&tgid) else {
            return false;
        };
        let (before, now) = ((member.used_ns, tgid), (now_ns, tgid));
        member.used_ns = now_ns;
        let of_user = self.users.get_mut(&member.user);
        let of_user = of_user.map(|of_user| &mut of_user.processes);
        for ages in of_user.into_iter().chain([&mut self.large]) {
            if ages.remove(&before) {
                ages.insert(now);
            }
        }
        true
    }

    /// Returns the layout of a process, if it was published.
    pub fn layout_of(&self, tgid: u32) -> Option<&Layout> {
        self.by_tgid.get(&tgid).map(|member| &member.layout)
    }

    /// Returns the processes that have a layout.
    pub fn of(&self, layout: &Layout) -> &[u32] {
        let sharers = self.by_layout.get(layout);
        sharers.map_or(&[], |sharers| &sharers.tgids)
    }

    /// Whether any process maps the file.
    pub fn is_mapped(&self, file: ModuleId) -> bool {
        self.files.contains_key(&file)
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.by_tgid.len()
    }

    /// Returns the user to whom a process is charged.
    pub fn user_of(&self, tgid: u32) -> Option<u32> {
        self.by_tgid.get(&tgid).map(|member| member.user)
    }

    /// Returns the room that the processes of a user have together.
    pub fn use_of(&self, user: u32) -> Use {
        self.users.get(&user).map(|of| of.has).unwrap_or_default()
    }

    /// Returns the process to evict: one of the user who has most, if that is more than a share;
    /// else a large one, if there is one; else any. Of those the least recently used.
    pub fn who_leaves(&self, share: Use) -> Option<u32> {
        let is_over =
            |of: &&User| of.has.mappings > share.mappings || of.has.processes > share.processes;
        let over = self.users.values().filter(is_over);
        let most = over.max_by_key(|of| (of.has.mappings, of.has.processes));
        let of_all = || self.users.values().filter_map(|of| of.processes.first());
        let oldest = match most {
            Some(of) => of.processes.first(),
            None => self.large.first().or_else(|| of_all().min()),
        };
        oldest.map(|(_, tgid)| *tgid)
    }

    fn give_back(&mut self, user: u32, mappings: usize, processes: usize) {
        let Some(of) = self.users.get_mut(&user) else {
            return;
        };
        of.has.mappings -= mappings;
        of.has.processes -= processes;
        if of.has == Use::default() {
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

/// Returns the files of a layout, each once.
fn files_of(layout: &Layout) -> HashSet<ModuleId> {
    layout.iter().filter_map(|range| range.file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::MappedRange;
    use foldhash::HashSetExt as _;
    use std::hash::RandomState;
    use test_support::Random;

    /// Finds the process by looking at all of them, as the comment of `who_leaves` says.
    fn found_by_looking(members: &Members, share: Use) -> Option<(u64, u32)> {
        let over = members.users.iter().filter(|(_, of)| {
            of.has.mappings > share.mappings || of.has.processes > share.processes
        });
        let most = over
            .max_by_key(|(_, of)| (of.has.mappings, of.has.processes))
            .map(|(_, of)| of.has);
        let is_large = |member: &Member| member.layout.len() >= members.much;
        let any_large = members.by_tgid.values().any(is_large);
        let may_leave = |member: &Member| match most {
            Some(most) => members.use_of(member.user) == most,
            None => is_large(member) || !any_large,
        };
        let wanted = members
            .by_tgid
            .iter()
            .filter(|(_, member)| may_leave(member));
        wanted.map(|(tgid, member)| (member.used_ns, *tgid)).min()
    }

    #[test]
    fn the_oldest_of_whoever_has_most_leaves() {
        let mut random = Random::new(7);
        let hasher = RandomState::new();
        let layout_of = |ranges: u64| {
            let range = |at: u64| MappedRange {
                start: at << 12,
                end: (at + 1) << 12,
                file_offset: 0,
                file: None,
            };
            let ranges: Vec<_> = (1..=ranges).map(range).collect();
            Layout::new(&ranges, &hasher)
        };
        let mut members = Members::new(6);
        let mut seen = HashSet::new();
        for now_ns in 1..4_000 {
            let tgid = random.below(60) as u32;
            match random.below(4) {
                0 => _ = members.leave(tgid),
                1 => _ = members.touch(tgid, now_ns),
                _ => {
                    let user = random.below(4) as u32;
                    let layout = layout_of(1 + random.below(7));
                    members.join(tgid, user, layout, now_ns);
                }
            }
            let share = Use {
                mappings: 20 + random.below(60) as usize,
                processes: 10 + random.below(20) as usize,
            };
            let found = found_by_looking(&members, share);
            let leaves = members.who_leaves(share);
            // If several users have the same amount, a process of any of them may be evicted.
            let most: Vec<_> = members.users.values().map(|of| of.has).collect();
            let is_tie = most.iter().collect::<HashSet<_>>().len() < most.len();
            assert!(is_tie || leaves == found.map(|(_, tgid)| tgid), "{now_ns}");
            seen.extend(leaves);
        }
        assert!(seen.len() > 20, "{seen:?}");
    }
}
