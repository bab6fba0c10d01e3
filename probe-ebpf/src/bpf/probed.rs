//! Where a thread really is that runs the kernel's code for probes (`[uprobes]`), and
//! where it really returns to.
//!
//! A probe at the end of a function replaces the return address on the stack by one of
//! the kernel's; a probe at an instruction may run a copy of it. The kernel remembers what
//! was there (`struct uprobe_task` in include/linux/uprobes.h), ours and others' probes
//! alike.

use super::current_task::current_task;
use super::hit::return_address_at;
use super::maps::{
    RETURN_ADDRESS_OFFSET, RETURN_NEXT_OFFSET, RETURN_STACK_OFFSET, STEPPED_ACTIVE_OFFSET,
    STEPPED_ADDRESS_OFFSET, TASK_UTASK_OFFSET, UTASK_RETURNS_OFFSET,
};
use super::memory::{kernel_word, user_word};
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;

/// Returns that one thread can have replaced (`MAX_URETPROBE_DEPTH`).
pub const DEPTH_MAX: u32 = 64;

/// In what [`real_address`] gives, the bits from here on say how many words the stack pointer
/// is below that of the real address. User space ends below.
pub const PUSHED_SHIFT: u32 = 60;

/// The address for which a pc in `[uprobes]` stands, with this stack pointer, and see
/// [`PUSHED_SHIFT`]; 0 if it stands for none, or for itself. `exact`: the pc is not a return
/// address.
///
/// Exported and with plain numbers only, so that the kernel verifies it once by itself, and
/// not again on each path that leads to it.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn real_address(ip: u64, sp: u64, exact: u64) -> u64 {
    let real = replaced_address(ip, sp, exact);
    if real == ip { 0 } else { real }
}

/// As [`real_address`], and may be `ip`.
#[inline(always)]
fn replaced_address(ip: u64, sp: u64, exact: u64) -> u64 {
    let offset = TASK_UTASK_OFFSET.load();
    if offset == 0 {
        return 0;
    }
    let pushed = words_pushed(ip, exact);
    let utask = kernel_word(current_task() + offset as u64);
    if utask == 0 {
        return 0;
    }
    if exact != 0 && kernel_word(utask + STEPPED_ACTIVE_OFFSET.load() as u64) != 0 {
        return kernel_word(utask + STEPPED_ADDRESS_OFFSET.load() as u64);
    }
    let slot = sp.wrapping_sub(8);
    let first = kernel_word(utask + UTASK_RETURNS_OFFSET.load() as u64);
    let replaced = replaced_return(first, slot, pushed * 8);
    if replaced != 0 {
        return replaced;
    }
    if pushed != 0 {
        // In the kernel's code, whose system call has put the real address there.
        return user_word(slot.wrapping_add(pushed * 8)) | pushed << PUSHED_SHIFT;
    }
    // The kernel has not noted yet what it replaced.
    return_address_at(slot)
}

/// The address that a return had which was replaced at `slot` or `above` bytes above it, and see
/// [`PUSHED_SHIFT`]; 0 if there is none. `first` is the newest `return_instance` of the thread.
///
/// Exported for the same reason.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn replaced_return(first: u64, slot: u64, above: u64) -> u64 {
    let mut search = Search {
        slot,
        above,
        instance: first,
        found: 0,
    };
    run(&mut search);
    search.found
}

#[cfg(not(feature = "without_loop"))]
#[inline(always)]
fn run(search: &mut Search) {
    let body = one_instance as *mut c_void;
    // SAFETY: the helper runs `one_instance` with `search`, which outlives the call.
    unsafe { helpers::bpf_loop(DEPTH_MAX, body, search as *mut Search as *mut c_void, 0) };
}

/// A plain loop, which is verified once for each turn: some 4,000 instructions.
#[cfg(feature = "without_loop")]
#[inline(always)]
fn run(search: &mut Search) {
    for number in 0..DEPTH_MAX {
        // SAFETY: `one_instance` takes its state from `search`.
        if unsafe { one_instance(number, search as *mut Search as *mut c_void) } != 0 {
            break;
        }
    }
}

/// How many words the kernel's code for the ends of calls has pushed when the thread is at
/// `ip`, which is not `exact` if it is a return address; 0 if that is not in this code. From
/// Linux 6.11 on this is, at the beginning of a page
/// (`arch_uretprobe_trampoline` in arch/x86/kernel/uprobes.c):
///
/// ```text
///  0 push %rax    2 push %r11           11 syscall     15 pop %rcx
///  1 push %rcx    4 mov $335, %rax      13 pop %r11    16 ret
/// ```
///
/// Exported for the same reason.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn words_pushed(ip: u64, exact: u64) -> u64 {
    /// Two bits for each byte of the code.
    const WORDS: u64 = 1 << 2 | 2 << 4 | 0xfffff << 8 | 2 << 30 | 1 << 32;
    /// What is at byte 9, little-endian: the end of the `mov` and all behind it.
    const END: u64 = 0xc359_5b41_050f_0000;
    let at = ip & 0xfff;
    if exact == 0 || at > 16 || user_word((ip - at) + 9) != END {
        return 0;
    }
    WORDS >> (at * 2) & 3
}

/// The search of [`replaced_return`].
struct Search {
    slot: u64,
    above: u64,
    /// The `return_instance` that is looked at next; 0 behind the last one.
    instance: u64,
    /// What was found; 0 until then.
    found: u64,
}

/// The loop's body; a plain loop would be verified once for each turn. Not exported: the
/// kernel demands a static function.
unsafe extern "C" fn one_instance(_index: u32, search: *mut c_void) -> i64 {
    const SHIFT: u32 = PUSHED_SHIFT - size_of::<u64>().ilog2();
    // SAFETY: `replaced_return` passes its own `search`, which outlives the loop.
    let search = unsafe { &mut *(search as *mut Search) };
    let instance = search.instance;
    if instance == 0 {
        return 1;
    }
    let slot = kernel_word(instance + RETURN_STACK_OFFSET.load() as u64);
    let above = slot.wrapping_sub(search.slot);
    if above == 0 || above == search.above {
        let address = kernel_word(instance + RETURN_ADDRESS_OFFSET.load() as u64);
        search.found = address | above << SHIFT;
        return 1;
    }
    search.instance = kernel_word(instance + RETURN_NEXT_OFFSET.load() as u64);
    0
}
