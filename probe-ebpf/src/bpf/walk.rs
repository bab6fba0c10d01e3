//! The walk of the user stack: one frame per call of the loop's body.

use super::maps::{MAX_USER_FRAMES, SCRATCH, Scratch};
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::limits::FRAMES_MAX;
use probe_ebpf::{Ending, Memory, Step, UserFrame, frame_pointer};

/// The memory of the current task.
struct UserMemory;

impl Memory for UserMemory {
    #[inline(always)]
    fn read_pair(&mut self, address: u64) -> Option<(u64, u64)> {
        let mut words = [0u64; 2];
        // SAFETY: the helper checks the address and writes 16 bytes to `words`.
        let read = unsafe {
            helpers::bpf_probe_read_user(
                &raw mut words as *mut c_void,
                16,
                address as *const c_void,
            )
        };
        if read == 0 {
            Some((words[0], words[1]))
        } else {
            None
        }
    }
}

/// Walks from the registers in `scratch.walk`, writes the frames behind those
/// that are there already, and says how it ended.
#[inline(always)]
pub fn walk(scratch: *mut Scratch) -> Ending {
    let body = one_frame as *mut c_void;
    // SAFETY: the body takes all its state from the per-CPU map.
    unsafe { helpers::bpf_loop(MAX_USER_FRAMES.load(), body, core::ptr::null_mut(), 0) };
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let (last_step, user_frames) =
        unsafe { ((*scratch).walk.last_step, (*scratch).walk.user_frames) };
    if last_step == Step::Caller as u32 {
        return Ending::TooDeep;
    }
    // A chain that fails at its first link never was one: the interrupted code
    // uses rbp for something else, whatever it holds.
    if user_frames <= 1 {
        return Ending::NoFramePointer;
    }
    if last_step == Step::ChainEnd as u32 {
        Ending::Root
    } else if last_step == Step::ReadFault as u32 {
        Ending::ReadFault
    } else {
        Ending::BrokenChain
    }
}

/// The loop's body. Not exported: the kernel demands a static function.
unsafe extern "C" fn one_frame(_index: u32, _context: *mut c_void) -> i64 {
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else {
        return 1;
    };
    // SAFETY: a per-CPU value that nobody else on this CPU uses meanwhile.
    let walk = unsafe { &mut (*scratch).walk };
    let position = walk.position as usize;
    if position >= FRAMES_MAX {
        return 1;
    }
    let ip = walk.registers.ip;
    let frame = if walk.user_frames == 0 {
        UserFrame::exact(ip)
    } else {
        UserFrame::return_address(ip)
    };
    // SAFETY: `position` was checked against the array's length.
    unsafe { (*scratch).frames[position] = frame.0 };
    walk.position += 1;
    walk.user_frames += 1;
    let step = frame_pointer::step(&mut walk.registers, &mut UserMemory);
    walk.last_step = step as u32;
    if step == Step::Caller { 0 } else { 1 }
}
