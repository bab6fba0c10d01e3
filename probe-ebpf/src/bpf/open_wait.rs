//! Waits that are not over: what user space needs to walk the stacks of the waiting threads.
//!
//! A thread that waits causes no event. So user space reads a file of this program, a *task
//! iterator*, and the program runs once for each thread during that read. Registers and
//! kernel frames do not change as long as the thread waits; the reader has to check whether
//! it still waited afterwards.

use super::maps::{OPEN_WAIT, WAIT_ORDERS, WAIT_PID_OFFSET};
use super::saved_registers::read_entry;
use super::threads;
use aya_ebpf::bindings::{pt_regs, seq_file, task_struct};
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::waits::{OpenWait, WAIT_KERNEL_FRAMES_MAX, state};

/// The context of the program: `struct bpf_iter__task` of kernel/bpf/task_iter.c.
#[repr(C)]
pub struct Step {
    meta: *const Meta,
    /// Null in the last run, behind all threads.
    task: *mut task_struct,
}

/// `struct bpf_iter_meta` of include/linux/bpf.h, as far as it is used.
#[repr(C)]
struct Meta {
    seq: *mut seq_file,
}

/// `CS` of 32-bit user code.
const USER32_CS: u64 = 0x23;

/// Runs for each thread of the machine.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub extern "C" fn wait_open(step: *mut Step) -> i32 {
    // SAFETY: the context of this kind of program.
    let (meta, task) = unsafe { ((*step).meta, (*step).task) };
    if !task.is_null() {
        tell(meta, task);
    }
    0
}

#[inline(always)]
fn tell(meta: *const Meta, task: *mut task_struct) {
    // SAFETY: the offset is this kernel's own for a field of that size.
    let tid = unsafe { *(task.byte_add(WAIT_PID_OFFSET.load() as usize) as *const u32) };
    let (Some(thread), Some(orders), Some(open)) = (
        threads::find(tid),
        WAIT_ORDERS.get_ptr(0),
        OPEN_WAIT.get_ptr_mut(0),
    ) else {
        return;
    };
    // SAFETY: values of live maps; only the reader of the file causes the third to be
    // written.
    unsafe {
        let (since_ns, what) = ((*thread).since_ns, (*thread).state);
        let is_meant = since_ns > (*orders).open_from_ns && since_ns <= (*orders).open_to_ns;
        if what == state::RUN || what == state::QUEUE || !is_meant {
            return;
        }
        if (*thread).woken_ns > since_ns {
            return;
        }
        let entry = helpers::bpf_task_pt_regs(task) as *const pt_regs;
        // A program of 32 bits has another kind of stack.
        if (*entry).cs == USER32_CS {
            return;
        }
        (*open).since_ns = since_ns;
        (*open).tid = tid;
        (*open).tgid = (*thread).tgid;
        (*open).state = what;
        (*open).comm = (*thread).comm;
        let (registers, scratch) = (&mut (*open).registers, &mut (*open).scratch);
        read_entry(entry, registers, scratch);
        let bytes = helpers::bpf_get_task_stack(
            task,
            &raw mut (*open).kernel as *mut c_void,
            (WAIT_KERNEL_FRAMES_MAX * 8) as u32,
            0,
        );
        (*open).kernel_frames = if bytes > 0 { (bytes as u32) >> 3 } else { 0 };
        helpers::bpf_seq_write(
            (*meta).seq,
            open as *const c_void,
            size_of::<OpenWait>() as u32,
        );
    }
}
