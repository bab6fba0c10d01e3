//! Decodes records of the ring buffer to raw samples. Pure functions that cannot panic.

use crate::bytes::{field_at, u16_at, u32_at, u64_at};
use crate::events::wait::{EndedThread, RawWait};
use crate::events::{Event, call, tick};
use crate::stack::{StackBytes, StackCopy};
use probe_ebpf::ending::ending;
use probe_ebpf::limits::{
    KERNEL_FRAMES_MAX, PAGE_BYTES, PYTHON_FRAMES_MAX, RAW_PAGES, USER_FRAMES_MAX,
};
use probe_ebpf::python::{Entry, Summary, TASK_ENTRIES, TASK_STEPS};
use probe_ebpf::record::{COMM_LEN, HAPPENING_WORDS, event, record_kind};
use probe_ebpf::registers::SCRATCH_REGISTERS;
use probe_ebpf::waits::{THREAD_WORDS, WAIT_WORDS};
use probe_ebpf::{Ending, RawStack, Registers, SampleHeader, UserFrame};
use std::mem::offset_of;

/// A sample as the kernel side wrote it: addresses are those of a process, not of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawSample {
    /// What happened.
    pub event: Event,
    /// Number of events, or amount of time, that the sample stands for.
    pub weight: u64,
    /// When it happened, in nanoseconds on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// Id of the thread's control group (version 2); 0 if unknown.
    pub cgroup_id: u64,
    /// Address at which the walk stopped.
    pub stopped_at: u64,
    /// The process, as user space numbers it.
    pub tgid: u32,
    /// The thread.
    pub tid: u32,
    pub cpu: u32,
    /// Why the walk of the user stack ended.
    pub ending: Ending,
    /// The thread's name, padded with zeros.
    pub comm: [u8; COMM_LEN],
    /// Kernel frames, innermost first.
    pub kernel: Vec<u64>,
    /// User frames, innermost first.
    pub user: Vec<UserFrame>,
    /// Whether the frames were found by frame pointers alone, and the stack follows as the next
    /// record of this CPU.
    pub stack_follows: bool,
    /// Python's own frames.
    pub python: PythonFrames,
    /// Whether it was walked by tables, and its stack is included to check that.
    pub is_checked: bool,
    /// Details of the wait, if it is one.
    pub wait: Option<RawWait>,
}

/// Python frames of a sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonFrames {
    /// A [`probe_ebpf::python::status`].
    pub status: u32,
    /// A [`probe_ebpf::python::lock`].
    pub lock: u32,
    /// Frames, innermost first.
    pub entries: Vec<Entry>,
    /// How they differ from the state of the thread at the time of the sample; `None` if they were
    /// walked at that moment.
    pub later: Option<Later>,
}

/// How the frames of a sample differ from the state of the thread at the time of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Later {
    /// Distance above the stack pointer from which on the stack was unchanged; `u64::MAX` if
    /// nothing of it was.
    pub same_from: u64,
    /// Index of the first native frame, from the innermost on, whose call had not returned.
    pub same_frames_from: usize,
    /// Whether the thread was running or waiting for a CPU. If it has begun to wait for something
    /// else, its current function is not the one that was sampled.
    pub is_running: bool,
}

/// One record of the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A sample.
    Sample(RawSample),
    /// A copy of a thread's stack, for the sample before it.
    Stack(StackCopy),
    /// The sums of a thread that has ended.
    ThreadEnd(EndedThread),
}

/// Why a record was not understood. This does not happen with an object of the same build; it is
/// counted all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The record, of this many bytes, is shorter than a header, or than its header says.
    #[error("a record of {0} bytes is shorter than it says")]
    Short(usize),
    /// The record is of an unknown [`record_kind`].
    #[error("a record is of kind {0}")]
    Kind(u8),
    /// The record is of an unknown [`event`].
    #[error("a record is of event {0}")]
    Event(u8),
    /// The record has more frames than the kernel side can write.
    #[error("a record says it has {kernel} kernel and {user} user frames")]
    Frames { kernel: u16, user: u16 },
    /// The words about a wait, or about a thread that has ended, are missing or impossible.
    #[error("a record of a wait or of a thread's end says nothing of it")]
    Wait,
    /// The number of occurrences that the sample stands for is missing.
    #[error("a record does not say how often something happened")]
    Happening,
    /// The record has more Python frames than the kernel side can write.
    #[error("a record says it has {0} Python frames")]
    Python(usize),
}

/// Decodes one record. An unknown event or kind is an error, whatever the rest contains.
pub fn decode(bytes: &[u8]) -> Result<Record, DecodeError> {
    let header = Header::read(bytes).ok_or(DecodeError::Short(bytes.len()))?;
    let event =
        Event::of_record(header.event, header.probe).ok_or(DecodeError::Event(header.event))?;
    let sample = |stack_follows, is_checked| {
        let sample = header.sample(event, bytes)?;
        Ok(Record::Sample(RawSample {
            stack_follows,
            is_checked,
            ..sample
        }))
    };
    if header.event == event::THREAD_END {
        return header.thread_end(bytes).map(Record::ThreadEnd);
    }
    match header.kind {
        record_kind::WALKED => sample(false, false),
        record_kind::STACK_FOLLOWS => sample(true, false),
        record_kind::CHECKED => sample(true, true),
        record_kind::STACK => {
            let stack = decode_stack(&header, bytes);
            Ok(Record::Stack(stack.ok_or(DecodeError::Short(bytes.len()))?))
        }
        other => Err(DecodeError::Kind(other)),
    }
}

/// The fields of a [`SampleHeader`].
struct Header {
    time_ns: u64,
    cgroup_id: u64,
    stopped_at: u64,
    tgid: u32,
    tid: u32,
    cpu: u32,
    kernel_frames: u16,
    user_frames: u16,
    status: u8,
    kind: u8,
    links: u16,
    event: u8,
    probe: u8,
    python: Summary,
    comm: [u8; COMM_LEN],
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let field = bytes.get(..size_of::<SampleHeader>())?;
        Some(Self {
            time_ns: u64_at(field, offset_of!(SampleHeader, time_ns))?,
            cgroup_id: u64_at(field, offset_of!(SampleHeader, cgroup_id))?,
            stopped_at: u64_at(field, offset_of!(SampleHeader, stopped_at))?,
            tgid: u32_at(field, offset_of!(SampleHeader, tgid))?,
            tid: u32_at(field, offset_of!(SampleHeader, tid))?,
            cpu: u32_at(field, offset_of!(SampleHeader, cpu))?,
            kernel_frames: u16_at(field, offset_of!(SampleHeader, kernel_frames))?,
            user_frames: u16_at(field, offset_of!(SampleHeader, user_frames))?,
            status: field[offset_of!(SampleHeader, status)],
            kind: field[offset_of!(SampleHeader, kind)],
            links: u16_at(field, offset_of!(SampleHeader, links))?,
            event: field[offset_of!(SampleHeader, event)],
            probe: field[offset_of!(SampleHeader, probe)],
            python: Summary(u16_at(field, offset_of!(SampleHeader, python))?),
            comm: field_at(field, offset_of!(SampleHeader, comm))?,
        })
    }

    /// Decodes the sample that begins with this header.
    fn sample(&self, event: Event, bytes: &[u8]) -> Result<RawSample, DecodeError> {
        let (kernel, user) = (self.kernel_frames, self.user_frames);
        if usize::from(kernel) > KERNEL_FRAMES_MAX || usize::from(user) > USER_FRAMES_MAX {
            return Err(DecodeError::Frames { kernel, user });
        }
        let kernel_start = size_of::<SampleHeader>();
        let user_start = kernel_start + FRAME_BYTES * usize::from(kernel);
        let user_end = user_start + FRAME_BYTES * usize::from(user);
        let entries = self.python.frames() as usize;
        if entries > PYTHON_FRAMES_MAX + TASK_STEPS * TASK_ENTRIES {
            return Err(DecodeError::Python(entries));
        }
        let python_end = user_end + 2 * FRAME_BYTES * entries;
        let words = |range| {
            let bytes: &[u8] = bytes.get(range).ok_or(DecodeError::Short(bytes.len()))?;
            Ok(bytes.chunks_exact(FRAME_BYTES).map(word))
        };
        let ending = ending(self.status.into(), self.links.into(), user.into());
        let mut user_frames: Vec<UserFrame> = words(user_start..user_end)?.map(UserFrame).collect();
        if ending == Ending::Compat32 && user_frames.is_empty() {
            // The walk did not begin, but the running function is known.
            user_frames.push(UserFrame::exact(self.stopped_at));
        }
        let python: Vec<u64> = words(user_end..python_end)?.collect();
        let (pairs, _) = python.as_chunks();
        let python = PythonFrames {
            status: self.python.status(),
            lock: self.python.lock(),
            entries: pairs
                .iter()
                .map(|[place, detail]| Entry::from_words(*place, *detail))
                .collect(),
            later: None,
        };
        let mut kernel: Vec<u64> = words(kernel_start..user_start)?.collect();
        let (weight, wait) = match event {
            Event::Tick => (tick::WEIGHT, None),
            Event::Call(_) | Event::SlowCall(_) => (call::WEIGHT, None),
            Event::Happening => {
                // The first words are not frames.
                let [times] = kernel
                    .first_chunk::<HAPPENING_WORDS>()
                    .ok_or(DecodeError::Happening)?;
                let times = *times;
                kernel.drain(..HAPPENING_WORDS);
                (times, None)
            }
            Event::Wait | Event::Wake => {
                let words = kernel
                    .first_chunk::<WAIT_WORDS>()
                    .ok_or(DecodeError::Wait)?;
                let wait = RawWait::from_words(words).ok_or(DecodeError::Wait)?;
                kernel.drain(..WAIT_WORDS);
                (wait.weight_ns(), Some(wait))
            }
        };
        Ok(RawSample {
            event,
            weight,
            time_ns: self.time_ns,
            cgroup_id: self.cgroup_id,
            stopped_at: self.stopped_at,
            tgid: self.tgid,
            tid: self.tid,
            cpu: self.cpu,
            ending,
            comm: self.comm,
            kernel,
            user: user_frames,
            python,
            stack_follows: false,
            is_checked: false,
            wait,
        })
    }
}

impl Header {
    /// Decodes the sums of a thread, which are reported when it ends.
    fn thread_end(&self, bytes: &[u8]) -> Result<EndedThread, DecodeError> {
        let start = size_of::<SampleHeader>();
        let end = start + FRAME_BYTES * THREAD_WORDS;
        let thread = bytes
            .get(start..end)
            .ok_or(DecodeError::Short(bytes.len()))?;
        let words: Vec<u64> = thread.chunks_exact(FRAME_BYTES).map(word).collect();
        let words = words.first_chunk().ok_or(DecodeError::Wait)?;
        EndedThread::new(self.tid, words).ok_or(DecodeError::Wait)
    }
}

/// A frame is one word.
const FRAME_BYTES: usize = size_of::<UserFrame>();

fn decode_stack(header: &Header, bytes: &[u8]) -> Option<StackCopy> {
    let raw = bytes.get(size_of::<SampleHeader>()..)?;
    let registers = offset_of!(RawStack, registers);
    let registers = Registers {
        ip: u64_at(raw, registers + offset_of!(Registers, ip))?,
        sp: u64_at(raw, registers + offset_of!(Registers, sp))?,
        bp: u64_at(raw, registers + offset_of!(Registers, bp))?,
    };
    let mut scratch = [0; SCRATCH_REGISTERS];
    for (index, register) in scratch.iter_mut().enumerate() {
        *register = u64_at(
            raw,
            offset_of!(RawStack, scratch) + index * size_of::<u64>(),
        )?;
    }
    let length = usize::try_from(u64_at(raw, offset_of!(RawStack, stack_bytes))?).ok()?;
    let offset = u64_at(raw, offset_of!(RawStack, offset))?;
    let stack = raw.get(size_of::<RawStack>()..)?;
    let reach = match u64_at(raw, offset_of!(RawStack, end))? {
        // Less than a page was left, or nothing.
        0 => (length > (RAW_PAGES - 1) * PAGE_BYTES).then_some(u64::MAX),
        end => Some(end.saturating_sub(registers.sp)),
    };
    Some(StackCopy {
        time_ns: header.time_ns,
        cpu: header.cpu,
        registers,
        scratch,
        bytes: StackBytes::new(offset, stack.get(..length)?, reach),
    })
}

/// Returns the name in a `comm` field, without the zeros after it.
pub fn comm_bytes(comm: &[u8; COMM_LEN]) -> &[u8] {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(COMM_LEN);
    &comm[..end]
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
    use probe_ebpf::status;
    use proptest::prelude::*;

    /// A record in the layout of the kernel side, field by field.
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
                event: Event::Tick,
                weight: 1,
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
                python: PythonFrames::default(),
                stack_follows: false,
                is_checked: false,
                wait: None,
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

    /// Sixteen bytes of a stack, at a distance above its start.
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

    #[test]
    fn a_record_of_an_event_that_is_not_known_is_not_taken_for_another() {
        for kind in [
            record_kind::WALKED,
            record_kind::STACK_FOLLOWS,
            record_kind::STACK,
            record_kind::CHECKED,
        ] {
            let mut bytes = part(0, 0);
            bytes[offset_of!(SampleHeader, kind)] = kind;
            assert!(decode(&bytes).is_ok(), "kind {kind}");
            bytes[offset_of!(SampleHeader, event)] = 77;
            assert_eq!(decode(&bytes), Err(DecodeError::Event(77)));
        }
        let mut bytes = record(&[], &[], 0);
        bytes[offset_of!(SampleHeader, kind)] = 99;
        assert_eq!(decode(&bytes), Err(DecodeError::Kind(99)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
        }
    }
}
