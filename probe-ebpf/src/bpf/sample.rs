//! One sample, from the tick to the ring buffer.

use super::filter::is_target;
use super::maps::{CHECK_WALKS, SAMPLES, SCRATCH, Scratch, TASK_FLAGS_OFFSET, WAKE_BYTES, count};
use super::raw;
use super::walk::{mappings_of, walk};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP, pt_regs};
use aya_ebpf::helpers::{bpf_get_current_comm, bpf_get_current_pid_tgid, generated as helpers};
use aya_ebpf::programs::PerfEventContext;
use core::ffi::c_void;
use probe_ebpf::SampleHeader;
use probe_ebpf::limits::{FRAMES_MAX, KERNEL_FRAMES_MAX};
use probe_ebpf::record::{COMM_LEN, record_kind};
use probe_ebpf::settings::counter;
use probe_ebpf::walk::status;

/// `cs` of 32-bit user code, `__USER32_CS` of the x86-64 kernel.
const USER32_CS: u64 = 0x23;

const HEADER_BYTES: u64 = size_of::<SampleHeader>() as u64;
const FRAMES_BYTES_MAX: u64 = FRAMES_MAX as u64 * 8;

#[inline(always)]
pub fn take(ctx: &PerfEventContext) {
    let start_ns = now_ns();
    let id = bpf_get_current_pid_tgid();
    let (tgid, tid) = ((id >> 32) as u32, id as u32);
    if id == 0 {
        count(counter::IDLE, 1);
        return;
    }
    if !is_target(tgid, tid) {
        count(counter::FILTERED, 1);
        return;
    }
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else {
        return;
    };
    begin(scratch, start_ns, id);
    // SAFETY: a perf event program's context holds the interrupted registers.
    let interrupted = unsafe { &raw const (*ctx.ctx).regs };
    // SAFETY: as above; a plain load that the verifier knows.
    if unsafe { (*interrupted).cs & 3 == 3 } {
        interrupted_registers(interrupted, scratch);
    } else {
        kernel_stack(ctx, scratch);
        entry_registers(scratch);
    }
    user_stack(scratch);
    submit(scratch);
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    if unsafe { (*scratch).header.kind } != record_kind::WALKED {
        raw::ship();
    }
    count(counter::SPENT_NS, now_ns().wrapping_sub(start_ns));
}

#[inline(always)]
fn now_ns() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { helpers::bpf_ktime_get_ns() }
}

// The steps below leave what they find in the map and not in registers: to the
// verifier a value from memory is any value, so that it goes through what comes
// after once, and not once for each way to get there.

#[inline(always)]
fn begin(scratch: *mut Scratch, time_ns: u64, id: u64) {
    let comm = bpf_get_current_comm().unwrap_or([0; COMM_LEN]);
    // SAFETY: helpers without pointers.
    let (cgroup_id, cpu) = unsafe {
        (
            helpers::bpf_get_current_cgroup_id(),
            helpers::bpf_get_smp_processor_id(),
        )
    };
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let state = unsafe { &mut *scratch };
    state.position = 0;
    state.walk.status = status::NO_STACK;
    state.walk.links = 0;
    state.walk.registers.ip = 0;
    let header = &mut state.header;
    header.time_ns = time_ns;
    header.cgroup_id = cgroup_id;
    header.tgid = (id >> 32) as u32;
    header.tid = id as u32;
    header.cpu = cpu;
    header.kernel_frames = 0;
    header.kind = record_kind::WALKED;
    header.comm = comm;
}

/// Only asked for when the CPU was in the kernel: otherwise there is none, and
/// the question costs a tenth of a microsecond.
#[inline(always)]
fn kernel_stack(ctx: &PerfEventContext, scratch: *mut Scratch) {
    // SAFETY: the array is longer than what the helper may write.
    let bytes = unsafe {
        helpers::bpf_get_stack(
            ctx.as_ptr(),
            &raw mut (*scratch).frames as *mut c_void,
            (KERNEL_FRAMES_MAX * 8) as u32,
            0,
        )
    };
    if bytes > 0 {
        let frames = (bytes as u32) >> 3;
        // SAFETY: the pointer comes from the per-CPU map and was checked there.
        let state = unsafe { &mut *scratch };
        state.position = frames;
        state.header.kernel_frames = frames as u16;
    }
}

#[inline(always)]
fn interrupted_registers(interrupted: *const pt_regs, scratch: *mut Scratch) {
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let walk = unsafe { &mut (*scratch).walk };
    // SAFETY: the context's registers, read one by one.
    unsafe {
        walk.status = status_for((*interrupted).cs);
        walk.registers.ip = (*interrupted).rip;
        walk.registers.sp = (*interrupted).rsp;
        walk.registers.bp = (*interrupted).rbp;
        // In the order of `rule::base`, from r10 on.
        walk.scratch[0] = (*interrupted).r10;
        walk.scratch[1] = (*interrupted).rax;
        walk.scratch[2] = (*interrupted).rcx;
        walk.scratch[3] = (*interrupted).rsi;
        walk.scratch[4] = (*interrupted).rdi;
        walk.scratch[5] = (*interrupted).r8;
        walk.scratch[6] = (*interrupted).r9;
        walk.scratch[7] = (*interrupted).r11;
        walk.scratch[8] = (*interrupted).r13;
        walk.scratch[9] = (*interrupted).rdx;
        walk.scratch[10] = (*interrupted).r12;
        walk.scratch[11] = (*interrupted).r14;
        walk.scratch[12] = (*interrupted).r15;
        walk.scratch[13] = (*interrupted).rbx;
    }
}

/// The registers with which the current task entered the kernel. A kernel
/// thread never did.
#[inline(never)]
fn entry_registers(scratch: *mut Scratch) -> u32 {
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let walk = unsafe { &mut (*scratch).walk };
    let mut cs = 0;
    // SAFETY: helpers made for this; every read is checked by the kernel, and
    // the offsets in pt_regs are part of the x86-64 ABI.
    unsafe {
        let task = helpers::bpf_get_current_task_btf();
        let entry = helpers::bpf_task_pt_regs(task) as *const pt_regs;
        read_kernel(&mut cs, &raw const (*entry).cs);
        walk.status = status_for(cs);
        if is_exiting(task as *const u8) {
            walk.status = status::EXITING;
        }
        read_kernel(&mut walk.registers.ip, &raw const (*entry).rip);
        read_kernel(&mut walk.registers.sp, &raw const (*entry).rsp);
        read_kernel(&mut walk.registers.bp, &raw const (*entry).rbp);
        // A page fault can hit where a cfa is counted from r10; a system call
        // cannot.
        read_kernel(&mut walk.scratch[0], &raw const (*entry).r10);
        read_kernel(&mut walk.scratch[1], &raw const (*entry).rax);
        read_kernel(&mut walk.scratch[2], &raw const (*entry).rcx);
        read_kernel(&mut walk.scratch[3], &raw const (*entry).rsi);
        read_kernel(&mut walk.scratch[4], &raw const (*entry).rdi);
        read_kernel(&mut walk.scratch[5], &raw const (*entry).r8);
        read_kernel(&mut walk.scratch[6], &raw const (*entry).r9);
        read_kernel(&mut walk.scratch[7], &raw const (*entry).r11);
        read_kernel(&mut walk.scratch[8], &raw const (*entry).r13);
        read_kernel(&mut walk.scratch[9], &raw const (*entry).rdx);
        read_kernel(&mut walk.scratch[10], &raw const (*entry).r12);
        read_kernel(&mut walk.scratch[11], &raw const (*entry).r14);
        read_kernel(&mut walk.scratch[12], &raw const (*entry).r15);
        read_kernel(&mut walk.scratch[13], &raw const (*entry).rbx);
    }
    0
}

/// Whether the task has begun to end: then its stack may be gone already.
#[inline(always)]
fn is_exiting(task: *const u8) -> bool {
    /// `PF_EXITING` of include/linux/sched.h, the same since Linux 2.6.
    const EXITING: u64 = 4;
    let offset = TASK_FLAGS_OFFSET.load();
    if offset == 0 {
        return false;
    }
    let mut flags = 0u64;
    // SAFETY: the offset is inside this kernel's task_struct.
    let address = unsafe { task.add(offset as usize) };
    read_kernel(&mut flags, address as *const u64);
    flags & EXITING != 0
}

/// Whether there is a stack to walk: by the code segment.
#[inline(always)]
fn status_for(cs: u64) -> u32 {
    if cs & 3 != 3 {
        status::NO_STACK
    } else if cs == USER32_CS {
        status::COMPAT_32
    } else {
        status::CALLER
    }
}

/// Walks the stack, if there is one.
#[inline(never)]
fn user_stack(scratch: *mut Scratch) -> u32 {
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
    walk(scratch, list);
    0
}

#[inline(always)]
fn read_kernel(into: &mut u64, from: *const u64) {
    // SAFETY: the helper checks the address and leaves zero on a fault.
    unsafe {
        helpers::bpf_probe_read_kernel(into as *mut u64 as *mut c_void, 8, from as *const c_void)
    };
}

/// Copies the record, as long as it is, to the ring buffer. The reader is only
/// woken up when much is waiting; otherwise it comes by itself.
#[inline(never)]
fn submit(scratch: *mut Scratch) -> u32 {
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let state = unsafe { &mut *scratch };
    let kernel_frames = state.header.kernel_frames;
    state.header.user_frames = (state.position as u16).wrapping_sub(kernel_frames);
    state.header.stopped_at = state.walk.registers.ip;
    state.header.status = state.walk.status as u8;
    state.header.links = state.walk.links as u16;
    state.header.reserved = [0; 4];
    let ring = &raw const SAMPLES as *mut c_void;
    // SAFETY: the pointers are a map and a value of a map; the length is bounded
    // by the value's.
    let written = unsafe {
        let bytes = HEADER_BYTES + (*scratch).position as u64 * 8;
        let bytes = if bytes > HEADER_BYTES + FRAMES_BYTES_MAX {
            HEADER_BYTES + FRAMES_BYTES_MAX
        } else {
            bytes
        };
        let waiting = helpers::bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA as u64);
        let wake = if waiting > WAKE_BYTES.load() {
            BPF_RB_FORCE_WAKEUP
        } else {
            BPF_RB_NO_WAKEUP
        };
        let record = &raw mut (*scratch).header as *mut c_void;
        helpers::bpf_ringbuf_output(ring, record, bytes, wake as u64)
    };
    count(
        if written == 0 {
            counter::TAKEN
        } else {
            counter::LOST
        },
        1,
    );
    0
}
