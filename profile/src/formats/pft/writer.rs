//! Writes what a view has and the file does not have yet.
//!
//! For everything that has a number in the store, the writer keeps its number in the file. The
//! store reuses its numbers for other things; so the writer also keeps what each number stood for,
//! and compares it when the number is used.

use super::block::Packer;
use super::columns::{self, kind};
use super::probes;
use super::section;
use super::states;
use super::{MAGIC, VERSION, VERSION_MINOR};
use crate::few;
use crate::formats::FormatError;
use crate::formats::wire::{put, put_bytes, put_signed};
use crate::intern::StackId;
use crate::tables::{Process, Sample, Thread, ThreadSlot};
use crate::time::STAMP_NS;
use crate::{
    Busy, Frame, FrameId, Info, ModuleId, NameState, Pause, ProcessId, RateChange, View, WaitPart,
};
use foldhash::{HashMap, HashMapExt as _};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// A block is closed when its contents have reached this size in bytes.
const RAW_TARGET: usize = 1 << 20;

/// Writes a growing profile.
///
/// The recorder keeps one writer for as long as it records and calls [`Writer::append`] with each
/// new view, about once a second; [`write`](super::write) uses one for a single view. After each
/// append the file ends with a whole block, and a reader can use it.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    packer: Packer,
    /// Length of the file in bytes: its head and all blocks so far.
    bytes: u64,
    /// Number of samples in the file, whatever their weights.
    samples: u64,
    /// The description of the recording in the file; written again only when it has changed.
    info: Option<Arc<Info>>,
    /// Number of each string in the file. Strings begin at 1; the empty string is 0 and is not in
    /// the map.
    strings: HashMap<Arc<str>, u32>,
    modules: HashMap<ModuleId, u32>,
    /// Number of each process in the file, and what the file says of it. When that differs from the
    /// view, the process is written again under the same number.
    processes: HashMap<ProcessId, (u32, Process)>,
    /// Number of each thread in the file, by process, thread id and name: a thread that renames
    /// itself is another one here.
    threads: HashMap<(ProcessId, u32, Arc<str>), u32>,
    /// By the store's thread slot: which thread that was, and its number in the file.
    thread_slots: Vec<Option<(Thread, u32)>>,
    /// Number of each frame in the file, by its contents and not by its number in the store.
    /// Numbers begin at 1; 0 stands for no frame.
    frames: HashMap<Frame, u32>,
    /// What the file says of each frame's name, by number in the file.
    named: Vec<Named>,
    /// By the store's stack number: the serial of the stack, and its number in the file.
    stacks: Vec<Option<(u32, u32)>>,
    /// Number of stacks in the file, which is also the number of the next one.
    stacks_written: u32,
    /// Which counts of probes are in the file.
    probes: probes::Written,
    /// Which states of threads are in the file.
    states: states::Written,
    /// Whether the file already has the note that it lacks some threads.
    has_told_threads: bool,
    /// First second of which samples are written.
    first_second: u64,
    /// How busy the CPUs were, as stored in the file.
    busy: Busy,
    /// Sentences that the file has in addition to those of the recording.
    notes: Vec<String>,
    /// Range of the recording's count of lost samples, before the file begins and up to its end, if
    /// the file has only a part of the recording.
    lost: Option<(u64, u64)>,
    /// When the recording ended; `None` if unknown.
    end_ns: Option<u64>,
    /// Number of written samples of each second.
    written: BTreeMap<u64, usize>,
    /// The contents of the next block; empty between two calls.
    block: Block,
}

/// What the file says of a frame's name.
#[derive(Debug, Clone, Copy)]
struct Named {
    /// The frame's number in the store.
    frame: FrameId,
    /// What was written last, so that only changes are written.
    state: NameWritten,
    has_source: bool,
}

/// Whether the view may have something about a frame that the file does not have.
type HasNews = fn(&Named, &View) -> bool;

/// Writes what is new about a frame; the tuple has its number in the file.
type AddNews<W> = fn(&mut Writer<W>, &View, (u32, Frame), &mut Named);

impl Named {
    /// Whether the view has a name for the frame, or a reason for having none that is the first
    /// one.
    fn has_new_name(&self, view: &View) -> bool {
        let tag = view.tables.names.tag(self.frame);
        match self.state {
            NameWritten::Pending => !tag.is_pending(),
            NameWritten::Unnamed => !tag.is_pending() && tag.reason().is_none(),
            NameWritten::Final => false,
        }
    }

    /// Whether the view has source lines for the frame and the file has none.
    fn has_new_source(&self, view: &View) -> bool {
        !self.has_source && !view.tables.sources.chain(self.frame).is_empty()
    }
}

/// How much the file says of a frame's name. The state only moves down this list: a reason is
/// written once and may be followed by a name, after a name nothing more is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameWritten {
    /// Nothing yet.
    Pending,
    /// The reason why it has no name is written.
    Unnamed,
    /// Its name is written.
    Final,
}

/// The contents of the next block.
#[derive(Debug, Default)]
struct Block {
    info: Vec<u8>,
    rates: Vec<u8>,
    sampled_cpus: Vec<u8>,
    pauses: Vec<u8>,
    busy: Vec<u8>,
    strings: Vec<u8>,
    modules: Vec<u8>,
    hosts: Vec<u8>,
    processes: Vec<u8>,
    threads: Vec<u8>,
    /// New frames, with the number of their module in the file. Until they are sorted and
    /// renumbered, their numbers continue those of the frames before.
    new_frames: Vec<(u32, Frame)>,
    frames: Vec<u8>,
    new_stacks: columns::Stacks,
    stacks: Vec<u8>,
    names: columns::Names,
    sources: columns::Sources,
    waits: Vec<u8>,
    samples: Vec<u8>,
    probes: Vec<u8>,
    states: Vec<u8>,
    end: Vec<u8>,
}

impl Block {
    /// Approximate length of the block in bytes.
    fn len(&self) -> usize {
        let rows = [
            &self.strings,
            &self.hosts,
            &self.processes,
            &self.threads,
            &self.frames,
            &self.waits,
        ];
        let rows: usize = rows.into_iter().map(Vec::len).sum();
        let new = self.new_frames.len() * 3 + self.new_stacks.len();
        let named = self.names.len() + self.sources.len();
        let beside = self.probes.len() + self.states.len();
        rows + new + self.stacks.len() + named + self.samples.len() + beside
    }

    /// Returns the sections with their tags, in the order in which a reader needs them.
    ///
    /// Strings come before everything that uses their numbers, machines before their processes,
    /// stacks before samples, and details of waits before the samples they belong to. Names and
    /// sources come after the samples: a store takes names only for frames that it has, and it gets
    /// frames with samples. Rates and sampled CPUs change the info before them.
    fn sections(self) -> [(u64, Vec<u8>); 19] {
        [
            (section::INFO, self.info),
            (section::RATES, self.rates),
            (section::SAMPLED_CPUS, self.sampled_cpus),
            (section::PAUSES, self.pauses),
            (section::BUSY, self.busy),
            (section::STRINGS, self.strings),
            (section::MODULES, self.modules),
            (section::HOSTS, self.hosts),
            (section::PROCESSES, self.processes),
            (section::THREADS, self.threads),
            (section::FRAME_RUNS, self.frames),
            (section::STACK_COLUMNS, self.stacks),
            (section::WAITS, self.waits),
            (section::SAMPLE_COLUMNS, self.samples),
            (section::NAME_COLUMNS, self.names.write()),
            (section::SOURCE_COLUMNS, self.sources.write()),
            (section::PROBES, self.probes),
            (section::STATES, self.states),
            (section::END, self.end),
        ]
    }
}

impl<W: Write> Writer<W> {
    /// Begins a file by writing its head.
    pub fn new(mut out: W) -> Result<Self, FormatError> {
        let version = [VERSION.to_le_bytes(), VERSION_MINOR.to_le_bytes()].concat();
        // Written in one piece, which `out` may buffer until samples come.
        out.write_all(&[&MAGIC[..], &version].concat())?;
        Ok(Self {
            out,
            packer: Packer::new(),
            bytes: MAGIC.len() as u64 + 4,
            samples: 0,
            info: None,
            strings: HashMap::new(),
            modules: HashMap::new(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            thread_slots: Vec::new(),
            frames: HashMap::new(),
            named: Vec::new(),
            stacks: Vec::new(),
            stacks_written: 0,
            probes: probes::Written::default(),
            states: states::Written::default(),
            has_told_threads: false,
            first_second: 0,
            busy: Busy::default(),
            notes: Vec::new(),
            lost: None,
            end_ns: None,
            written: BTreeMap::new(),
            block: Block::default(),
        })
    }

    /// Leaves out samples before the second of `begin_ns`, and makes the recording begin there.
    /// Must be called before the first append.
    pub fn begin_at(&mut self, begin_ns: u64) {
        self.first_second = begin_ns / 1_000_000_000;
        self.states.begin_at(self.first_second);
    }

    /// Limits the count of lost samples to the file's part of the recording: of the samples that
    /// the recording lost, only those from number `before` up to number `until` count. Must be
    /// called before the first append.
    pub fn count_lost(&mut self, before: u64, until: u64) {
        self.lost = Some((before, until));
    }

    /// Adds a sentence to those of the recording; it is written with the next append.
    pub fn add_note(&mut self, sentence: String) {
        self.notes.push(sentence);
        // Makes the next append write the info again; the last one in the file counts.
        self.info = None;
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Samples written so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Writes the samples that are not written yet, up to the second that begins at `until_ns` (all
    /// of them if that is `None`), and everything else that has become known since the last call.
    /// The file is complete afterwards.
    pub fn append(&mut self, view: &View, until_ns: Option<u64>) -> Result<(), FormatError> {
        let until = until_ns.map_or(u64::MAX, |ns| ns / 1_000_000_000);
        self.append_some(view, |second| second < until, |_| true)
    }

    /// Appends for the last time, as [`Writer::append`] does, samples up to and including `end_ns`.
    /// Later samples arrived while names were being looked up.
    pub fn append_last(&mut self, view: &View, end_ns: u64) -> Result<(), FormatError> {
        self.end_ns = Some(end_ns);
        let end = end_ns / STAMP_NS;
        self.append_some(view, |_| true, |sample| sample.stamp <= end)
    }

    /// Writes the samples of the wanted seconds that the file does not have, then the changes of
    /// processes, names and sources, and closes the block.
    ///
    /// The progress within each second is kept as a count. That suffices because a bucket of the
    /// store only grows at its end; the count is dropped together with the second.
    fn append_some(
        &mut self,
        view: &View,
        is_second: impl Fn(u64) -> bool,
        is_wanted: impl Fn(&Sample) -> bool,
    ) -> Result<(), FormatError> {
        self.add_info(view);
        self.add_busy(view);
        for bucket in view.tables.history.buckets() {
            let second = bucket.second();
            let done = self.written.get(&second).copied().unwrap_or(0);
            if second < self.first_second || !is_second(second) || done >= bucket.len() {
                continue;
            }
            // Samples that `is_wanted` rejects now are never written: `written` is set to the whole
            // length below. Only `append_last` rejects any.
            let samples = bucket.iter().skip(done);
            let samples: Vec<(Sample, WaitPart)> = (done..)
                .zip(samples)
                .filter(|(_, sample)| is_wanted(sample))
                .map(|(at, sample)| (sample, bucket.wait(at)))
                .collect();
            self.add_samples(view, second, &samples)?;
            self.written.insert(second, bucket.len());
        }
        // Seconds that the store has dropped do not come back.
        if let Some(oldest) = view.tables.history.oldest_second() {
            self.written = self.written.split_off(&oldest);
        }
        self.add_processes(view);
        self.add_names(view)?;
        self.add_probes(view)?;
        self.add_states(view, false)?;
        self.flush()
    }

    /// Marks the end of the recording, after a last [`Writer::append`].
    pub fn finish(&mut self, view: &View) -> Result<(), FormatError> {
        self.add_info(view);
        self.add_busy(view);
        self.add_states(view, true)?;
        let end = self.end_ns.or(view.end_ns());
        put(&mut self.block.end, self.samples);
        put(
            &mut self.block.end,
            end.map_or(0, |ns| ns.saturating_add(1)),
        );
        self.flush()
    }

    /// Adds samples of one second, and writes the block whenever it is full.
    fn add_samples(
        &mut self,
        view: &View,
        second: u64,
        samples: &[(Sample, WaitPart)],
    ) -> Result<(), FormatError> {
        let mut rest = samples;
        while !rest.is_empty() {
            // A sample without anything new takes some eight bytes of the columns.
            let part = &rest[..rest.len().min(RAW_TARGET / 16)];
            let added = self.fill_block(view, second, part);
            rest = &rest[added..];
            if self.block.len() > RAW_TARGET {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Adds samples of one second to the block until it is full, and returns how many. They are six
    /// columns: hundredths of the second, endings, CPUs, threads, stacks, weights. Threads and
    /// stacks that the file does not have are defined on the way, in the same block: each sample
    /// may bring a stack of hundreds of frames, and readers refuse blocks above
    /// [`RAW_MAX`](super::block::RAW_MAX). Details of waits are a section of their own. The weights
    /// are left out if all are 1, as they are for samples of the CPU clock.
    fn fill_block(&mut self, view: &View, second: u64, samples: &[(Sample, WaitPart)]) -> usize {
        let mut columns: [Vec<u8>; 6] = Default::default();
        let [centis, hows, cpus, threads, stacks, weights] = &mut columns;
        let mut last = 0i64;
        let mut added = 0;
        let is_weighted = samples.iter().any(|(sample, _)| sample.weight != 1);
        // Either all samples of a block have details of waits, or none has.
        let has_waits = view.info().metric.is_waiting();
        for (sample, wait) in samples {
            let centi = (sample.stamp % 100) as i64;
            put_signed(centis, centi - last);
            let how = sample.ending.number() << 1 | u8::from(sample.in_kernel);
            hows.push(how);
            put(cpus, sample.cpu.into());
            put(threads, self.thread(view, sample.thread).into());
            let before = self.stacks_written;
            let stack = self.stack(view, sample.stack);
            // A new stack has the next number.
            put(
                stacks,
                if stack == before {
                    0
                } else {
                    u64::from(stack) + 1
                },
            );
            last = centi;
            if is_weighted {
                put(weights, sample.weight);
            }
            if has_waits {
                let (length_ns, other_ns) = wait.numbers();
                put(&mut self.block.waits, length_ns);
                put_signed(&mut self.block.waits, other_ns);
            }
            added += 1;
            if self.block.len() > RAW_TARGET {
                break;
            }
        }
        let out = &mut self.block.samples;
        put(out, second);
        put(out, added as u64);
        out.push(u8::from(is_weighted));
        for column in &columns {
            put_bytes(out, column);
        }
        self.samples += added as u64;
        added
    }

    /// Packs and writes the contents of the block, and begins an empty one. An empty block is not
    /// written.
    fn flush(&mut self) -> Result<(), FormatError> {
        self.number_frames();
        let block = std::mem::take(&mut self.block);
        let mut raw = Vec::with_capacity(block.len() + 32);
        for (tag, bytes) in block.sections() {
            if !bytes.is_empty() {
                put(&mut raw, tag);
                put_bytes(&mut raw, &bytes);
            }
        }
        if !raw.is_empty() {
            self.bytes += self.packer.write(&mut self.out, &raw)? as u64;
        }
        Ok(())
    }

    /// Writes how busy the CPUs were, if that has changed.
    fn add_busy(&mut self, view: &View) {
        let busy = view.busy();
        if self.busy != busy {
            self.busy = busy;
            put(&mut self.block.busy, busy.busy_ms);
            put(&mut self.block.busy, busy.of_ms);
        }
    }

    /// Writes the description of the recording, if it has changed. Changes of the rate, a choice of
    /// CPUs, and pauses are sections of their own after it, so that older readers, which do not
    /// know these sections, can read the rest.
    fn add_info(&mut self, view: &View) {
        let info = view.info();
        if self.info.as_ref() == Some(info) {
            return;
        }
        self.info = Some(Arc::clone(info));
        let out = &mut self.block.info;
        for text in [
            &info.metric.name,
            &info.metric.unit,
            &info.host.name,
            &info.host.kernel,
            &info.host.arch,
            &info.scope,
        ] {
            put_bytes(out, text.as_bytes());
        }
        put(out, info.host.cpus.into());
        put(out, info.rates.first_hz.into());
        put_signed(out, info.epoch_unix_ms);
        let lost = self
            .lost
            .map(|(before, until)| until.saturating_sub(before));
        put(out, lost.unwrap_or(info.lost));
        let begin = view
            .begin_ns()
            .map(|ns| ns.max(self.first_second.saturating_mul(1_000_000_000)));
        put(out, begin.map_or(0, |ns| ns.saturating_add(1)));
        let notes = info.notes.iter().chain(&self.notes);
        put(out, notes.clone().count() as u64);
        for note in notes {
            put_bytes(out, note.as_bytes());
        }
        let mut last_ns = 0;
        for RateChange { from_ns, hz } in &info.rates.changes {
            put(&mut self.block.rates, from_ns.saturating_sub(last_ns));
            put(&mut self.block.rates, (*hz).into());
            last_ns = *from_ns;
        }
        let mut last = 0;
        for cpu in &info.host.sampled_cpus {
            put(
                &mut self.block.sampled_cpus,
                cpu.saturating_sub(last).into(),
            );
            last = *cpu;
        }
        let mut last_ns = 0;
        for Pause { start_ns, end_ns } in &info.pauses {
            put(&mut self.block.pauses, start_ns.saturating_sub(last_ns));
            put(&mut self.block.pauses, end_ns.saturating_sub(*start_ns));
            last_ns = *end_ns;
        }
    }

    /// Returns the number of a string, defined if it is new; 0 is the empty string.
    fn string(&mut self, text: &Arc<str>) -> u32 {
        if text.is_empty() {
            return 0;
        }
        if let Some(number) = self.strings.get(text) {
            return *number;
        }
        let number = self.strings.len() as u32 + 1;
        put_bytes(&mut self.block.strings, text.as_bytes());
        self.strings.insert(Arc::clone(text), number);
        number
    }

    /// Returns the number of a module in the file, defined with its first frame.
    fn module(&mut self, view: &View, id: ModuleId) -> u32 {
        if let Some(number) = self.modules.get(&id) {
            return *number;
        }
        let number = self.modules.len() as u32;
        let module = view.tables.modules.get(id);
        let (name, path) = (self.string(&module.name), self.string(&module.path));
        put(&mut self.block.modules, name.into());
        put(&mut self.block.modules, path.into());
        put_bytes(&mut self.block.modules, &module.build_id);
        self.modules.insert(id, number);
        number
    }

    /// Returns the number of a thread in the file. The store reuses slots for other threads, so the
    /// thread remembered for a slot is compared first.
    fn thread(&mut self, view: &View, slot: ThreadSlot) -> u32 {
        let thread = view.tables.processes.thread(slot);
        let at = slot.0 as usize;
        match self.thread_slots.get(at) {
            Some(Some((known, number))) if known.is(thread) => return *number,
            Some(_) => {}
            None => self
                .thread_slots
                .resize(view.tables.processes.thread_slots(), None),
        }
        let number = self.find_thread(view, thread);
        self.thread_slots[at] = Some((thread.clone(), number));
        number
    }

    /// Returns the number of a thread whose slot is new or was reused; defines a thread that the
    /// file does not have.
    fn find_thread(&mut self, view: &View, thread: &Thread) -> u32 {
        let key = (thread.process, thread.tid, Arc::clone(&thread.comm));
        if let Some(number) = self.threads.get(&key) {
            return *number;
        }
        let number = self.threads.len() as u32;
        let process = self.process(view, thread.process);
        let comm = self.string(&thread.comm);
        let out = &mut self.block.threads;
        put(out, process.into());
        put(out, thread.tid.into());
        put(out, comm.into());
        self.threads.insert(key, number);
        number
    }

    /// Returns the number of a process in the file, defined with its first sample. A process that
    /// the store has forgotten is written without details.
    fn process(&mut self, view: &View, id: ProcessId) -> u32 {
        if let Some((number, _)) = self.processes.get(&id) {
            return *number;
        }
        let number = self.processes.len() as u32;
        let process = view
            .tables
            .processes
            .get(id)
            .cloned()
            .unwrap_or_else(Process::untold);
        self.put_process(number, &process);
        self.processes.insert(id, (number, process));
        number
    }

    /// Adds the row of a process. A row with a number that the file already has replaces the
    /// earlier one.
    fn put_process(&mut self, number: u32, process: &Process) {
        let comm = self.string(&process.comm);
        let details = &process.details;
        let cgroup = details.cgroup.as_ref().map_or(0, |text| self.string(text));
        let user = details.user.as_ref().map_or(0, |text| self.string(text));
        // The machine of a process never changes, but it is repeated with each row, which keeps
        // rows simple.
        if let Some(host) = &details.host {
            let host = self.string(host);
            put(&mut self.block.hosts, number.into());
            put(&mut self.block.hosts, host.into());
        }
        let out = &mut self.block.processes;
        for word in [
            number,
            process.pid,
            comm,
            process.exited.into(),
            cgroup,
            user,
        ] {
            put(out, word.into());
        }
    }

    /// Writes processes again that have changed since they were written: they were renamed, have
    /// ended, or more is known about them.
    fn add_processes(&mut self, view: &View) {
        // The map has no order; rows are sorted, so that the same recording gives the same bytes.
        let mut changed = Vec::new();
        for (id, (number, before)) in &mut self.processes {
            if let Some(now) = view.tables.processes.get(*id)
                && !now.is_told_alike(before)
            {
                *before = now.clone();
                changed.push((*number, now.clone()));
            }
        }
        few::sort_by_key(&mut changed, |(number, _)| *number);
        for (number, process) in changed {
            self.put_process(number, &process);
        }
    }

    /// Returns the number of a stack in the file. The store reuses the numbers of dropped stacks
    /// with another serial, which tells whether a remembered number is still valid.
    ///
    /// A stack that the store dropped and met again is written twice; readers intern it.
    fn stack(&mut self, view: &View, id: StackId) -> u32 {
        let table = &view.tables.stacks;
        let (at, serial) = (id.0 as usize, table.serial(id));
        match self.stacks.get(at) {
            Some(Some((known, number))) if *known == serial => return *number,
            Some(_) => {}
            None => self.stacks.resize(table.len(), None),
        }
        let frames = table.frames(id);
        let mut numbers = Vec::new();
        for frame in frames {
            numbers.push(self.frame(view, frame));
        }
        self.block.new_stacks.push(numbers);
        let number = self.stacks_written;
        self.stacks_written += 1;
        self.stacks[at] = Some((serial, number));
        number
    }

    /// Returns the number of a frame in the file; 0 stands for no frame at all. Until the block is
    /// closed, the number of a new frame is preliminary, see [`Writer::number_frames`].
    fn frame(&mut self, view: &View, id: FrameId) -> u32 {
        if id.0 < crate::intern::RESERVED {
            return 0;
        }
        let frame = view.tables.frames.at(id);
        if let Some(number) = self.frames.get(&frame) {
            // The frame may have been dropped by the store and have come back with another number.
            self.named[*number as usize - 1].frame = id;
            return *number;
        }
        let number = self.frames.len() as u32 + 1;
        let module = self.module(view, frame.module);
        self.block.new_frames.push((module, frame));
        self.frames.insert(frame, number);
        self.named.push(Named {
            frame: id,
            state: NameWritten::Pending,
            has_source: false,
        });
        number
    }

    /// Sorts the new frames of the block and numbers them in that order: neighbouring frames
    /// compress well side by side, and their names even better.
    fn number_frames(&mut self) {
        let new = std::mem::take(&mut self.block.new_frames);
        // New frames were numbered from `first` on as they were met. `numbers[at]` becomes the
        // final number of the frame that had number `first + at`.
        let first = (self.frames.len() - new.len()) as u32 + 1;
        let mut numbers = vec![0; new.len()];
        if !new.is_empty() {
            let key = |(module, frame): (u32, Frame)| (module, frame.kind as u8, frame.address);
            let mut order: Vec<usize> = (0..new.len()).collect();
            order.sort_unstable_by_key(|at| key(new[*at]));
            // `named` is indexed by number, so it has to be reordered as well.
            let named = self.named.split_off(first as usize - 1);
            for (number, at) in (first..).zip(&order) {
                self.frames.insert(new[*at].1, number);
                self.named.push(named[*at]);
                numbers[*at] = number;
            }
            let sorted: Vec<_> = order.iter().map(|at| key(new[*at])).collect();
            self.block.frames = columns::frames(&sorted);
        }
        let mut stacks = std::mem::take(&mut self.block.new_stacks);
        if !stacks.is_empty() {
            // Numbers below `first` are frames of earlier blocks and 0, which keep their numbers.
            stacks.renumber(|number| match number.checked_sub(first) {
                Some(at) => numbers[at as usize],
                None => number,
            });
            self.block.stacks = stacks.write();
        }
    }

    /// Writes what probes have counted since the last call.
    fn add_probes(&mut self, view: &View) -> Result<(), FormatError> {
        let mut written = std::mem::take(&mut self.probes);
        loop {
            let mut records = std::mem::take(&mut self.block.probes);
            let log = view.probes();
            let is_all = {
                // Each record may define a string, which can be longer than the record.
                let size = RAW_TARGET / 8;
                written.write(log, &mut |text| self.string(text), &mut records, size)
            };
            self.block.probes = records;
            if is_all {
                break;
            }
            self.flush()?;
        }
        self.probes = written;
        Ok(())
    }

    /// Writes what threads have done since the last call; data that may still change only if
    /// `is_last`.
    fn add_states(&mut self, view: &View, is_last: bool) -> Result<(), FormatError> {
        let log = view.states();
        if log.is_empty() {
            return Ok(());
        }
        let mut written = std::mem::take(&mut self.states);
        let mut records = std::mem::take(&mut self.block.states);
        // Each record may define a string, which can be longer than the record.
        let size = RAW_TARGET / 8;
        while !written.write(
            log,
            &mut |text| self.string(text),
            &mut records,
            size,
            is_last,
        ) {
            self.block.states = std::mem::take(&mut records);
            self.flush()?;
        }
        self.block.states = records;
        self.states = written;
        if self.states.is_full && !self.has_told_threads {
            self.has_told_threads = true;
            let threads = states::THREADS_WRITTEN_MAX;
            self.add_note(format!(
                "what threads did is kept of the first {threads} threads only"
            ));
        }
        Ok(())
    }

    /// Writes the names and sources that have become known.
    fn add_names(&mut self, view: &View) -> Result<(), FormatError> {
        self.number_frames();
        let mut named = std::mem::take(&mut self.named);
        // Names first, so that their strings are defined one after the other.
        let passes: [(HasNews, AddNews<W>); 2] = [
            (Named::has_new_name, Self::add_name),
            (Named::has_new_source, Self::add_source),
        ];
        for (has_news, add) in passes {
            for (number, known) in (1u32..).zip(&mut named) {
                // This is called for every frame of the file with each append.
                if !has_news(known, view) {
                    continue;
                }
                // The store may have reused the number for another frame.
                let frame = view.frame(known.frame);
                let Some(frame) = frame.filter(|frame| self.frames.get(frame) == Some(&number))
                else {
                    continue;
                };
                add(self, view, (number, frame), known);
                if self.block.len() > RAW_TARGET {
                    self.flush()?;
                }
            }
        }
        self.named = named;
        Ok(())
    }

    /// Writes the name of a frame, or why it has none, if the file does not have it.
    fn add_name(&mut self, view: &View, (number, frame): (u32, Frame), known: &mut Named) {
        let (state, text, start) = match view.name_told(known.frame) {
            NameState::Named(name) => (NameWritten::Final, name, None),
            NameState::Unnamed(reason) if known.state == NameWritten::Pending => {
                (NameWritten::Unnamed, reason.label().into(), None)
            }
            NameState::UnnamedIn { reason, start } if known.state == NameWritten::Pending => {
                // Stored relative to the frame, as both lie in one function: one or two bytes in
                // place of up to ten.
                let start = start.wrapping_sub(frame.address).cast_signed();
                (NameWritten::Unnamed, reason.label().into(), Some(start))
            }
            _ => return,
        };
        let kind = match (state, start) {
            (NameWritten::Final, _) => kind::NAMED,
            (_, None) => kind::UNNAMED,
            (_, Some(_)) => kind::UNNAMED_IN,
        };
        let text = self.string(&text);
        self.block.names.push(number, kind, text, start);
        known.state = state;
    }

    /// Writes the chain of inlined functions and source lines of a frame, once. An empty chain
    /// means that it is not known yet; it is checked again with the next append.
    fn add_source(&mut self, view: &View, (number, _): (u32, Frame), known: &mut Named) {
        let tables = &*view.tables;
        let chain = tables.sources.chain(known.frame);
        let Some((_, inlined)) = chain.split_last() else {
            return;
        };
        let mut links = Vec::new();
        for (at, link) in chain.iter().enumerate() {
            // The last link is the function that contains the code: its name is the frame's name,
            // which is written with the names.
            let name = if at < inlined.len() {
                tables.names.name(link.function).cloned()
            } else {
                None
            };
            let name = name.map_or(0, |name| self.string(&name));
            let file = tables.sources.file(*link).cloned();
            let file = file.map_or(0, |file| self.string(&file));
            links.push((name, file, link.line));
        }
        self.block.sources.push(number, &links);
        known.has_source = true;
    }
}
