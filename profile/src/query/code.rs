//! The *code of one function*: which of its addresses samples hit, and which of
//! them call.
//!
//! A sample hits the code of a function if the innermost place on its stack is
//! there: as the function itself, or as one that was inlined into it. Both are
//! counted at each address; the first add up to the function's self samples.

use super::selection::{Entry, STEP, Selection};
use super::shape::Step;
use super::{Cancel, Cancelled};
use crate::tables::Link;
use crate::{FrameId, FrameKind, FunctionId, ModuleId};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// The samples of a function by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionCode {
    /// With it on top of the stack.
    pub self_samples: u64,
    /// With something on top that was inlined into it.
    pub inlined_samples: u64,
    /// With it anywhere on the stack.
    pub total_samples: u64,
    /// By module and address.
    pub addresses: Vec<CodeAddress>,
    /// Processes that have it on a stack: those that run first, then by samples.
    pub pids: Vec<u32>,
}

/// One address of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeAddress {
    /// The frame that stands for it.
    pub frame: FrameId,
    /// The module that it is in.
    pub module: ModuleId,
    /// Where in the module, inside an instruction.
    pub address: u64,
    /// On which side of the kernel boundary it is.
    pub kind: FrameKind,
    /// Whose code it is: another function where this one is inlined.
    pub host: FunctionId,
    /// Samples that hit there, in the function's own code.
    pub self_samples: u64,
    /// Samples that hit there, in something that was inlined into the function.
    pub inlined_samples: u64,
    /// Samples that hit there, or something that is called from there; each
    /// once, however often the function is on its stack.
    pub total_samples: u64,
    /// Where in source text it is, as a place of this function.
    pub place: Option<CodePlace>,
    /// What was inlined there into this function, innermost first.
    pub inlined: Vec<(FunctionId, Option<CodePlace>)>,
}

/// What a part of a function's code has in all: an instruction, a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeGroup {
    /// Samples that hit there, or something that is called from there; each
    /// once.
    pub total_samples: u64,
    /// What is called from there, by samples, falling.
    pub calls: Vec<(FunctionId, u64)>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePlace {
    /// `None` where it is not known.
    pub file: Option<Arc<str>>,
    /// 0 where it is not known.
    pub line: u32,
}

impl CodeAddress {
    /// Samples that hit there.
    pub fn samples(&self) -> u64 {
        self.self_samples + self.inlined_samples
    }
}

/// What one frame of the function has: samples of its own code, of functions inlined
/// there, and of all that it is on the stack of.
#[derive(Debug, Default)]
struct Count {
    own: u64,
    inlined: u64,
    total: u64,
}

/// Processes that are named at most.
const PIDS_MAX: usize = 8;

impl Selection {
    /// Where the function that `frame` belongs to has its samples. The filter
    /// decides which stacks count and whom they are charged to; places it hides
    /// are found all the same.
    pub fn code(&self, frame: FrameId, cancel: &Cancel) -> Result<FunctionCode, Cancelled> {
        let function = self.view.function_of(frame);
        let mut found = FunctionCode::default();
        let mut counts: HashMap<FrameId, Count> = HashMap::new();
        let mut seen: Vec<FrameId> = Vec::new();
        for entry in self.entries_with(function, cancel) {
            let entry = entry?;
            let samples = entry.samples;
            found.total_samples += samples;
            let leaf = self.leaf(entry.shape);
            let mut top_is_found = false;
            seen.clear();
            for frame in self.frames(entry) {
                // The innermost frame that has the function to which the stack is
                // charged. Frames inside of it are hidden by the filter.
                if !top_is_found && let Some(at) = self.position(frame, leaf, 0) {
                    top_is_found = true;
                    if self.position(frame, function, at).is_some() {
                        let count = counts.entry(frame).or_default();
                        let is_own = leaf == function;
                        found.self_samples += if is_own { samples } else { 0 };
                        found.inlined_samples += if is_own { 0 } else { samples };
                        count.own += if is_own { samples } else { 0 };
                        count.inlined += if is_own { 0 } else { samples };
                    }
                }
                // Recursion goes through a frame several times, and counts once.
                if self.position(frame, function, 0).is_some() && !seen.contains(&frame) {
                    seen.push(frame);
                    counts.entry(frame).or_default().total += samples;
                }
            }
        }
        found.addresses = counts
            .into_iter()
            .filter_map(|(frame, count)| self.code_address(function, frame, count))
            .collect();
        found
            .addresses
            .sort_unstable_by_key(|a| (a.module, a.address));
        found.pids = self.pids_with(function, cancel)?;
        Ok(found)
    }

    /// What parts of a function's code have, and what is called from each. `parts` says
    /// to which part a frame belongs, by the part's number; frames that are not in it
    /// are left out. A sample counts once in each part that it has a frame of.
    pub fn code_groups(
        &self,
        frame: FrameId,
        parts: &HashMap<FrameId, usize>,
        cancel: &Cancel,
    ) -> Result<Vec<CodeGroup>, Cancelled> {
        let function = self.view.function_of(frame);
        let count = parts.values().map(|part| part + 1).max().unwrap_or(0);
        let mut totals = vec![0; count];
        let mut calls: HashMap<(usize, FunctionId), u64> = HashMap::new();
        let mut seen: Vec<usize> = Vec::new();
        let mut called: Vec<(usize, FunctionId)> = Vec::new();
        for entry in self.entries_with(function, cancel) {
            let entry = entry?;
            seen.clear();
            called.clear();
            let mut callee = None;
            for frame in self.frames(entry) {
                // What this frame called is the frame seen before it, as they come
                // innermost first.
                let above = callee.replace(self.view.function_of(frame));
                let Some(part) = parts.get(&frame).copied() else {
                    continue;
                };
                if !seen.contains(&part) {
                    seen.push(part);
                    totals[part] += entry.samples;
                }
                if let Some(call) = above.map(|callee| (part, callee))
                    && !called.contains(&call)
                {
                    called.push(call);
                    *calls.entry(call).or_default() += entry.samples;
                }
            }
        }
        let group = |total_samples| CodeGroup {
            total_samples,
            calls: Vec::new(),
        };
        let mut groups: Vec<CodeGroup> = totals.into_iter().map(group).collect();
        for ((part, callee), samples) in calls {
            groups[part].calls.push((callee, samples));
        }
        for group in &mut groups {
            let order = |(callee, samples): &(FunctionId, u64)| (Reverse(*samples), *callee);
            group.calls.sort_unstable_by_key(order);
        }
        Ok(groups)
    }

    /// The entries that have a function, with a look at the flag now and then.
    fn entries_with<'a>(
        &'a self,
        function: FunctionId,
        cancel: &'a Cancel,
    ) -> impl Iterator<Item = Result<&'a Entry, Cancelled>> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(move |(at, entry)| {
            if at.is_multiple_of(STEP) && cancel.is_cancelled() {
                return Some(Err(Cancelled));
            }
            let mut shape = self.shape(entry.shape).iter();
            let has_it = shape.any(|step| Step(*step).function() == function);
            has_it.then_some(Ok(entry))
        })
    }

    /// Innermost first, whatever the filter hides of them.
    fn frames(&self, entry: &Entry) -> impl Iterator<Item = FrameId> {
        let frames = self.view.tables.stacks.frames(entry.stack);
        frames.iter().copied().map(FrameId)
    }

    /// Where in the chain of a frame, from `start` on, a function is.
    fn position(&self, frame: FrameId, function: FunctionId, start: usize) -> Option<usize> {
        let inlined = self.view.tables.sources.inlined_in(frame);
        let own = [self.view.function_of(frame)];
        let mut steps = inlined
            .iter()
            .map(|link| link.function)
            .chain(own)
            .enumerate()
            .skip(start);
        steps.find(|(_, step)| *step == function).map(|(at, _)| at)
    }

    /// A frame that has the function in its chain, with what was counted for it.
    fn code_address(&self, function: FunctionId, id: FrameId, count: Count) -> Option<CodeAddress> {
        let sources = &self.view.tables.sources;
        let frame = self.view.frame(id)?;
        let chain = sources.chain(id);
        let at = self.position(id, function, 0)?;
        let place = |link: &Link| {
            let file = sources.file(*link).cloned();
            let is_known = file.is_some() || link.line > 0;
            is_known.then_some(CodePlace {
                file,
                line: link.line,
            })
        };
        let inlined = chain.iter().take(at);
        Some(CodeAddress {
            frame: id,
            module: frame.module,
            address: frame.address,
            kind: frame.kind,
            host: self.view.function_of(id),
            self_samples: count.own,
            inlined_samples: count.inlined,
            total_samples: count.total,
            place: chain.get(at).and_then(place),
            inlined: inlined.map(|link| (link.function, place(link))).collect(),
        })
    }

    /// At most [`PIDS_MAX`] pids of processes that have the function on a stack.
    fn pids_with(&self, function: FunctionId, cancel: &Cancel) -> Result<Vec<u32>, Cancelled> {
        cancel.check()?;
        let table = &self.view.tables.processes;
        let with_it = self.stacks_with(function);
        let mut threads = vec![0u64; self.threads.len()];
        self.visit(self.stamps, |sample| {
            if with_it[sample.stack.0 as usize] {
                threads[sample.thread.0 as usize] += sample.weight;
            }
        });
        let mut processes: HashMap<u32, (bool, u64)> = HashMap::new();
        let threads = (0..).map(crate::tables::ThreadSlot).zip(threads);
        for (slot, samples) in threads.filter(|(_, samples)| *samples > 0) {
            if let Some(process) = table.get(table.thread(slot).process) {
                let sum = processes.entry(process.pid).or_insert((true, 0));
                // A pid may have had several lives: it is ended only if all of them
                // are.
                sum.0 &= process.exited;
                sum.1 += samples;
            }
        }
        let mut pids: Vec<(bool, Reverse<u64>, u32)> = processes
            .into_iter()
            .map(|(pid, (exited, samples))| (exited, Reverse(samples), pid))
            .collect();
        pids.sort_unstable();
        Ok(pids
            .into_iter()
            .take(PIDS_MAX)
            .map(|(.., pid)| pid)
            .collect())
    }
}
