//! The state of a stack's thread: the frame on top says what the thread waited for; without such a
//! frame it was on a CPU.

use crate::filter::{States, is_idle_call, is_join_call};
use crate::intern::StackFrames;
use crate::wait::{RUN, STATES, WAITING_MODULE, waiting_name};
use crate::{FrameId, FunctionId, ModuleId, View};

/// A filter's test of thread states, evaluated for every function.
#[derive(Debug)]
pub(super) struct StateTest {
    states: States,
    negated: bool,
    /// The state that each frame stands for, by frame; [`NO_STATE`] if it is not a waiting frame.
    state_of: Vec<u8>,
    /// Whether each frame is in a call that waits for work; empty if no test needs it.
    is_idle: Vec<bool>,
    /// Whether each frame is in a call that waits for the end of a thread; empty if no test needs
    /// it.
    is_join: Vec<bool>,
}

const NO_STATE: u8 = u8::MAX;

impl StateTest {
    pub(super) fn new(view: &View, states: States, negated: bool) -> Self {
        let called = |is_asked: bool, is_it: fn(&str) -> bool| {
            if is_asked {
                frames_called(view, is_it)
            } else {
                Vec::new()
            }
        };
        Self {
            states,
            negated,
            state_of: states_of_frames(view),
            is_idle: called(states.has_idle(), is_idle_call),
            is_join: called(states.has_join(), is_join_call),
        }
    }

    /// Whether samples with these frames, innermost first, pass.
    pub(super) fn holds(&self, frames: StackFrames<'_>) -> bool {
        let leaf = frames
            .clone()
            .next()
            .map_or(NO_STATE, |leaf| self.state_of[leaf.0 as usize]);
        let is_in = match leaf {
            NO_STATE => self.states.contains(RUN),
            state => {
                let has = |calls: &[bool]| frames.clone().any(|frame| calls[frame.0 as usize]);
                let waits_for_work = || is_for_work(state) && has(&self.is_idle);
                let waits_for_end = || STATES[usize::from(state)] == "lock" && has(&self.is_join);
                self.states.contains(state.into())
                    || self.states.has_idle() && waits_for_work()
                    || self.states.has_join() && waits_for_end()
            }
        };
        is_in != self.negated
    }
}

/// Whether the frames of a module say what a thread waits for.
pub(super) fn is_wait(view: &View, module: ModuleId) -> bool {
    *view.tables.modules.get(module).name == *WAITING_MODULE
}

/// For each frame, whether its function or one that is inlined there has a name that `is_it`
/// accepts.
fn frames_called(view: &View, is_it: fn(&str) -> bool) -> Vec<bool> {
    let tables = &*view.tables;
    let owners = tables.names.owners();
    // Cached by function: most functions have many frames.
    let mut known = vec![None; owners.len()];
    let mut is_called = |function: FunctionId| {
        let name = || tables.names.name(function);
        *known[function.0 as usize].get_or_insert_with(|| name().is_some_and(|name| is_it(name)))
    };
    let is_in_frame = |(frame, owner): (FrameId, &FunctionId)| {
        let mut inlined = tables.sources.inlined_in(frame).iter();
        is_called(*owner) || inlined.any(|link| is_called(link.function))
    };
    (0..)
        .map(FrameId)
        .zip(owners.iter())
        .map(is_in_frame)
        .collect()
}

/// Whether waits in a state can be waits for work. A thread in the queue for a CPU already has
/// work.
fn is_for_work(state: u8) -> bool {
    matches!(
        STATES[usize::from(state)],
        "lock" | "net" | "sleep" | "other"
    )
}

/// The state that each frame stands for: by its name or, if a file was read up to its names only,
/// by its number.
fn states_of_frames(view: &View) -> Vec<u8> {
    let tables = &*view.tables;
    let names = STATES.map(waiting_name);
    let state_of = |id: FrameId| {
        let frame = view.frame(id).filter(|_| id.0 >= crate::intern::RESERVED)?;
        if !is_wait(view, frame.module) {
            return None;
        }
        let named = tables.names.name(view.function_of(id));
        let by_name = named.and_then(|name| names.iter().position(|each| **each == **name));
        let by_number = || usize::try_from(frame.address).ok();
        let state = by_name.or_else(by_number)?;
        u8::try_from(state).ok().filter(|_| state < STATES.len())
    };
    let frames = (0..tables.names.owners().len() as u32).map(FrameId);
    frames.map(|id| state_of(id).unwrap_or(NO_STATE)).collect()
}
