//! The *timeline*: events and samples of all CPUs in the order in which they happened; each sample
//! is located in its process as it was at that moment.
//!
//! All sources that sample this kernel use it; they differ in how they get their records.
//!
//! A source reads the side band of every CPU first, at `settled`, and then the samples. So
//! everything that happened before `settled` has been read, and some of what came later may be
//! missing. [`Timeline::replay`] advances to that time:
//!
//! ```text
//!  CPU 0   event ──── sample ─────────── sample │ sample
//!  CPU 1   ──── sample ───── event ──────────── │ ─── event
//!                                            settled     now
//! ```

use crate::decode::{RawSample, Record};
use crate::events::wait::EndedThread;
use crate::mappings::Mappings;
use crate::process::ProcessTable;
use crate::python::Python;
use crate::resolve::{Located, Resolver};
use crate::sample::{Batch, Sample};
use crate::shares::OverShare;
use crate::short_lived;
use crate::sideband::record::{Event, What};
use crate::stack::StackCopy;
use crate::startup::StartupScan;
use crate::targets::Targets;
use crate::thread_names::ThreadNames;
use crate::time::now_ns;
use crate::unwinding::Unwinding;
use foldhash::{HashMap, HashMapExt as _};
use probe_ebpf::record::COMM_LEN;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often ended processes are forgotten and unused memory is freed: about once a second. It is a
/// little less, as turns on an idle machine follow each other after a second.
const HOUSEKEEPING: Duration = Duration::from_millis(900);

/// How long a sample waits for its frames of Python: a busy process answers within milliseconds,
/// and a malicious one may never answer.
const UNREAD_NS: u64 = 1_000_000_000;

/// Maximum number of samples that wait for that; of more, the oldest are passed on without names.
const UNREAD_MAX: usize = 16_384;

/// How soon the next turn is while processes start and map files, and for how long after the last
/// such event: their samples are walked from copies of stacks until their tables are loaded.
const LIVELY: Duration = Duration::from_millis(50);
const LIVELY_FOR: Duration = Duration::from_secs(1);

/// For how long after it has mapped a file a process is inspected for whether it runs Python: so
/// most are known before their first samples in Python.
const STARTING_NS: u64 = 500_000_000;

/// Maximum number of processes that are inspected this way; further ones are inspected when they
/// are sampled.
const STARTING_MAX: usize = 1024;

/// For how long after exec a program is expected to map files.
const EXPECTED_FOR: Duration = Duration::from_millis(50);

/// For how long after the start first samples are expected, which a user waits for.
const FIRST_EXPECTED_FOR: Duration = Duration::from_millis(300);

/// How soon the next turn is while something is expected, or a process is about to run Python.
const STARTING_TURN: Duration = Duration::from_millis(10);

/// Records that were read and not passed on yet, and the state of all processes.
pub struct Timeline {
    targets: Targets,
    processes: ProcessTable,
    startup: StartupScan,
    resolver: Resolver,
    unwinding: Unwinding,
    python: Option<Python>,
    /// Processes that have just mapped something, with the time until which they are inspected for
    /// Python.
    starting: HashMap<u32, u64>,
    /// Names of threads; only if samples come without them.
    thread_names: Option<ThreadNames>,
    /// Samples that were read, but are newer than the side band was read.
    waiting_samples: Vec<RawSample>,
    waiting_events: Vec<Event>,
    /// Threads that have ended, whose waits were followed.
    ended_threads: Vec<EndedThread>,
    /// Copies of stacks, by the CPU and time of their samples.
    stacks: HashMap<(u32, u64), StackCopy>,
    /// Walked samples, with frames of Python that are being read.
    unread: VecDeque<(RawSample, Located)>,
    events_lost: u64,
    unwanted: u64,
    processes_over_share: Vec<OverShare>,
    /// Whether children of targets were looked for a second time.
    adopted_again: bool,
    housekeeping: Instant,
    /// Time of the last event of a process.
    last_event: Instant,
    /// Until this time turns follow each other soon: first samples are expected, or a new process is
    /// expected to map files.
    expected_until: Instant,
}

impl Timeline {
    /// A timeline on which nothing has happened.
    pub fn new(mut targets: Targets, unwinding: Unwinding) -> Self {
        targets.adopt_children();
        Self {
            targets,
            processes: ProcessTable::new(),
            startup: StartupScan::new(),
            resolver: Resolver::default(),
            unwinding,
            python: None,
            starting: HashMap::new(),
            thread_names: None,
            waiting_samples: Vec::new(),
            waiting_events: Vec::new(),
            ended_threads: Vec::new(),
            stacks: HashMap::new(),
            unread: VecDeque::new(),
            events_lost: 0,
            unwanted: 0,
            processes_over_share: Vec::new(),
            adopted_again: false,
            housekeeping: Instant::now(),
            last_event: Instant::now(),
            expected_until: Instant::now() + FIRST_EXPECTED_FOR,
        }
    }

    /// Keeps at most that many mappings of a process.
    #[must_use]
    pub fn keeping_mappings(mut self, max: usize) -> Self {
        self.processes.keep_mappings(max);
        self
    }

    /// Adds names of threads, for samples that do not contain them.
    #[must_use]
    pub fn naming_threads(mut self) -> Self {
        self.thread_names = Some(ThreadNames::default());
        self
    }

    /// Adds functions of Python.
    #[must_use]
    pub fn with_python(mut self, python: Python) -> Self {
        self.python = Some(python);
        self
    }

    /// Returns the current targets.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Reads some of the processes that existed at the start. Returns whether there are more.
    pub fn read_some_processes(&mut self) -> bool {
        let now_ns = now_ns();
        let read = self
            .startup
            .step(&mut self.processes, &mut self.targets, now_ns);
        // Of a whole machine's processes most do not run Python, and those that do are recognized
        // when they run.
        if self.targets.are_named() {
            for pid in read {
                self.note_mapped(pid, now_ns);
            }
        }
        !self.startup.is_over()
    }

    /// Returns the queue for events of the side band, in any order.
    pub fn events(&mut self) -> &mut Vec<Event> {
        &mut self.waiting_events
    }

    /// Adds a record, in any order; a sample's stack comes with it or before.
    pub fn push(&mut self, record: Record) {
        match record {
            Record::Sample(sample) => self.waiting_samples.push(sample),
            Record::Stack(stack) => match self.stacks.entry((stack.cpu, stack.time_ns)) {
                Entry::Occupied(mut begun) => begun.get_mut().bytes.add(stack.bytes),
                // Without its beginning it cannot be walked.
                Entry::Vacant(place) if stack.bytes.has_beginning() => drop(place.insert(stack)),
                Entry::Vacant(_) => {}
            },
            Record::ThreadEnd(thread) => self.ended_threads.push(thread),
        }
    }

    /// Reads the Python frames of a sample that was just taken, if the kernel side does not walk
    /// them: the sooner, the less its thread has changed.
    pub fn read_python(&mut self, sample: &mut RawSample, stack: &StackCopy) {
        if let Some(python) = &mut self.python {
            python.walk(sample, stack);
        }
    }

    /// Whether a thread is wanted, by the numbers and the user that specify targets.
    pub fn wants(&mut self, pid: u32, tid: u32) -> bool {
        self.targets.wants_thread(pid, tid)
    }

    /// Whether anything was read that was not handled yet.
    pub fn has_records(&self) -> bool {
        !self.waiting_samples.is_empty()
            || !self.waiting_events.is_empty()
            || !self.ended_threads.is_empty()
    }

    /// Returns the number of samples that were read and not passed on yet.
    pub fn samples(&self) -> usize {
        self.waiting_samples.len()
    }

    /// Returns threads that have ended since the last call.
    pub fn take_ended_threads(&mut self) -> Vec<EndedThread> {
        std::mem::take(&mut self.ended_threads)
    }

    /// Puts everything up to `settled_ns` into `batch`, in the order in which it happened. All CPUs
    /// must have been read until then.
    ///
    /// 1. Events and samples until then are processed in order of time; an event comes before a
    ///    sample of the same time. Later ones wait for the next call.
    /// 2. A sample is located in its process as it is after the events before. Its new modules are
    ///    reported before it.
    /// 3. A sample that came with a copy of its stack is held until it can be walked; the others
    ///    are passed on at once. So samples leave out of order: the time until which the batch is
    ///    complete is just before the oldest held sample. Samples with frames of Python that are
    ///    being read are held as well.
    /// 4. A copy of a stack whose sample never came is dropped.
    /// 5. The mappings of a process that ended without a sample are not examined ([`short_lived`]).
    pub fn replay(&mut self, settled_ns: u64, batch: &mut Batch) {
        let now_ns = now_ns();
        self.processes.begin_turn(now_ns);
        if let Some(python) = &mut self.python {
            python.begin_turn(now_ns);
        }
        self.mark_trampolines();
        let (mut events, samples) = self.take_settled(settled_ns);
        let read = samples.iter().chain(&self.waiting_samples);
        short_lived::drop_mappings(&mut events, read.map(|sample| sample.tgid));
        self.note_starting(&events, now_ns);
        if !events.is_empty() {
            self.last_event = Instant::now();
        }
        self.processes.prepare(&events, &self.waiting_events);
        let mut events = events.into_iter().peekable();
        for raw in samples {
            while let Some(event) = events.next_if(|event| event.time_ns <= raw.time_ns) {
                self.follow(&event, now_ns);
            }
            self.sample(raw, now_ns, batch);
        }
        for event in events {
            self.follow(&event, now_ns);
        }
        self.report_modules(now_ns, batch);
        self.meet_starting(now_ns);
        self.stacks.retain(|(_, time_ns), _| *time_ns > settled_ns);
        for (raw, located) in self.unwinding.poll(now_ns) {
            self.give(raw, located, batch);
        }
        self.give_read(now_ns, batch);
        self.report_modules(now_ns, batch);
        batch.processes = self.processes.take_changes();
        batch.gone = self.processes.modules.take_gone();
        // Samples that are held will come later than those around them.
        let held_ns = self
            .unwinding
            .oldest_held_ns()
            .map_or(u64::MAX, |oldest| oldest - 1);
        let unread = self.unread.iter().map(|(raw, _)| raw.time_ns);
        let held_ns = held_ns.min(unread.min().map_or(u64::MAX, |oldest| oldest - 1));
        batch.complete_until_ns = settled_ns.min(held_ns);
        batch.targets_alive = self.targets.alive();
        batch.tables = self.unwinding.tables().stats();
        batch.over_share = self.unwinding.over_share();
        if let Some(python) = &self.python {
            batch.over_share.extend(python.over_share());
        }
        batch
            .over_share
            .extend_from_slice(&self.processes_over_share);
        if let Some(python) = &self.python {
            batch.python = python.stats();
        }
        batch.walks = self.unwinding.walks().clone();
        batch.kept_walks = self.unwinding.take_kept_walks();
    }

    /// Returns the time until the next turn: at most `wait`, and less
    ///
    /// - after [`STARTING_TURN`] in the first moments, and while a process is about to run Python or
    ///   a program was executed a moment ago;
    /// - after [`LIVELY`] while something happens to processes, or samples are held.
    ///
    /// When answers arrive, it is earlier still ([`Self::answers`]).
    pub fn next_turn(&self, wait: Duration) -> Duration {
        let is_starting = self.python.as_ref().is_some_and(Python::is_meeting);
        if is_starting || Instant::now() < self.expected_until {
            wait.min(STARTING_TURN)
        } else if self.is_lively() {
            wait.min(LIVELY)
        } else {
            wait
        }
    }

    /// Returns a descriptor that becomes readable when something requested was read: answers are
    /// used at once, so that few samples are taken without them.
    pub fn answers(&self) -> Option<BorrowedFd<'_>> {
        self.python.as_ref().and_then(Python::answers)
    }

    /// Whether there were no events of processes for a while.
    pub fn is_quiet(&self) -> bool {
        !self.is_lively()
    }

    /// Records that a process has begun, which is to be looked at soon, or has executed a program,
    /// which will map files.
    pub fn expect_processes(&mut self) {
        self.expected_until = Instant::now() + EXPECTED_FOR;
    }

    fn is_lively(&self) -> bool {
        let is_held = self.unwinding.oldest_held_ns().is_some() || !self.unread.is_empty();
        is_held || self.last_event.elapsed() < LIVELY_FOR
    }

    /// Records which processes have mapped something in this turn, and still exist.
    fn note_starting(&mut self, events: &[Event], now_ns: u64) {
        for event in events {
            match &event.what {
                What::Map(map) => self.note_mapped(map.pid, now_ns),
                What::Exit { pid, tid } if pid == tid => _ = self.starting.remove(pid),
                _ => {}
            }
        }
    }

    /// Records that a process may start to run Python from now on.
    fn note_mapped(&mut self, pid: u32, now_ns: u64) {
        if self.python.is_some() && self.starting.len() < STARTING_MAX {
            self.starting.insert(pid, now_ns + STARTING_NS);
        }
    }

    /// Inspects whether those processes run Python by now.
    fn meet_starting(&mut self, now_ns: u64) {
        let Some(python) = &mut self.python else {
            return;
        };
        let (processes, targets) = (&self.processes, &mut self.targets);
        python.begin_meeting();
        self.starting.retain(|pid, until_ns| {
            let mapped = processes
                .mapped(*pid)
                .filter(|_| now_ns < *until_ns && targets.may_want(*pid));
            let user = || processes.current_user(*pid);
            mapped.is_some_and(|mappings| python.inspect_process(*pid, mappings, user, now_ns))
        });
    }

    /// Once a second forgets ended processes and frees unused memory. Returns whether it did so.
    pub fn keep_house(&mut self) -> bool {
        if self.housekeeping.elapsed() < HOUSEKEEPING {
            return false;
        }
        self.housekeeping = Instant::now();
        if !std::mem::replace(&mut self.adopted_again, true) {
            // All new processes are reported by now.
            self.targets.adopt_children();
        }
        self.targets.remove_missing();
        for pid in self.processes.sweep(now_ns()) {
            self.unwinding.remove(pid, now_ns());
        }
        self.processes_over_share = self.processes.over_share(now_ns());
        self.unwinding.sweep(now_ns());
        let processes = &self.processes;
        let gone = self.unwinding.take_surplus(|| processes.mapped_files());
        if !gone.is_empty() {
            self.processes.modules.forget_files(gone);
        }
        if let Some(python) = &mut self.python {
            python.sweep(|pid| self.processes.is_known(pid));
        }
        true
    }

    /// Returns the number of records of the side band that the kernel could not deliver.
    pub fn events_lost(&self) -> u64 {
        self.events_lost
    }

    /// Returns the number of samples that passed the kernel side and were not wanted.
    pub fn unwanted(&self) -> u64 {
        self.unwanted
    }

    fn take_settled(&mut self, settled_ns: u64) -> (Vec<Event>, Vec<RawSample>) {
        self.waiting_events.sort_by_key(|event| event.time_ns);
        self.waiting_samples.sort_by_key(|sample| sample.time_ns);
        let events = self
            .waiting_events
            .partition_point(|event| event.time_ns <= settled_ns);
        let samples = self
            .waiting_samples
            .partition_point(|sample| sample.time_ns <= settled_ns);
        (
            self.waiting_events.drain(..events).collect(),
            self.waiting_samples.drain(..samples).collect(),
        )
    }

    fn sample(&mut self, mut raw: RawSample, now_ns: u64, batch: &mut Batch) {
        if let Some(names) = &mut self.thread_names {
            let process = self.processes.comm_of(raw.tgid);
            raw.comm = names.of(raw.tgid, raw.tid, process.as_deref());
        }
        let stack = self.stacks.remove(&(raw.cpu, raw.time_ns));
        if !self.targets.wants(&raw) {
            self.unwanted += 1;
            return;
        }
        let mut located = self.resolver.locate(&raw, &mut self.processes, now_ns);
        self.report_modules(now_ns, batch);
        self.unwinding.cut_outdated(&mut raw, &located.mappings);
        self.request_dropped_tables(raw.tgid, &located.mappings, now_ns);
        self.unwinding
            .sampled(raw.tgid, located.user, &located.mappings, now_ns);
        if let Some(python) = self.python.as_mut().filter(|_| !located.in_exec) {
            let modules = &mut self.processes.modules;
            let Located { mappings, user, .. } = &located;
            located.python = python.read(&raw, mappings, *user, modules, now_ns);
            self.mark_trampolines();
        }
        located.over_share |= self.unwinding.is_over_share(raw.tgid);
        match stack {
            Some(stack) if raw.is_checked && !located.in_exec => {
                self.unwinding.check(&raw, &located, &stack);
                self.give(raw, located, batch);
            }
            Some(stack) if !located.in_exec && !located.over_share => {
                self.unwinding.hold(raw, located, stack, now_ns);
            }
            _ => {
                // There was no room left in that second for a copy of its stack.
                located.tables_late =
                    !located.over_share && !self.unwinding.was_published(raw.tgid, raw.time_ns);
                self.give(raw, located, batch);
            }
        }
    }

    /// Passes on a sample whose stack was walked, unless Python frames in it are still being read.
    fn give(&mut self, raw: RawSample, located: Located, batch: &mut Batch) {
        if located.python.are_read() {
            let sample = self.finish(&raw, &located);
            batch.samples.push(sample);
        } else {
            self.unread.push_back((raw, located));
        }
    }

    /// Passes on the samples whose Python frames have been read, and those that have waited long
    /// enough.
    fn give_read(&mut self, now_ns: u64, batch: &mut Batch) {
        let mut surplus = self.unread.len().saturating_sub(UNREAD_MAX);
        for (raw, located) in std::mem::take(&mut self.unread) {
            let is_old = now_ns.saturating_sub(raw.time_ns) > UNREAD_NS;
            if is_old || surplus > 0 || located.python.are_read() {
                surplus = surplus.saturating_sub(1);
                let sample = self.finish(&raw, &located);
                batch.samples.push(sample);
            } else {
                self.unread.push_back((raw, located));
            }
        }
    }

    /// Makes the sample, with modules for its frames, and with its Python frames.
    fn finish(&mut self, raw: &RawSample, located: &Located) -> Sample {
        let mut sample = self.resolver.resolve(raw, located, &mut self.processes);
        if let Some(name) = located.python.thread_name()
            && self.has_no_better_name(raw.tgid, &sample.comm, name)
        {
            sample.comm = Arc::clone(name);
        }
        if let Some(python) = &mut self.python {
            let modules = &mut self.processes.modules;
            let Located {
                python: parts,
                mappings,
                ..
            } = located;
            python.merge(&mut sample, parts, raw.python.later, mappings, modules);
        }
        sample
    }

    /// Whether to use the program's own name for a thread: the name in the kernel is what other
    /// tools show. From 3.14 on CPython sets the kernel's name as far as there is room for it.
    fn has_no_better_name(&self, pid: u32, told: &str, name: &str) -> bool {
        let is_inherited = || self.processes.comm_of(pid).as_deref() == Some(told);
        let is_cut = || told.len() + 1 == COMM_LEN && name.starts_with(told);
        is_inherited() || is_cut()
    }

    /// Marks mappings with Python's trampolines, which are walked by their rules from now on.
    fn mark_trampolines(&mut self) {
        let unmarked = self.python.as_mut().map(Python::take_unmarked);
        for (pid, start, kind) in unmarked.unwrap_or_default() {
            let Some((table, is_new)) = self.processes.modules.trampolines(kind) else {
                continue;
            };
            if is_new {
                self.unwinding.add_trampolines(table, kind);
            }
            self.processes.set_trampolines(pid, start, table);
        }
    }

    /// Reports new modules; their tables are built from now on.
    fn report_modules(&mut self, now_ns: u64, batch: &mut Batch) {
        for module in self.processes.modules.take_fresh() {
            self.unwinding.add_module(&module);
            if let Some(python) = &mut self.python
                && self.processes.modules.may_be_of_python(module.id)
            {
                python.add_module(&module, now_ns);
            }
            batch.modules.push(module);
        }
    }

    /// Requests the tables of a process's files again that were dropped while no process had them
    /// mapped.
    fn request_dropped_tables(&mut self, pid: u32, mappings: &Mappings, now_ns: u64) {
        for (file, range) in self.unwinding.take_dropped(pid, mappings, now_ns) {
            let opened = self.processes.modules.open_again(file, pid, range);
            if let Some(module) = opened {
                self.unwinding.add_module(&module);
            }
        }
    }

    fn follow(&mut self, event: &Event, now_ns: u64) {
        if event.what.is_outside() {
            return;
        }
        if let What::Lost(records) = event.what {
            self.events_lost += records;
        }
        if let Some(names) = &mut self.thread_names {
            names.apply(event);
        }
        self.processes.apply(event);
        self.targets.apply(event);
        self.unwinding.apply(event, now_ns);
        if let Some(python) = &mut self.python {
            python.apply(event);
        }
    }
}
