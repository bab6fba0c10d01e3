//! The asyncio tasks behind the Python frames of the current thread: the task that it runs, the
//! one that awaits that task, and so on.
//!
//! One thread runs all tasks of an event loop. It is interrupted, so meanwhile no task starts or
//! stops awaiting another. User space judges whether a task is the one that this thread runs: then
//! its coroutine's frame is one of the thread's frames.

use super::super::maps::Scratch;
use super::{Place, TAG, code_entry, read};
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::limits::FRAMES_MAX;
use probe_ebpf::python::{
    AWAITING_MAX, COROUTINE_FRAME, Entry, IS_TEXT, Layout, NONE, RUNNING_MAX, TASK_ENTRIES,
    TASK_STEPS, TASK_TEXT, TEXT_ASCII, TEXT_LENGTH, TEXT_STATE, TEXT_WIDE, TYPE_FLAGS, TaskLayout,
    dict, object,
};

const RUNNING_BYTES: usize = RUNNING_MAX * dict::WORDS * 8;

/// Writes the tasks behind the frames of a thread; `thread` is the address of its state.
#[inline(always)]
pub fn add(scratch: *mut Scratch, layout: &Layout, thread: u64) {
    if layout.tasks.name == NONE {
        return;
    }
    begin(scratch, &layout.tasks, thread);
    follow(Place { scratch, layout });
}

#[cfg(not(feature = "without_loop"))]
#[inline(always)]
fn follow(mut place: Place) {
    let body = one_step as *mut c_void;
    // SAFETY: the body takes its state from the maps that `place` points to.
    unsafe { helpers::bpf_loop(TASK_STEPS as u32, body, &raw mut place as *mut c_void, 0) };
}

#[cfg(feature = "without_loop")]
#[inline(always)]
fn follow(_place: Place) {
    super::super::without_loop::repeat(TASK_STEPS as u32, |_| python_task());
}

/// Takes one step, to one task or other future.
#[cfg(feature = "without_loop")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn python_task() -> u64 {
    super::in_place(one_step)
}

/// Finds the tasks one of which the thread may run: the running task of each event loop.
#[inline(always)]
fn begin(scratch: *mut Scratch, tasks: &TaskLayout, thread: u64) {
    // SAFETY: the pointer comes from a map and was checked there.
    let python = unsafe { &mut (*scratch).python };
    python.task = 0;
    python.running_next = 0;
    if tasks.running != NONE {
        python.running[dict::VALUE] = read(thread.wrapping_add(tasks.running as u64));
        python.running_count = 1;
        return;
    }
    let keys = read(tasks.running_by_loop.wrapping_add(dict::KEYS));
    let bits = read(keys.wrapping_add(dict::INDEX_BITS)) & 31;
    let entries = keys.wrapping_add(dict::HEAD).wrapping_add(1 << bits);
    let used = read(keys.wrapping_add(dict::USED));
    let running = &raw mut python.running as *mut c_void;
    // SAFETY: there is room for that many bytes; the helper checks the address, or leaves zeros.
    unsafe {
        helpers::bpf_probe_read_user(running, RUNNING_BYTES as u32, entries as *const c_void)
    };
    python.running_count = if used > RUNNING_MAX as u64 {
        RUNNING_MAX as u64
    } else {
        used
    };
}

/// The loop's body: reads one task or other future, or goes on to the next task that may run. Not
/// exported: the kernel demands a static function.
unsafe extern "C" fn one_step(_index: u32, place: *mut c_void) -> i64 {
    let place = place as *const Place;
    // SAFETY: `add` passes its own `place`, which outlives the loop.
    let (scratch, layout) = unsafe { ((*place).scratch, &*(*place).layout) };
    // SAFETY: the pointer comes from a map and was checked there.
    let state = unsafe { &mut *scratch };
    let task = state.python.task;
    if task == 0 {
        let next = state.python.running_next as usize;
        if next >= RUNNING_MAX || next as u64 >= state.python.running_count {
            return 1;
        }
        state.python.task = state.python.running[dict::WORDS * next + dict::VALUE];
        state.python.awaits = 0;
        state.python.depth = 0;
        state.python.running_next = next as u64 + 1;
        return 0;
    }
    let tasks = &layout.tasks;
    let coroutine = read(task.wrapping_add(tasks.coroutine as u64));
    let frame = coroutine.wrapping_add(COROUTINE_FRAME as u64);
    let name = read(task.wrapping_add(tasks.name as u64));
    let flags = read(read(name.wrapping_add(object::TYPE)).wrapping_add(TYPE_FLAGS));
    let length = read(name.wrapping_add(TEXT_LENGTH as u64)) as u32;
    let text_state = read(name.wrapping_add(TEXT_STATE as u64)) as u32;
    // All of this without a branch, as the verifier would check what follows once for each path.
    let has_name = flags >> IS_TEXT & 1;
    let start = TEXT_WIDE - (TEXT_WIDE - TEXT_ASCII) * (text_state >> 6 & 1) as u64;
    let bytes = length as u64 * (text_state >> 2 & 7) as u64 * has_name;
    let bytes = if bytes > TASK_TEXT as u64 {
        TASK_TEXT as u64
    } else {
        bytes
    };
    // Another future has no coroutine and no name: what is written for it is overwritten later.
    let is_task = match tasks.is_task {
        NONE => 1,
        at => read(task.wrapping_add(at as u64)) & 1,
    };
    let awaits = state.python.awaits;
    let (place, detail) = Entry::task(frame, awaits, has_name, length, text_state).words();
    // Read and checked right where it is used: the verifier of Linux 6.1 does not apply a check to
    // the copy of a value that was put on the stack before.
    // SAFETY: the state is a value of a map, which only this program writes to meanwhile.
    let position = unsafe { (&raw const state.position).read_volatile() } as usize;
    if position > FRAMES_MAX - 2 * TASK_ENTRIES {
        return 1;
    }
    // SAFETY: the position was checked to leave room for all of it; the helper checks the address.
    unsafe {
        let entries = (&raw mut state.frames as *mut u64).add(position);
        let text = entries.add(2) as *mut c_void;
        let from = name.wrapping_add(start) as *const c_void;
        let failed = helpers::bpf_probe_read_user(text, bytes as u32, from);
        if failed != 0 && is_task != 0 {
            return 1;
        }
        *entries = place;
        *entries.add(1) = detail;
    }
    // Where the task goes on when what it awaits is done.
    let code = read(frame.wrapping_add(layout.frame_code as u64)) & !TAG;
    let instruction = read(frame.wrapping_add(layout.frame_instruction as u64));
    let (place, detail) = match code_entry(state, layout, code, instruction, 0) {
        Some(entry) => entry.words(),
        None => (0, 0),
    };
    // SAFETY: as above.
    unsafe {
        let entries = (&raw mut state.frames as *mut u64).add(position);
        *entries.add(2 * TASK_ENTRIES - 2) = place;
        *entries.add(2 * TASK_ENTRIES - 1) = detail;
    }
    let mut written = TASK_ENTRIES as u32 * is_task as u32;
    let mut next = awaiting(task, tasks);
    let is_set = match tasks.is_set {
        NONE => 0,
        at => read(task.wrapping_add(at as u64)) & 1,
    };
    let depth = state.python.depth + 1;
    let is_cut = depth > AWAITING_MAX as u64 && next != 0;
    let end = position + 2 * written as usize;
    if (is_set != 0 || is_cut) && end <= FRAMES_MAX - 2 {
        let count = read(next.wrapping_add(object::SET_SIZE)) * is_set;
        let (place, detail) = Entry::several(count).words();
        // SAFETY: the end was checked to leave room for two words.
        unsafe {
            let entries = (&raw mut state.frames as *mut u64).add(end);
            *entries = place;
            *entries.add(1) = detail;
        }
        written += 1;
        next = 0;
    }
    state.python.task = next;
    state.python.depth = depth;
    state.python.awaits = awaits | is_task;
    state.position = (position + 2 * written as usize) as u32;
    state.python.entries += written;
    0
}

/// Returns what awaits a task or other future; 0 if nothing does, or if that is not known.
#[inline(always)]
fn awaiting(task: u64, tasks: &TaskLayout) -> u64 {
    if tasks.awaited_by != NONE {
        return read(task.wrapping_add(tasks.awaited_by as u64));
    }
    // A task that waits for this one has registered a callback, which is called when this one is
    // done. The callback leads to that task. It is believed if it is a task of the same kind and
    // itself has this one as what it waits for.
    let callback = read(task.wrapping_add(tasks.callback as u64));
    let kind = read(task.wrapping_add(object::TYPE));
    // A method that is bound to a task which waits for this one: `await`.
    let found = waiter(callback, task, kind, tasks);
    if found != 0 {
        return found;
    }
    // A function whose closure has a future for which a task waits: `gather` and `wait`.
    let closure = read(callback.wrapping_add(object::CLOSURE));
    let cell = read(closure.wrapping_add(object::CELL));
    let future = read(cell.wrapping_add(object::CELL_CONTENT));
    let called = read(future.wrapping_add(tasks.callback as u64));
    let found = waiter(called, future, kind, tasks);
    if found != 0 {
        return found;
    }
    // A method that is bound to a group of tasks, of which the parent waits for a future.
    let group = read(callback.wrapping_add(object::BOUND_TO));
    let values = if tasks.group_values == NONE {
        (read(group.wrapping_sub(object::VALUES_BEFORE)) | 1).wrapping_add(1)
    } else {
        group.wrapping_add(tasks.group_values as u64)
    };
    let parent = read(values.wrapping_add(object::GROUP_PARENT));
    let future = read(values.wrapping_add(object::GROUP_DONE));
    verify(parent, future, kind, tasks)
}

/// Returns the task that a method is bound to, if that task waits for the future; else 0.
#[inline(always)]
fn waiter(method: u64, future: u64, kind: u64, tasks: &TaskLayout) -> u64 {
    verify(
        read(method.wrapping_add(object::BOUND_TO)),
        future,
        kind,
        tasks,
    )
}

/// Returns `task`, if it is a task and waits for this future; else 0.
#[inline(always)]
fn verify(task: u64, future: u64, kind: u64, tasks: &TaskLayout) -> u64 {
    let waits_for = read(task.wrapping_add(tasks.waits_for as u64));
    if future != 0 && waits_for == future && read(task.wrapping_add(object::TYPE)) == kind {
        task
    } else {
        0
    }
}
