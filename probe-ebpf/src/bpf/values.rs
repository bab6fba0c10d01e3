//! Reads the values of a call: registers, and memory read through them. At a tracepoint, its
//! arguments take the place of registers, and memory of the kernel is read as well.

use super::maps::{CALL_NUMBERS, CALL_TEXTS};
use aya_ebpf::bindings::pt_regs;
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::atomic::add;
use probe_ebpf::calls::{
    Chain, NumberKey, Orders, POINT_ARGUMENTS_MAX, STEPS_MAX, TEXT_BYTES, Tally, TextKey,
    VALUES_MAX, Value, register, value,
};

/// What the loop's body needs, on the program's stack.
#[repr(C)]
struct Place {
    orders: *const Orders,
    tally: *mut Tally,
    probe: u32,
    at_end: u32,
    /// Not 0 if memory of the kernel may be read, at an address that is the kernel's. It is 0 for
    /// arguments of a program, which could name any address.
    in_kernel: u32,
    registers: [u64; register::COUNT],
}

/// When the values of a probe are read.
pub const AT_BEGINNING: u64 = 0;
pub const AT_END: u64 = 1 << 32;

/// Reads the values of a probe that are due when a call begins, or ends: `when` is one of the
/// constants above and the number of the probe, as functions of BPF take five arguments. `sp` is
/// where the return address of the call is. Returns 0: functions of BPF return a number.
///
/// Not inlined: what the registers take of the stack is free again when the stack is walked.
#[inline(never)]
pub fn read(
    regs: *mut pt_regs,
    orders: *const Orders,
    tally: *mut Tally,
    when: u64,
    sp: u64,
) -> u32 {
    let mut place = Place {
        orders,
        tally,
        probe: when as u32,
        at_end: (when >> 32) as u32,
        in_kernel: 0,
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
    read_all(&mut place);
    0
}

/// Reads the values of a probe at a tracepoint, whose arguments are the words of the context. Not
/// inlined, and returns 0, as [`read`].
#[inline(never)]
pub fn read_of_point(
    arguments: *const c_void,
    count: u64,
    orders: *const Orders,
    tally: *mut Tally,
    probe: u32,
) -> u32 {
    let mut place = Place {
        orders,
        tally,
        probe,
        at_end: 0,
        in_kernel: 1,
        registers: [0; register::COUNT],
    };
    let count = if count > POINT_ARGUMENTS_MAX as u64 {
        POINT_ARGUMENTS_MAX as u32
    } else {
        count as u32
    };
    let into = &raw mut place.registers as *mut c_void;
    // Read as memory and not as the context's words: the kernel refuses a program that reads
    // words which its tracepoint does not have.
    // SAFETY: the helper checks the address, and the array has room for as much.
    unsafe { helpers::bpf_probe_read_kernel(into, count * 8, arguments) };
    read_all(&mut place);
    0
}

#[inline(always)]
fn read_all(place: &mut Place) {
    let body = one_value as *mut c_void;
    let place = place as *mut Place as *mut c_void;
    // SAFETY: the body reads `place`, which outlives the loop.
    unsafe { helpers::bpf_loop(VALUES_MAX as u32, body, place, 0) };
}

/// The loop's body: reads one value. Not exported: the kernel demands a static function.
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
            let (above, down) = ((*wanted).above & 63, (*wanted).down & 63);
            keep_number(place, slot, word << above >> down);
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

/// Writes the value of a chain to `into`. Returns 1 if some of its memory cannot be read.
#[inline(never)]
fn follow(place: *const Place, chain: *const Chain, into: &mut u64) -> u32 {
    // SAFETY: the callers' own; `base` is at most ZERO, the last place of the array.
    unsafe {
        let registers = &raw const (*place).registers as *const u64;
        let base = (*chain).base;
        let base = if base > register::ZERO {
            register::ZERO
        } else {
            base
        };
        let mut word = *registers.add(base as usize);
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
            let from = from as *const c_void;
            let failed = if is_kernels(place, from as u64) {
                helpers::bpf_probe_read_kernel(into, bytes, from)
            } else {
                helpers::bpf_probe_read_user(into, bytes, from)
            };
            if failed != 0 {
                return 1;
            }
            word = read;
        }
        *into = word.wrapping_add((*chain).then as u64);
    }
    0
}

/// Returns whether an address is one of the kernel's memory that may be read: on x86-64, those
/// have the highest bit set.
#[inline(always)]
fn is_kernels(place: *const Place, address: u64) -> bool {
    // SAFETY: the callers' own.
    let in_kernel = unsafe { (*place).in_kernel };
    in_kernel != 0 && address >> 63 != 0
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
    // Another program was faster, or there is no room.
    match CALL_NUMBERS.get_ptr_mut(&key) {
        // SAFETY: a value of a live map.
        Some(count) => unsafe { add(count, 1) },
        // SAFETY: as above.
        None => unsafe { add(&raw mut (*tally).values_lost, 1) },
    }
}

/// `BPF_NOEXIST`.
const ONLY_NEW: u64 = 1;

/// Reads and counts a text of `len` bytes, or up to its zero. Returns 1 if it cannot be read.
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
    let in_kernel = is_kernels(place, from);
    let from = from as *const c_void;
    if len == u64::MAX {
        let room = TEXT_BYTES as u32;
        // SAFETY: the helpers check the address and write at most the bytes there are.
        let read = unsafe {
            if in_kernel {
                helpers::bpf_probe_read_kernel_str(into, room, from)
            } else {
                helpers::bpf_probe_read_user_str(into, room, from)
            }
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
        let failed = unsafe {
            if in_kernel {
                helpers::bpf_probe_read_kernel(into, bytes, from)
            } else {
                helpers::bpf_probe_read_user(into, bytes, from)
            }
        };
        if failed != 0 {
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
