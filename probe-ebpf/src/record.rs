//! The record of one sample in the ring buffer: a header, then kernel frames,
//! then user frames, one word each, then Python frames, two words each; all of them
//! innermost first.

use crate::registers::{Registers, SCRATCH_REGISTERS};

/// Length of a thread's name in the kernel, with its final zero.
pub const COMM_LEN: usize = 16;

/// What precedes the frames. No padding: every byte is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct SampleHeader {
    /// `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The control group of the thread, in the hierarchy of version 2.
    pub cgroup_id: u64,
    /// The pc of the frame that the walk stopped in.
    pub stopped_at: u64,
    /// The process, as the first pid namespace numbers it.
    pub tgid: u32,
    /// The thread, numbered likewise.
    pub tid: u32,
    /// Where it ran.
    pub cpu: u32,
    /// How many frames of the kernel follow, innermost first.
    pub kernel_frames: u16,
    /// How many frames of the program follow those.
    pub user_frames: u16,
    /// How the walk ended: a [`status`](crate::status).
    pub status: u8,
    /// A [`record_kind`].
    pub kind: u8,
    /// Frame pointers followed at the end of the walk.
    pub links: u16,
    /// What happened: an [`event`].
    pub event: u8,
    /// Of a call: the number of the probe.
    pub probe: u8,
    /// Python frames behind the user frames, and how their walk ended: a
    /// [`Summary`](crate::python::Summary).
    pub python: u16,
    /// The name of the thread, with a zero behind it.
    pub comm: [u8; COMM_LEN],
}

const _: () = {
    assert!(size_of::<SampleHeader>() == 64);
    assert!(align_of::<SampleHeader>() == 8);
    assert!(core::mem::offset_of!(SampleHeader, time_ns) == 0);
    assert!(core::mem::offset_of!(SampleHeader, cgroup_id) == 8);
    assert!(core::mem::offset_of!(SampleHeader, stopped_at) == 16);
    assert!(core::mem::offset_of!(SampleHeader, tgid) == 24);
    assert!(core::mem::offset_of!(SampleHeader, tid) == 28);
    assert!(core::mem::offset_of!(SampleHeader, cpu) == 32);
    assert!(core::mem::offset_of!(SampleHeader, kernel_frames) == 36);
    assert!(core::mem::offset_of!(SampleHeader, user_frames) == 38);
    assert!(core::mem::offset_of!(SampleHeader, status) == 40);
    assert!(core::mem::offset_of!(SampleHeader, kind) == 41);
    assert!(core::mem::offset_of!(SampleHeader, links) == 42);
    assert!(core::mem::offset_of!(SampleHeader, event) == 44);
    assert!(core::mem::offset_of!(SampleHeader, probe) == 45);
    assert!(core::mem::offset_of!(SampleHeader, python) == 46);
    assert!(core::mem::offset_of!(SampleHeader, comm) == 48);
};

/// The kinds of event that records are of. Each has a file among the programs; a
/// reader that does not know one leaves its records alone.
pub mod event {
    /// The sampling clock found a task on a CPU.
    pub const TICK: u8 = 0;
    /// A function was called that has a probe.
    pub const CALL: u8 = 1;
    /// A call has ended that took long.
    pub const SLOW_CALL: u8 = 2;
    /// A thread has waited, and runs again. In front of its frames, and counted with those
    /// of the kernel, are [`WAIT_WORDS`](crate::waits::WAIT_WORDS).
    pub const WAIT: u8 = 3;
    /// A thread has ended; instead of frames of the kernel come
    /// [`THREAD_WORDS`](crate::waits::THREAD_WORDS).
    pub const THREAD_END: u8 = 4;
    /// Something that is counted has happened so often that it gives a sample. In front of the
    /// frames of the kernel come [`HAPPENING_WORDS`](super::HAPPENING_WORDS).
    pub const HAPPENING: u8 = 5;
    /// A thread has ended a wait of another one. In front of its frames come
    /// [`WAIT_WORDS`](crate::waits::WAIT_WORDS), of that wait: in place of who ended it stands who
    /// waited.
    pub const WAKE: u8 = 6;
}

/// What stands in front of the kernel's frames in a record of [`event::HAPPENING`]: how often it
/// has happened since the last sample, or how often one stands for.
pub const HAPPENING_WORDS: usize = 1;

/// What a record is.
pub mod record_kind {
    /// A sample with its frames.
    pub const WALKED: u8 = 0;
    /// The same, walked by frame pointers only, because the process's tables are
    /// not in place; its whole stack follows on the same CPU.
    pub const STACK_FOLLOWS: u8 = 1;
    /// A header, a [`super::RawStack`] and a copy of a part of the stack, the
    /// first one from `sp` on. The header's time is that of the sample before it.
    pub const STACK: u8 = 2;
    /// A sample with its frames, walked by tables; its stack follows as well, to
    /// be walked a second time.
    pub const CHECKED: u8 = 3;
}

/// The registers of a thread, and how much of its stack follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct RawStack {
    /// Those that every walk needs.
    pub registers: Registers,
    /// Those that a function's own rule may need.
    pub scratch: [u64; SCRATCH_REGISTERS],
    /// How many bytes of the stack follow.
    pub stack_bytes: u64,
    /// How far above `sp` they begin: a long stack comes in several records.
    pub offset: u64,
    /// Where the mapping ends that the stack is in; 0 if that cannot be told.
    pub end: u64,
}

const _: () = {
    assert!(size_of::<RawStack>() == 160);
    assert!(core::mem::offset_of!(RawStack, scratch) == 24);
    assert!(core::mem::offset_of!(RawStack, stack_bytes) == 136);
    assert!(core::mem::offset_of!(RawStack, offset) == 144);
    assert!(core::mem::offset_of!(RawStack, end) == 152);
};

/// A user frame as one word: what kind of address it is, and the address.
///
/// User addresses need 56 bits at most, so the top four hold the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct UserFrame(pub u64);

impl UserFrame {
    const KIND_SHIFT: u32 = 60;
    const EXACT: u64 = 1 << Self::KIND_SHIFT;

    /// The instruction that was interrupted.
    #[inline(always)]
    pub const fn exact(address: u64) -> Self {
        Self(address | Self::EXACT)
    }

    /// Where a call returns to: it lies behind the call instruction.
    #[inline(always)]
    pub const fn return_address(address: u64) -> Self {
        Self(address)
    }

    /// Whether it is the address of an instruction that was interrupted.
    pub const fn is_exact(self) -> bool {
        self.0 & Self::EXACT != 0
    }

    /// The address alone.
    pub const fn address(self) -> u64 {
        self.0 & !(0xf << Self::KIND_SHIFT)
    }

    /// An address inside the instruction that was running or calling.
    pub const fn address_for_lookup(self) -> u64 {
        if self.is_exact() {
            self.address()
        } else {
            self.address().wrapping_sub(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_address_is_looked_up_inside_its_call() {
        assert_eq!(
            UserFrame::return_address(0x1000).address_for_lookup(),
            0xfff
        );
        assert_eq!(UserFrame::exact(0x1000).address_for_lookup(), 0x1000);
        assert_eq!(
            UserFrame::exact(0x7fff_ffff_f000).address(),
            0x7fff_ffff_f000
        );
    }
}
