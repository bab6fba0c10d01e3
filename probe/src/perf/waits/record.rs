//! Decodes a record of the ring of switches to what a thread did. Pure functions that never panic.

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::perf::record::{Cursor, LOST, NO_REGISTERS, REGISTERS_32, SAMPLE, kernel_frames};
use crate::perf::registers;
use probe_ebpf::Registers;
use probe_ebpf::registers::SCRATCH_REGISTERS;

/// The thread, the time and the CPU of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// In nanoseconds on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    pub pid: u32,
    pub tid: u32,
    pub cpu: u32,
}

/// A decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The thread joins the CPU.
    Joins(At),
    /// The thread leaves the CPU. It could go on if it is preempted, and else waits.
    Leaves { at: At, is_preempted: bool },
    /// The position from which the thread is about to leave its CPU.
    From(At, Box<ThreadPosition>),
    /// Number of records that did not fit.
    Lost(u64),
}

/// The position of a thread that has left its CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadPosition {
    /// Its user registers; `None` for a 32-bit program, or a kernel thread.
    pub user: Option<(Registers, [u64; SCRATCH_REGISTERS])>,
    /// Frames of the kernel, innermost first.
    pub kernel: Vec<u64>,
}

// Values of `perf_event_header.type`.
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;

const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// `{ u32 pid, tid; u64 time; u32 cpu, reserved }` at the end of each record that is not a sample.
const TRAILER: usize = 24;

/// Decodes one record, including its header. `None` if it is irrelevant or malformed.
pub fn parse(bytes: &[u8]) -> Option<Record> {
    match u32_at(bytes, 0)? {
        SWITCH | SWITCH_CPU_WIDE => switch(bytes),
        SAMPLE => sample(Cursor { bytes, at: 8 }),
        LOST => Some(Record::Lost(u64_at(bytes, 16)?)),
        _ => None,
    }
}

fn switch(bytes: &[u8]) -> Option<Record> {
    let misc = u16_at(bytes, 4)?;
    let trailer = bytes.len().checked_sub(TRAILER).filter(|at| *at >= 8)?;
    let at = At {
        pid: u32_at(bytes, trailer)?,
        tid: u32_at(bytes, trailer + 4)?,
        time_ns: u64_at(bytes, trailer + 8)?,
        cpu: u32_at(bytes, trailer + 16)?,
    };
    let is_preempted = misc & MISC_SWITCH_OUT_PREEMPT != 0;
    is_thread(at).then_some(match misc & MISC_SWITCH_OUT {
        0 => Record::Joins(at),
        _ => Record::Leaves { at, is_preempted },
    })
}

/// Decodes the fields, which come in the order of the bits of `sample_type`.
fn sample(mut cursor: Cursor<'_>) -> Option<Record> {
    let task = cursor.word()?;
    let at = At {
        pid: task as u32,
        tid: (task >> 32) as u32,
        time_ns: cursor.word()?,
        cpu: cursor.word()? as u32,
    };
    let kernel = kernel_frames(&mut cursor)?;
    let user = match cursor.word()? {
        NO_REGISTERS | REGISTERS_32 => None,
        _ => Some(registers::read(cursor.take(8 * registers::COUNT)?)?),
    };
    is_thread(at).then(|| Record::From(at, Box::new(ThreadPosition { user, kernel })))
}

/// Whether it is a thread with a number: not the idle task, an ended thread, or one outside of our
/// pid namespace.
fn is_thread(at: At) -> bool {
    at.pid != 0 && at.tid != 0 && at.tid != u32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CONTEXT_KERNEL: u64 = -128i64 as u64;

    fn words(values: &[u64]) -> Vec<u8> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        bytes.collect()
    }

    fn record(kind: u32, misc: u16, body: &[u64]) -> Vec<u8> {
        let trailer = [42 | 43 << 32, 1000, 3];
        words(&[&[u64::from(kind) | u64::from(misc) << 32], body, &trailer].concat())
    }

    const AT: At = At {
        time_ns: 1000,
        pid: 42,
        tid: 43,
        cpu: 3,
    };

    #[test]
    fn a_switch_tells_who_left_and_whether_it_waits() {
        let leaves = |is_preempted| {
            Some(Record::Leaves {
                at: AT,
                is_preempted,
            })
        };
        assert_eq!(parse(&record(SWITCH, 0, &[])), Some(Record::Joins(AT)));
        assert_eq!(parse(&record(SWITCH, MISC_SWITCH_OUT, &[])), leaves(false));
        let preempted = MISC_SWITCH_OUT | MISC_SWITCH_OUT_PREEMPT;
        assert_eq!(
            parse(&record(SWITCH_CPU_WIDE, preempted, &[9])),
            leaves(true)
        );
    }

    #[test]
    fn idle_tasks_and_those_that_are_gone_are_left_out() {
        for task in [0, 42 | u64::from(u32::MAX) << 32] {
            let bytes = words(&[u64::from(SWITCH), task, 1000, 3]);
            assert_eq!(parse(&bytes), None, "{task}");
        }
    }

    #[test]
    fn a_sample_tells_registers_and_kernel_frames() {
        let mut fields = vec![u64::from(SAMPLE), 42 | 43 << 32, 1000, 3];
        fields.extend([3, CONTEXT_KERNEL, 0xffff_8000, 0xffff_9000]);
        fields.push(2);
        fields.extend((0..registers::COUNT as u64).map(|number| 0x100 + number));
        let Some(Record::From(at, place)) = parse(&words(&fields)) else {
            panic!("no sample");
        };
        assert_eq!(at, AT);
        assert_eq!(place.kernel, [0xffff_8000, 0xffff_9000]);
        assert!(place.user.is_some());
        fields.truncate(8);
        fields.push(NO_REGISTERS);
        let Some(Record::From(_, place)) = parse(&words(&fields)) else {
            panic!("no sample");
        };
        assert_eq!(place.user, None);
    }

    #[test]
    fn losses_are_told() {
        let lost = words(&[u64::from(LOST), 5, 17, 0, 0, 0]);
        assert_eq!(parse(&lost), Some(Record::Lost(17)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0u32..17) {
            let _ = parse(&bytes);
            let _ = parse(&[words(&[u64::from(kind) | 0x6000 << 32]), bytes].concat());
        }
    }
}
