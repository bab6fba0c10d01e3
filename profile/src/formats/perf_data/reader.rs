//! Reads the records in the order of time into a store.
//!
//! perf copies the buffers of the CPUs in turns, so that records of one CPU are in order and those
//! of several are not. perf marks where a round over all CPUs ends: no later record can be older
//! than the end of the round before. So records wait until two marks have come, and are then taken
//! by time:
//!
//! ```text
//! round:     1          2          3
//! records:   a a b b │  b b c c │  c c d d │
//! at the mark:  –        a b        c          taken, sorted
//! ```

use super::attributes::Attributes;
use super::cursor::Cursor;
use super::events::Events;
use super::header::{self, Features};
use super::machine::Machine;
use super::packed::Packed;
use super::record::{self, Head, KERNEL_MARK, MARKS, Sample, USER_MARK};
use crate::formats::import::{Import, plain_ending};
use crate::formats::{FormatError, Metered};
use crate::{Ending, FrameKind, Host, Info, Limits, NewSample, STACK_DEPTH_MAX};
use std::io::Read;
use std::iter;

/// Upper limit for the bytes of waiting records; when it is reached, the older half is taken.
const WAITING_MAX: usize = 128 << 20;

/// Reads a file or a pipe from its beginning: header, attributes, records, features.
pub(in super::super) fn read(
    mut input: impl Read,
    limits: Limits,
    wanted: Option<&str>,
) -> Result<Metered, FormatError> {
    let header = header::read(&mut input)?;
    let mut reader = Reader::new(limits, wanted);
    reader.read_attributes(&header)?;
    let mut data = (&mut input).take(header.data.unwrap_or(u64::MAX));
    let is_whole = reader.read_records(&mut data)?;
    let mut notes = Vec::new();
    if !is_whole || (header.data.is_none() && !header.is_pipe) {
        notes.push("perf was ended before it had written all: what is there was read".into());
    }
    if let Some(len) = header.data {
        // A damaged header may name more than there can be: then nothing follows the records.
        let end = (header.start.len() as u64).saturating_add(len);
        reader.features = header::features(header.features, end, &mut input)?;
    }
    reader.finish(notes)
}

/// The state of reading one file.
struct Reader {
    import: Import,
    machine: Machine,
    events: Events,
    /// The features, read after the records or, in a pipe, from records.
    features: Features,
    /// Records that older ones may still precede: time, head, body.
    waiting: Vec<(u64, Head, Vec<u8>)>,
    /// Bytes used by `waiting`, limited by [`WAITING_MAX`].
    waiting_bytes: usize,
    /// Unpacked bytes (`perf record -z`) that are not a complete record yet.
    packed: Packed,
    /// The latest time in the rounds before this one, and the latest time including this one.
    round_before: u64,
    round: u64,
    /// Number of samples that the kernel or perf reports as lost.
    lost: u64,
    other_events: u64,
    /// Number of samples with a copied stack, which keep one frame of their user side.
    copied_stacks: u64,
}

impl Reader {
    fn new(limits: Limits, wanted: Option<&str>) -> Self {
        Self {
            import: Import::new(limits),
            machine: Machine::default(),
            events: Events::counting(wanted),
            features: Features::default(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            packed: Packed::default(),
            round_before: 0,
            round: 0,
            lost: 0,
            other_events: 0,
            copied_stacks: 0,
        }
    }

    /// Reads the events of a file: attributes of `size` bytes each, whose last 16 say where the
    /// event's ids are. The smallest attributes have 64 bytes (`PERF_ATTR_SIZE_VER0`).
    fn read_attributes(&mut self, header: &header::Header) -> Result<(), FormatError> {
        let (offset, size, len) = header.attributes;
        if header.is_pipe {
            return Ok(());
        }
        let part = |offset: u64, len: u64| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let to = from.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
            let found = header.start.get(from..to);
            found.ok_or_else(|| FormatError::Damaged("its attributes are nowhere".into()))
        };
        let size = usize::try_from(size).unwrap_or(0);
        if !(64 + 16..=4096).contains(&size) {
            return Err(FormatError::Damaged("its attributes have no size".into()));
        }
        for bytes in part(offset, len)?.chunks_exact(size) {
            let attributes = Attributes::parse(bytes)?;
            let mut place = Cursor(&bytes[size - 16..]);
            let mut ids = Cursor(part(place.u64()?, place.u64()?)?);
            self.events
                .add(attributes, iter::from_fn(|| ids.u64().ok()));
        }
        Ok(())
    }

    /// Reads all records; returns false if the last one is cut.
    fn read_records(&mut self, input: &mut impl Read) -> Result<bool, FormatError> {
        let mut raw = Vec::with_capacity(1 << 16);
        loop {
            raw.clear();
            input.take(8).read_to_end(&mut raw)?;
            if raw.len() < 8 {
                return Ok(self.end_records()? && raw.is_empty());
            }
            let len = u64::from(u16::from_le_bytes([raw[6], raw[7]]));
            let Some(body) = len.checked_sub(8) else {
                return Err(FormatError::Damaged(
                    "a record is shorter than its head".into(),
                ));
            };
            let there = input.take(body).read_to_end(&mut raw)? as u64;
            if there < body {
                self.end_records()?;
                return Ok(false);
            }
            let (head, body) = Head::take(&mut Cursor(&raw))?;
            self.add_record(head, body, input)?;
        }
    }

    /// Adds a record in the order of the file. A record that perf wrote about the file itself is
    /// handled at once, a record of the kernel waits.
    fn add_record(
        &mut self,
        head: Head,
        body: &[u8],
        input: &mut impl Read,
    ) -> Result<(), FormatError> {
        match head.kind {
            record::HEADER_ATTR => {
                let attributes = Attributes::parse(body)?;
                let size = Cursor(body.get(4..).unwrap_or_default()).u32()? as usize;
                let mut ids = Cursor(body.get(size..).unwrap_or_default());
                self.events
                    .add(attributes, iter::from_fn(|| ids.u64().ok()));
            }
            record::HEADER_BUILD_ID => self.features.add_build_id(head.misc, body),
            record::HEADER_FEATURE => {
                let bit = Cursor(body).u64()?;
                if let (Ok(bit @ 0..256), Some(part)) = (usize::try_from(bit), body.get(8..)) {
                    self.features.add(bit, part);
                }
            }
            record::AUXTRACE => {
                // The record is followed by this many bytes of hardware traces.
                let len = Cursor(body).u64()?;
                std::io::copy(&mut input.take(len), &mut std::io::sink())?;
            }
            record::COMPRESSED => {
                self.packed.push(body)?;
                self.take_unpacked()?;
            }
            record::COMPRESSED2 => {
                // The record is padded, so it contains the length that counts.
                let mut cursor = Cursor(body);
                let len = usize::try_from(cursor.u64()?).unwrap_or(usize::MAX);
                self.packed.push(cursor.take(len)?)?;
                self.take_unpacked()?;
            }
            // Packed records come out later than their place in the file: then the ends of rounds
            // no longer tell what may still come.
            record::FINISHED_ROUND if self.packed.is_used() => {}
            record::FINISHED_ROUND => {
                self.flush(self.round_before)?;
                self.round_before = self.round;
            }
            0..record::HEADER_ATTR => self.wait(head, body)?,
            _ => {}
        }
        Ok(())
    }

    /// Adds the unpacked records; only records of the kernel are packed.
    fn take_unpacked(&mut self) -> Result<(), FormatError> {
        let records = self.packed.take_records();
        let mut records = Cursor(&records);
        while !records.0.is_empty() {
            let (head, body) = Head::take(&mut records)?;
            if head.kind < record::HEADER_ATTR {
                self.wait(head, body)?;
            }
        }
        Ok(())
    }

    /// Handles the end of the records; returns false if the last one is cut.
    fn end_records(&mut self) -> Result<bool, FormatError> {
        let is_whole = self.packed.end()?;
        self.take_unpacked()?;
        self.flush(u64::MAX)?;
        Ok(is_whole && !self.packed.is_cut())
    }

    /// Keeps a record until its time has come. If too many wait, as in a file without marks, the
    /// older half is taken. Older records that come after that are out of order, and may see
    /// mappings or names that are too new.
    fn wait(&mut self, head: Head, body: &[u8]) -> Result<(), FormatError> {
        let Some(first) = self.events.first() else {
            return Err(FormatError::Damaged(
                "a record comes before what it is of".into(),
            ));
        };
        let time = first.time_of(head.kind == record::SAMPLE, body);
        self.round = self.round.max(time);
        self.waiting_bytes += body.len() + size_of::<(u64, Head, Vec<u8>)>();
        self.waiting.push((time, head, body.to_vec()));
        if self.waiting_bytes > WAITING_MAX {
            self.sort_waiting();
            let middle = self.waiting[self.waiting.len() / 2].0;
            self.flush(middle)?;
        }
        Ok(())
    }

    /// Sorts the waiting records by time; those of equal time keep their order.
    fn sort_waiting(&mut self) {
        self.waiting.sort_by_key(|(time, ..)| *time);
    }

    /// Takes all records that are not newer than `until`.
    fn flush(&mut self, until: u64) -> Result<(), FormatError> {
        self.sort_waiting();
        let end = self.waiting.partition_point(|(time, ..)| *time <= until);
        let rest = self.waiting.split_off(end);
        for (time, head, body) in std::mem::replace(&mut self.waiting, rest) {
            self.waiting_bytes -= body.len() + size_of::<(u64, Head, Vec<u8>)>();
            self.take(time, head, &body)?;
        }
        Ok(())
    }

    /// Handles a record of the kernel; records come here in the order of time.
    fn take(&mut self, time_ns: u64, head: Head, body: &[u8]) -> Result<(), FormatError> {
        match head.kind {
            record::SAMPLE => self.add_sample(time_ns, body),
            record::MMAP | record::MMAP2 => self.machine.map(head, body, &mut self.import),
            record::COMM => self.machine.comm(head, body, &mut self.import),
            record::FORK => self.machine.fork(body),
            record::EXIT => self.machine.exit(body),
            record::KSYMBOL => self.machine.symbol(body, &mut self.import),
            record::LOST => {
                self.lost = self
                    .lost
                    .saturating_add(Cursor(body.get(8..).unwrap_or_default()).u64()?);
                Ok(())
            }
            record::LOST_SAMPLES => {
                self.lost = self.lost.saturating_add(Cursor(body).u64()?);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds a sample. Its weight is 1 for clock ticks, else the number of events that it stands
    /// for.
    fn add_sample(&mut self, time_ns: u64, body: &[u8]) -> Result<(), FormatError> {
        let (event, counts) = self.events.of_sample(body)?;
        let sample = Sample::parse(body, event)?;
        // A sample with weight 0 is added all the same, so that places and stacks have the same
        // numbers whichever event is read.
        let weight = if !counts {
            0
        } else if event.is_clock() {
            1
        } else {
            sample.period
        };
        let copies_stacks = event.copies_stacks();
        self.other_events += u64::from(!counts);
        let mut ending = None;
        if copies_stacks {
            self.copied_stacks += 1;
            ending = Some(Ending::Unsupported);
        }
        let frames = self.frames(&sample)?;
        let in_kernel = frames
            .first()
            .is_some_and(|frame| frame.kind == FrameKind::Kernel);
        let plain = plain_ending(&frames);
        let (process, comm) = self.machine.names(sample.pid, sample.tid);
        let process = self.import.process(sample.pid, &process)?;
        let sample = NewSample {
            time_ns,
            cpu: sample.cpu.min(u32::from(u16::MAX)) as u16,
            process,
            tid: sample.tid,
            comm: &comm,
            frames: &frames,
            kernel_frames: usize::from(in_kernel),
            ending: match plain {
                Ending::NoUserStack => plain,
                _ => ending.unwrap_or(plain),
            },
            weight,
        };
        if self.events.are_several() {
            self.import.sample_of_any(sample)
        } else {
            self.import.sample(sample)
        }
    }

    /// Returns the frames of a sample, innermost first; without a call chain the frame of the
    /// sampled instruction.
    fn frames(&mut self, sample: &Sample) -> Result<Vec<crate::Frame>, FormatError> {
        let (machine, import) = (&self.machine, &mut self.import);
        let mut frames = Vec::new();
        let has_chain = sample.chain.iter().any(|address| *address < MARKS);
        let chain: &[u64] = if has_chain {
            &sample.chain
        } else {
            std::slice::from_ref(&sample.ip)
        };
        let mut in_kernel = chain.first().is_some_and(|address| *address >> 63 == 1);
        // The innermost address of each side is the sampled one; the others are return addresses.
        let mut is_caller = false;
        for address in chain {
            match *address {
                KERNEL_MARK => (in_kernel, is_caller) = (true, false),
                USER_MARK => (in_kernel, is_caller) = (false, false),
                MARKS.. => {}
                0 => {}
                _ if frames.len() > STACK_DEPTH_MAX => break,
                address => {
                    // A return address may already belong to the next line or function; one less is
                    // inside the call.
                    let address = address - u64::from(is_caller);
                    is_caller = true;
                    frames.push(if in_kernel {
                        machine.kernel_frame(address, import)?
                    } else {
                        machine.user_frame(sample.pid, address, import)?
                    });
                }
            }
        }
        Ok(frames)
    }

    /// Completes what is known only at the end: the info, build-ids, and sentences about what is
    /// missing.
    fn finish(mut self, mut notes: Vec<String>) -> Result<Metered, FormatError> {
        let (event, name) = self.events.chosen()?;
        let features = &self.features;
        let mut info = Info {
            host: Host {
                name: features.host.clone(),
                kernel: features.kernel.clone(),
                arch: features.arch.clone(),
                cpus: features.cpus,
                ..Host::default()
            },
            lost: self.lost,
            ..Info::default()
        };
        event.describe(&mut info);
        info.metric.name = name.into();
        if self.other_events > 0 {
            let count = self.other_events;
            notes.push(format!(
                "{count} samples are of other events than {name} and do not count"
            ));
        }
        if self.copied_stacks > 0 {
            notes.push("its stacks were copied, not walked (--call-graph dwarf): of the user's side each has one frame; perf script walks them".into());
        }
        let metrics = self.events.names().to_vec();
        self.import.store.set_info(info);
        self.machine
            .tell_build_ids(&self.features.build_ids, &mut self.import)?;
        Ok(Metered {
            store: self.import.finish(),
            notes,
            metrics,
        })
    }
}
