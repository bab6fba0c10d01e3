//! The clock of all records.

use aya_ebpf::helpers::generated as helpers;

/// Returns nanoseconds of `CLOCK_MONOTONIC`.
#[inline(always)]
pub fn now_ns() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { helpers::bpf_ktime_get_ns() }
}
