//! The values of a call: registers, and memory read through them.

use super::maps::{CALL_NUMBERS, CALL_TEXTS};
use aya_ebpf::bindings::pt_regs;
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::atomic::add;
use probe_ebpf::calls::{
    Chain, NumberKey, Orders, STEPS_MAX, TEXT_BYTES, Tally, TextKey, VALUES_MAX, Value, register,
    value,
};

/// What the loop's body needs, on the program's stack.
#[repr(C)]
struct Place {
    orders: *const Orders,
    tally: *mut Tally,
    probe: u32,
    at_end: u32,
    registers: [u64; register::COUNT],
}

/// Reads the values of a probe that are due when a call begins, or ends. `sp` is where
/// its return address is.
#[inline(always)]
pub fn read(
    regs: *mut pt_regs,
    orders: *const Orders,
    tally: *mut Tally,
    probe: u32,
    at_end: u32,
    sp: u64,
) {
    let mut place = Place {
        orders,
        tally,
        probe,
        at_end,
        registers: [0; register::COUNT],
    };
    let r = &mut place.registers;
    // SAFETY: the context's registers, read one by one.
    unsafe {
        r[0] = (*regs).rax;
        r[1] = (*regs).rcx;
        r[2] = (*regs).rdx;
        r[3] = (*regs).rbx;
        r[4] = (*regs).rsp;
        r[5] = (*regs).rbp;
        r[6] = (*regs).rsi;
        r[7] = (*regs).rdi;
        r[8] = (*regs).r8;
        r[9] = (*regs).r9;
        r[10] = (*regs).r10;
        r[11] = (*regs).r11;
        r[12] = (*regs).r12;
        r[13] = (*regs).r13;
        r[14] = (*regs).r14;
        r[15] = (*regs).r15;
    }
    r[register::ENTRY_SP as usize] = sp;
    let body = one_value as *mut c_void;
    // SAFETY: the body reads `place`, which outlives the loop.
    unsafe { helpers::bpf_loop(VALUES_MAX as u32, body, &raw mut place as *mut c_void, 0) };
}

/// The loop's body. Not exported: the kernel demands a static function.
unsafe extern "C" fn one_value(index: u32, place: *mut c_void) -> i64 {
    let place = place as *const Place;
    let slot = index & (VALUES_MAX as u32 - 1);
    // SAFETY: `read` passes its own `place`; the mask keeps the value inside.
    let (wanted, tally) = unsafe {
        let values = &raw const (*(*place).orders).values as *const Value;
        (values.add(slot as usize), (*place).tally)
    };
    // SAFETY: as above.
    let (kind, at_end) = unsafe { ((*wanted).kind, (*wanted).at_end) };
    if kind == value::NONE {
        return 1;
    }
    // SAFETY: as above.
    if at_end != unsafe { (*place).at_end } {
        return 0;
    }
    // SAFETY: as above.
    let is_read = unsafe {
        let mut word = 0u64;
        if follow(place, &raw const (*wanted).chain, &mut word) != 0 {
            false
        } else if kind == value::NUMBER {
            keep_number(place, slot, word);
            true
        } else {
            let mut len = u64::MAX;
            let known =
                kind == value::TEXT || follow(place, &raw const (*wanted).length, &mut len) == 0;
            known && keep_text(place, slot, word, len) == 0
        }
    };
    if !is_read {
        // SAFETY: the mask keeps the word inside.
        unsafe {
            add(
                (&raw mut (*tally).unreadable as *mut u64).add(slot as usize),
                1,
            );
        }
    }
    0
}

/// The value of a chain; not 0 if some of its memory cannot be read.
#[inline(never)]
fn follow(place: *const Place, chain: *const Chain, into: &mut u64) -> u32 {
    // SAFETY: the callers' own; the mask keeps the register inside.
    unsafe {
        let registers = &raw const (*place).registers as *const u64;
        let base = (*chain).base as usize & (register::COUNT - 1);
        let mut word = *registers.add(base);
        let steps = (*chain).steps;
        for number in 0..STEPS_MAX {
            if number as u32 >= steps {
                break;
            }
            let step = (&raw const (*chain).step as *const probe_ebpf::calls::Step).add(number);
            let from = word.wrapping_add((*step).add as u64);
            let bytes = (*step).bytes;
            let bytes = if bytes > 8 { 8 } else { bytes as u32 };
            let mut read = 0u64;
            let into = &raw mut read as *mut c_void;
            if helpers::bpf_probe_read_user(into, bytes, from as *const c_void) != 0 {
                return 1;
            }
            word = read;
        }
        *into = word.wrapping_add((*chain).then as u64);
    }
    0
}

#[inline(always)]
unsafe fn keep_number(place: *const Place, slot: u32, number: u64) {
    // SAFETY: the caller's own.
    let (probe, tally) = unsafe { ((*place).probe, (*place).tally) };
    let key = NumberKey {
        probe,
        slot,
        number,
    };
    if let Some(count) = CALL_NUMBERS.get_ptr_mut(&key) {
        // SAFETY: a value of a live map.
        unsafe { add(count, 1) };
        return;
    }
    let once = 1u64;
    if CALL_NUMBERS.insert(&key, &once, ONLY_NEW).is_ok() {
        return;
    }
    // Somebody else was faster, or there is no room.
    match CALL_NUMBERS.get_ptr_mut(&key) {
        // SAFETY: a value of a live map.
        Some(count) => unsafe { add(count, 1) },
        // SAFETY: as above.
        None => unsafe { add(&raw mut (*tally).values_lost, 1) },
    }
}

/// `BPF_NOEXIST`.
const ONLY_NEW: u64 = 1;

/// Reads a text of `len` bytes, or up to its zero; not 0 if it cannot be read.
#[inline(always)]
unsafe fn keep_text(place: *const Place, slot: u32, from: u64, len: u64) -> u32 {
    // SAFETY: the caller's own.
    let (probe, tally) = unsafe { ((*place).probe, (*place).tally) };
    let mut key = TextKey {
        probe,
        slot,
        len,
        bytes: [0; TEXT_BYTES],
    };
    let into = &raw mut key.bytes as *mut c_void;
    if len == u64::MAX {
        // SAFETY: the helper checks the address and writes at most the bytes there are.
        let read = unsafe {
            helpers::bpf_probe_read_user_str(into, TEXT_BYTES as u32, from as *const c_void)
        };
        if read < 0 {
            return 1;
        }
        key.len = read as u64;
    } else {
        let bytes = if len > TEXT_BYTES as u64 {
            TEXT_BYTES as u32
        } else {
            len as u32
        };
        // SAFETY: as above.
        if unsafe { helpers::bpf_probe_read_user(into, bytes, from as *const c_void) } != 0 {
            return 1;
        }
    }
    if let Some(count) = CALL_TEXTS.get_ptr_mut(&key) {
        // SAFETY: a value of a live map.
        unsafe { add(count, 1) };
        return 0;
    }
    let once = 1u64;
    if CALL_TEXTS.insert(&key, &once, ONLY_NEW).is_ok() {
        return 0;
    }
    match CALL_TEXTS.get_ptr_mut(&key) {
        // SAFETY: a value of a live map.
        Some(count) => unsafe { add(count, 1) },
        // SAFETY: as above.
        None => unsafe { add(&raw mut (*tally).values_lost, 1) },
    }
    0
}
