//! Names of code made at run time. The only ones that may come later than the
//! first question: maps grow, and some are written when somebody asks for them.

use probe::shares::may_have_more;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use symbolize::Reason;
use symbolize::parser::{CodeNames, NewNames};

use super::{Asked, NamedModule};

/// All maps together: six million pieces of code. When they have reached it, or all but an
/// eighth of it and a user's own an eighth, none of that user's is read further.
const BYTES_MAX: usize = 96 << 20;

/// How often a map that had no name for an address is looked at again.
const AGAIN: Duration = Duration::from_secs(1);

/// Addresses that wait for a name; of more, the answer is final.
const WAITING_MAX: usize = 65_536;

/// What one process tells of its code.
#[derive(Debug)]
pub struct Jit(Mutex<JitState>);

#[derive(Debug)]
struct JitState {
    /// Who started the process.
    user: u32,
    names: Option<CodeNames>,
    /// What the budget was told of it.
    counted: Option<(Arc<Budget>, usize)>,
}

/// The memory that the maps of each user's processes hold.
#[derive(Debug, Default)]
pub struct Budget(Mutex<HashMap<u32, usize>>);

impl Budget {
    /// Whether maps of this user may grow.
    fn may_have_more(&self, user: u32) -> bool {
        let users = self.0.lock().expect("nobody panics with it");
        let own = users.get(&user).copied().unwrap_or_default();
        may_have_more(own, users.values().sum(), BYTES_MAX)
    }

    /// A map that had `before` has `now`.
    fn change(&self, user: u32, before: usize, now: usize) {
        let mut users = self.0.lock().expect("nobody panics with it");
        let own = users.entry(user).or_default();
        *own = (*own + now).saturating_sub(before);
        if *own == 0 {
            users.remove(&user);
        }
    }
}

impl Jit {
    pub fn new(directory: Arc<OwnedFd>, user: u32) -> Self {
        Self(Mutex::new(JitState {
            user,
            names: Some(CodeNames::new(directory, probe::files::of_targets())),
            counted: None,
        }))
    }

    /// Gives memory and descriptors back; there are no names from now on.
    pub fn close(&self) {
        let mut state = self.0.lock().expect("nobody panics with it");
        state.names = None;
        if let Some((budget, bytes)) = state.counted.take() {
            budget.change(state.user, bytes, 0);
        }
    }

    /// Reads what is new, and looks up the names at these addresses: all of them, or if
    /// `only_if_new` none unless something is new.
    pub fn names(&self, budget: &Arc<Budget>, only_if_new: bool, addresses: &[u64]) -> JitAnswer {
        let mut state = self.0.lock().expect("nobody panics with it");
        let JitState {
            user,
            names,
            counted,
        } = &mut *state;
        let Some(names) = names else {
            return JitAnswer {
                is_new: false,
                are_all: true,
                names: vec![Err(Reason::Jit); addresses.len()],
            };
        };
        let reads_on = budget.may_have_more(*user);
        let NewNames {
            is_new,
            names: found,
        } = names.names(reads_on, only_if_new, addresses);
        if reads_on {
            let (_, before) = counted.take().unwrap_or((budget.clone(), 0));
            let bytes = names.heap_bytes();
            budget.change(*user, before, bytes);
            *counted = Some((budget.clone(), bytes));
        }
        JitAnswer {
            is_new,
            are_all: names.have_ended(),
            names: found,
        }
    }
}

/// What a process tells of addresses.
pub struct JitAnswer {
    /// Whether anything is there that was not there before.
    pub is_new: bool,
    /// Whether nothing will come any more.
    pub are_all: bool,
    /// The names in the order of the addresses; empty if they were asked for only if something
    /// is new, and nothing is.
    pub names: Vec<Result<Vec<u8>, Reason>>,
}

/// Addresses in one module.
type Group = (Arc<NamedModule>, Vec<Asked>);

/// The addresses without a name whose map may still grow.
#[derive(Debug, Default)]
pub struct Waiting {
    modules: Vec<Group>,
    frames: usize,
    asked: Option<Instant>,
}

impl Waiting {
    /// Keeps frames for which a name may come; those beyond [`WAITING_MAX`] are
    /// dropped.
    pub fn add(&mut self, module: Arc<NamedModule>, mut frames: Vec<Asked>) {
        frames.truncate(WAITING_MAX.saturating_sub(self.frames));
        if frames.is_empty() {
            return;
        }
        self.frames += frames.len();
        let known = |(other, _): &&mut Group| Arc::ptr_eq(other, &module);
        match self.modules.iter_mut().find(known) {
            Some((_, waiting)) => waiting.append(&mut frames),
            None => self.modules.push((module, frames)),
        }
    }

    /// All frames that wait, if a second has gone by since they were taken last; else
    /// none.
    pub fn take_due(&mut self) -> Vec<Group> {
        if self.frames == 0 || self.asked.is_some_and(|asked| asked.elapsed() < AGAIN) {
            return Vec::new();
        }
        self.asked = Some(Instant::now());
        self.frames = 0;
        std::mem::take(&mut self.modules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_one_user_leave_room_for_those_of_others() {
        let budget = Budget::default();
        budget.change(7, 0, BYTES_MAX / 8 * 7);
        assert!(!budget.may_have_more(7) && budget.may_have_more(8));
        budget.change(8, 0, BYTES_MAX / 8);
        assert!(!budget.may_have_more(8), "there is no more");
        budget.change(7, BYTES_MAX / 8 * 7, 0);
        assert!(budget.may_have_more(7) && budget.may_have_more(8));
        assert_eq!(budget.0.lock().unwrap().len(), 1);
    }
}
