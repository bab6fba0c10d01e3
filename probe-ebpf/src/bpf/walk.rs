//! The walk of the user stack: one frame per call of the loop's body.
//!
//! Most frames take the fast path: their rule is in the cache and is plain, as
//! "rsp plus a number", and the words they need are in the window. Except to refill the
//! window it calls nothing, and it changes no registers before it can no longer fail.
//! Every other frame is a slow frame.

use super::maps::{MAX_USER_FRAMES, PROCESSES, RULE_CACHE, RuleCache, Scratch};
use super::probed::{PUSHED_SHIFT, real_address};
use super::world::Current;
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::limits::{CACHE_ENTRIES, FRAMES_MAX, WINDOW_BELOW, WINDOW_BYTES};
use probe_ebpf::machine::This;
use probe_ebpf::rule::{Rule, kind, special};
use probe_ebpf::table::{MappingList, NO_TABLE};
use probe_ebpf::walk::{Machine as _, Walk, frame, rule_for};
use probe_ebpf::{UserFrame, status};

/// What the loop's body needs, on the program's stack: to look both up again
/// for each frame costs a few percent.
#[cfg(not(feature = "without_loop"))]
#[repr(C)]
struct Place {
    scratch: *mut Scratch,
    cache: *mut RuleCache,
}

/// Returns the rule cache of this CPU, for programs that run with interrupts off.
#[inline(always)]
pub fn this_cpus_cache() -> Option<*mut RuleCache> {
    // SAFETY: a helper without arguments.
    RULE_CACHE.get_ptr_mut(unsafe { helpers::bpf_get_smp_processor_id() })
}

/// Walks from the registers in `scratch.walk` and writes the frames behind those
/// that are there already. Without a list of mappings every step is by frame
/// pointer. No other program may use `cache` meanwhile.
#[inline(always)]
pub fn walk(scratch: *mut Scratch, list: MappingList, cache: *mut RuleCache) {
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let state = unsafe { &mut *scratch };
    state.generation = (list.generation() as u64) << 32;
    state.window_start = u64::MAX;
    state.window_last = 0;
    state.walk.first = list.first();
    state.walk.length = list.length();
    state.walk.mapping.start = 1;
    state.walk.mapping.end = 0;
    state.walk.mapping.table = NO_TABLE;
    state.walk.is_exact = 1;
    state.walk.is_leaf = 1;
    state.walk.links = 0;
    state.walk.status = status::CALLER;
    This::begin(&mut state.walk);
    walk_frames(scratch, cache);
}

#[cfg(not(feature = "without_loop"))]
#[inline(always)]
fn walk_frames(scratch: *mut Scratch, cache: *mut RuleCache) {
    let mut place = Place { scratch, cache };
    let body = one_frame as *mut c_void;
    // SAFETY: the body takes all its state from the maps that `place` points to.
    unsafe {
        helpers::bpf_loop(
            MAX_USER_FRAMES.load(),
            body,
            &raw mut place as *mut c_void,
            0,
        )
    };
}

/// In this object each CPU has one room and one cache: `scratch` and `cache` are these.
#[cfg(feature = "without_loop")]
#[inline(always)]
fn walk_frames(_scratch: *mut Scratch, _cache: *mut RuleCache) {
    use super::without_loop::repeat_by_some;
    use probe_ebpf::limits::USER_FRAMES_MAX;
    // SAFETY: a helper without arguments.
    let cpu = unsafe { helpers::bpf_get_smp_processor_id() } as u64;
    let wanted = MAX_USER_FRAMES.load();
    let frames = if wanted > USER_FRAMES_MAX as u32 {
        USER_FRAMES_MAX as u32
    } else {
        wanted
    };
    repeat_by_some(frames, |left| walk_some_frames(cpu, left));
}

/// Takes the steps of some frames of the walk on this CPU.
#[cfg(feature = "without_loop")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn walk_some_frames(cpu: u64, left: u64) -> u64 {
    super::without_loop::take_some(left, || walk_frame(cpu))
}

/// Takes the step of one frame of the walk on this CPU.
#[cfg(feature = "without_loop")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn walk_frame(cpu: u64) -> u64 {
    let scratch = super::maps::SCRATCH.get_ptr_mut(0);
    match (scratch, RULE_CACHE.get_ptr_mut(cpu as u32)) {
        (Some(scratch), Some(cache)) => next_frame(scratch, cache) as u64,
        _ => 1,
    }
}

/// Returns the list of a process's mappings, which is empty if they are not published.
#[inline(always)]
pub fn mappings_of(tgid: u32) -> MappingList {
    match PROCESSES.get_ptr(&tgid) {
        // SAFETY: a value of a live map, read as one word.
        Some(list) => MappingList(unsafe { *list }),
        None => MappingList(0),
    }
}

/// The loop's body: one frame. Not exported: the kernel demands a static function.
#[cfg(not(feature = "without_loop"))]
unsafe extern "C" fn one_frame(_index: u32, place: *mut c_void) -> i64 {
    let place = place as *const Place;
    // SAFETY: `walk` passes its own `place`, which outlives the loop.
    let (scratch, cache) = unsafe { ((*place).scratch, (*place).cache) };
    next_frame(scratch, cache) as i64
}

/// Takes the step to the next frame. Returns 1 if there is none.
#[inline(always)]
fn next_frame(scratch: *mut Scratch, cache: *mut RuleCache) -> u32 {
    match fast_frame(scratch, cache) {
        FAST_DONE => 0,
        FAST_END => 1,
        _ => slow_frame(scratch, cache),
    }
}

const FAST_DONE: u32 = 0;
const FAST_END: u32 = 1;
const FAST_NO: u32 = 2;

/// Takes the step of a frame whose rule is cached and plain, and whose words are in the window.
#[inline(always)]
fn fast_frame(scratch: *mut Scratch, cache: *mut RuleCache) -> u32 {
    // SAFETY: both come from maps and were checked there.
    let state = unsafe { &mut *scratch };
    if state.walk.is_exact != 0 {
        return FAST_NO;
    }
    let ip = state.walk.registers.ip;
    let sp = state.walk.registers.sp;
    let bp = state.walk.registers.bp;
    let generation = state.generation;
    let position = state.position as usize;
    if position >= FRAMES_MAX {
        return FAST_NO;
    }
    // Whatever happens now, this is the frame to record; a slow frame writes
    // the same word once more.
    // SAFETY: the position was just checked.
    unsafe { *(&raw mut state.frames as *mut u64).add(position) = ip };
    let entry = cache_entry(cache, ip, generation);
    // SAFETY: `cache_entry` gives a place inside the cache.
    let (key, tag) = unsafe { (*entry, *entry.add(1)) };
    if key != ip || (tag ^ generation) >> 32 != 0 {
        return FAST_NO;
    }
    let rule = tag as u32;
    if !This::is_plain(rule, state.walk.links) {
        return FAST_NO;
    }
    let from = if rule & kind::BP != 0 { bp } else { sp };
    let cfa = from.wrapping_add((rule >> 2 & 0xffff) as u64 * 8);
    if cfa <= sp {
        return FAST_NO;
    }
    let return_below = This::return_below(rule);
    let wanted = cfa.wrapping_sub(return_below);
    let mut offset = wanted.wrapping_sub(state.window_start);
    if offset > state.window_last {
        if refill(scratch, wanted, sp) != 0 {
            return FAST_NO;
        }
        offset = wanted.wrapping_sub(state.window_start);
        if offset > state.window_last {
            return FAST_NO;
        }
    }
    if offset & 7 != 0 {
        return FAST_NO;
    }
    let window = &raw const state.window as *const u64;
    // SAFETY: the mask keeps the offset inside the window.
    let caller = unsafe { *window.byte_add(offset as usize & (WINDOW_BYTES - 8)) };
    let caller = caller & This::ADDRESS_BITS;
    let mut caller_bp = bp;
    if This::saves_bp(rule) {
        let below = This::bp_below(rule);
        let saved = offset.wrapping_add(return_below).wrapping_sub(below);
        if saved > state.window_last {
            return FAST_NO;
        }
        // SAFETY: the mask keeps the offset inside the window.
        caller_bp = unsafe { *window.byte_add(saved as usize & (WINDOW_BYTES - 8)) };
    }
    state.position = position as u32 + 1;
    state.walk.links = 0;
    if caller == 0 {
        state.walk.status = status::END;
        return FAST_END;
    }
    state.walk.registers.ip = caller;
    state.walk.registers.sp = cfa;
    state.walk.registers.bp = caller_bp;
    FAST_DONE
}

/// Returns where in the cache the rule for a pc would be. No multiplication: this is
/// on the path from one return address to the next.
#[inline(always)]
fn cache_entry(cache: *mut RuleCache, key: u64, generation: u64) -> *mut u64 {
    const ENTRY_SHIFT: u32 = 4;
    const MASK: u64 = ((CACHE_ENTRIES - 1) as u64) << ENTRY_SHIFT;
    const FOLD: u32 = CACHE_ENTRIES.ilog2() - 3;
    let slot = (key << ENTRY_SHIFT) ^ (key >> FOLD) ^ (generation >> (32 - ENTRY_SHIFT));
    // SAFETY: the mask keeps the entry inside the cache.
    unsafe { (cache as *mut u64).byte_add((slot & MASK) as usize) }
}

/// Reads the stack around `address` into the window. Returns 0 if that went well. It never
/// reads across the end of a page: a fault costs as much as a whole sample.
#[inline(never)]
fn refill(scratch: *mut Scratch, address: u64, sp: u64) -> u32 {
    const PAGE: u64 = 4096;
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let state = unsafe { &mut *scratch };
    if (address | sp) & 7 != 0 {
        return 1;
    }
    let below = address.wrapping_sub(WINDOW_BELOW);
    let mut start = if below > sp { below } else { sp };
    if start > address || address - start > WINDOW_BELOW {
        start = address;
    }
    let mut left = PAGE - (start & (PAGE - 1));
    if left < address - start + 8 {
        start = address;
        left = PAGE - (start & (PAGE - 1));
    }
    let bytes = if left < WINDOW_BYTES as u64 {
        left
    } else {
        WINDOW_BYTES as u64
    };
    let into = &raw mut state.window as *mut c_void;
    // SAFETY: the helper checks the address; the length is at most the window's.
    let read = unsafe { helpers::bpf_probe_read_user(into, bytes as u32, start as *const c_void) };
    if read != 0 {
        state.window_start = u64::MAX;
        state.window_last = 0;
        return 1;
    }
    state.window_start = start;
    state.window_last = bytes - 8;
    0
}

/// Takes the step of a frame of any kind, without the window. Returns 0 to go on.
#[inline(never)]
fn slow_frame(scratch: *mut Scratch, cache: *mut RuleCache) -> u32 {
    // SAFETY: both come from maps and were checked there.
    let state = unsafe { &mut *scratch };
    let position = state.position as usize;
    if position >= FRAMES_MAX {
        return 1;
    }
    let ip = state.walk.registers.ip;
    let exact = (state.walk.is_exact & 1) as u64;
    let word = if exact != 0 {
        UserFrame::exact(ip)
    } else {
        UserFrame::return_address(ip)
    };
    // SAFETY: the position was just checked.
    unsafe { *(&raw mut state.frames as *mut u64).add(position) = word.0 };
    state.position = position as u32 + 1;
    // The rule for a return address is that of the byte before it; so the rule
    // for an exact pc is kept under the next one, and both share an entry.
    let key = ip.wrapping_add(exact);
    let rule = cached_rule(&mut state.walk, cache, key, state.generation);
    if !has_table(rule) {
        let real = real_address(ip, state.walk.registers.sp, exact);
        if real != 0 {
            // The pc is in the kernel's own code; the address that it stands for comes next.
            state.position = position as u32;
            state.walk.registers.ip = real & ((1 << PUSHED_SHIFT) - 1);
            state.walk.registers.sp += (real >> PUSHED_SHIFT) * 8;
            return 0;
        }
    }
    (frame::<This, _>(rule, &mut state.walk, &mut Current) != status::CALLER) as u32
}

#[inline(always)]
fn cached_rule(walk: &mut Walk, cache: *mut RuleCache, key: u64, generation: u64) -> Option<Rule> {
    let entry = cache_entry(cache, key, generation);
    // SAFETY: `cache_entry` gives a place inside the cache.
    let (known, tag) = unsafe { (*entry, *entry.add(1)) };
    if known == key && (tag ^ generation) >> 32 == 0 {
        return Some(Rule(tag as u32));
    }
    let found = look_up(walk, key.wrapping_sub(1));
    if found > u32::MAX as u64 {
        return None;
    }
    // Without mappings there is no generation by which the entry could be recognized.
    if walk.length != 0 {
        // SAFETY: as above. The tag last, and invalid meanwhile.
        unsafe {
            entry.add(1).write_volatile(0);
            entry.write_volatile(key);
            entry.add(1).write_volatile(generation | found);
        }
    }
    Some(Rule(found as u32))
}

/// Returns whether the pc is in a file whose unwind information is known. The kernel's
/// code for probes is in no file.
#[inline(always)]
fn has_table(rule: Option<Rule>) -> bool {
    match rule {
        Some(rule) => rule.0 != Rule::special(special::NO_TABLE).0,
        None => false,
    }
}

const NOT_FOUND: u64 = u64::MAX;

/// Looks the rule for a pc up in the tables. A function of its own, with a stack frame of its own.
#[inline(never)]
fn look_up(walk: *mut Walk, pc: u64) -> u64 {
    // SAFETY: the pointer is into the per-CPU map.
    match rule_for(unsafe { &mut *walk }, &Current, pc) {
        Some(rule) => rule.0 as u64,
        None => NOT_FOUND,
    }
}
