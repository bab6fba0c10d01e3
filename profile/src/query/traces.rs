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

/// Number of samples that are collected before those of equal traces are added up. With twice as many
/// as there were different traces they are added up again, so that memory grows with the number of
/// traces, and not with that of samples.
const TOGETHER_MIN: usize = 1 << 20;

/// Sorts samples by their traces, and adds up those that are equal.
fn add_equal(samples: &mut Vec<(u64, u8, u64)>) {
    samples.sort_unstable();
    samples.dedup_by(|next, kept| {
        let is_equal = (next.0, next.1) == (kept.0, kept.1);
        if is_equal {
            kept.2 += next.2;
        }
        is_equal
    });
}

impl Selection {
    /// Returns all traces, in an order that depends on the store only.
    pub(crate) fn traces(&self) -> Vec<Trace> {
        self.traces_together(TOGETHER_MIN)
    }

    /// Returns all traces. Samples are added up whenever at least `together_min` were collected.
    fn traces_together(&self, together_min: usize) -> Vec<Trace> {
        let mut all: Vec<(u64, u8, u64)> = Vec::new();
        let mut room = together_min;
        self.visit(self.stamps, |sample| {
            let who = u64::from(sample.thread.0) << 32 | u64::from(sample.stack.0);
            all.push((who, sample.ending.number(), sample.weight));
            if all.len() == room {
                add_equal(&mut all);
                room = together_min.max(2 * all.len());
            }
        });
        add_equal(&mut all);
        let trace = |(who, ending, samples): (u64, u8, u64)| Trace {
            thread: ThreadSlot((who >> 32) as u32),
            stack: StackId(who as u32),
            ending: Ending::ALL[usize::from(ending)],
            samples,
        };
        all.into_iter().map(trace).collect()
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
            all.push(Timed {
                trace,
                cpu: sample.cpu,
                time_ns: sample.stamp.saturating_mul(STAMP_NS),
            });
        });
        all.sort_by_key(|timed| (timed.trace.thread.0, timed.time_ns));
        let key = |timed: &Timed| (timed.trace.thread, timed.time_ns);
        for run in all.chunk_by_mut(|a, b| key(a) == key(b)) {
            let step = STAMP_NS / run.len() as u64;
            for (at, timed) in (0..).zip(run) {
                timed.time_ns = timed.time_ns.saturating_add(at * step);
            }
        }
        all
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Cancel, Frame, FrameKind, Limits, ModuleId, NewSample, ProcessId, Query, Selection, Store,
    };
    use std::collections::BTreeMap;
    use test_support::Random;

    fn selection(samples: u64) -> Selection {
        let mut random = Random::new(9);
        let mut store = Store::new(Limits::default());
        store.add_module(ModuleId(1), "a", "/a");
        for at in 0..samples {
            let frame = Frame {
                module: ModuleId(1),
                address: 64 * random.below(20),
                kind: FrameKind::User,
            };
            store.add_sample(NewSample {
                time_ns: at * STAMP_NS / 3,
                cpu: 0,
                process: ProcessId(1),
                tid: random.below(5) as u32,
                comm: "a",
                frames: &[frame],
                kernel_frames: 0,
                ending: Ending::ALL[random.index(3)],
                weight: 1 + random.below(4),
            });
        }
        let selection = store.view().select(&Query::default(), &Cancel::new());
        selection.expect("nobody cancels it")
    }

    #[test]
    fn traces_are_the_same_however_often_they_are_added_up() {
        let selection = selection(3_000);
        let mut counted: BTreeMap<(u32, u32, u8), u64> = BTreeMap::new();
        selection.visit(selection.stamps, |sample| {
            let key = (sample.thread.0, sample.stack.0, sample.ending.number());
            *counted.entry(key).or_default() += sample.weight;
        });
        for together_min in [1, 7, 300, 2_999, 3_000, TOGETHER_MIN] {
            let traces = selection.traces_together(together_min);
            let key = |it: &Trace| (it.thread.0, it.stack.0, it.ending.number());
            let found: Vec<_> = traces.iter().map(|it| (key(it), it.samples)).collect();
            let wanted: Vec<_> = counted
                .iter()
                .map(|(key, samples)| (*key, *samples))
                .collect();
            assert_eq!(found, wanted, "{together_min}");
        }
    }

    #[test]
    fn times_of_a_thread_rise_within_each_stamp() {
        let timed = selection(3_000).timed();
        assert_eq!(timed.len(), 3_000);
        for pair in timed.windows(2) {
            let [a, b] = pair else { unreachable!() };
            let is_later = (a.trace.thread, a.time_ns) < (b.trace.thread, b.time_ns);
            assert!(is_later, "{a:?} {b:?}");
        }
        let stamp = |timed: &Timed| (timed.trace.thread, timed.time_ns / STAMP_NS);
        for run in timed.chunk_by(|a, b| stamp(a) == stamp(b)) {
            let step = STAMP_NS / run.len() as u64;
            for (at, timed) in (0..).zip(run) {
                assert_eq!(timed.time_ns % STAMP_NS, at * step);
            }
        }
    }
}
