//! Writes both stacks of the current task into the record under construction.

use super::maps::{CHECK_WALKS, Scratch};
use super::raw;
use super::walk::{mappings_of, this_cpus_cache, walk};
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::limits::KERNEL_FRAMES_MAX;
use probe_ebpf::record::record_kind;
use probe_ebpf::status;

/// Writes the kernel's stack. Only for a CPU that was in the kernel: otherwise there is none,
/// and the call costs a tenth of a microsecond.
#[inline(always)]
pub fn kernel(context: *mut c_void, scratch: *mut Scratch) {
    kernel_behind::<0>(context, scratch);
}

/// Like [`kernel`], for a record whose first `WORDS` words are taken: the stack is written behind
/// them, and has room for `WORDS` frames less.
#[inline(always)]
pub fn kernel_behind<const WORDS: usize>(context: *mut c_void, scratch: *mut Scratch) {
    // SAFETY: the array is longer than the words and what the helper may write.
    let bytes = unsafe {
        helpers::bpf_get_stack(
            context,
            (&raw mut (*scratch).frames as *mut u64).add(WORDS) as *mut c_void,
            ((KERNEL_FRAMES_MAX - WORDS) * 8) as u32,
            0,
        )
    };
    if bytes > 0 {
        let frames = ((bytes as u32) >> 3) + WORDS as u32;
        // SAFETY: the pointer comes from the per-CPU map and was checked there.
        let state = unsafe { &mut *scratch };
        state.position = frames;
        state.header.kernel_frames = frames as u16;
    }
}

/// Walks the user stack, if there is one.
#[inline(never)]
pub fn user(scratch: *mut Scratch) -> u32 {
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let state = unsafe { &mut *scratch };
    if state.walk.status != status::CALLER {
        return 0;
    }
    let list = mappings_of(state.header.tgid);
    if list.length() == 0 {
        raw::prepare(state, record_kind::STACK_FOLLOWS);
    } else if CHECK_WALKS.load() != 0 {
        raw::prepare(state, record_kind::CHECKED);
    }
    if let Some(cache) = this_cpus_cache() {
        walk(scratch, list, cache);
    }
    0
}
