//! Copies of whole stacks of threads, for processes whose tables are not in place
//! yet: user space walks them by the same code once the tables are.

mod goroutine;
mod put_back;

use super::maps::{RAW_SCRATCH, RawScratch, SAMPLES, SCRATCH, Scratch, WAKE_BYTES, count};
use super::probed::{PUSHED_SHIFT, real_address};
use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_NO_WAKEUP};
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::limits::{
    PAGE_BYTES, RAW_BYTES_PER_SECOND, RAW_FIRST_BYTES_PER_SECOND, RAW_PAGES, RAW_PARTS,
    RAW_PARTS_BLIND, RAW_PARTS_TAIL,
};
use probe_ebpf::record::record_kind;
use probe_ebpf::settings::counter;
use probe_ebpf::{RawStack, SampleHeader};
use put_back::put_back_returns;

const HEADERS: u64 = (size_of::<SampleHeader>() + size_of::<RawStack>()) as u64;
const PART_MAX: u64 = (RAW_PAGES * PAGE_BYTES) as u64;

/// Returns the room of this CPU.
#[inline(always)]
pub fn this_cpus() -> Option<*mut RawScratch> {
    // SAFETY: a helper without arguments.
    RAW_SCRATCH.get_ptr_mut(unsafe { helpers::bpf_get_smp_processor_id() })
}

/// Copies the registers before the walk changes them, and sets the `kind` in the
/// sample's header, which says that a stack follows. Does nothing if there have been
/// enough stacks in this second.
#[inline(always)]
pub fn prepare(sample: &mut Scratch, kind: u8) {
    let Some(raw) = this_cpus() else {
        return;
    };
    let walk = &sample.walk;
    // SAFETY: a per-CPU value that nothing else on this CPU uses meanwhile.
    let raw = unsafe { &mut *raw };
    let second = sample.header.time_ns >> 30;
    if raw.second != second {
        raw.second = second;
        raw.shipped = 0;
    }
    if raw.shipped >= RAW_BYTES_PER_SECOND {
        count(counter::STACKS_OVER_RATE, 1);
        return;
    }
    let into = &mut raw.raw;
    let (ip, sp) = (walk.registers.ip, walk.registers.sp);
    let real = real_address(ip, sp, 1);
    into.registers.ip = if real != 0 {
        real & ((1 << PUSHED_SHIFT) - 1)
    } else {
        ip
    };
    into.registers.sp = sp + (real >> PUSHED_SHIFT) * 8;
    into.registers.bp = walk.registers.bp;
    into.scratch[0] = walk.scratch[0];
    into.scratch[1] = walk.scratch[1];
    into.scratch[2] = walk.scratch[2];
    into.scratch[3] = walk.scratch[3];
    into.scratch[4] = walk.scratch[4];
    into.scratch[5] = walk.scratch[5];
    into.scratch[6] = walk.scratch[6];
    into.scratch[7] = walk.scratch[7];
    into.scratch[8] = walk.scratch[8];
    into.scratch[9] = walk.scratch[9];
    into.scratch[10] = walk.scratch[10];
    into.scratch[11] = walk.scratch[11];
    into.scratch[12] = walk.scratch[12];
    into.scratch[13] = walk.scratch[13];
    sample.header.kind = kind;
}

/// Ships the stack whose registers [`prepare`] has copied, after the sample it belongs to,
/// part by part: the first, those at the stack's end, then what is between them.
#[inline(never)]
pub fn ship() -> u32 {
    let Some(raw) = this_cpus() else {
        return 0;
    };
    find_end(raw);
    ship_parts();
    0
}

#[cfg(not(feature = "without_loop"))]
#[inline(always)]
fn ship_parts() {
    let body = ship_part as *mut c_void;
    // SAFETY: the body takes all its state from per-CPU maps. A loop in Rust
    // would be verified for every number of parts.
    unsafe { helpers::bpf_loop(RAW_PARTS as u32, body, core::ptr::null_mut(), 0) };
}

#[cfg(feature = "without_loop")]
#[inline(always)]
fn ship_parts() {
    super::without_loop::repeat(RAW_PARTS as u32, |number| ship_one_part(number));
}

/// Ships the part with that number.
#[cfg(feature = "without_loop")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn ship_one_part(number: u64) -> u64 {
    // SAFETY: the body takes all its state from per-CPU maps.
    unsafe { ship_part(number as u32, core::ptr::null_mut()) as u64 }
}

/// Finds where the stack ends, or the mapping that it is in. In an interrupt the kernel answers one
/// such question at most, and none while the mappings of the process change.
#[inline(always)]
fn find_end(raw: *mut RawScratch) {
    const TAIL: u64 = RAW_PARTS_TAIL as u64 * PART_MAX;
    // SAFETY: a per-CPU value of this CPU.
    unsafe {
        (*raw).next = 0;
        (*raw).tail = 0;
        let end = &raw mut (*raw).raw.end;
        let sp = (*raw).raw.registers.sp;
        // The callback changes it behind the compiler's back.
        end.write_volatile(0);
        ask_for_end(sp);
        let mapped = end.read_volatile();
        let told = goroutine::stack_end(sp);
        let end = if told != 0 && (told < mapped || mapped == 0) {
            end.write_volatile(told);
            told
        } else {
            mapped
        };
        if end.wrapping_sub(sp) > PART_MAX + TAIL && end > sp {
            (*raw).tail = end - TAIL;
        }
    }
}

/// Makes the kernel call [`note_end`] with the mapping that holds `sp`.
#[cfg(not(feature = "without_loop"))]
#[inline(always)]
fn ask_for_end(sp: u64) {
    let body = note_end as *mut c_void;
    // SAFETY: the task is the current one, and the body takes its state from a per-CPU map.
    unsafe {
        let task = helpers::bpf_get_current_task_btf();
        helpers::bpf_find_vma(task, sp, body, core::ptr::null_mut(), 0);
    }
}

/// Kernels without `bpf_loop` have nothing that can be asked, so the end is not known.
#[cfg(feature = "without_loop")]
#[inline(always)]
fn ask_for_end(_sp: u64) {}

/// The kernel calls this with the mapping. `vm_start` and `vm_end` have always been
/// the first two words of a `vm_area_struct`.
#[cfg(not(feature = "without_loop"))]
unsafe extern "C" fn note_end(_task: *mut c_void, mapping: *const u64, _: *mut c_void) -> i64 {
    if let Some(raw) = this_cpus() {
        // SAFETY: a per-CPU value of this CPU, and a structure of the kernel whose
        // fields the verifier knows.
        unsafe { (*raw).raw.end = *mapping.add(1) };
    }
    0
}

/// The loop's body: ships one part. Returns 1 if there is no more of the stack, or no room.
unsafe extern "C" fn ship_part(index: u32, _context: *mut c_void) -> i64 {
    let (Some(raw), Some(scratch)) = (this_cpus(), SCRATCH.get_ptr_mut(0)) else {
        return 1;
    };
    let ring = &raw const SAMPLES as *mut c_void;
    // SAFETY: the pointer is a map.
    let waiting = unsafe { helpers::bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA as u64) };
    // Copies leave room for samples, and the middle of a long stack leaves room for the
    // more important parts of others.
    let wake = WAKE_BYTES.load();
    let room = if index == 0 {
        2 * wake
    } else if index <= RAW_PARTS_TAIL as u32 {
        wake + wake / 2
    } else {
        wake / 2
    };
    if waiting > room {
        if index == 0 {
            count(counter::STACKS_OVER_RATE, 1);
        }
        return 1;
    }
    // SAFETY: a per-CPU value of this CPU.
    let is_tail = unsafe { choose(&mut *raw, index as u64) };
    let copied = copy_part(raw);
    put_back_returns(copied);
    // SAFETY: both are per-CPU values of this CPU.
    let (raw, sample) = unsafe { (&mut *raw, &(*scratch).header) };
    if copied == 0 && index > 0 {
        return !is_tail as i64;
    }
    raw.header.time_ns = sample.time_ns;
    raw.header.cgroup_id = sample.cgroup_id;
    raw.header.stopped_at = 0;
    raw.header.tgid = sample.tgid;
    raw.header.tid = sample.tid;
    raw.header.cpu = sample.cpu;
    raw.header.kernel_frames = 0;
    raw.header.user_frames = 0;
    raw.header.status = 0;
    raw.header.links = 0;
    raw.header.kind = record_kind::STACK;
    raw.header.event = sample.event;
    raw.header.probe = 0;
    raw.header.python = 0;
    raw.header.comm = sample.comm;
    let bytes = HEADERS + if copied > PART_MAX { PART_MAX } else { copied };
    raw.shipped += bytes;
    let record = &raw mut raw.header as *mut c_void;
    // SAFETY: the pointers are a map and a value of a map; the length is bounded
    // by the value's.
    let written =
        unsafe { helpers::bpf_ringbuf_output(ring, record, bytes, BPF_RB_NO_WAKEUP as u64) };
    // A sample without its stack keeps its walk by frame pointers.
    let slot = if written == 0 {
        counter::STACKS_SHIPPED
    } else {
        counter::STACKS_OVER_RATE
    };
    if index == 0 {
        count(slot, 1);
    }
    if !is_tail {
        raw.next = raw.raw.offset.wrapping_add(copied);
    }
    // A part that is short by a page ends at the stack's end, or at a page that cannot be
    // read. Then a long stack may still have more behind it, at its end.
    let goes_on = is_tail || raw.tail != 0 && index == 0 || copied > PART_MAX - PAGE_BYTES as u64;
    let is_blind = raw.raw.end == 0 && index as usize + 1 >= RAW_PARTS_BLIND;
    let is_enough = raw.shipped >= RAW_BYTES_PER_SECOND - RAW_FIRST_BYTES_PER_SECOND;
    (written != 0 || !goes_on || is_blind || is_enough) as i64
}

/// Chooses what to copy next. Returns true for the parts at the end of a long stack.
#[inline(always)]
fn choose(raw: &mut RawScratch, index: u64) -> bool {
    if raw.tail != 0 && index > 0 && index <= RAW_PARTS_TAIL as u64 {
        let start = raw.tail + (index - 1) * PART_MAX;
        raw.raw.offset = start.wrapping_sub(raw.raw.registers.sp);
        raw.until = raw.raw.end;
        return true;
    }
    raw.raw.offset = raw.next;
    raw.until = if raw.tail != 0 {
        raw.tail
    } else if raw.raw.end != 0 {
        raw.raw.end
    } else {
        u64::MAX
    };
    false
}

/// Copies pages until the part's end, or until one cannot be read, and returns the number of
/// bytes. The first page is copied from the part's beginning on.
#[inline(always)]
fn copy_part(raw: *mut RawScratch) -> u64 {
    // SAFETY: a per-CPU value of this CPU. The loop changes the number behind the
    // compiler's back, which takes it for 0 otherwise.
    unsafe {
        let copied = &raw mut (*raw).raw.stack_bytes;
        copied.write_volatile(0);
        copy_pages();
        copied.read_volatile()
    }
}

#[cfg(not(feature = "without_loop"))]
#[inline(always)]
fn copy_pages() {
    let body = copy_page as *mut c_void;
    // SAFETY: the body takes all its state from the per-CPU map. A loop in Rust
    // would be verified for every number of pages.
    unsafe { helpers::bpf_loop(RAW_PAGES as u32, body, core::ptr::null_mut(), 0) };
}

#[cfg(feature = "without_loop")]
#[inline(always)]
fn copy_pages() {
    super::without_loop::repeat(RAW_PAGES as u32, |_| copy_one_page());
}

/// Copies the next page.
#[cfg(feature = "without_loop")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn copy_one_page() -> u64 {
    // SAFETY: as above.
    unsafe { copy_page(0, core::ptr::null_mut()) as u64 }
}

/// The loop's body: copies one page. Not exported: the kernel demands a static
/// function.
unsafe extern "C" fn copy_page(_index: u32, _context: *mut c_void) -> i64 {
    const PAGE: u64 = PAGE_BYTES as u64;
    let Some(raw) = this_cpus() else {
        return 1;
    };
    // SAFETY: a per-CPU value that nothing else on this CPU uses meanwhile.
    let raw = unsafe { &mut *raw };
    let copied = raw.raw.stack_bytes;
    if copied > PART_MAX - PAGE {
        return 1;
    }
    let start = raw.raw.registers.sp.wrapping_add(raw.raw.offset);
    let from = start.wrapping_add(copied);
    if from >= raw.until {
        return 1;
    }
    let left = PAGE - (from & (PAGE - 1));
    let to = &raw mut raw.stack as *mut u8;
    // SAFETY: there is a page left in the value, as was just checked; the helper
    // checks the address.
    let failed = unsafe {
        helpers::bpf_probe_read_user(
            to.add(copied as usize) as *mut c_void,
            left as u32,
            from as *const c_void,
        )
    };
    if failed != 0 {
        return 1;
    }
    raw.raw.stack_bytes = copied + left;
    0
}
