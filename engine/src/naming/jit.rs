//! Names of code made at run time. Only these may come later than the first request: maps grow, and
//! some are written on demand.

use probe::shares::may_have_more;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use symbolize::Reason;
use symbolize::parser::{CodeNames, NewNames};

use super::{Asked, NamedModule};

/// Maximum memory of all maps together: six million pieces of code. When it is reached, or all but
/// an eighth of it and one user's maps use an eighth, that user's maps are not read further.
const BYTES_MAX: usize = 96 << 20;

/// How often a map that had no name for an address is read again.
const AGAIN: Duration = Duration::from_secs(1);

/// Maximum number of addresses that wait for a name; for further ones the answer is final.
const WAITING_MAX: usize = 65_536;

/// The names of one process's code.
#[derive(Debug)]
pub struct Jit(Mutex<JitState>);

#[derive(Debug)]
struct JitState {
    /// User who started the process.
    user: u32,
    names: Option<CodeNames>,
    /// The budget in which its memory is counted, and how much.
    counted: Option<(Arc<Budget>, usize)>,
}

/// The memory used by the maps of each user's processes.
#[derive(Debug, Default)]
pub struct Budget(Mutex<HashMap<u32, usize>>);

impl Budget {
    /// Whether maps of this user may grow.
    fn may_have_more(&self, user: u32) -> bool {
        let users = self.0.lock().expect("nobody panics with it");
        let own = users.get(&user).copied().unwrap_or_default();
        may_have_more(own, users.values().sum(), BYTES_MAX)
    }

    /// Updates the memory of one map from `before` to `now`.
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
    /// Prepares for the code of one process, whose directory in /proc is given. `user` is charged
    /// for the memory of the maps.
    pub fn new(directory: Arc<OwnedFd>, user: u32) -> Self {
        Self(Mutex::new(JitState {
            user,
            names: Some(CodeNames::new(directory, probe::files::of_targets())),
            counted: None,
        }))
    }

    /// Frees memory and descriptors; there are no names from now on.
    pub fn close(&self) {
        let mut state = self.0.lock().expect("nobody panics with it");
        state.names = None;
        if let Some((budget, bytes)) = state.counted.take() {
            budget.change(state.user, bytes, 0);
        }
    }

    /// Reads what is new, and looks up the names at these addresses. With `only_if_new`, looks up
    /// nothing unless something is new.
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

/// The answer about addresses of one process.
pub struct JitAnswer {
    /// Whether there is anything new.
    pub is_new: bool,
    /// Whether nothing more will be written.
    pub are_all: bool,
    /// Names in the order of the addresses; empty if they were requested only if something is new,
    /// and nothing is.
    pub names: Vec<Result<String, Reason>>,
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
    /// Adds frames for which a name may come; those beyond [`WAITING_MAX`] are dropped.
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

    /// Takes all waiting frames, if a second has gone by since they were last taken; otherwise
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
