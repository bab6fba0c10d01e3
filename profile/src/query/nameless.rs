//! Frames without a name, by the module that they are in.

use super::selection::{STEP, Selection};
use super::{Cancel, Cancelled};
use crate::few;
use crate::tables::ThreadSlot;
use crate::{FrameId, FrameKind, ModuleId, NoName};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// The frames of one module that have no name for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nameless {
    /// The module's number.
    pub module_id: ModuleId,
    /// Short name of the module: the file's last path component.
    pub module: Arc<str>,
    /// The whole path of the module, if it has one.
    pub path: Arc<str>,
    /// Build-id of the module; empty if there is none, or if it is unknown.
    pub build_id: Arc<[u8]>,
    /// On which side of the kernel boundary its code is.
    pub kind: FrameKind,
    /// Why the frames have no name.
    pub reason: NoName,
    /// Number of frames of samples, each occurrence counted.
    pub frames: u64,
    /// The process with most of them; a running one if there is any.
    pub pid: Option<u32>,
    /// Name of that process.
    pub comm: Arc<str>,
}

/// Key by which frames are counted, by number of the module.
type Key = (ModuleId, NoName);

impl Selection {
    /// Returns the frames without names by module and reason, most frames first. They add up to
    /// [`Completeness::unnamed`](crate::Completeness).
    pub fn nameless(&self, cancel: &Cancel) -> Result<Vec<Nameless>, Cancelled> {
        let mut numbers: HashMap<Key, usize> = HashMap::new();
        let mut rows: Vec<Nameless> = Vec::new();
        // For each stack, the rows it has frames of, and how many.
        let mut of_stack: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.shape_of.len()];
        for (at, entry) in self.entries.iter().enumerate() {
            if at.is_multiple_of(STEP) {
                cancel.check()?;
            }
            let here = &mut of_stack[entry.stack.0 as usize];
            if !entry.shape.is_kept() || !here.is_empty() {
                continue;
            }
            for (row, frame) in self.nameless_frames(entry.stack) {
                let key = (row.module_id, row.reason);
                let next = rows.len();
                let number = *numbers.entry(key).or_insert(next);
                if number == next {
                    rows.push(self.describe_nameless(row, frame));
                }
                match here.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, frames)) => *frames += 1,
                    None => here.push((number, 1)),
                }
            }
        }
        self.count_nameless(&of_stack, &mut rows);
        few::sort_by(&mut rows, |a, b| {
            let key = |row: &Nameless| (Reverse(row.frames), row.module_id, row.reason);
            key(a).cmp(&key(b))
        });
        Ok(rows)
    }

    /// The frames of a stack that have no name.
    fn nameless_frames(
        &self,
        stack: crate::intern::StackId,
    ) -> impl Iterator<Item = (Row, FrameId)> {
        let tables = &*self.view.tables;
        let tags = tables.names.tags();
        let is_missing = tables.stacks.leaf(stack) == crate::intern::NO_STACK;
        let frames = tables.stacks.frames(stack);
        frames.filter_map(move |id| {
            let reason = tags[id.0 as usize].reason()?;
            // What stands for a missing stack does not count as a frame.
            let is_frame = !(is_missing && id == crate::intern::NO_STACK);
            let module_id = tables.frames.get(id)?.module;
            is_frame.then_some((Row { module_id, reason }, id))
        })
    }

    /// An empty row; its kind is that of the first frame met.
    fn describe_nameless(&self, row: Row, frame: FrameId) -> Nameless {
        let module = self.view.tables.modules.get(row.module_id);
        Nameless {
            module_id: row.module_id,
            module: module.name,
            path: module.path,
            build_id: module.build_id,
            kind: self.view.frame(frame).map_or(FrameKind::User, |f| f.kind),
            reason: row.reason,
            frames: 0,
            pid: None,
            comm: Arc::default(),
        }
    }

    /// Counts the frames of each row, and finds the process that has most of them.
    fn count_nameless(&self, of_stack: &[Vec<(usize, u64)>], rows: &mut [Nameless]) {
        let mut by_thread: HashMap<(usize, u32), u64> = HashMap::new();
        self.visit(self.stamps, |sample| {
            for (row, frames) in &of_stack[sample.stack.0 as usize] {
                *by_thread.entry((*row, sample.thread.0)).or_default() += frames * sample.weight;
            }
        });
        let table = &self.view.tables.processes;
        let mut by_process: HashMap<(usize, crate::ProcessId), u64> = HashMap::new();
        for ((row, thread), frames) in by_thread {
            rows[row].frames += frames;
            let process = table.thread(ThreadSlot(thread)).process;
            *by_process.entry((row, process)).or_default() += frames;
        }
        // Among equal processes the one with the lowest number, so that the result is the same each
        // time.
        let mut best: Vec<Option<(bool, u64, Reverse<u32>)>> = vec![None; rows.len()];
        for ((row, id), frames) in by_process {
            let Some(process) = table.get(id) else {
                continue;
            };
            let rank = Some((!process.exited, frames, Reverse(process.pid)));
            if rank > best[row] {
                best[row] = rank;
                rows[row].pid = Some(process.pid);
                rows[row].comm = Arc::clone(&process.comm);
            }
        }
    }
}

/// The key that identifies a row.
struct Row {
    module_id: ModuleId,
    reason: NoName,
}
