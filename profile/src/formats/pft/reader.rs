//! Block by block from a file, or a pipe that still grows, into a store.

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

/// Contents that one file may have, unpacked: hours of a busy machine. A file
/// of zeros that unpacks to more is no profile.
const RAW_BYTES_MAX: u64 = 32 << 30;

/// All samples together weigh at most that: sums stay exact everywhere.
const WEIGHT_MAX: u64 = 1 << 53;

/// Reads a file from its beginning.
///
/// The file may be hostile: what it defines is bounded by the constants here and in
/// `tables`, and every number in it is checked before it is used. It may also still be
/// written, by a recorder at the other end of a pipe.
///
/// A file that ends early or is damaged is no error once a block was read: everything
/// up to there is in the store, and [`Reader::notes`] says what is missing.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    unpacker: Unpacker,
    /// The contents of a block that was read, and that no store has yet.
    next: Option<Vec<u8>>,
    place: Destination,
    /// What the file says of itself.
    info: Info,
    /// By number of a process: the machine that the file says it is of, in a file of several.
    hosts: HashMap<u32, Arc<str>>,
    tables: Tables,
    /// Threads that it tells what they did.
    threads: states::Threads,
    /// Whole blocks that were read.
    blocks: u64,
    /// Their contents, unpacked; at most [`RAW_BYTES_MAX`].
    raw_bytes: u64,
    /// How many samples were added to the store.
    samples: u64,
    /// The weights of all samples so far.
    weight: u64,
    /// How many times a sample may count, as others were taken more often.
    spread: u64,
    /// Whether the section of the end was there.
    is_finished: bool,
    /// Why there is no more to read, as a sentence, if it is not the end of the file.
    problem: Option<String>,
    /// Whether the input has ended.
    is_at_end: bool,
    /// Sections of newer writers, which were left out.
    unknown_sections: u64,
    /// One above the highest stack that a sample had.
    next_stack: u32,
    /// By stack: what the store knows it as.
    known: Vec<Option<KnownStack>>,
    /// Why frames have no names, if that is not to be told to the store.
    reasons: Reasons,
}

/// How samples tell their stacks.
#[derive(Debug, Clone, Copy)]
enum By {
    /// Each less the one before.
    Step,
    /// Each plus one; 0 is the first that no sample had.
    Number,
}

fn damaged(what: &str) -> FormatError {
    FormatError::Damaged(what.into())
}

impl<R: Read> Reader<R> {
    /// Reads the head of a file; an error if it is none of ours.
    pub fn new(input: R) -> Result<Self, FormatError> {
        Self::new_at(input, Destination::Alone)
    }

    /// As [`Reader::new`], of what a machine samples among others that are in the same store.
    /// What threads did in each state and what probes counted is not kept.
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

    /// Keeps from the store why frames have no names, for who wants to look for
    /// names once more: [`Reader::reasons`] has it.
    pub fn keep_reasons(&mut self) {
        self.reasons = Some(Vec::new());
    }

    /// Frames without a name, and why, as far as [`Reader::keep_reasons`] kept
    /// it; the last word for a frame comes last.
    pub fn reasons(&mut self) -> Vec<(Frame, NameState)> {
        self.reasons.take().unwrap_or_default()
    }

    /// Adds the next block to the store; `false` at the end, or where the file
    /// is cut or damaged: everything before is in the store by then.
    pub fn read_block(&mut self, store: &mut Store) -> Result<bool, FormatError> {
        Ok(self.wait_for_block()? && self.add_block(store)?)
    }

    /// Waits until the next block has come, which [`Reader::add_block`] adds to a store; `false`
    /// where [`Reader::read_block`] says so.
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

    /// Adds the block that was waited for to the store; `false` if it is damaged, and what
    /// comes before it is whole.
    pub fn add_block(&mut self, store: &mut Store) -> Result<bool, FormatError> {
        let Some(raw) = self.next.take() else {
            return Ok(false);
        };
        let added = self.absorb(&raw, store).map(|()| true);
        self.survive(added)
    }

    /// Ends reading at damage behind the first block, which is no error.
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

    /// What the file says of itself so far.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// How many samples of the file were given to a store so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Says what the time is, on the store's clock, for a recording that comes as it is made.
    pub fn set_now(&mut self, now_ns: u64) {
        self.place.set_now(now_ns);
    }

    /// Whether there is nothing more to read: the input has ended, or its writer has said so. Else
    /// it is damaged, and more may come.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end || self.is_finished
    }

    /// Whether the writer had said that nothing more comes.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// What is missing of what was read, in sentences.
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

    /// Takes the sections of one block, in their order. A section that is not known is
    /// skipped by its length and counted. If one is damaged, the sections before it
    /// remain in the store.
    fn absorb(&mut self, raw: &[u8], store: &mut Store) -> Result<(), FormatError> {
        let mut bytes = Bytes(raw);
        let mut exited = Vec::new();
        // Of the samples of this block, in their order.
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
                    // Of several machines each tells its own.
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
                    // Other machines go on.
                    if let (Destination::Alone, Some(end_ns)) = (&self.place, end_of(part)) {
                        store.end(end_ns);
                    }
                }
                _ => self.unknown_sections += 1,
            }
        }
        // The store forgets who has ended and has no sample yet.
        exited.into_iter().for_each(|id| store.process_exited(id));
        Ok(())
    }

    /// Refuses a file whose sums a `f64` cannot hold exactly. Where the rate was
    /// changed, a sample may count up to `spread` times, so that factor belongs to the
    /// sum.
    fn check_weight(&self) -> Result<(), FormatError> {
        if self.weight.saturating_mul(self.spread) > WEIGHT_MAX {
            Err(FormatError::TooLarge(
                "its samples add up to more than 2^53",
            ))
        } else {
            Ok(())
        }
    }

    /// Replaces what is known of the recording. That of the first block also says when the
    /// history begins.
    fn add_info(&mut self, bytes: Bytes<'_>, store: &mut Store) -> Result<(), FormatError> {
        let (info, begin_ns) = read_info(bytes)?;
        self.info = info;
        self.place.set_info(&self.info, store)?;
        if let Some(begin_ns) = begin_ns.and_then(|ns| self.place.time_ns(ns)) {
            store.begin(begin_ns);
        }
        Ok(())
    }

    /// The machines of processes that come behind it.
    fn add_hosts(&mut self, mut bytes: Bytes<'_>) -> Result<(), FormatError> {
        while !bytes.is_empty() {
            let process = bytes.u32()?;
            let host = Arc::clone(self.tables.string(&mut bytes)?);
            self.tables.check_people(self.hosts.len() as u32)?;
            self.hosts.insert(process, host);
        }
        Ok(())
    }

    /// Defines modules in the order of the file; their numbers are their ids in the
    /// store.
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

    /// Defines processes, or changes one that is known. Numbers rise by one, so that a
    /// file cannot make a table with holes. Who has ended is put into `exited`, and is
    /// told to the store at the end of the block.
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

    /// Adds the samples of one section. They lie in columns: one `how` byte a sample
    /// (how its walk ended, times two, plus one if it hit in the kernel) gives the
    /// count away, and each column ends by itself, so `count` cannot make the loop
    /// longer than the section. `waits` has what they tell of waits, or is empty.
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
                // The fast way: the store has seen this stack and says what it knows it
                // as, so that neither frames are collected nor the stack interned. It
                // may have dropped it since to make room (`Forgotten`); then its frames
                // are told once more.
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

/// What the next sample tells of a wait.
fn wait_part(bytes: &mut Bytes<'_>) -> Result<WaitPart, FormatError> {
    let length_ns = bytes.number()?;
    Ok(WaitPart::of(length_ns, bytes.signed()?))
}

/// What the rate was changed to, and when; says how many samples at the highest one
/// a sample at the lowest one is.
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

/// The only CPUs that were sampled.
fn add_sampled_cpus(mut bytes: Bytes<'_>, info: &mut Info) -> Result<(), FormatError> {
    info.host.sampled_cpus.clear();
    let mut cpu = 0u64;
    while !bytes.is_empty() {
        cpu = cpu.saturating_add(bytes.number()?);
        let cpu = u16::try_from(cpu).map_err(|_| damaged("a CPU that cannot be"))?;
        // One that does not rise would go on for as long as the block does.
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

/// When it ended; files of version 2.0 do not say.
fn end_of(mut bytes: Bytes<'_>) -> Option<u64> {
    let _samples = bytes.number().ok()?;
    bytes.number().ok()?.checked_sub(1)
}

/// How busy the CPUs were.
fn busy(mut bytes: Bytes<'_>) -> Result<Busy, FormatError> {
    Ok(Busy {
        busy_ms: bytes.number()?,
        of_ms: bytes.number()?,
    })
}

/// Adds the pauses to the info before them.
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

/// More recordings than anybody puts together.
const PAUSES_MAX: usize = 10_000;

/// What is known of the recording, and when its history begins; each info of a file has all
/// of it, and the last one counts.
fn read_info(mut bytes: Bytes<'_>) -> Result<(Info, Option<u64>), FormatError> {
    let metric = Metric {
        name: bytes.text()?,
        unit: bytes.text()?,
    };
    // Later rates, the sampled CPUs and pauses are in sections of their own behind this one.
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
    // Notes are for people to read: no more than 64 are kept, whatever the file holds.
    for _ in 0..bytes.count()?.min(64) {
        info.notes.push(bytes.text()?);
    }
    Ok((info, begin_ns))
}
