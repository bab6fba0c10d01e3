//! Single words of memory.

use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;

/// The word at an address of the kernel; 0 if it cannot be read.
#[inline(always)]
pub fn kernel_word(address: u64) -> u64 {
    let mut word = 0u64;
    // SAFETY: the helper checks the address and leaves zero on a fault.
    unsafe {
        helpers::bpf_probe_read_kernel(&raw mut word as *mut c_void, 8, address as *const c_void)
    };
    word
}

/// The word at an address of the current process; 0 if it cannot be read.
#[inline(always)]
pub fn user_word(address: u64) -> u64 {
    let mut word = 0u64;
    // SAFETY: the helper checks the address and leaves zero on a fault.
    unsafe {
        helpers::bpf_probe_read_user(&raw mut word as *mut c_void, 8, address as *const c_void)
    };
    word
}
