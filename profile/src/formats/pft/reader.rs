//! Reads a file, or a pipe that still grows, block by block into a store.

use super::block::{self, Next, Unpacker};
use super::naming::Reasons;
use super::place::{Beside, Destination, Machine};
use super::tables::Tables;
use super::{MAGIC, VERSION};
use super::{naming, probes, section, states};
use crate::formats::FormatError;
use crate::formats::wire::Bytes;
use crate::probes::ProbeLog;
use crate::store::{Added, KnownStack};
use crate::time::{STAMP_NS, STAMPS_PER_SECOND};
use crate::{
    Busy, Ending, Frame, Host, Info, Metric, NameState, NewSample, Pause, ProcessDetails,
    ProcessId, Rates, StateLog, Store, WaitPart,
};
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

/// Limit of the unpacked contents of one file: hours of a busy machine. A file of zeros that
/// unpacks to more is not a profile.
const RAW_BYTES_MAX: u64 = 32 << 30;

/// Upper limit of the weight of all samples together: up to here sums are exact as `f64`.
const WEIGHT_MAX: u64 = 1 << 53;

/// Reads a file from its beginning.
///
/// The file may be hostile. What it defines is bounded by the constants here and in `tables`, and
/// every number in it is checked before it is used. It may also still be in the process of being
/// written, by a recorder at the other end of a pipe.
///
/// Once a block was read, an early end or damage is not an error: everything up to there is in the
/// store, and [`Reader::notes`] says what is missing.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    unpacker: Unpacker,
    /// The contents of a block that was read and not yet added to a store.
    next: Option<Vec<u8>>,
    place: Destination,
    /// The file's description of the recording.
    info: Info,
    /// The machine of each process, by number, in a file of several machines.
    hosts: HashMap<u32, Arc<str>>,
    tables: Tables,
    /// Threads whose states the file contains.
    threads: states::Threads,
    /// Number of whole blocks read so far.
    blocks: u64,
    /// Length of their unpacked contents, at most [`RAW_BYTES_MAX`].
    raw_bytes: u64,
    /// Number of samples added to the store.
    samples: u64,
    /// The weights of all samples so far.
    weight: u64,
    /// Largest factor by which a sample may count more, because others were taken at a higher rate.
    spread: u64,
    /// Whether the section that ends a recording was read.
    is_finished: bool,
    /// Why reading stopped before the end of the file, as a sentence.
    problem: Option<String>,
    /// Whether the input has ended.
    is_at_end: bool,
    /// Number of skipped sections, which newer writers added.
    unknown_sections: u64,
    /// The highest stack number of a sample so far, plus one.
    next_stack: u32,
    /// The store's handle of each stack, by its number in the file.
    known: Vec<Option<KnownStack>>,
    /// The reasons why frames have no names, if they are kept from the store.
    reasons: Reasons,
}

/// How the column of stacks in a section of samples is encoded.
#[derive(Debug, Clone, Copy)]
enum By {
    /// Each number as the difference to the one before.
    Step,
    /// Each number plus one; 0 stands for the lowest number that no sample had before.
    Number,
}

fn damaged(what: &str) -> FormatError {
    FormatError::Damaged(what.into())
}

impl<R: Read> Reader<R> {
    /// Reads the head of a file; returns an error if it is not a `.pft` file.
    pub fn new(input: R) -> Result<Self, FormatError> {
        Self::new_at(input, Destination::Alone)
    }

    /// Creates a reader as [`Reader::new`] does, for one of several machines in the same store. The
    /// states of threads and the counts of probes are not kept.
    pub fn new_beside(input: R, machine: Machine) -> Result<Self, FormatError> {
        Self::new_at(input, Destination::Beside(Beside::new(machine)))
    }

    fn new_at(mut input: R, place: Destination) -> Result<Self, FormatError> {
        let mut start = [0; MAGIC.len() + 4];
        input
            .read_exact(&mut start)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => FormatError::Unknown,
                _ => error.into(),
            })?;
        if start[..MAGIC.len()] != MAGIC {
            return Err(FormatError::Unknown);
        }
        let version = u16::from_le_bytes([start[MAGIC.len()], start[MAGIC.len() + 1]]);
        if version > VERSION {
            return Err(FormatError::Newer(version, VERSION));
        }
        Ok(Self {
            input,
            unpacker: Unpacker::new(),
            next: None,
            tables: Tables::new(place.first_number()),
            place,
            info: Info::default(),
            hosts: HashMap::new(),
            threads: states::Threads::default(),
            blocks: 0,
            raw_bytes: 0,
            samples: 0,
            weight: 0,
            spread: 1,
            is_finished: false,
            problem: None,
            is_at_end: false,
            unknown_sections: 0,
            next_stack: 0,
            known: Vec::new(),
            reasons: None,
        })
    }

    /// Keeps the reasons why frames have no names out of the store, for a caller that will look up
    /// names again: [`Reader::reasons`] returns them.
    pub fn keep_reasons(&mut self) {
        self.reasons = Some(Vec::new());
    }

    /// Takes the frames without a name and the reasons, if [`Reader::keep_reasons`] was called. For
    /// a frame that occurs several times the last reason counts.
    pub fn reasons(&mut self) -> Vec<(Frame, NameState)> {
        self.reasons.take().unwrap_or_default()
    }

    /// Adds the next block to the store. Returns `false` at the end, or where the file is cut or
    /// damaged: everything before is in the store by then.
    pub fn read_block(&mut self, store: &mut Store) -> Result<bool, FormatError> {
        Ok(self.wait_for_block()? && self.add_block(store)?)
    }

    /// Waits until the next block has arrived, for [`Reader::add_block`] to add to a store. Returns
    /// `false` where [`Reader::read_block`] does.
    pub fn wait_for_block(&mut self) -> Result<bool, FormatError> {
        if self.is_finished || self.problem.is_some() {
            return Ok(false);
        }
        let read = block::read(&mut self.input, &mut self.unpacker).and_then(|next| match next {
            Next::Block(raw) => {
                self.blocks += 1;
                self.raw_bytes += raw.len() as u64;
                if self.raw_bytes > RAW_BYTES_MAX {
                    return Err(FormatError::TooLarge("its contents"));
                }
                self.next = Some(raw);
                Ok(true)
            }
            Next::End => {
                self.is_at_end = true;
                self.problem =
                    Some("the recording was not ended: its last second may be missing".into());
                Ok(false)
            }
            Next::Cut => {
                self.is_at_end = true;
                let what = match self.blocks {
                    0 => "the recording was cut off before its first samples",
                    _ => "the recording was cut off inside a block: the rest is whole",
                };
                self.problem = Some(what.into());
                Ok(false)
            }
        });
        self.survive(read)
    }

    /// Adds the block that was waited for to the store. Returns `false` if it is damaged; what came
    /// before it stays.
    pub fn add_block(&mut self, store: &mut Store) -> Result<bool, FormatError> {
        let Some(raw) = self.next.take() else {
            return Ok(false);
        };
        let added = self.absorb(&raw, store).map(|()| true);
        self.survive(added)
    }

    /// Turns an error after the first block into the end of reading, with a note.
    fn survive(&mut self, read: Result<bool, FormatError>) -> Result<bool, FormatError> {
        match read {
            Err(FormatError::Damaged(what)) if self.blocks > 0 => {
                let place = format!(
                    "damaged after block {}: {what}; what comes before is whole",
                    self.blocks
                );
                self.problem = Some(place);
                Ok(false)
            }
            other => other,
        }
    }

    /// The file's description of the recording, as far as it was read.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Number of samples of the file that were added to a store so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Sets the current time on the store's clock, for a recording that is read while it is made.
    pub fn set_now(&mut self, now_ns: u64) {
        self.place.set_now(now_ns);
    }

    /// Whether there is nothing more to read: the input has ended, or its writer has marked the
    /// end. If false after a failed read, the input was damaged, and more may come.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end || self.is_finished
    }

    /// Whether the writer has marked the end of the recording.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Sentences about what is missing of what was read.
    pub fn notes(&self) -> Vec<String> {
        let unknown = (self.unknown_sections > 0).then(|| {
            format!(
                "{} parts are of a newer version and were left out",
                self.unknown_sections
            )
        });
        let problem = self.problem.clone().into_iter();
        problem
            .chain(unknown)
            .chain(self.place.left_out())
            .collect()
    }

    /// Handles the sections of one block in their order. An unknown section is skipped by its
    /// length and counted. If a section is damaged, the sections before it remain in the store.
    fn absorb(&mut self, raw: &[u8], store: &mut Store) -> Result<(), FormatError> {
        let mut bytes = Bytes(raw);
        let mut exited = Vec::new();
        // Waits of the samples of this block, in the same order.
        let mut waits = Bytes(&[]);
        while !bytes.is_empty() {
            let tag = bytes.number()?;
            let part = Bytes(bytes.bytes()?);
            match tag {
                section::INFO => self.add_info(part, store)?,
                section::RATES => {
                    self.spread = self.spread.max(add_rates(part, &mut self.info)?);
                    self.check_weight()?;
                    self.place.set_info(&self.info, store)?;
                }
                section::SAMPLED_CPUS => {
                    add_sampled_cpus(part, &mut self.info)?;
                    self.place.set_info(&self.info, store)?;
                }
                section::PAUSES => {
                    add_pauses(part, &mut self.info)?;
                    self.place.set_info(&self.info, store)?;
                }
                section::BUSY => {
                    let busy = busy(part)?;
                    // Among several machines each has its own value, which cannot be joined.
                    if matches!(self.place, Destination::Alone) {
                        store.set_busy(busy);
                    }
                }
                section::WAITS => waits = part,
                section::STRINGS => self.tables.add_strings(part)?,
                section::HOSTS => self.add_hosts(part)?,
                section::MODULES => self.add_modules(part, store)?,
                section::PROCESSES => self.add_processes(part, store, &mut exited)?,
                section::THREADS => self.tables.add_threads(part)?,
                section::FRAMES => self.tables.add_frames(part)?,
                section::STACKS => self.tables.add_stacks(part)?,
                section::SAMPLES => self.add_samples(part, By::Step, &mut waits, store)?,
                section::SAMPLE_COLUMNS => {
                    self.add_samples(part, By::Number, &mut waits, store)?;
                }
                section::NAMES => {
                    naming::add_names(part, &self.tables, &mut self.reasons, store)?;
                }
                section::SOURCES => naming::add_sources(part, &self.tables, store)?,
                section::NAME_COLUMNS => {
                    naming::add_name_columns(part, &self.tables, &mut self.reasons, store)?;
                }
                section::SOURCE_COLUMNS => {
                    naming::add_source_columns(part, &self.tables, store)?;
                }
                section::FRAME_RUNS => self.tables.add_frame_runs(part)?,
                section::STACK_COLUMNS => self.tables.add_stack_columns(part)?,
                section::PROBES => {
                    let mut dropped = ProbeLog::default();
                    let log = match self.place {
                        Destination::Alone => store.probes_mut(),
                        Destination::Beside(_) => &mut dropped,
                    };
                    self.unknown_sections += probes::read(part, &self.tables, log)?;
                }
                section::STATES => {
                    let mut dropped = StateLog::default();
                    let log = match self.place {
                        Destination::Alone => store.states_mut(),
                        Destination::Beside(_) => &mut dropped,
                    };
                    self.unknown_sections += self.threads.read(part, &self.tables, log)?;
                }
                section::END => {
                    self.is_finished = true;
                    // If other machines share the store, they go on.
                    if let (Destination::Alone, Some(end_ns)) = (&self.place, end_of(part)) {
                        store.end(end_ns);
                    }
                }
                _ => self.unknown_sections += 1,
            }
        }
        // Done last: the store forgets a process that has ended and has no samples yet.
        exited.into_iter().for_each(|id| store.process_exited(id));
        Ok(())
    }

    /// Returns an error for a file whose sums an `f64` cannot hold exactly. If the rate was
    /// changed, a sample may count up to `spread` times, so that factor belongs to the sum.
    fn check_weight(&self) -> Result<(), FormatError> {
        if self.weight.saturating_mul(self.spread) > WEIGHT_MAX {
            Err(FormatError::TooLarge(
                "its samples add up to more than 2^53",
            ))
        } else {
            Ok(())
        }
    }

    /// Replaces the description of the recording. The description in the first block also says when
    /// the history begins.
    fn add_info(&mut self, bytes: Bytes<'_>, store: &mut Store) -> Result<(), FormatError> {
        let (info, begin_ns) = read_info(bytes)?;
        self.info = info;
        self.place.set_info(&self.info, store)?;
        if let Some(begin_ns) = begin_ns.and_then(|ns| self.place.time_ns(ns)) {
            store.begin(begin_ns);
        }
        Ok(())
    }

    /// Reads the machines of the processes in the sections that follow.
    fn add_hosts(&mut self, mut bytes: Bytes<'_>) -> Result<(), FormatError> {
        while !bytes.is_empty() {
            let process = bytes.u32()?;
            let host = Arc::clone(self.tables.string(&mut bytes)?);
            self.tables.check_people(self.hosts.len() as u32)?;
            self.hosts.insert(process, host);
        }
        Ok(())
    }

    /// Defines modules in the order of the file; the order gives their ids in the store.
    fn add_modules(&mut self, mut bytes: Bytes<'_>, store: &mut Store) -> Result<(), FormatError> {
        while !bytes.is_empty() {
            self.tables.check_people(self.tables.modules)?;
            let name = Arc::clone(self.tables.string(&mut bytes)?);
            let path = Arc::clone(self.tables.string(&mut bytes)?);
            let build_id = bytes.bytes()?;
            let id = self.tables.module_id(self.tables.modules);
            store.add_module(id, &name, &path);
            store.set_build_id(id, build_id);
            self.tables.modules += 1;
        }
        Ok(())
    }

    /// Defines processes, or changes known ones. Numbers rise by one, so that a file cannot make a
    /// table with gaps. Processes that have ended are collected in `exited`; the store is updated
    /// with them at the end of the block.
    fn add_processes(
        &mut self,
        mut bytes: Bytes<'_>,
        store: &mut Store,
        exited: &mut Vec<ProcessId>,
    ) -> Result<(), FormatError> {
        while !bytes.is_empty() {
            let number = bytes.u32()?;
            if number > self.tables.processes {
                return Err(damaged("processes are not numbered one after the other"));
            }
            self.tables.check_people(number)?;
            self.tables.processes = self.tables.processes.max(number + 1);
            let pid = bytes.u32()?;
            let comm = Arc::clone(self.tables.string(&mut bytes)?);
            let has_exited = bytes.number()? != 0;
            let text = |text: &Arc<str>| (!text.is_empty()).then(|| Arc::clone(text));
            let details = ProcessDetails {
                cgroup: text(self.tables.string(&mut bytes)?),
                user: text(self.tables.string(&mut bytes)?),
                ..ProcessDetails::default()
            };
            let id = self.tables.process_id(number);
            let host = self.place.host().or(self.hosts.get(&number));
            store.add_process_of(host, id, pid, &comm);
            store.set_process_details(id, details);
            if has_exited {
                exited.push(id);
            }
        }
        Ok(())
    }

    /// Adds the samples of one section. They are stored in columns. The column of `how` bytes (how
    /// the walk ended, times two, plus one if the sample hit in the kernel) has one byte for each
    /// sample, and each column has its own end, so a forged `count` cannot make the loop longer
    /// than the section. `waits` has the details of waits, or is empty.
    fn add_samples(
        &mut self,
        mut bytes: Bytes<'_>,
        by: By,
        waits: &mut Bytes<'_>,
        store: &mut Store,
    ) -> Result<(), FormatError> {
        let mut frames: Vec<Frame> = Vec::new();
        while !bytes.is_empty() {
            let second = bytes.number()?;
            let count = bytes.number()?;
            let is_weighted = bytes.byte()? != 0;
            let mut columns = [Bytes(&[]); 6];
            for column in &mut columns {
                *column = Bytes(bytes.bytes()?);
            }
            let [
                mut centis,
                mut hows,
                mut cpus,
                mut threads,
                mut stacks,
                mut weights,
            ] = columns;
            if count != hows.0.len() as u64 || second > u64::MAX / 1_000_000_000 - 1 {
                return Err(damaged("a second has more samples than there is room for"));
            }
            let (mut centi, mut stack) = (0i64, 0i64);
            let mut next = i64::from(self.next_stack);
            for _ in 0..count {
                centi = centi.wrapping_add(centis.signed()?);
                stack = match by {
                    By::Step => stack.wrapping_add(stacks.signed()?),
                    By::Number => match i64::from(stacks.u32()?) {
                        0 => next,
                        number => number - 1,
                    },
                };
                next = next.max(stack.saturating_add(1));
                let how = hows.byte()?;
                let cpu = cpus.u32()?;
                let thread = threads.u32()? as usize;
                let weight = if is_weighted { weights.number()? } else { 1 };
                self.weight = self.weight.saturating_add(weight);
                self.check_weight()?;
                if thread >= self.tables.threads.len() {
                    return Err(damaged("a thread is used that it does not have"));
                }
                let ending = Ending::of_number(how >> 1);
                let number = u32::try_from(stack);
                let (Some(ending), Ok(number), 0..100) = (ending, number, centi) else {
                    return Err(damaged("a sample that cannot be"));
                };
                let stamp = second * STAMPS_PER_SECOND + centi as u64;
                let time_ns = self.place.time_ns(stamp * STAMP_NS);
                let wait = if waits.is_empty() {
                    WaitPart::NONE
                } else {
                    wait_part(waits)?
                };
                let Some(time_ns) = time_ns else {
                    self.place.count_future();
                    continue;
                };
                self.samples += 1;
                let thread = &self.tables.threads[thread];
                let sample = NewSample {
                    time_ns,
                    cpu: u16::try_from(cpu).map_err(|_| damaged("a CPU that cannot be"))?,
                    process: thread.process,
                    tid: thread.tid,
                    comm: &thread.comm,
                    frames: &[],
                    kernel_frames: usize::from(how & 1),
                    ending,
                    weight,
                };
                // Fast path: the store has seen this stack and gave a handle for it, so its frames
                // need not be collected and interned. The store may have dropped the stack since to
                // make room (`Forgotten`); then its frames are added again.
                let known = self.known.get(number as usize).copied().flatten();
                if known.is_some() && store.add_sample_with(sample, wait, known) != Added::Forgotten
                {
                    continue;
                }
                self.tables.stack(number, &mut frames)?;
                let frames = &frames;
                let sample = NewSample { frames, ..sample };
                let added = store.add_sample_with(sample, wait, None);
                if let Added::Kept(known) = added {
                    self.known.resize(self.tables.stacks(), None);
                    self.known[number as usize] = Some(known);
                }
            }
            self.next_stack = u32::try_from(next).unwrap_or(u32::MAX);
        }
        Ok(())
    }
}

/// Reads the details of the next sample's wait.
fn wait_part(bytes: &mut Bytes<'_>) -> Result<WaitPart, FormatError> {
    let length_ns = bytes.number()?;
    Ok(WaitPart::of(length_ns, bytes.signed()?))
}

/// Reads the changes of the rate. Returns how many samples at the highest rate correspond to one at
/// the lowest rate.
fn add_rates(mut bytes: Bytes<'_>, info: &mut Info) -> Result<u64, FormatError> {
    let mut from_ns = 0u64;
    let mut rates = vec![info.rates.first_hz];
    while !bytes.is_empty() {
        from_ns = from_ns.saturating_add(bytes.number()?);
        let hz = bytes.u32()?;
        if hz == 0 {
            return Err(damaged("a rate that cannot be"));
        }
        info.rates.change(from_ns, hz);
        rates.push(hz);
    }
    let highest = rates.iter().copied().max().unwrap_or(1);
    let lowest = rates.into_iter().filter(|hz| *hz > 0).min().unwrap_or(1);
    Ok(u64::from(highest.div_ceil(lowest)))
}

/// Reads which CPUs were sampled.
fn add_sampled_cpus(mut bytes: Bytes<'_>, info: &mut Info) -> Result<(), FormatError> {
    info.host.sampled_cpus.clear();
    let mut cpu = 0u64;
    while !bytes.is_empty() {
        cpu = cpu.saturating_add(bytes.number()?);
        let cpu = u16::try_from(cpu).map_err(|_| damaged("a CPU that cannot be"))?;
        // Numbers have to rise; otherwise the list could be as long as the block.
        if info
            .host
            .sampled_cpus
            .last()
            .is_some_and(|last| *last >= cpu)
        {
            return Err(damaged("CPUs out of order"));
        }
        info.host.sampled_cpus.push(cpu);
    }
    Ok(())
}

/// Reads when the recording ended; `None` in files of version 2.0.
fn end_of(mut bytes: Bytes<'_>) -> Option<u64> {
    let _samples = bytes.number().ok()?;
    bytes.number().ok()?.checked_sub(1)
}

/// Reads how busy the CPUs were.
fn busy(mut bytes: Bytes<'_>) -> Result<Busy, FormatError> {
    Ok(Busy {
        busy_ms: bytes.number()?,
        of_ms: bytes.number()?,
    })
}

/// Reads the pauses, which belong to the info before them.
fn add_pauses(mut bytes: Bytes<'_>, info: &mut Info) -> Result<(), FormatError> {
    let mut last_ns: u64 = 0;
    while !bytes.is_empty() && info.pauses.len() < PAUSES_MAX {
        let start_ns = last_ns.saturating_add(bytes.number()?);
        last_ns = start_ns.saturating_add(bytes.number()?);
        info.pauses.push(Pause {
            start_ns,
            end_ns: last_ns,
        });
    }
    Ok(())
}

/// Limit of pauses: more recordings than anyone would merge.
const PAUSES_MAX: usize = 10_000;

/// Reads the description of the recording, and when its history begins. Each info section is
/// complete, and the last one counts.
fn read_info(mut bytes: Bytes<'_>) -> Result<(Info, Option<u64>), FormatError> {
    let metric = Metric {
        name: bytes.text()?,
        unit: bytes.text()?,
    };
    // Changes of the rate, sampled CPUs and pauses are in sections of their own after this one.
    let mut host = Host {
        name: bytes.text()?,
        kernel: bytes.text()?,
        arch: bytes.text()?,
        ..Host::default()
    };
    let scope = bytes.text()?;
    host.cpus = bytes.u32()?;
    let mut info = Info {
        metric,
        host,
        rates: Rates::always(bytes.u32()?),
        scope,
        epoch_unix_ms: bytes.signed()?,
        pauses: Vec::new(),
        lost: bytes.number()?,
        notes: Vec::new(),
    };
    let begin_ns = bytes.number()?.checked_sub(1);
    // Notes are meant to be read by people: no more than 64 are kept.
    for _ in 0..bytes.count()?.min(64) {
        info.notes.push(bytes.text()?);
    }
    Ok((info, begin_ns))
}
