//! Reads of single words of memory.

use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;

/// Reads the word at an address of the kernel. Returns 0 if it cannot be read.
#[inline(always)]
pub fn kernel_word(address: u64) -> u64 {
    let mut word = 0u64;
    // SAFETY: the helper checks the address and leaves zero on a fault.
    unsafe {
        helpers::bpf_probe_read_kernel(&raw mut word as *mut c_void, 8, address as *const c_void)
    };
    word
}

/// Reads the word at an address of the current process. Returns 0 if it cannot be read.
#[inline(always)]
pub fn user_word(address: u64) -> u64 {
    let mut word = 0u64;
    // SAFETY: the helper checks the address and leaves zero on a fault.
    unsafe {
        helpers::bpf_probe_read_user(&raw mut word as *mut c_void, 8, address as *const c_void)
    };
    word
}
