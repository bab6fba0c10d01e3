//! Puts back, in a copy of a stack, the return addresses that the kernel has replaced for probes at
//! the ends of functions: user space, which walks the copy later, cannot know them.

use super::super::current_task::current_task;
use super::super::hit::return_address_at;
use super::super::maps::{
    RETURN_ADDRESS_OFFSET, RETURN_NEXT_OFFSET, RETURN_STACK_OFFSET, RawScratch, TASK_UTASK_OFFSET,
    UTASK_RETURNS_OFFSET,
};
use super::super::memory::kernel_word;
use super::super::probed::DEPTH_MAX;
use super::this_cpus;
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::limits::{PAGE_BYTES, RAW_PAGES};

const WORD: u64 = size_of::<u64>() as u64;

/// Puts the real return addresses into the part of a stack that was just copied.
///
/// Exported, and with a plain number only, so that the verifier checks it once by itself.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn put_back_returns(copied: u64) -> u64 {
    let offset = TASK_UTASK_OFFSET.load();
    let Some(raw) = this_cpus() else {
        return 0;
    };
    if offset == 0 || copied < WORD {
        return 0;
    }
    let utask = kernel_word(current_task() + offset as u64);
    if utask == 0 {
        return 0;
    }
    // SAFETY: a per-CPU value of this CPU.
    unsafe {
        let slot = (*raw).raw.registers.sp;
        // The kernel may not have noted yet which address it replaced last.
        put_back(raw, slot, return_address_at(slot));
        (*raw).instance = kernel_word(utask + UTASK_RETURNS_OFFSET.load() as u64);
    }
    put_back_all();
    0
}

#[cfg(not(feature = "without_loop"))]
#[inline(always)]
fn put_back_all() {
    let body = put_back_one as *mut c_void;
    // SAFETY: the body takes all its state from a per-CPU map.
    unsafe { helpers::bpf_loop(DEPTH_MAX, body, core::ptr::null_mut(), 0) };
}

#[cfg(feature = "without_loop")]
#[inline(always)]
fn put_back_all() {
    super::super::without_loop::repeat(DEPTH_MAX, |_| put_back_next());
}

/// Puts back the next return address.
#[cfg(feature = "without_loop")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn put_back_next() -> u64 {
    // SAFETY: the body takes all its state from a per-CPU map.
    unsafe { put_back_one(0, core::ptr::null_mut()) as u64 }
}

/// The loop's body: one `return_instance` of the thread. Returns 1 behind the last one. Not
/// exported: the kernel demands a static function.
unsafe extern "C" fn put_back_one(_index: u32, _context: *mut c_void) -> i64 {
    let Some(raw) = this_cpus() else {
        return 1;
    };
    // SAFETY: a per-CPU value that nothing else on this CPU uses meanwhile.
    let instance = unsafe { (*raw).instance };
    if instance == 0 {
        return 1;
    }
    let slot = kernel_word(instance + RETURN_STACK_OFFSET.load() as u64);
    let address = kernel_word(instance + RETURN_ADDRESS_OFFSET.load() as u64);
    put_back(raw, slot, address);
    // SAFETY: as above.
    unsafe { (*raw).instance = kernel_word(instance + RETURN_NEXT_OFFSET.load() as u64) };
    0
}

/// Writes `address` where the copy has the word of `slot`, if that is an address of the kernel's.
#[inline(always)]
fn put_back(raw: *mut RawScratch, slot: u64, address: u64) {
    const LAST: u64 = (RAW_PAGES * PAGE_BYTES) as u64 - WORD;
    // SAFETY: a per-CPU value of this CPU; the word is inside the copy, as is checked.
    unsafe {
        let start = (*raw).raw.registers.sp.wrapping_add((*raw).raw.offset);
        let at = slot.wrapping_sub(start);
        if address == 0 || at > LAST || at.wrapping_add(WORD) > (*raw).raw.stack_bytes {
            return;
        }
        let word = (&raw mut (*raw).stack as *mut u8).add(at as usize) as *mut u64;
        // The kernel's code for the ends of calls is at the beginning of a page. Any other word
        // belongs to a later function: the probed one was left by a jump.
        if word.read_unaligned() & (PAGE_BYTES as u64 - 1) == 0 {
            word.write_unaligned(address);
        }
    }
}
