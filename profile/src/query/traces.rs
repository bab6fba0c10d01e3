//! *Traces*: the selected samples as whole stacks, counted by thread. What
//! files are written from that hold more than names.

use super::selection::Selection;
use crate::intern::{RESERVED, StackId, stopped};
use crate::query::shape::Step;
use crate::tables::ThreadSlot;
use crate::time::STAMP_NS;
use crate::{Ending, FrameId, FunctionId};

/// The selected samples of one thread with one stack that ended in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) thread: ThreadSlot,
    pub(crate) stack: StackId,
    pub(crate) ending: Ending,
    pub(crate) samples: u64,
}

/// One selected sample with its time. Its trace counts what it weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) trace: Trace,
    pub(crate) cpu: u16,
    pub(crate) time_ns: u64,
}

/// One place on a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TraceFrame {
    /// As it was sampled, with all that is inlined there.
    Frame(FrameId),
    /// Of a stack that the filter changed, or of none.
    Function(FunctionId),
}

impl Selection {
    /// In an order that depends on the store only.
    pub(crate) fn traces(&self) -> Vec<Trace> {
        let mut all: Vec<(u64, u8, u64)> = Vec::new();
        self.visit(self.stamps, |sample| {
            let who = u64::from(sample.thread.0) << 32 | u64::from(sample.stack.0);
            all.push((who, sample.ending.number(), sample.weight));
        });
        all.sort_unstable();
        let runs = all.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        runs.map(|run| Trace {
            thread: ThreadSlot((run[0].0 >> 32) as u32),
            stack: StackId(run[0].0 as u32),
            ending: Ending::ALL[usize::from(run[0].1)],
            samples: run.iter().map(|(_, _, weight)| weight).sum(),
        })
        .collect()
    }

    /// Every sample by itself, thread after thread, in the order of time. Those
    /// of one stamp are spread over it, as nothing finer is kept.
    pub(crate) fn timed(&self) -> Vec<Timed> {
        let mut all = Vec::new();
        self.visit(self.stamps, |sample| {
            let trace = Trace {
                thread: sample.thread,
                stack: sample.stack,
                ending: sample.ending,
                samples: sample.weight,
            };
            all.push((sample.stamp, sample.cpu, trace));
        });
        all.sort_by_key(|(stamp, _, trace)| (trace.thread.0, *stamp));
        let runs = all.chunk_by(|a, b| (a.0, a.2.thread) == (b.0, b.2.thread));
        runs.flat_map(|run| {
            let step = STAMP_NS / run.len() as u64;
            (0..).zip(run).map(move |(at, (stamp, cpu, trace))| Timed {
                trace: *trace,
                cpu: *cpu,
                time_ns: stamp.saturating_mul(STAMP_NS).saturating_add(at * step),
            })
        })
        .collect()
    }

    /// The functions of a trace, outermost first, and which of them are inlined;
    /// before them why the walk did not reach the root.
    pub(crate) fn functions_of(&self, trace: &Trace) -> Vec<(FunctionId, bool)> {
        let is_cut = trace.ending.is_user_stack() && !trace.ending.is_whole();
        let cut = is_cut.then(|| (stopped(trace.ending), false));
        let shape = self.shape(self.shape_of[trace.stack.0 as usize]);
        let steps = shape
            .iter()
            .rev()
            .map(|step| Step(*step))
            .map(|step| (step.function(), step.is_inlined()));
        cut.into_iter().chain(steps).collect()
    }

    /// Innermost first; at the end why the walk did not reach the root.
    pub(crate) fn places(&self, trace: &Trace) -> Vec<TraceFrame> {
        let tables = &*self.view.tables;
        let frames = tables.stacks.frames(trace.stack);
        let shape = self.shape(self.shape_of[trace.stack.0 as usize]);
        let owner = |frame: FrameId| self.view.function_of(frame);
        let all = frames.iter().copied().map(FrameId);
        let folding = self
            .internals
            .as_ref()
            .filter(|internals| internals.fold_in(all.clone().map(owner)));
        let is_shown = |frame: &FrameId| folding.is_none_or(|it| !it.is_own(owner(*frame)));
        let shown: Vec<FrameId> = all.filter(is_shown).collect();
        let of_wait = self.plumbing.as_ref().map_or(0..0, |plumbing| {
            plumbing.folded(shown.iter().map(|frame| owner(*frame)))
        });
        let shown = shown
            .iter()
            .copied()
            .enumerate()
            .filter_map(|(at, frame)| (!of_wait.contains(&at)).then_some(frame));
        let steps = shown.clone().flat_map(|frame| {
            let inlined = tables.sources.inlined_in(frame).iter();
            inlined.map(|link| link.function).chain([owner(frame)])
        });
        // Nothing but what is folded is missing.
        let is_whole = steps.eq(shape.iter().map(|step| Step(*step).function()));
        let mut places: Vec<TraceFrame> = if is_whole {
            shown.map(place).collect()
        } else {
            shape
                .iter()
                .map(|step| TraceFrame::Function(Step(*step).function()))
                .collect()
        };
        if trace.ending.is_user_stack() && !trace.ending.is_whole() {
            places.push(TraceFrame::Function(stopped(trace.ending)));
        }
        places
    }
}

fn place(frame: FrameId) -> TraceFrame {
    if frame.0 < RESERVED {
        TraceFrame::Function(frame)
    } else {
        TraceFrame::Frame(frame)
    }
}
