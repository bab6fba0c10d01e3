//! The real address of a thread that runs the kernel's code for probes (`[uprobes]`), and
//! the real address that it returns to.
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

/// Maximum number of replaced return addresses of one thread (`MAX_URETPROBE_DEPTH`).
pub const DEPTH_MAX: u32 = 64;

/// The bits from this one on, in the result of [`real_address`], say how many words the stack
/// pointer is below that of the real address. Addresses of user space have fewer bits.
pub const PUSHED_SHIFT: u32 = 60;

/// Returns the address for which a pc in `[uprobes]` stands, given the stack pointer, with the
/// words of [`PUSHED_SHIFT`]; 0 if it stands for none, or for itself. `exact` is 0 if the pc is
/// a return address.
///
/// Exported, and with plain numbers only, so that the verifier checks it once by itself, and
/// not again on each path that leads to it.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn real_address(ip: u64, sp: u64, exact: u64) -> u64 {
    let real = replaced_address(ip, sp, exact);
    if real == ip { 0 } else { real }
}

/// Returns the same as [`real_address`], or `ip` if that stands for itself.
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
        // In the kernel's code for the ends of calls: its system call has put the address there.
        return user_word(slot.wrapping_add(pushed * 8)) | pushed << PUSHED_SHIFT;
    }
    // The kernel has not noted yet what it replaced.
    return_address_at(slot)
}

/// Returns the return address that was replaced at `slot`, or `above` bytes above it, with the
/// words of [`PUSHED_SHIFT`]; 0 if there is none. `first` is the thread's newest `return_instance`.
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

/// Runs a plain loop, which is verified once for each turn: some 4,000 instructions.
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

/// Returns how many words the kernel's code for the ends of calls has pushed when the thread is at
/// `ip`; 0 if that is not in this code, or is a return address (`exact` is 0). From Linux 6.11 on
/// this code is at the beginning of a page
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
    /// The word at byte 9, little-endian: the end of the `mov` and all behind it.
    const END: u64 = 0xc359_5b41_050f_0000;
    let at = ip & 0xfff;
    if exact == 0 || at > 16 || user_word((ip - at) + 9) != END {
        return 0;
    }
    WORDS >> (at * 2) & 3
}

/// The state of the search of [`replaced_return`].
struct Search {
    slot: u64,
    above: u64,
    /// The `return_instance` that is looked at next; 0 behind the last one.
    instance: u64,
    /// The address that was found; 0 until then.
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
