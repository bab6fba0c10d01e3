//! The *code of one function*: which of its addresses samples hit, and which of its addresses call
//! other functions.
//!
//! A sample hits the code of a function if the innermost place on its stack is there: in the
//! function itself, or in one that was inlined into it. Both are counted at each address; the first
//! kind adds up to the function's self samples.

use super::selection::{Entry, STEP, Selection};
use super::shape::Step;
use super::{Cancel, Cancelled};
use crate::tables::Link;
use crate::{FrameId, FrameKind, FunctionId, ModuleId, few};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// The samples of a function by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionCode {
    /// Samples with the function on top of the stack.
    pub self_samples: u64,
    /// Samples with a function on top that was inlined into it.
    pub inlined_samples: u64,
    /// Samples with the function anywhere on the stack.
    pub total_samples: u64,
    /// Its sampled addresses, by module and address.
    pub addresses: Vec<CodeAddress>,
    /// Processes that have it on a stack: running ones first, then by samples.
    pub pids: Vec<u32>,
}

/// One address of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeAddress {
    /// The frame that stands for it.
    pub frame: FrameId,
    /// The module that it is in.
    pub module: ModuleId,
    /// Address in the module, inside an instruction.
    pub address: u64,
    /// On which side of the kernel boundary it is.
    pub kind: FrameKind,
    /// The function that contains the code: another one where this one is inlined.
    pub host: FunctionId,
    /// Samples that hit there, in the function's own code.
    pub self_samples: u64,
    /// Samples that hit there, in something that was inlined into the function.
    pub inlined_samples: u64,
    /// Samples that hit there, or in something that is called from there. A sample counts once,
    /// however often the function is on its stack.
    pub total_samples: u64,
    /// Source location of this function there.
    pub place: Option<CodePlace>,
    /// Functions that were inlined there into this function, innermost first.
    pub inlined: Vec<(FunctionId, Option<CodePlace>)>,
}

/// The counts of a part of a function's code: an instruction, a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeGroup {
    /// Samples that hit there, or in something that is called from there; each sample counts once.
    pub total_samples: u64,
    /// Functions called from there, with their samples, most first.
    pub calls: Vec<(FunctionId, u64)>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePlace {
    /// Path of the file; `None` if unknown.
    pub file: Option<Arc<str>>,
    /// Line; 0 if unknown.
    pub line: u32,
}

impl CodeAddress {
    /// Samples that hit there.
    pub fn samples(&self) -> u64 {
        self.self_samples + self.inlined_samples
    }
}

/// The counts of one frame of the function: samples of its own code, of functions inlined there,
/// and of all stacks that it is on.
#[derive(Debug, Default)]
struct Count {
    own: u64,
    inlined: u64,
    total: u64,
}

/// Maximum number of processes in the result.
const PIDS_MAX: usize = 8;

impl Selection {
    /// Counts the samples of the function that `frame` belongs to, by address. The filter decides
    /// which stacks count and which function they are charged to; addresses that it hides are found
    /// all the same.
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
                // Finds the innermost frame of the function to which the stack is charged. Frames
                // inside of it are hidden by the filter.
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
                // A recursive stack contains a frame several times, but counts once.
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
        few::sort_by_key(&mut found.addresses, |a| (a.module, a.address));
        found.pids = self.pids_with(function, cancel)?;
        Ok(found)
    }

    /// Counts the parts of a function's code and the functions called from each. `parts` maps a
    /// frame to the number of its part; other frames are ignored. A sample counts once in each part
    /// that it has a frame of.
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
                // Frames come innermost first, so this frame called the frame of the previous step.
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
            few::sort_by_key(&mut group.calls, order);
        }
        Ok(groups)
    }

    /// The entries that have a function; checks the cancel flag now and then.
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

    /// The frames of an entry, innermost first, including those that the filter hides.
    fn frames(&self, entry: &Entry) -> impl Iterator<Item = FrameId> {
        self.view.tables.stacks.frames(entry.stack)
    }

    /// Position of a function in the chain of a frame, searched from `start` on.
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

    /// The address of a frame that has the function in its chain, with its counts.
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

    /// Pids of processes that have the function on a stack, at most [`PIDS_MAX`].
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
                // Several processes may have had the same pid: it counts as ended only if all of
                // them have.
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
