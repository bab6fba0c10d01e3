//! Decodes a record of the clock's ring to a sample. Pure functions that never panic.

use super::registers;
use crate::bytes::{u32_at, u64_at};
use crate::decode::{PythonFrames, RawSample};
use crate::events::{Event, tick};
use crate::stack::{StackBytes, StackCopy};
use probe_ebpf::limits::KERNEL_FRAMES_MAX;
use probe_ebpf::record::COMM_LEN;
use probe_ebpf::{Ending, UserFrame};

/// What a record says.
#[derive(Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "most are samples, and each is taken apart at once"
)]
pub enum Record {
    /// A sample. The stack is missing if the thread has none, as a kernel thread.
    Sample(RawSample, Option<StackCopy>),
    /// Number of samples that did not fit.
    Lost(u64),
    /// A record of another kind, which is ignored.
    Other,
}

// Values of `perf_event_header.type`.
/// `PERF_RECORD_LOST`.
pub const LOST: u32 = 2;
/// `PERF_RECORD_SAMPLE`.
pub const SAMPLE: u32 = 9;

/// Values in a call chain from this one on are marks, not addresses.
const CONTEXT_MARKS: u64 = -4095i64 as u64;
const CONTEXT_KERNEL: u64 = -128i64 as u64;

// The kind of registers: `enum perf_sample_regs_abi`.
/// `PERF_SAMPLE_REGS_ABI_NONE`: the sample has no user registers, as of a kernel thread.
pub const NO_REGISTERS: u64 = 0;
/// The thread runs in 32-bit mode.
pub const REGISTERS_32: u64 = 1;

/// Decodes one record, including its header. `None` if it is malformed.
pub fn parse(bytes: &[u8], has_cgroup: bool) -> Option<Record> {
    match u32_at(bytes, 0)? {
        SAMPLE => sample(Cursor { bytes, at: 8 }, has_cgroup),
        LOST => Some(Record::Lost(u64_at(bytes, 16)?)),
        _ => Some(Record::Other),
    }
}

/// Decodes the fields, which come in the order of the bits of `sample_type`.
fn sample(mut cursor: Cursor<'_>, has_cgroup: bool) -> Option<Record> {
    let task = cursor.word()?;
    let time_ns = cursor.word()?;
    let cpu = cursor.word()? as u32;
    let kernel = kernel_frames(&mut cursor)?;
    let mut raw = RawSample {
        event: Event::Tick,
        weight: tick::WEIGHT,
        time_ns,
        cgroup_id: 0,
        stopped_at: 0,
        tgid: task as u32,
        tid: (task >> 32) as u32,
        cpu,
        ending: Ending::NoUserStack,
        // The record does not have it; the timeline adds it.
        comm: [0; COMM_LEN],
        kernel,
        user: Vec::new(),
        python: PythonFrames::default(),
        stack_follows: false,
        is_checked: false,
        wait: None,
    };
    let kind = cursor.word()?;
    let values = match kind {
        NO_REGISTERS => &[],
        _ => cursor.take(8 * registers::COUNT)?,
    };
    let (stack, is_cut) = user_stack(&mut cursor)?;
    if has_cgroup {
        raw.cgroup_id = cursor.word()?;
    }
    let copy = match kind {
        NO_REGISTERS => None,
        REGISTERS_32 => {
            let (named, _) = registers::read(values)?;
            raw.ending = Ending::Compat32;
            // Only the function that ran is known, but not its callers.
            raw.user.push(UserFrame::exact(named.ip));
            raw.stopped_at = named.ip;
            None
        }
        _ => {
            let (named, scratch) = registers::read(values)?;
            // The ending of a stack about which nothing more is known.
            raw.ending = Ending::ReadFault;
            raw.user.push(UserFrame::exact(named.ip));
            raw.stopped_at = named.ip;
            raw.stack_follows = true;
            Some(StackCopy {
                time_ns,
                cpu,
                registers: named,
                scratch,
                bytes: StackBytes::new(0, stack, is_cut.then_some(u64::MAX)),
            })
        }
    };
    Some(Record::Sample(raw, copy))
}

/// Reads the kernel frames of a call chain.
pub fn kernel_frames(cursor: &mut Cursor<'_>) -> Option<Vec<u64>> {
    let count = usize::try_from(cursor.word()?).ok()?;
    let words = cursor.take(count.checked_mul(8)?)?;
    let mut in_kernel = false;
    let mut frames = Vec::new();
    for word in words.chunks_exact(8) {
        let address = u64_at(word, 0)?;
        if address >= CONTEXT_MARKS {
            in_kernel = address == CONTEXT_KERNEL;
        } else if in_kernel && frames.len() < KERNEL_FRAMES_MAX {
            frames.push(address);
        }
    }
    Some(frames)
}

/// Returns the copied part of the stack, and whether there was no room for more.
fn user_stack<'a>(cursor: &mut Cursor<'a>) -> Option<(&'a [u8], bool)> {
    let room = usize::try_from(cursor.word()?).ok()?;
    if room == 0 {
        return Some((&[], false));
    }
    let bytes = cursor.take(room)?;
    let copied = usize::try_from(cursor.word()?).ok()?;
    Some((bytes.get(..copied)?, copied == room))
}

/// Reads the fields of a record one after the other.
pub struct Cursor<'a> {
    /// The whole record.
    pub bytes: &'a [u8],
    /// Position of the next field.
    pub at: usize,
}

impl<'a> Cursor<'a> {
    /// Reads the next word; `None` at the end.
    pub fn word(&mut self) -> Option<u64> {
        let word = u64_at(self.bytes, self.at)?;
        self.at += 8;
        Some(word)
    }

    /// Reads the next `length` bytes; `None` if there are fewer.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(values: &[u64]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    /// A sample of thread 43 of process 42, in the kernel's format.
    fn sample(chain: &[u64], registers: Option<u64>, stack: &[u8], room: usize) -> Vec<u8> {
        let mut bytes = words(&[u64::from(SAMPLE), 42 | 43 << 32, 1000, 3]);
        bytes.extend(words(&[chain.len() as u64]));
        bytes.extend(words(chain));
        match registers {
            None => bytes.extend(words(&[NO_REGISTERS, 0])),
            Some(kind) => {
                bytes.extend(words(&[kind]));
                for register in 0..registers::COUNT {
                    bytes.extend(words(&[0x100 + register as u64]));
                }
                bytes.extend(words(&[room as u64]));
                bytes.extend(stack);
                bytes.resize(bytes.len() + room - stack.len(), 0xee);
                bytes.extend(words(&[stack.len() as u64]));
            }
        }
        bytes.extend(words(&[77]));
        bytes
    }

    #[test]
    fn a_sample_in_the_kernel_has_both_stacks() {
        let chain = [CONTEXT_KERNEL, 0xffff_8000, 0xffff_9000];
        let bytes = sample(&chain, Some(2), &[9; 16], 64);
        let Some(Record::Sample(raw, Some(stack))) = parse(&bytes, true) else {
            panic!("no sample");
        };
        assert_eq!((raw.tgid, raw.tid, raw.cpu, raw.time_ns), (42, 43, 3, 1000));
        assert_eq!(raw.kernel, [0xffff_8000, 0xffff_9000]);
        assert_eq!(raw.cgroup_id, 77);
        assert_eq!(raw.user, [UserFrame::exact(stack.registers.ip)]);
        assert_eq!(stack.bytes, StackBytes::new(0, &[9; 16], None));
        assert_eq!((stack.time_ns, stack.cpu), (raw.time_ns, raw.cpu));
    }

    #[test]
    fn a_stack_that_fills_its_room_may_go_on() {
        let bytes = sample(&[], Some(2), &[9; 64], 64);
        let Some(Record::Sample(_, Some(stack))) = parse(&bytes, false) else {
            panic!("no sample");
        };
        assert!(stack.bytes.lacks(64));
    }

    #[test]
    fn who_has_no_user_stack_says_so() {
        let Some(Record::Sample(raw, None)) = parse(&sample(&[], None, &[], 0), true) else {
            panic!("no sample");
        };
        assert_eq!(raw.ending, Ending::NoUserStack);
        let of_32_bits = sample(&[], Some(REGISTERS_32), &[1; 8], 8);
        let Some(Record::Sample(raw, None)) = parse(&of_32_bits, true) else {
            panic!("no sample");
        };
        assert_eq!(raw.ending, Ending::Compat32);
        assert_eq!(raw.user, [UserFrame::exact(raw.stopped_at)]);
    }

    #[test]
    fn losses_are_told() {
        let lost = words(&[u64::from(LOST), 5, 17, 0, 0, 0]);
        assert_eq!(parse(&lost, false), Some(Record::Lost(17)));
    }

    #[test]
    fn a_record_that_is_cut_is_none() {
        let whole = sample(&[CONTEXT_KERNEL, 1], Some(2), &[9; 8], 16);
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length], true), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes, true);
            let sample = [words(&[u64::from(SAMPLE)]), bytes].concat();
            let _ = parse(&sample, true);
        }
    }
}
