//! One sample, from the tick to the ring buffer.

use super::filter::is_target;
use super::maps::{SAMPLES, SCRATCH, Scratch, WAKE_BYTES, count};
use super::raw;
use super::walk::{mappings_of, walk};
use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP, pt_regs};
use aya_ebpf::helpers::{bpf_get_current_comm, bpf_get_current_pid_tgid, generated as helpers};
use aya_ebpf::programs::PerfEventContext;
use core::ffi::c_void;
use probe_ebpf::limits::{FRAMES_MAX, KERNEL_FRAMES_MAX};
use probe_ebpf::record::{COMM_LEN, record_kind};
use probe_ebpf::settings::counter;
use probe_ebpf::walk::Walk;
use probe_ebpf::{Ending, SampleHeader};

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
    // SAFETY: a perf event program's context holds the interrupted registers.
    let interrupted = unsafe { &raw const (*ctx.ctx).regs };
    // SAFETY: as above; a plain load that the verifier knows.
    let in_user_mode = unsafe { (*interrupted).cs & 3 == 3 };
    let kernel_frames = if in_user_mode {
        0
    } else {
        kernel_stack(ctx, scratch)
    };
    let mut kind = record_kind::WALKED;
    let ending = if user_registers(interrupted, in_user_mode, scratch, kernel_frames) {
        let list = mappings_of(tgid);
        // SAFETY: the pointer comes from the per-CPU map and was checked there.
        if list.length() == 0 && raw::prepare(unsafe { &(*scratch).walk }, start_ns) {
            kind = record_kind::STACK_FOLLOWS;
        }
        walk(scratch, list)
    } else {
        // SAFETY: as above.
        without_stack(unsafe { (*scratch).walk.registers.ip })
    };
    write_header(scratch, start_ns, id, kernel_frames, ending, kind);
    submit(scratch);
    if kind == record_kind::STACK_FOLLOWS {
        raw::ship(scratch);
    }
    count(counter::SPENT_NS, now_ns().wrapping_sub(start_ns));
}

#[inline(always)]
fn now_ns() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { helpers::bpf_ktime_get_ns() }
}

/// Only asked for when the CPU was in the kernel: otherwise there is none, and
/// the question costs a tenth of a microsecond.
#[inline(always)]
fn kernel_stack(ctx: &PerfEventContext, scratch: *mut Scratch) -> u32 {
    // SAFETY: the array is longer than what the helper may write.
    let bytes = unsafe {
        helpers::bpf_get_stack(
            ctx.as_ptr(),
            &raw mut (*scratch).frames as *mut c_void,
            (KERNEL_FRAMES_MAX * 8) as u32,
            0,
        )
    };
    if bytes > 0 { (bytes as u32) >> 3 } else { 0 }
}

/// Fills `scratch.walk`. False if there is no stack to walk.
#[inline(always)]
fn user_registers(
    interrupted: *const pt_regs,
    in_user_mode: bool,
    scratch: *mut Scratch,
    kernel_frames: u32,
) -> bool {
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let state = unsafe { &mut *scratch };
    state.position = kernel_frames;
    state.walk.registers.ip = 0;
    let mut cs = 0;
    if in_user_mode {
        // SAFETY: the context's registers, read one by one.
        unsafe {
            cs = (*interrupted).cs;
            state.walk.registers.ip = (*interrupted).rip;
            state.walk.registers.sp = (*interrupted).rsp;
            state.walk.registers.bp = (*interrupted).rbp;
            // In the order of `rule::base`, from r10 on.
            state.walk.scratch[0] = (*interrupted).r10;
            state.walk.scratch[1] = (*interrupted).rax;
            state.walk.scratch[2] = (*interrupted).rcx;
            state.walk.scratch[3] = (*interrupted).rsi;
            state.walk.scratch[4] = (*interrupted).rdi;
            state.walk.scratch[5] = (*interrupted).r8;
            state.walk.scratch[6] = (*interrupted).r9;
            state.walk.scratch[7] = (*interrupted).r11;
            state.walk.scratch[8] = (*interrupted).r13;
        }
    } else if !entry_registers(&mut state.walk, &mut cs) {
        return false;
    }
    cs != USER32_CS
}

/// Why there is none: a kernel thread has no user registers at all.
#[inline(always)]
fn without_stack(ip: u64) -> Ending {
    if ip == 0 {
        Ending::NoUserStack
    } else {
        Ending::Compat32
    }
}

/// The registers with which the current task entered the kernel. False for a
/// kernel thread: it never did.
#[inline(always)]
fn entry_registers(walk: &mut Walk, cs: &mut u64) -> bool {
    // SAFETY: helpers made for this; every read is checked by the kernel, and
    // the offsets in pt_regs are part of the x86-64 ABI.
    unsafe {
        let task = helpers::bpf_get_current_task_btf();
        let entry = helpers::bpf_task_pt_regs(task) as *const pt_regs;
        read_kernel(cs, &raw const (*entry).cs);
        if *cs & 3 != 3 {
            return false;
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
    }
    true
}

#[inline(always)]
fn read_kernel(into: &mut u64, from: *const u64) {
    // SAFETY: the helper checks the address and leaves zero on a fault.
    unsafe {
        helpers::bpf_probe_read_kernel(into as *mut u64 as *mut c_void, 8, from as *const c_void)
    };
}

#[inline(always)]
fn write_header(
    scratch: *mut Scratch,
    time_ns: u64,
    id: u64,
    kernel_frames: u32,
    ending: Ending,
    kind: u8,
) {
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
    let header = &mut state.header;
    header.time_ns = time_ns;
    header.cgroup_id = cgroup_id;
    header.stopped_at = match ending {
        Ending::Root | Ending::NoUserStack => 0,
        _ => state.walk.registers.ip,
    };
    header.tgid = (id >> 32) as u32;
    header.tid = id as u32;
    header.cpu = cpu;
    header.kernel_frames = kernel_frames as u16;
    header.user_frames = state.position.wrapping_sub(kernel_frames) as u16;
    header.ending = ending as u8;
    header.kind = kind;
    header.reserved = [0; 6];
    header.comm = comm;
}

/// Copies the record, as long as it is, to the ring buffer. The reader is only
/// woken up when much is waiting; otherwise it comes by itself.
#[inline(always)]
fn submit(scratch: *mut Scratch) {
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
}
