//! Reads tasks of asyncio in pieces of a thread's memory. `probe-ebpf/src/bpf/python/tasks.rs` does
//! the same while the thread is stopped.

use super::chain::{TAG, code_entry};
use super::pieces::Pieces;
use probe_ebpf::python::{
    COROUTINE_FRAME, Entry, IS_TEXT, Layout, NONE, RUNNING_MAX, TASK_STEPS, TASK_TEXT, TEXT_ASCII,
    TEXT_LENGTH, TEXT_STATE, TEXT_WIDE, TYPE_FLAGS, ThreadState, dict, object,
};

/// Maximum number of tasks that await each other and are read: each may be in five other pages, and
/// there is a total of a hundred pages, including those of frames.
const AWAITING_HERE: usize = 6;

/// Returns the entries of the tasks that the thread may run, and of those that await them. The list
/// ends at what cannot be read, or was not read yet.
pub fn entries(pieces: &Pieces, layout: &Layout, thread: &ThreadState) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut steps = TASK_STEPS;
    for mut task in running(pieces, layout, thread).unwrap_or_default() {
        let (mut awaits, mut depth) = (0, 0);
        while task != 0 && steps > 0 {
            steps -= 1;
            let Some(found) = one(pieces, layout, task, awaits) else {
                break;
            };
            awaits |= u64::from(!found.entries.is_empty());
            entries.extend(found.entries);
            task = found.next;
            depth += 1;
            if depth > AWAITING_HERE && task != 0 {
                entries.push(Entry::several(0));
                break;
            }
        }
    }
    entries
}

/// Returns the tasks that the thread may run.
fn running(pieces: &Pieces, layout: &Layout, thread: &ThreadState) -> Option<Vec<u64>> {
    let tasks = &layout.tasks;
    if tasks.name == NONE {
        return None;
    }
    if tasks.running != NONE {
        let task = pieces.word(thread.address.wrapping_add(tasks.running.into()))?;
        return Some(vec![task]);
    }
    let keys = pieces.word(tasks.running_by_loop.wrapping_add(dict::KEYS))?;
    let [bits] = pieces.bytes(keys.wrapping_add(dict::INDEX_BITS))?;
    let used = pieces.word(keys.wrapping_add(dict::USED))?;
    let entries = keys.wrapping_add(dict::HEAD).wrapping_add(1 << (bits & 31));
    let value = |number: usize| {
        let word = dict::WORDS * number + dict::VALUE;
        pieces.word(entries.wrapping_add(8 * word as u64))
    };
    (0..RUNNING_MAX.min(used as usize)).map(value).collect()
}

/// A task or other future.
struct Found {
    /// Its entries; `None` if it is not a task.
    entries: Vec<Entry>,
    /// The address of the future or task that awaits it; 0 if there is none, or it is unknown.
    next: u64,
}

fn one(pieces: &Pieces, layout: &Layout, task: u64, awaits: u64) -> Option<Found> {
    let tasks = &layout.tasks;
    let flag = |at: u32| match at {
        NONE => Some(None),
        at => {
            let [byte] = pieces.bytes::<1>(task.wrapping_add(at.into()))?;
            Some(Some(byte & 1 != 0))
        }
    };
    let mut entries = Vec::new();
    if flag(tasks.is_task)? != Some(false) {
        entries = of_task(pieces, layout, task, awaits)?;
    }
    let mut next = awaiting(pieces, layout, task).unwrap_or(0);
    if flag(tasks.is_set)? == Some(true) {
        let count = pieces.word(next.wrapping_add(object::SET_SIZE))?;
        entries.push(Entry::several(count));
        next = 0;
    }
    Some(Found { entries, next })
}

fn of_task(pieces: &Pieces, layout: &Layout, task: u64, awaits: u64) -> Option<Vec<Entry>> {
    let word = |object: u64, at: u32| pieces.word(object.wrapping_add(at.into()));
    let coroutine = word(task, layout.tasks.coroutine)?;
    let frame = coroutine.wrapping_add(COROUTINE_FRAME.into());
    let name = word(task, layout.tasks.name)?;
    let kind = pieces.word(name.wrapping_add(object::TYPE))?;
    let flags = pieces.word(kind.wrapping_add(TYPE_FLAGS))?;
    let (length, state) = (
        word(name, TEXT_LENGTH)? as u32,
        word(name, TEXT_STATE)? as u32,
    );
    let has_name = flags >> IS_TEXT & 1;
    let is_ascii = state >> 6 & 1 != 0;
    let start = name.wrapping_add(if is_ascii { TEXT_ASCII } else { TEXT_WIDE });
    let bytes = u64::from(length) * u64::from(state >> 2 & 7) * has_name;
    let mut text = [0; TASK_TEXT];
    for (at, byte) in (0..bytes).zip(&mut text) {
        [*byte] = pieces.bytes::<1>(start.wrapping_add(at))?;
    }
    let pair = |pair: &[u8; 16]| {
        let words = pair.as_chunks::<8>().0;
        Entry::from_words(u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
    };
    let mut entries = vec![Entry::task(frame, awaits, has_name, length, state)];
    entries.extend(text.as_chunks().0.iter().map(pair));
    let code = word(frame, layout.frame_code)? & !TAG;
    let instruction = word(frame, layout.frame_instruction)?;
    let at = code_entry(pieces, layout, (code, instruction, 0));
    entries.push(at.unwrap_or(Entry::from_words(0, 0)));
    Some(entries)
}

fn awaiting(pieces: &Pieces, layout: &Layout, task: u64) -> Option<u64> {
    let tasks = &layout.tasks;
    let word = |object: u64, at: u64| pieces.word(object.wrapping_add(at));
    if tasks.awaited_by != NONE {
        return word(task, tasks.awaited_by.into());
    }
    let callback = word(task, tasks.callback.into()).filter(|callback| *callback != 0)?;
    let kind = word(task, object::TYPE)?;
    let is_it = |other: u64, future: u64| {
        let waits_for = word(other, tasks.waits_for.into());
        future != 0 && waits_for == Some(future) && word(other, object::TYPE) == Some(kind)
    };
    let waiter = |method: u64, future: u64| {
        word(method, object::BOUND_TO).filter(|other| is_it(*other, future))
    };
    if let Some(found) = waiter(callback, task) {
        return Some(found);
    }
    let of_function = || {
        let cell = word(word(callback, object::CLOSURE)?, object::CELL)?;
        let future = word(cell, object::CELL_CONTENT)?;
        waiter(word(future, tasks.callback.into())?, future)
    };
    if let Some(found) = of_function() {
        return Some(found);
    }
    let group = word(callback, object::BOUND_TO)?;
    let values = match tasks.group_values {
        NONE => (pieces.word(group.wrapping_sub(object::VALUES_BEFORE))? | 1).wrapping_add(1),
        at => group.wrapping_add(at.into()),
    };
    let (parent, future) = (
        word(values, object::GROUP_PARENT)?,
        word(values, object::GROUP_DONE)?,
    );
    is_it(parent, future).then_some(parent)
}
