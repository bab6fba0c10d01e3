//! What threads did in a window, and for whom they waited.

use probe::WaitState;
use std::sync::Arc;

/// What is known of waits in a window.
#[derive(Debug, Clone, Default)]
pub struct Waited {
    /// By number.
    pub threads: Vec<ThreadStates>,
    /// The longest first.
    pub holders: Vec<Held>,
}

/// What a thread did in a window: every moment of it was in one state.
#[derive(Debug, Clone)]
pub struct ThreadStates {
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub comm: Arc<str>,
    /// Nanoseconds in each of [`WaitState::ALL`].
    pub ns: [u64; WaitState::ALL.len()],
    /// What it does now.
    pub state: WaitState,
    /// Since when, on the clock of the samples.
    pub state_since_ns: u64,
    /// It has ended.
    pub has_ended: bool,
}

/// How long one thread waited until another woke it, by the stacks that were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The thread that waited.
    pub waiter: u32,
    /// The process of the one that woke it.
    pub holder: u32,
    /// The thread that did.
    pub holder_thread: u32,
    /// What it waited for.
    pub state: WaitState,
    /// Nanoseconds.
    pub ns: u64,
    /// How many waits were seen.
    pub waits: u64,
}
