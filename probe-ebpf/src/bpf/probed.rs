//! Where a thread really is that runs the kernel's code for probes (`[uprobes]`), and
//! where it really returns to.
//!
//! A probe at the end of a function replaces the return address on the stack by one of
//! the kernel's; a probe at an instruction may run a copy of it. The kernel remembers what
//! was there (`struct uprobe_task` in include/linux/uprobes.h), ours and others' probes
//! alike.

use super::maps::{
    RETURN_ADDRESS_OFFSET, RETURN_NEXT_OFFSET, RETURN_STACK_OFFSET, STEPPED_ACTIVE_OFFSET,
    STEPPED_ADDRESS_OFFSET, TASK_UTASK_OFFSET, UTASK_RETURNS_OFFSET,
};
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;

/// Returns that one thread can have replaced (`MAX_URETPROBE_DEPTH`).
const DEPTH_MAX: u32 = 64;

/// The address for which a pc in `[uprobes]` stands, with this stack pointer; 0 if it
/// stands for none. `exact`: the pc is not a return address.
///
/// Exported and with plain numbers only, so that the kernel verifies it once by itself, and
/// not again on each path that leads to it.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn real_address(sp: u64, exact: u64) -> u64 {
    let offset = TASK_UTASK_OFFSET.load();
    if offset == 0 {
        return 0;
    }
    // SAFETY: a helper without arguments.
    let task = unsafe { helpers::bpf_get_current_task_btf() } as u64;
    let utask = read(task + offset as u64);
    if utask == 0 {
        return 0;
    }
    if exact != 0 && read(utask + STEPPED_ACTIVE_OFFSET.load() as u64) != 0 {
        return read(utask + STEPPED_ADDRESS_OFFSET.load() as u64);
    }
    let mut search = Search {
        slot: sp.wrapping_sub(8),
        instance: read(utask + UTASK_RETURNS_OFFSET.load() as u64),
        address: 0,
    };
    let body = one_instance as *mut c_void;
    // SAFETY: the helper runs `one_instance` with `search`, which outlives the call.
    unsafe { helpers::bpf_loop(DEPTH_MAX, body, &raw mut search as *mut c_void, 0) };
    search.address
}

/// The search for the return that was replaced at a place of the stack.
struct Search {
    /// Where the return address is.
    slot: u64,
    /// The `return_instance` that is looked at next; 0 behind the last one.
    instance: u64,
    /// What was found; 0 until then.
    address: u64,
}

/// The loop's body; a plain loop would be verified once for each turn. Not exported: the
/// kernel demands a static function.
unsafe extern "C" fn one_instance(_index: u32, search: *mut c_void) -> i64 {
    // SAFETY: `real_address` passes its own `search`, which outlives the loop.
    let search = unsafe { &mut *(search as *mut Search) };
    let instance = search.instance;
    if instance == 0 {
        return 1;
    }
    if read(instance + RETURN_STACK_OFFSET.load() as u64) == search.slot {
        search.address = read(instance + RETURN_ADDRESS_OFFSET.load() as u64);
        return 1;
    }
    search.instance = read(instance + RETURN_NEXT_OFFSET.load() as u64);
    0
}

#[inline(always)]
fn read(address: u64) -> u64 {
    let mut word = 0u64;
    // SAFETY: the helper checks the address and leaves zero on a fault.
    unsafe {
        helpers::bpf_probe_read_kernel(&raw mut word as *mut c_void, 8, address as *const c_void)
    };
    word
}
