//! A record of the ring buffer, read: bytes in, a raw sample out. Pure, and
//! cannot panic.

use crate::stack::{StackBytes, StackCopy};
use probe_ebpf::limits::{KERNEL_FRAMES_MAX, PAGE_BYTES, RAW_PAGES, USER_FRAMES_MAX};
use probe_ebpf::record::{COMM_LEN, record_kind};
use probe_ebpf::walk::{SCRATCH_REGISTERS, ending};
use probe_ebpf::{Ending, RawStack, Registers, SampleHeader, UserFrame};
use std::mem::offset_of;

/// A sample as the kernel side wrote it: addresses of a process, not of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawSample {
    pub time_ns: u64,
    pub cgroup_id: u64,
    pub stopped_at: u64,
    pub tgid: u32,
    pub tid: u32,
    pub cpu: u32,
    pub ending: Ending,
    pub comm: [u8; COMM_LEN],
    /// Innermost first.
    pub kernel: Vec<u64>,
    pub user: Vec<UserFrame>,
    /// The frames are those by frame pointers alone; the stack comes as the next
    /// record of this CPU.
    pub stack_follows: bool,
    /// It was walked by tables, and its stack is there to check that.
    pub is_checked: bool,
}

/// One record of the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Sample(RawSample),
    Stack(StackCopy),
}

/// Why a record was not understood. It never happens with an object that
/// belongs to this build; counted all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("a record of {0} bytes is shorter than it says")]
    Short(usize),
    #[error("a record is of kind {0}")]
    Kind(u8),
    #[error("a record says it has {kernel} kernel and {user} user frames")]
    Frames { kernel: u16, user: u16 },
}

/// Reads one record.
pub fn decode(bytes: &[u8]) -> Result<Record, DecodeError> {
    let short = DecodeError::Short(bytes.len());
    let [kind] = Fields(bytes)
        .at(offset_of!(SampleHeader, kind))
        .ok_or(short)?;
    match kind {
        record_kind::WALKED => Ok(Record::Sample(decode_sample(bytes, false)?)),
        record_kind::STACK_FOLLOWS => Ok(Record::Sample(decode_sample(bytes, true)?)),
        record_kind::CHECKED => {
            let sample = decode_sample(bytes, true)?;
            Ok(Record::Sample(RawSample {
                is_checked: true,
                ..sample
            }))
        }
        record_kind::STACK => Ok(Record::Stack(decode_stack(bytes).ok_or(short)?)),
        other => Err(DecodeError::Kind(other)),
    }
}

fn decode_stack(bytes: &[u8]) -> Option<StackCopy> {
    let header = Fields(bytes);
    let raw = Fields(bytes.get(size_of::<SampleHeader>()..)?);
    let word = |index: usize| Some(u64::from_le_bytes(raw.at(8 * index)?));
    let mut scratch = [0; SCRATCH_REGISTERS];
    for (index, register) in scratch.iter_mut().enumerate() {
        *register = word(3 + index)?;
    }
    let length = usize::try_from(word(3 + SCRATCH_REGISTERS)?).ok()?;
    let offset = word(4 + SCRATCH_REGISTERS)?;
    let end = word(5 + SCRATCH_REGISTERS)?;
    let stack = raw.0.get(size_of::<RawStack>()..)?;
    let registers = Registers {
        ip: word(0)?,
        sp: word(1)?,
        bp: word(2)?,
    };
    let reach = match end {
        // Less than a page was left, or nothing.
        0 => (length > (RAW_PAGES - 1) * PAGE_BYTES).then_some(u64::MAX),
        end => Some(end.saturating_sub(registers.sp)),
    };
    Some(StackCopy {
        time_ns: u64::from_le_bytes(header.at(0)?),
        cpu: u32::from_le_bytes(header.at(32)?),
        registers,
        scratch,
        bytes: StackBytes::new(offset, stack.get(..length)?, reach),
    })
}

fn decode_sample(bytes: &[u8], stack_follows: bool) -> Result<RawSample, DecodeError> {
    let short = DecodeError::Short(bytes.len());
    let field = Fields(bytes);
    let kernel = u16::from_le_bytes(field.at(36).ok_or(short)?);
    let user = u16::from_le_bytes(field.at(38).ok_or(short)?);
    let [status] = field.at(offset_of!(SampleHeader, status)).ok_or(short)?;
    let links = u16::from_le_bytes(field.at(offset_of!(SampleHeader, links)).ok_or(short)?);
    let comm = field.at(48).ok_or(short)?;
    if usize::from(kernel) > KERNEL_FRAMES_MAX || usize::from(user) > USER_FRAMES_MAX {
        return Err(DecodeError::Frames { kernel, user });
    }
    let frames_start = size_of::<SampleHeader>();
    let kernel_end = frames_start + 8 * usize::from(kernel);
    let user_end = kernel_end + 8 * usize::from(user);
    let words = |range| {
        bytes
            .get(range)
            .map(|bytes: &[u8]| bytes.chunks_exact(8).map(word))
    };
    let stopped_at = u64::from_le_bytes(field.at(16).ok_or(short)?);
    let ending = ending(u32::from(status), u32::from(links), u32::from(user));
    let mut user_frames: Vec<UserFrame> = words(kernel_end..user_end)
        .ok_or(short)?
        .map(UserFrame)
        .collect();
    if ending == Ending::Compat32 && user_frames.is_empty() {
        // The walk did not begin: what ran is known all the same.
        user_frames.push(UserFrame::exact(stopped_at));
    }
    Ok(RawSample {
        time_ns: u64::from_le_bytes(field.at(0).ok_or(short)?),
        cgroup_id: u64::from_le_bytes(field.at(8).ok_or(short)?),
        stopped_at,
        tgid: u32::from_le_bytes(field.at(24).ok_or(short)?),
        tid: u32::from_le_bytes(field.at(28).ok_or(short)?),
        cpu: u32::from_le_bytes(field.at(32).ok_or(short)?),
        ending,
        comm,
        kernel: words(frames_start..kernel_end).ok_or(short)?.collect(),
        user: user_frames,
        stack_follows,
        is_checked: false,
    })
}

/// The name in a `comm` field, without the zeros behind it.
pub fn comm_bytes(comm: &[u8; COMM_LEN]) -> &[u8] {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(COMM_LEN);
    &comm[..end]
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn at<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset..offset + N)?.try_into().ok()
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_ebpf::walk::status;
    use proptest::prelude::*;

    /// A record as the kernel side lays it out, field by field.
    fn record(kernel: &[u64], user: &[u64], status: u8) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<SampleHeader>()];
        let mut put = |offset: usize, value: &[u8]| {
            bytes[offset..offset + value.len()].copy_from_slice(value);
        };
        put(offset_of!(SampleHeader, time_ns), &11u64.to_le_bytes());
        put(offset_of!(SampleHeader, cgroup_id), &12u64.to_le_bytes());
        put(offset_of!(SampleHeader, stopped_at), &13u64.to_le_bytes());
        put(offset_of!(SampleHeader, tgid), &14u32.to_le_bytes());
        put(offset_of!(SampleHeader, tid), &15u32.to_le_bytes());
        put(offset_of!(SampleHeader, cpu), &16u32.to_le_bytes());
        put(
            offset_of!(SampleHeader, kernel_frames),
            &(kernel.len() as u16).to_le_bytes(),
        );
        put(
            offset_of!(SampleHeader, user_frames),
            &(user.len() as u16).to_le_bytes(),
        );
        put(offset_of!(SampleHeader, status), &[status]);
        put(offset_of!(SampleHeader, comm), b"postgres\0\0\0\0\0\0\0\0");
        for frame in kernel.iter().chain(user) {
            bytes.extend(frame.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn every_field_arrives() {
        let user = [
            UserFrame::exact(0x1000).0,
            UserFrame::return_address(0x2000).0,
        ];
        let Ok(Record::Sample(sample)) = decode(&record(
            &[0xffff_8000_0000_1000],
            &user,
            status::IMPLAUSIBLE as u8,
        )) else {
            panic!("no sample");
        };
        assert_eq!(
            sample,
            RawSample {
                time_ns: 11,
                cgroup_id: 12,
                stopped_at: 13,
                tgid: 14,
                tid: 15,
                cpu: 16,
                ending: Ending::NoFramePointer,
                comm: *b"postgres\0\0\0\0\0\0\0\0",
                kernel: vec![0xffff_8000_0000_1000],
                user: vec![UserFrame::exact(0x1000), UserFrame::return_address(0x2000)],
                stack_follows: false,
                is_checked: false,
            }
        );
        assert_eq!(comm_bytes(&sample.comm), b"postgres");
    }

    #[test]
    fn of_a_32_bit_task_what_ran_is_known() {
        let user = |status: u32| {
            let Ok(Record::Sample(sample)) = decode(&record(&[7], &[], status as u8)) else {
                panic!("no sample");
            };
            (sample.ending, sample.user)
        };
        let what_ran = vec![UserFrame::exact(13)];
        assert_eq!(user(status::COMPAT_32), (Ending::Compat32, what_ran));
        assert_eq!(user(status::NO_STACK), (Ending::NoUserStack, Vec::new()));
    }

    /// Sixteen bytes of a stack, so far above its start.
    fn part(offset: u64, end: u64) -> Vec<u8> {
        let mut bytes = record(&[], &[], 0);
        bytes[offset_of!(SampleHeader, kind)] = record_kind::STACK;
        let registers = 3 + SCRATCH_REGISTERS as u64;
        for word in (1..=registers).chain([16, offset, end]) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([7; 16]);
        bytes
    }

    #[test]
    fn a_stack_arrives() {
        let mut bytes = part(32, 0);
        let Ok(Record::Stack(stack)) = decode(&bytes) else {
            panic!("no stack");
        };
        assert_eq!(
            stack.registers,
            Registers {
                ip: 1,
                sp: 2,
                bp: 3
            }
        );
        assert_eq!(stack.scratch, std::array::from_fn(|index| index as u64 + 4));
        assert_eq!(stack.bytes, StackBytes::new(32, &[7; 16], None));
        assert_eq!((stack.time_ns, stack.cpu), (11, 16));
        bytes.pop();
        assert_eq!(decode(&bytes), Err(DecodeError::Short(bytes.len())));
        let Ok(Record::Stack(stack)) = decode(&part(0, 98)) else {
            panic!("no stack");
        };
        assert_eq!(stack.bytes, StackBytes::new(0, &[7; 16], Some(96)));
    }

    #[test]
    fn a_record_that_lies_is_refused() {
        let whole = record(&[1], &[2, 3], 0);
        for length in 0..whole.len() {
            assert_eq!(decode(&whole[..length]), Err(DecodeError::Short(length)));
        }
        let many = decode(&record(&[0; 200], &[], 0));
        assert_eq!(
            many,
            Err(DecodeError::Frames {
                kernel: 200,
                user: 0
            })
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
        }
    }
}
