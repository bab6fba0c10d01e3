//! The record under construction: its header, and its way to the ring buffer.

use super::maps::{IS_RESTING, SAMPLES, Scratch, WAKE_BYTES};
use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP};
use aya_ebpf::helpers::{bpf_get_current_comm, generated as helpers};
use core::ffi::c_void;
use probe_ebpf::limits::FRAMES_MAX;
use probe_ebpf::python::Summary;
use probe_ebpf::record::{COMM_LEN, record_kind};
use probe_ebpf::{SampleHeader, status};

const HEADER_BYTES: u64 = size_of::<SampleHeader>() as u64;
const FRAMES_BYTES_MAX: u64 = FRAMES_MAX as u64 * 8;

/// Begins a record: fills in what every event has, which is its kind, time, CPU and thread. `id` is
/// the result of `bpf_get_current_pid_tgid`.
#[inline(always)]
pub fn begin(scratch: *mut Scratch, event: u8, time_ns: u64, id: u64) {
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
    header.event = event;
    header.probe = 0;
    header.python = 0;
    header.comm = comm;
}

/// Copies as much of the record as is filled to the ring buffer. The reader is only woken up when
/// much is waiting or, if it rests, by a record about which something has to be read at once;
/// otherwise it reads at its own times. Returns 0 if there was room.
#[inline(never)]
pub fn submit(scratch: *mut Scratch) -> u32 {
    // SAFETY: the pointer comes from the per-CPU map and was checked there.
    let state = unsafe { &mut *scratch };
    let kernel_frames = state.header.kernel_frames;
    let python_words = 2 * Summary(state.header.python).frames() as u16;
    let native = (state.position as u16).wrapping_sub(python_words);
    state.header.user_frames = native.wrapping_sub(kernel_frames);
    state.header.stopped_at = state.walk.registers.ip;
    state.header.status = state.walk.status as u8;
    state.header.links = state.walk.links as u16;
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
        let is_resting = IS_RESTING.get(0).is_some_and(|resting| *resting != 0);
        let wake = if is_resting && (*scratch).header.is_urgent() || waiting > WAKE_BYTES.load() {
            BPF_RB_FORCE_WAKEUP
        } else {
            BPF_RB_NO_WAKEUP
        };
        let record = &raw mut (*scratch).header as *mut c_void;
        helpers::bpf_ringbuf_output(ring, record, bytes, wake as u64)
    };
    (written != 0) as u32
}
