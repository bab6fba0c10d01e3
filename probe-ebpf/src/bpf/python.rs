//! Python's own frames of the current thread, behind its native ones in the record.
//!
//! The thread is interrupted, so that its memory does not change. User space judges whether the
//! structures really are where they were expected; this code only makes sure that nothing is
//! followed that cannot be read, and that no more than [`PYTHON_FRAMES_MAX`] frames are.

mod tasks;

use super::maps::{PYTHON_PROCESSES, PYTHON_THREADS, Scratch};
use super::registers::thread_base;
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::limits::{FRAMES_MAX, PAGE_BYTES, PYTHON_FRAMES_MAX, WINDOW_BYTES};
use probe_ebpf::python::{
    CODE_BYTES, Entry, FRAME_ROOM, GIL_BYTES, GIL_HOLDER, GIL_WORDS, IDENTITY_WORDS, Layout, NONE,
    OWNER_C, Summary, TID_IN_PTHREAD, check, lock, status, style,
};

/// Bits of a pointer to an object that are no part of the address: objects begin at multiples of 8.
const TAG: u64 = 7;

/// Bytes below a frame that are read with it: about two frames of callers.
const FRAMES_BELOW: u64 = 384;

/// Room in the window for the bytes below a frame.
const BELOW_ROOM: usize = 512;

const _: () = assert!(FRAMES_BELOW < BELOW_ROOM as u64);
const _: () = assert!(BELOW_ROOM + FRAME_ROOM <= WINDOW_BYTES);
const _: () = assert!(CODE_BYTES <= FRAME_ROOM);

const _: () = assert!(GIL_WORDS <= IDENTITY_WORDS);
const _: () = assert!(lock::HELD == lock::NOT_HELD + 1);

/// What the body of a loop needs, on the program's stack.
#[repr(C)]
struct Place {
    scratch: *mut Scratch,
    layout: *const Layout,
}

/// Writes the Python frames behind the frames that are there already, if the process is known to
/// run Python.
#[inline(never)]
pub fn frames(scratch: *mut Scratch) -> u32 {
    // SAFETY: the pointer comes from a map and was checked there.
    let state = unsafe { &mut *scratch };
    let tgid = state.header.tgid;
    let Some(layout) = PYTHON_PROCESSES.get_ptr(&tgid) else {
        return 0;
    };
    state.python.entries = 0;
    // The native walk is over, and no longer needs the window. No frame begins at 0.
    state.window_start = 0;
    state.window_last = 0;
    state.python.status = status::NO_THREAD;
    let mut thread_state = 0;
    let tid = state.header.tid;
    // SAFETY: a value of a live map.
    let layout_ref = unsafe { &*layout };
    let told = match PYTHON_THREADS.get_ptr(&tid) {
        // SAFETY: a value of a live map.
        Some(thread) => unsafe {
            Told {
                address: (*thread).address,
                identity: (*thread).identity,
                at: layout_ref.thread_identity,
                otherwise: status::STALE,
            }
        },
        None => own_state(layout_ref),
    };
    if told.address != 0 {
        let address = told.address;
        if read(address.wrapping_add(told.at as u64)) == told.identity {
            state.python.status = status::TOO_DEEP;
            thread_state = address;
            state.python.next = innermost(address, layout_ref);
            walk_frames(Place { scratch, layout });
        } else {
            state.python.status = told.otherwise;
        }
    }
    let mut lock = lock::UNKNOWN;
    // Only after the walk, as the verifier would check this once for each result of it.
    if thread_state != 0 {
        // SAFETY: a value of a live map.
        let layout = unsafe { &*layout };
        tasks::add(scratch, layout, thread_state);
        lock = held(scratch, layout.gil, thread_state);
    }
    // The loop has changed them behind the compiler's back.
    // SAFETY: fields of a value of a map.
    let (entries, status) = unsafe {
        (
            (&raw const (*scratch).python.entries).read_volatile(),
            (&raw const (*scratch).python.status).read_volatile(),
        )
    };
    // SAFETY: as above.
    unsafe { (*scratch).header.python = Summary::new(entries, status, lock).0 };
    0
}

#[cfg(not(feature = "without_loop"))]
#[inline(always)]
fn walk_frames(mut place: Place) {
    let body = one_frame as *mut c_void;
    // SAFETY: the body takes its state from the maps that `place` points to.
    unsafe {
        helpers::bpf_loop(
            PYTHON_FRAMES_MAX as u32,
            body,
            &raw mut place as *mut c_void,
            0,
        )
    };
}

#[cfg(feature = "without_loop")]
#[inline(always)]
fn walk_frames(_place: Place) {
    use super::without_loop::repeat_by_some;
    repeat_by_some(PYTHON_FRAMES_MAX as u32, |left| python_some_frames(left));
}

/// Walks some Python frames of the current thread.
#[cfg(feature = "without_loop")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn python_some_frames(left: u64) -> u64 {
    super::without_loop::take_some(left, || python_frame())
}

/// Walks one Python frame of the current thread.
#[cfg(feature = "without_loop")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn python_frame() -> u64 {
    in_place(one_frame)
}

/// Calls the body of a loop with the state of the walk, and the layout of the current process.
#[cfg(feature = "without_loop")]
#[inline(always)]
fn in_place(body: unsafe extern "C" fn(u32, *mut c_void) -> i64) -> u64 {
    let Some(scratch) = super::maps::SCRATCH.get_ptr_mut(0) else {
        return 1;
    };
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let tgid = unsafe { (*scratch).header.tgid };
    let Some(layout) = PYTHON_PROCESSES.get_ptr(&tgid) else {
        return 1;
    };
    let mut place = Place { scratch, layout };
    // SAFETY: the body takes its state from the maps that `place` points to.
    unsafe { body(0, &raw mut place as *mut c_void) as u64 }
}

/// Where a thread's state should be, and how to recognize it.
struct Told {
    /// Its address; 0 if nothing says where it is.
    address: u64,
    /// The word that the state has at the offset `at` if it is that thread's.
    identity: u64,
    at: u32,
    /// The [`status`] of the sample if the state has another word there.
    otherwise: u32,
}

/// Finds the state of the current thread by the thread's own word: user space does not know yet
/// of a thread that started a moment ago.
#[inline(always)]
fn own_state(layout: &Layout) -> Told {
    let mut told = Told {
        address: 0,
        identity: thread_base(),
        at: layout.thread_pthread,
        // In a thread that has no state yet, any value may be there.
        otherwise: status::NO_THREAD,
    };
    if layout.own_state != 0 && told.identity != 0 {
        told.address = read(told.identity.wrapping_add(layout.own_state as u64));
    }
    told
}

/// Returns whether the thread with that state has the global lock: a [`lock`].
#[inline(always)]
fn held(scratch: *mut Scratch, gil: u64, thread: u64) -> u32 {
    // SAFETY: the walk is over: its room for words of a code object is free. The helper checks
    // the address, and leaves zeros on a fault.
    let (last, locked) = unsafe {
        let words = &raw mut (*scratch).python.code as *mut u64;
        let bytes = (GIL_WORDS * 8) as u32;
        helpers::bpf_probe_read_user(words as *mut c_void, bytes, gil as *const c_void);
        (
            words.add(GIL_HOLDER as usize / 8).read_volatile(),
            words.add(GIL_HOLDER as usize / 8 + 1).read_volatile(),
        )
    };
    // The thread that had it last stays noted there after it has released the lock.
    if last == thread {
        lock::NOT_HELD + (locked as u32 & 1)
    } else if last == 0 {
        lock::UNKNOWN
    } else {
        lock::NOT_HELD
    }
}

/// Returns whether a futex at this address is part of the global lock of a process.
#[inline(always)]
pub fn is_global_lock(futex: u64, tgid: u32) -> bool {
    let Some(layout) = PYTHON_PROCESSES.get_ptr(&tgid) else {
        return false;
    };
    // SAFETY: a value of a live map.
    let gil = unsafe { (*layout).gil };
    gil != 0 && futex.wrapping_sub(gil) < GIL_BYTES
}

/// Returns the thread that has the global lock of a process, or had it last, by its number in the
/// program's own namespace; 0 if that is not known.
#[inline(always)]
pub fn lock_holder(tgid: u32) -> u32 {
    let Some(layout) = PYTHON_PROCESSES.get_ptr(&tgid) else {
        return 0;
    };
    // SAFETY: a value of a live map.
    let (gil, identity, style) =
        unsafe { ((*layout).gil, (*layout).thread_identity, (*layout).style) };
    let thread = read(gil.wrapping_add(GIL_HOLDER));
    let identity = read(thread.wrapping_add(identity as u64));
    if style == style::EACH {
        // Up to 3.10 the interpreter knows a thread's `pthread_t` only.
        read(identity.wrapping_add(TID_IN_PTHREAD)) as u32
    } else {
        identity as u32
    }
}

/// Returns the innermost frame of a thread; 0 if it runs no Python.
#[inline(always)]
fn innermost(thread: u64, layout: &Layout) -> u64 {
    let pointer = read(thread.wrapping_add(layout.thread_frame as u64));
    if layout.c_frame == NONE || pointer == 0 {
        pointer
    } else {
        read(pointer.wrapping_add(layout.c_frame as u64))
    }
}

/// The loop's body: one frame. Not exported: the kernel demands a static function.
unsafe extern "C" fn one_frame(_index: u32, place: *mut c_void) -> i64 {
    let place = place as *const Place;
    // SAFETY: `frames` passes its own `place`, which outlives the loop.
    let (scratch, layout) = unsafe { ((*place).scratch, &*(*place).layout) };
    // SAFETY: the pointer comes from a map and was checked there.
    let state = unsafe { &mut *scratch };
    let frame = state.python.next;
    if frame == 0 {
        state.python.status = status::WHOLE;
        return 1;
    }
    let position = state.position as usize;
    if position > FRAMES_MAX - 2 {
        return 1;
    }
    let mut at = frame.wrapping_sub(state.window_start);
    if at > state.window_last {
        if !fill_window(state, layout, frame) {
            state.python.status = status::UNREADABLE;
            return 1;
        }
        at = frame.wrapping_sub(state.window_start);
    }
    let window = &raw const state.window as *const u8;
    // SAFETY: the mask keeps the frame inside the window.
    let room = unsafe { window.add(at as usize & (BELOW_ROOM - 8)) };
    state.python.next = word(room, layout.frame_previous);
    // From 3.14 on the lowest bits of this pointer say who counts its references.
    let code = word(room, layout.frame_code) & !TAG;
    let instruction = word(room, layout.frame_instruction);
    // SAFETY: the mask keeps the offset inside the frame's room.
    let owner = unsafe { *room.add(layout.frame_owner as usize & (FRAME_ROOM - 1)) };
    let entry = if layout.style == style::OWNED_BY_C && owner >= OWNER_C {
        Entry::end(state.python.last)
    } else {
        match code_entry(state, layout, code, instruction, owner) {
            Some(entry) => entry,
            None => {
                state.python.status = status::UNREADABLE;
                return 1;
            }
        }
    };
    state.python.last = frame;
    let (place, detail) = entry.words();
    // SAFETY: the position was checked to leave room for two words.
    unsafe {
        let frames = &raw mut state.frames as *mut u64;
        *frames.add(position) = place;
        *frames.add(position + 1) = detail;
    }
    state.position = position as u32 + 2;
    state.python.entries += 1;
    0
}

/// Reads a frame and the bytes below it, where from 3.11 on its caller's frame most often is.
/// Nothing of the page before is read, which may not be mapped.
#[inline(always)]
fn fill_window(state: &mut Scratch, layout: &Layout, frame: u64) -> bool {
    let mut below = frame & (PAGE_BYTES as u64 - 1) & !7;
    let below_max = FRAMES_BELOW * (layout.style != style::EACH) as u64;
    if below > below_max {
        below = below_max;
    }
    let start = frame.wrapping_sub(below);
    let length = (below as u32).wrapping_add(layout.frame_bytes & (FRAME_ROOM - 1) as u32);
    let window = &raw mut state.window as *mut c_void;
    // SAFETY: there is room for that many bytes; the helper checks the address.
    let failed = unsafe { helpers::bpf_probe_read_user(window, length, start as *const c_void) };
    state.window_start = start;
    state.window_last = below;
    failed == 0
}

/// Reads the code object of a frame and makes the frame's entry. Returns None if it cannot be read.
#[inline(always)]
fn code_entry(
    state: &mut Scratch,
    layout: &Layout,
    code: u64,
    instruction: u64,
    owner: u8,
) -> Option<Entry> {
    // The first line and the identity are near each other: one read for both.
    let start = layout.code_first_line & !7;
    let from = code.wrapping_add(start as u64) as *const c_void;
    let room = &raw mut state.python.room;
    // SAFETY: there is room for that many bytes; the helper checks the address.
    let failed =
        unsafe { helpers::bpf_probe_read_user(room as *mut c_void, CODE_BYTES as u32, from) };
    if failed != 0 {
        return None;
    }
    let room = room as *const u8;
    let first_line = word(room, 0) >> (8 * (layout.code_first_line & 7)) & u32::MAX as u64;
    let at = layout.code_identity.wrapping_sub(start);
    let identity = [
        word(room, at),
        word(room, at.wrapping_add(8)),
        word(room, at.wrapping_add(16)),
        word(room, at.wrapping_add(24)),
    ];
    // Without branches, as the verifier would check what follows once for each path.
    let style = layout.style as u64;
    let is_pointer = style.wrapping_add(1) >> 1 & 1;
    let start = code
        .wrapping_add(layout.code_start as u64)
        .wrapping_mul(is_pointer);
    let scale = (layout.instruction_bytes as u64).wrapping_add(is_pointer);
    let offset = instruction.wrapping_mul(scale).wrapping_sub(start) as i32;
    let is_flagged = style & 1 & owner as u64;
    let ends_group = is_flagged | is_pointer ^ 1;
    let check = check(first_line as u32, &identity);
    Some(Entry::frame(code, offset, check, ends_group))
}

/// Returns a word of a frame or of a code object.
#[inline(always)]
fn word(room: *const u8, offset: u32) -> u64 {
    // SAFETY: the mask keeps an aligned word inside the room.
    unsafe { *(room.add(offset as usize & (FRAME_ROOM - 8)) as *const u64) }
}

#[inline(always)]
fn read(address: u64) -> u64 {
    let mut word = 0u64;
    // SAFETY: the helper checks the address and leaves zero on a fault.
    unsafe {
        helpers::bpf_probe_read_user(&raw mut word as *mut c_void, 8, address as *const c_void)
    };
    word
}
