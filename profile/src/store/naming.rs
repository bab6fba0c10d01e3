//! Selects the frames that need a name, hottest first, and stores the names.
//!
//! Weights are not kept per frame, which would cost thirty additions for each sample. Instead, each
//! new stack with a frame whose name was not requested yet is remembered: every such frame lies on
//! one of these stacks. After a minute of sampling there are few of them, so weights are computed
//! when names are requested.

use super::Store;
use crate::growth;
use crate::intern::{RESERVED, StackId};
use crate::tables::{CHAIN_MAX, UNMAPPED_CODE};
use crate::{Frame, FrameId, FunctionId, ModuleId, NameState, NoName, SourceFrame};
use std::cmp::Reverse;
use std::sync::Arc;

/// Factor by which a sample counts more for its innermost frame: the list of functions shows that
/// one first.
const LEAF_WEIGHT: u64 = 8;

/// The work list. Both lists may contain frames that were requested meanwhile; each request cleans
/// them.
#[derive(Debug, Default)]
pub(super) struct Naming {
    /// Stacks that had a frame without a request when they were stored.
    fresh: Vec<StackId>,
    /// Frames whose request was returned unanswered.
    again: Vec<FrameId>,
}

impl Naming {
    /// Remembers a new stack with a frame that needs a name.
    pub(super) fn add_stack(&mut self, stack: StackId) {
        growth::reserve(&mut self.fresh, 1);
        self.fresh.push(stack);
    }

    /// Drops the stacks that are about to be removed.
    pub(super) fn retain(&mut self, is_live: impl Fn(StackId) -> bool) {
        self.fresh.retain(|stack| is_live(*stack));
        self.fresh.shrink_to(self.fresh.len() * 2);
    }

    /// Drops frames that were released.
    pub(super) fn forget_frame(&mut self, is_gone: impl Fn(FrameId) -> bool) {
        self.again.retain(|frame| !is_gone(*frame));
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.fresh.capacity() + self.again.capacity()) * size_of::<u32>()
    }
}

impl Store {
    /// Returns up to `limit` frames that need a name, hottest first, and marks them as requested.
    /// The caller has to call [`Store::set_name`] once for each.
    pub fn frames_to_name(&mut self, limit: usize) -> Vec<FrameId> {
        self.frames_to_name_if(limit, |_| true)
    }

    /// Returns frames as [`Store::frames_to_name`] does, but only those for which `may` returns
    /// true. The others stay on the list.
    pub fn frames_to_name_if(
        &mut self,
        limit: usize,
        mut may: impl FnMut(Frame) -> bool,
    ) -> Vec<FrameId> {
        if self.naming.fresh.is_empty() && self.naming.again.is_empty() {
            return Vec::new();
        }
        let mut wanted = self.weigh_unasked();
        wanted.sort_unstable();
        let is_chosen = |frame: &FrameId| self.frames.get(*frame).is_some_and(&mut may);
        let frames = wanted.into_iter().map(|(_, frame)| frame);
        let chosen: Vec<FrameId> = frames.filter(is_chosen).take(limit).collect();
        chosen.iter().for_each(|f| self.names.set_asked(*f));
        self.forget_what_is_asked();
        chosen
    }

    /// Sets the name of one frame, or the reason why it has none. A name is final; a reason can
    /// only be replaced by a name. Other second answers are ignored. [`NameState::Pending`] returns
    /// the request, so that the frame is requested again.
    pub fn set_name(&mut self, frame: FrameId, state: NameState) {
        let Some(at) = self.frames.get(frame) else {
            return;
        };
        let tag = self.names.tag(frame);
        let is_name = matches!(state, NameState::Named(_));
        // What is not a place in a program has a fixed name.
        let is_late_name = is_name && frame.0 >= RESERVED && self.names.has_reason(frame);
        if !tag.is_pending() && !is_late_name {
            return;
        }
        match state {
            NameState::Pending => {
                // A frame without a request is still on a remembered stack.
                if !self.names.tag(frame).is_new() {
                    self.names.set_unasked(frame);
                    self.naming.again.push(frame);
                }
            }
            NameState::Named(name) if is_late_name => self.name_late(frame, at, name),
            NameState::Named(name) => {
                let whole = self.modules.whole(at.module);
                self.names.set_named(frame, whole, name);
            }
            // Hundreds of addresses that mean nothing to a user become one function.
            NameState::Unnamed(NoName::Jit) => {
                let function = self.unmapped_code(at);
                self.names.set_unnamed_of(frame, NoName::Jit, function);
            }
            NameState::Unnamed(reason) => self.names.set_unnamed(frame, reason),
            NameState::UnnamedIn { reason, start } => {
                let place = format!("{}+{start:#x}", self.modules.get(at.module).name).into();
                let module = self.place_module(at.module);
                self.names.set_unnamed_in(frame, module, reason, place);
            }
        }
    }

    /// Names a frame that had a reason for having no name, and with it all other frames of a
    /// function that was identified by its start. Such a function stays without a name if frames of
    /// several machines are in it: one machine would name what runs on the others.
    fn name_late(&mut self, frame: FrameId, at: Frame, name: Arc<str>) {
        let function = self.names.owners()[frame.0 as usize];
        let known_as = self.names.name(function);
        let is_place = known_as.is_some_and(|known_as| **known_as != *UNMAPPED_CODE);
        if !is_place {
            let whole = self.modules.whole(at.module);
            self.names.set_named_late(frame, whole, name);
        } else if !self.modules.is_joined(at.module) {
            self.names.set_named_late(frame, at.module, name);
        }
    }

    /// The module within which functions without a name are identified by their start. It is shared
    /// with other machines if its build-id proves that it is the same file.
    fn place_module(&self, module: ModuleId) -> ModuleId {
        if self.modules.get(module).build_id.is_empty() {
            module
        } else {
            self.modules.whole(module)
        }
    }

    /// Sets the source location of a frame, and what was inlined there: a chain of functions,
    /// innermost first, the last one being the function that contains the code. Called after the
    /// frame's name is set, which does not change; a frame without an answer is named by the chain.
    /// Each inlined function becomes a function like others. The chain is final: a second one is
    /// ignored, and the frame's number never changes.
    pub fn set_source(&mut self, frame: FrameId, chain: &[SourceFrame<'_>]) {
        let Some(at) = self.frames.get(frame) else {
            return;
        };
        let Some((own, inlined)) = chain.split_last() else {
            return;
        };
        let is_told = !self.sources.chain(frame).is_empty();
        if frame.0 < RESERVED || is_told || self.names.tag(frame).is_released() {
            return;
        }
        if self.names.tag(frame).is_pending() && !own.function.is_empty() {
            let whole = self.modules.whole(at.module);
            self.names.set_named(frame, whole, own.function.into());
        }
        // One place is reserved for the function that contains the code.
        let kept = &inlined[..inlined.len().min(CHAIN_MAX - 1)];
        let mut links: Vec<_> = kept
            .iter()
            .filter(|link| !link.function.is_empty())
            .map(|link| {
                let function = self.inlined_function(at, link.function);
                (function, link.file, link.line)
            })
            .collect();
        links.push((frame, own.file, own.line));
        self.sources.set(frame, links.into_iter());
    }

    /// Returns the function of that name in the frame's module; a new one if there is none.
    fn inlined_function(&mut self, at: Frame, name: &str) -> FunctionId {
        let name: Arc<str> = name.into();
        let whole = self.modules.whole(at.module);
        self.names.find(whole, &name).unwrap_or_else(|| {
            let id = self.frames.add_inlined(at);
            self.names.add(id);
            self.modules.add_frame(at.module);
            self.names.set_named(id, whole, name);
            id
        })
    }

    /// Returns the function that stands for all code of a module that was made at run time and is
    /// in no map.
    fn unmapped_code(&mut self, at: Frame) -> FunctionId {
        let name: Arc<str> = UNMAPPED_CODE.into();
        self.names.find(at.module, &name).unwrap_or_else(|| {
            let id = self.frames.add_inlined(at);
            self.names.add(id);
            self.modules.add_frame(at.module);
            self.names.set_unnamed_in(id, at.module, NoName::Jit, name);
            id
        })
    }

    /// What is known about a frame's name.
    pub fn name(&self, frame: FrameId) -> NameState {
        self.names.state(frame)
    }

    /// All frames of a module that a sample has.
    pub fn frames_in(&self, module: ModuleId) -> Vec<FrameId> {
        let frames = (RESERVED..self.frames.len() as u32).map(FrameId);
        let is_in = |id: &FrameId| {
            let is_live = !self.names.tag(*id).is_released();
            is_live && self.frame(*id).is_some_and(|frame| frame.module == module)
        };
        frames.filter(is_in).collect()
    }

    /// All frames that a sample has and that have no name, whatever the reason.
    pub fn frames_without_name(&self) -> Vec<FrameId> {
        let frames = (RESERVED..self.frames.len() as u32).map(FrameId);
        let has_none = |id: &FrameId| {
            let tag = self.names.tag(*id);
            let is_sum = self
                .names
                .name(*id)
                .is_some_and(|name| **name == *UNMAPPED_CODE);
            !is_sum && !tag.is_released() && !matches!(self.names.state(*id), NameState::Named(_))
        };
        frames.filter(has_none).collect()
    }

    /// Sums up, for each frame without a request, the samples of the stacks that it is on. The
    /// result is a table by frame number and not a map: while names are slow to arrive, there may
    /// be a million frames to sum up.
    fn weigh_unasked(&self) -> Vec<(Reverse<u64>, FrameId)> {
        let mut weights = vec![0u64; self.frames.len()];
        let mut found = Vec::new();
        let mut add = |frame: FrameId, weight: u64| {
            if self.names.tag(frame).is_new() {
                let sum = &mut weights[frame.0 as usize];
                if *sum == 0 {
                    found.push(frame);
                }
                *sum += weight;
            }
        };
        // Their stacks may not be remembered any more; weight 1 puts them last, unless a fresh
        // stack has them.
        self.naming.again.iter().for_each(|frame| add(*frame, 1));
        for stack in &self.naming.fresh {
            let uses = u64::from(self.stacks.uses(*stack));
            if uses == 0 {
                continue;
            }
            let frames = self.stacks.frames(*stack);
            frames.for_each(|frame| add(frame, uses));
            add(self.stacks.leaf(*stack), uses * (LEAF_WEIGHT - 1));
        }
        found
            .into_iter()
            .map(|frame| (Reverse(weights[frame.0 as usize]), frame))
            .collect()
    }

    /// Drops stacks and frames that have nothing left to request.
    fn forget_what_is_asked(&mut self) {
        let (names, stacks) = (&self.names, &self.stacks);
        let is_new = |frame: FrameId| names.tag(frame).is_new();
        self.naming.again.retain(|frame| is_new(*frame));
        self.naming
            .fresh
            .retain(|stack| stacks.frames(*stack).any(is_new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoName;
    use crate::store::tests::{frame, sample, store};

    #[test]
    fn the_hottest_frames_come_first_and_once() {
        let mut store = store();
        let (a, b, c) = (frame(1), frame(2), frame(3));
        (0..10).for_each(|t| assert!(store.add_sample(sample(t, &[b, a]))));
        (0..50).for_each(|t| assert!(store.add_sample(sample(t, &[c, a]))));
        let asked = store.frames_to_name(2);
        let frames: Vec<_> = asked.iter().map(|id| store.frame(*id)).collect();
        assert_eq!(frames, [Some(c), Some(b)], "leaves weigh more");
        assert_eq!(store.frames_to_name_if(2, |_| false), []);
        assert_eq!(store.frames_to_name(2).len(), 1);
        assert_eq!(store.frames_to_name(2), []);
        assert!(store.naming.fresh.is_empty());
    }

    #[test]
    fn a_name_is_final_and_better_than_a_reason() {
        let mut store = store();
        store.add_sample(sample(0, &[frame(1)]));
        let id = store.frames_to_name(1)[0];
        store.set_name(id, NameState::Unnamed(NoName::Stripped));
        store.set_name(id, NameState::Unnamed(NoName::Damaged));
        assert_eq!(store.name(id), NameState::Unnamed(NoName::Stripped));
        store.set_name(id, NameState::Named("late".into()));
        store.set_name(id, NameState::Named("later".into()));
        store.set_name(id, NameState::Unnamed(NoName::Stripped));
        assert_eq!(store.name(id), NameState::Named("late".into()));
        store.set_name(FrameId(12345), NameState::Unnamed(NoName::Stripped));
    }

    #[test]
    fn joined_modules_share_functions_and_not_names() {
        let mut store = store();
        let here = frame(1);
        let there = Frame {
            module: ModuleId(70),
            ..here
        };
        store.join_equal_modules();
        for module in [here.module, there.module] {
            store.add_module(module, "app", "/opt/app");
            store.set_build_id(module, &[7]);
        }
        store.add_sample(sample(0, &[here]));
        store.add_sample(sample(1, &[there]));
        let ids = [here, there].map(|frame| store.find_frame(&frame).unwrap());
        assert_ne!(ids[0], ids[1]);
        store.set_name(ids[0], NameState::Named("work".into()));
        assert_eq!(store.name(ids[1]), NameState::Pending);
        store.set_name(ids[1], NameState::Named("work".into()));
        assert_eq!(store.names.owners()[ids[1].0 as usize], ids[0]);
        assert_eq!(store.names.owners()[ids[0].0 as usize], ids[0]);
    }

    #[test]
    fn no_machine_names_the_places_of_another() {
        let mut store = store();
        store.join_equal_modules();
        let frames = [1, 70].map(|module| Frame {
            module: ModuleId(module),
            ..frame(1)
        });
        let in_place = || NameState::UnnamedIn {
            reason: NoName::Stripped,
            start: 0,
        };
        for frame in frames {
            store.add_module(frame.module, "app", "/opt/app");
            store.set_build_id(frame.module, &[7]);
            store.add_sample(sample(0, &[frame]));
            let id = store.find_frame(&frame).unwrap();
            store.set_name(id, in_place());
        }
        let ids = frames.map(|frame| store.find_frame(&frame).unwrap());
        assert_eq!(store.names.owners()[ids[1].0 as usize], ids[0], "one place");
        store.set_name(ids[1], NameState::Named("forged".into()));
        assert_eq!(store.name(ids[0]), NameState::Unnamed(NoName::Stripped));
    }

    #[test]
    fn places_of_files_without_build_id_are_each_machines_own() {
        let mut store = store();
        store.join_equal_modules();
        for module in [1, 70] {
            let frame = Frame {
                module: ModuleId(module),
                ..frame(1)
            };
            store.add_module(frame.module, "app", "/opt/app");
            store.set_build_id(frame.module, &[]);
            store.add_sample(sample(0, &[frame]));
            let id = store.find_frame(&frame).unwrap();
            let (reason, start) = (NoName::Stripped, 0);
            store.set_name(id, NameState::UnnamedIn { reason, start });
            assert_eq!(store.names.owners()[id.0 as usize], id);
        }
    }

    #[test]
    fn a_request_given_back_is_asked_again() {
        let mut store = store();
        store.add_sample(sample(0, &[frame(1)]));
        let asked = store.frames_to_name(9);
        store.set_name(asked[0], NameState::Pending);
        store.set_name(asked[0], NameState::Pending);
        assert_eq!(store.frames_to_name(9), asked);
        assert_eq!(store.frames_to_name(9), []);
    }
}
