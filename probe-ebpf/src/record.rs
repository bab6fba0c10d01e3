//! The record of one sample in the ring buffer: a header, then kernel frames,
//! then user frames, one word each, then Python frames, two words each; all of them
//! innermost first.

use crate::registers::{Registers, SCRATCH_REGISTERS};
use crate::status;

/// Length of a thread's name in the kernel, with its final zero.
pub const COMM_LEN: usize = 16;

/// The header of a record, before the frames. It has no padding: every byte is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct SampleHeader {
    /// When the event happened, by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The control group of the thread, in the hierarchy of version 2.
    pub cgroup_id: u64,
    /// The pc of the frame that the walk stopped in.
    pub stopped_at: u64,
    /// The process, by its number in the first pid namespace.
    pub tgid: u32,
    /// The thread, by its number in that namespace.
    pub tid: u32,
    /// The CPU that the thread ran on.
    pub cpu: u32,
    /// How many frames of the kernel follow, innermost first.
    pub kernel_frames: u16,
    /// How many frames of the program follow those of the kernel.
    pub user_frames: u16,
    /// How the walk of the user stack ended: a [`status`](crate::status).
    pub status: u8,
    /// What the record holds: a [`record_kind`].
    pub kind: u8,
    /// The number of steps by frame pointer at the end of the walk.
    pub links: u16,
    /// What happened: an [`event`].
    pub event: u8,
    /// The number of the probe, if the event is a call.
    pub probe: u8,
    /// The number of Python entries behind the user frames, and how their walk ended: a
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

impl SampleHeader {
    /// Whether something has to be read soon, before it is gone: the mappings and files of a process
    /// that is new, or functions of Python. Nothing is read about threads of the kernel, nor about a
    /// stack that was walked to its end by tables that are in place.
    #[inline(always)]
    pub fn is_urgent(&self) -> bool {
        let is_end = [status::END, status::CHAIN_END].contains(&u32::from(self.status));
        let is_known = self.kind == record_kind::WALKED && self.python == 0 && is_end;
        self.user_frames > 0 && !is_known
    }
}

/// The kinds of event that records report. Each has a file among the programs; a
/// reader ignores the records of kinds that it does not know.
pub mod event {
    /// The sampling clock found a task on a CPU.
    pub const TICK: u8 = 0;
    /// A function that has a probe was called.
    pub const CALL: u8 = 1;
    /// A call that took long has ended.
    pub const SLOW_CALL: u8 = 2;
    /// A thread has waited, and runs again. In front of its frames, and counted as frames of the
    /// kernel, are [`WAIT_WORDS`](crate::waits::WAIT_WORDS) words about the wait.
    pub const WAIT: u8 = 3;
    /// A thread has ended. In place of frames of the kernel are
    /// [`THREAD_WORDS`](crate::waits::THREAD_WORDS) words about its life.
    pub const THREAD_END: u8 = 4;
    /// Something counted besides time has happened so often that a sample is due. In front of the
    /// frames of the kernel are [`HAPPENING_WORDS`](super::HAPPENING_WORDS) words.
    pub const HAPPENING: u8 = 5;
    /// A thread has ended a wait of another one. In front of its frames are
    /// [`WAIT_WORDS`](crate::waits::WAIT_WORDS) words about that wait, in which the thread that
    /// waited stands in the place of the thread that ended the wait.
    pub const WAKE: u8 = 6;
}

/// Number of words in front of the kernel's frames in a record of [`event::HAPPENING`]: one, with
/// how often it has happened since the last sample, or how many passes this sample stands for.
pub const HAPPENING_WORDS: usize = 1;

/// What a record holds.
pub mod record_kind {
    /// A sample with its frames.
    pub const WALKED: u8 = 0;
    /// A sample with its frames, walked by frame pointers only, because the process's tables
    /// are not in place; records with its whole stack follow on the same CPU.
    pub const STACK_FOLLOWS: u8 = 1;
    /// A header, a [`super::RawStack`] and a copy of a part of the stack, the first
    /// one from `sp` on. The header's time is that of the sample that the stack belongs to.
    pub const STACK: u8 = 2;
    /// A sample with its frames, walked by tables; its stack follows as well, to
    /// be walked a second time.
    pub const CHECKED: u8 = 3;
}

/// The registers of a thread, and how much of its stack follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct RawStack {
    /// The registers that every walk needs.
    pub registers: Registers,
    /// The registers that the rule of the interrupted function may need.
    pub scratch: [u64; SCRATCH_REGISTERS],
    /// How many bytes of the stack follow.
    pub stack_bytes: u64,
    /// How far above `sp` these bytes begin: a long stack comes in several records.
    pub offset: u64,
    /// Where the stack ends, or the mapping that it is in; 0 if that is not known.
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

    /// Makes the frame of an instruction that was interrupted.
    #[inline(always)]
    pub const fn exact(address: u64) -> Self {
        Self(address | Self::EXACT)
    }

    /// Makes a frame from the address that a call returns to, behind the call instruction.
    #[inline(always)]
    pub const fn return_address(address: u64) -> Self {
        Self(address)
    }

    /// Returns whether it is the address of an instruction that was interrupted.
    pub const fn is_exact(self) -> bool {
        self.0 & Self::EXACT != 0
    }

    /// Returns the address alone.
    pub const fn address(self) -> u64 {
        self.0 & !(0xf << Self::KIND_SHIFT)
    }

    /// Returns an address inside the instruction that was running or calling.
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
    use crate::python::{self, Summary, lock};

    #[test]
    fn what_may_soon_be_gone_is_urgent() {
        let known = SampleHeader {
            time_ns: 0,
            cgroup_id: 0,
            stopped_at: 0,
            tgid: 1,
            tid: 1,
            cpu: 0,
            kernel_frames: 5,
            user_frames: 3,
            status: status::END as u8,
            kind: record_kind::WALKED,
            links: 0,
            event: event::TICK,
            probe: 0,
            python: 0,
            comm: [0; COMM_LEN],
        };
        assert!(!known.is_urgent());
        let of_kernel = SampleHeader {
            user_frames: 0,
            status: status::NO_STACK as u8,
            ..known
        };
        assert!(!of_kernel.is_urgent());
        let new_process = SampleHeader {
            kind: record_kind::STACK_FOLLOWS,
            ..known
        };
        assert!(new_process.is_urgent());
        let new_mapping = SampleHeader {
            status: status::NO_MAPPING as u8,
            ..known
        };
        assert!(new_mapping.is_urgent());
        let of_python = SampleHeader {
            python: Summary::new(2, python::status::WHOLE, lock::UNKNOWN).0,
            ..known
        };
        assert!(of_python.is_urgent());
    }

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
