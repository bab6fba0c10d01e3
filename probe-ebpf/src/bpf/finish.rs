//! The end of a record that has the stack of the current task.

use super::maps::Scratch;
use super::{python, raw, record, stacks};
use probe_ebpf::record::record_kind;

/// Adds the frames of the program to those of the kernel, and sends the record. `count` gets
/// whether the ring buffer had room for it.
#[inline(always)]
pub fn walk_and_send(scratch: *mut Scratch, count: impl FnOnce(bool)) {
    stacks::user(scratch);
    python::frames(scratch);
    count(record::submit(scratch) == 0);
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    if unsafe { (*scratch).header.kind } != record_kind::WALKED {
        raw::ship();
    }
}
