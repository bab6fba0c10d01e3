//! *Traces*: the selected samples as whole stacks, counted by thread. Used to write files in
//! formats that hold more than names.

use super::selection::Selection;
use crate::intern::{RESERVED, StackId, stopped};
use crate::query::shape::Step;
use crate::tables::ThreadSlot;
use crate::time::STAMP_NS;
use crate::{Ending, FrameId, FunctionId};

/// The selected samples of one thread with one stack and one ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) thread: ThreadSlot,
    pub(crate) stack: StackId,
    pub(crate) ending: Ending,
    pub(crate) samples: u64,
}

/// One selected sample with its time. The count of its trace is the sample's weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) trace: Trace,
    pub(crate) cpu: u16,
    pub(crate) time_ns: u64,
}

/// One place on a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TraceFrame {
    /// A frame as it was sampled, with everything that is inlined there.
    Frame(FrameId),
    /// A function, where the filter changed the stack, or where there is no stack.
    Function(FunctionId),
}

impl Selection {
    /// Returns all traces, in an order that depends on the store only.
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

    /// Returns every sample by itself, thread by thread, in the order of time. Samples of one stamp
    /// are spread evenly over it, as stored times are not finer.
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

    /// The functions of a trace, outermost first, and whether each is inlined; before them, if the
    /// walk did not reach the root, the reason.
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

    /// The frames of a trace, innermost first; after them, if the walk did not reach the root, the
    /// reason.
    pub(crate) fn places(&self, trace: &Trace) -> Vec<TraceFrame> {
        let tables = &*self.view.tables;
        let frames = tables.stacks.frames(trace.stack);
        let shape = self.shape(self.shape_of[trace.stack.0 as usize]);
        let owner = |frame: FrameId| self.view.function_of(frame);
        let all = frames;
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
        // The filter removed nothing except what is folded.
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
