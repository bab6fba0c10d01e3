//! Names of code made at run time. The only ones that may come later than the
//! first question: maps grow, and some are written when somebody asks for them.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use symbolize::{JitNames, Reason};

use super::{Asked, NamedModule};

/// All maps together. When they have reached it none is read further: six
/// million pieces of code.
const BYTES_MAX: usize = 96 << 20;

/// How often a map that had no name for an address is looked at again.
const AGAIN: Duration = Duration::from_secs(1);

/// Addresses that wait for a name; of more, the answer is final.
const WAITING_MAX: usize = 65_536;

/// What one process tells of its code.
#[derive(Debug)]
pub struct Jit(Mutex<State>);

#[derive(Debug)]
struct State {
    names: Option<JitNames>,
    /// What the budget was told of it.
    counted: Option<(Arc<Budget>, usize)>,
}

/// The memory that all maps hold.
#[derive(Debug, Default)]
pub struct Budget(AtomicUsize);

impl Jit {
    pub fn new(directory: Arc<OwnedFd>) -> Self {
        Self(Mutex::new(State {
            names: Some(JitNames::new(directory, probe::files::of_targets())),
            counted: None,
        }))
    }

    /// Gives memory and descriptors back; there are no names from now on.
    pub fn close(&self) {
        let mut state = self.0.lock().expect("nobody panics with it");
        state.names = None;
        if let Some((budget, bytes)) = state.counted.take() {
            budget.0.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Reads what is new, then lets `work` look names up.
    pub fn read<T>(&self, budget: &Arc<Budget>, work: impl FnOnce(Names<'_>) -> T) -> T {
        let mut state = self.0.lock().expect("nobody panics with it");
        let State { names, counted } = &mut *state;
        let mut is_new = false;
        if let Some(names) = names
            && budget.0.load(Ordering::Relaxed) < BYTES_MAX
        {
            is_new = names.update();
            let (_, before) = counted.take().unwrap_or((budget.clone(), 0));
            let bytes = names.heap_bytes();
            budget.0.fetch_sub(before, Ordering::Relaxed);
            budget.0.fetch_add(bytes, Ordering::Relaxed);
            *counted = Some((budget.clone(), bytes));
        }
        work(Names {
            names: names.as_mut(),
            is_new,
        })
    }
}

/// A map, up to date.
pub struct Names<'n> {
    names: Option<&'n mut JitNames>,
    /// Whether anything is there that was not there before.
    pub is_new: bool,
}

impl Names<'_> {
    pub fn find(&mut self, address: u64) -> Result<Vec<u8>, Reason> {
        self.names.as_mut().ok_or(Reason::Jit)?.find(address)
    }

    /// Whether nothing will come any more.
    pub fn are_all(&self) -> bool {
        self.names.as_ref().is_none_or(|names| names.has_ended())
    }
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

    /// All of them, if it is time to ask again.
    pub fn take_due(&mut self) -> Vec<Group> {
        if self.frames == 0 || self.asked.is_some_and(|asked| asked.elapsed() < AGAIN) {
            return Vec::new();
        }
        self.asked = Some(Instant::now());
        self.frames = 0;
        std::mem::take(&mut self.modules)
    }
}
