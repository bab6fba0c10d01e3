//! The *store* is the bounded history of a run: samples that are added are interned and kept for a
//! while, and reports can be made at any time.
//!
//! - [`naming`]: which frames need a name, and setting names
//! - [`reclaim`]: keeping within the bounds
//!
//! All times are on the clock of the samples; the store never reads a clock.

mod naming;
mod reclaim;

use crate::hash::Seed;
use crate::intern::{
    Frames, HIDDEN, NO_STACK, RESERVED, STACK_DEPTH_MAX, StackId, Stacks, stopped,
};
use crate::probes::ProbeLog;
use crate::states::StateLog;
use crate::tables::{EventId, Histories, Modules, Names, Processes, Sample, Sources, Tables};
use crate::time::{STAMP_NS, STAMPS_PER_SECOND};
use crate::{
    Busy, Ending, Frame, FrameId, Info, Metric, ModuleId, NoName, ProcessDetails, ProcessId, View,
    WaitPart,
};
use naming::Naming;
use std::sync::Arc;
use std::time::Duration;

/// How much history is kept; the bound that is reached first applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a sample is kept.
    pub keep: Duration,
    /// Memory bound. It is checked every few hundred samples, so a table that grows between two
    /// checks may exceed it for a moment, by about a tenth.
    pub memory_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(600),
            memory_bytes: 256 << 20,
        }
    }
}

/// One event that happened to a thread, usually a tick that found it on a CPU.
#[derive(Debug, Clone, Copy)]
pub struct NewSample<'a> {
    /// When it was taken, on the clock of the samples.
    pub time_ns: u64,
    /// The CPU that it was taken on.
    pub cpu: u16,
    /// The process of the thread, which was added before.
    pub process: ProcessId,
    /// The thread's tid.
    pub tid: u32,
    /// The thread's name.
    pub comm: &'a str,
    /// Frames, innermost first, kernel frames before user frames.
    pub frames: &'a [Frame],
    /// Number of kernel frames among them; if not 0, the tick hit in the kernel.
    pub kernel_frames: usize,
    /// How the walk of the user stack ended.
    pub ending: Ending,
    /// Number of samples that it stands for: one, unless it comes from a file that says otherwise.
    pub weight: u64,
}

/// Handle of a stack that a sample had; the stack may have been dropped since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownStack {
    stack: StackId,
    serial: u32,
}

/// The result of adding a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// It was stored; the handle can be used for the next sample with this stack.
    Kept(KnownStack),
    /// It was refused; [`Store::stats`] counts the reasons.
    Refused,
    /// The stack of the given handle was dropped: the sample has to be added again with its frames.
    Forgotten,
}

/// What the store holds, and what it refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Number of stored samples, of all events.
    pub samples: u64,
    /// Number of seconds that have samples, for the event that has most of them.
    pub seconds: usize,
    /// Number of different stacks.
    pub stacks: usize,
    /// Number of different frames.
    pub frames: usize,
    /// Number of functions that have a name.
    pub functions: usize,
    /// Number of modules that have a frame.
    pub modules: usize,
    /// Number of processes, each life counted.
    pub processes: usize,
    /// Number of threads.
    pub threads: usize,
    /// Approximate memory of everything, in bytes.
    pub memory_bytes: usize,
    /// Number of samples refused because their time is before the history.
    pub refused_late: u64,
    /// Number of samples refused because one second alone reached the memory bound.
    pub refused_memory: u64,
}

/// The bounded history of a run.
#[derive(Debug)]
pub struct Store {
    pub(crate) limits: Limits,
    pub(crate) histories: Histories,
    pub(crate) stacks: Stacks,
    pub(crate) frames: Frames,
    pub(crate) names: Names,
    pub(crate) sources: Sources,
    pub(crate) modules: Modules,
    pub(crate) processes: Processes,
    naming: Naming,
    /// When the history begins: the time given to [`Store::begin`] or else the first sample; later
    /// the first second that is still kept.
    begin_ns: Option<u64>,
    /// When sampling ended, see [`Store::end`].
    end_ns: Option<u64>,
    /// The latest second seen.
    newest_second: u64,
    /// The first second that was not dropped yet.
    first_second: u64,
    /// Number of samples until the memory is checked again.
    until_check: u32,
    is_full: bool,
    refused_late: u64,
    refused_memory: u64,
    generation: u64,
    info: Arc<Info>,
    /// What probes counted; it has its own bound.
    probes: Arc<ProbeLog>,
    /// What threads did; it has its own bounds.
    states: Arc<StateLog>,
    busy: Busy,
    /// The frame numbers of a new stack, kept to reuse its allocation.
    scratch: Vec<FrameId>,
}

impl Store {
    /// An empty store.
    pub fn new(limits: Limits) -> Self {
        let seed = Seed::random();
        let mut names = Names::new();
        names.set_reserved(NO_STACK, NO_STACK_NAME.into());
        names.set_unnamed(NO_STACK, NoName::NoStack);
        names.set_reserved(HIDDEN, HIDDEN_NAME.into());
        for ending in Ending::ALL {
            let name = format!("[stopped: {}]", ending.label());
            names.set_reserved(stopped(ending), name.into());
        }
        Self {
            limits,
            histories: Histories::default(),
            stacks: Stacks::new(seed.clone()),
            // A quarter: names take as much again, and the rest is for samples.
            frames: Frames::new(seed, limits.memory_bytes / 4),
            names,
            sources: Sources::new(),
            modules: Modules::default(),
            processes: Processes::default(),
            naming: Naming::default(),
            begin_ns: None,
            end_ns: None,
            newest_second: 0,
            first_second: 0,
            until_check: 0,
            is_full: false,
            refused_late: 0,
            refused_memory: 0,
            generation: 0,
            info: Arc::default(),
            probes: Arc::default(),
            states: Arc::default(),
            busy: Busy::default(),
            scratch: Vec::new(),
        }
    }

    /// Sets when sampling began, so that a window that reaches further back is cut there. Without
    /// it, history begins with the first sample.
    pub fn begin(&mut self, time_ns: u64) {
        self.begin_ns.get_or_insert(time_ns);
    }

    /// Sets when sampling ended, if that is known. Without it, history goes to the end of the
    /// second of the newest sample.
    pub fn end(&mut self, time_ns: u64) {
        self.end_ns = Some(time_ns);
    }

    /// Describes a module: `name` is short (`libc.so.6`, `[kernel]`), `path` long. A second call
    /// changes the description.
    pub fn add_module(&mut self, id: ModuleId, name: &str, path: &str) {
        self.modules.add(id, name, path);
    }

    /// Whether a module's description is still stored. Under memory pressure it is dropped with the
    /// module's last frame.
    pub fn has_module(&self, id: ModuleId) -> bool {
        self.modules.contains(id)
    }

    /// Drops the description of a module whose samples can arrive no more, if no frame lies in it.
    /// Returns false while there are some.
    pub fn drop_unused_module(&mut self, id: ModuleId) -> bool {
        self.modules.drop_unused(id)
    }

    /// Sets the build-id of a module that was described; it identifies the same module in another
    /// recording.
    pub fn set_build_id(&mut self, id: ModuleId, build_id: &[u8]) {
        self.modules.set_build_id(id, build_id);
    }

    /// Treats modules with the same path and build-id as equal from now on, for samples of several
    /// machines: their functions are counted together. Each keeps its own frames, whose names come
    /// only from their own machine, so that no machine can rename what runs on another. Modules are
    /// joined when their build-id is set, even to an empty one.
    pub fn join_equal_modules(&mut self) {
        self.modules.join_equal();
    }

    /// Adds a process, or renames one after exec.
    pub fn add_process(&mut self, id: ProcessId, pid: u32, comm: &str) {
        self.add_process_of(None, id, pid, comm);
    }

    /// Adds a process as [`Store::add_process`] does, on this machine, in a profile of several. The
    /// same pid on two machines is two processes.
    pub fn add_process_of(&mut self, host: Option<&Arc<str>>, id: ProcessId, pid: u32, comm: &str) {
        self.processes.add(id, host, pid, comm, self.newest_second);
    }

    /// Sets what else is known of a process that was added. The machine that it was added with
    /// stays.
    pub fn set_process_details(&mut self, id: ProcessId, details: ProcessDetails) {
        self.processes.set_details(id, details);
    }

    /// Records that a process has ended. It is dropped after its samples.
    pub fn process_exited(&mut self, id: ProcessId) {
        self.processes.exit(id, self.newest_second);
    }

    /// Adds a sample; `false` if it was refused, which [`Store::stats`] counts.
    pub fn add_sample(&mut self, sample: NewSample<'_>) -> bool {
        self.add_sample_of(EventId::FIRST, sample)
    }

    /// Adds another event, whose sample weights are in that metric; `None` if there are too many
    /// events.
    pub fn add_event(&mut self, metric: Metric) -> Option<EventId> {
        self.histories.add_event(metric, None)
    }

    /// Adds another event as [`Store::add_event`] does, which is counted from a moment of the
    /// history on, so that a window of it that reaches further back is cut there.
    pub fn add_event_since(&mut self, metric: Metric, since_ns: u64) -> Option<EventId> {
        self.histories.add_event(metric, Some(since_ns))
    }

    /// Adds a sample of an event from [`Store::add_event`]; `false` if it was refused, which
    /// [`Store::stats`] counts.
    pub fn add_sample_of(&mut self, event: EventId, sample: NewSample<'_>) -> bool {
        self.add_wait_of(event, sample, WaitPart::NONE)
    }

    /// Adds a sample of a wait, as [`Store::add_sample_of`] does.
    pub fn add_wait_of(&mut self, event: EventId, sample: NewSample<'_>, wait: WaitPart) -> bool {
        matches!(self.add(event, sample, wait, None), Added::Kept(_))
    }

    /// Adds a sample of the first event, as [`Store::add_wait_of`] does. A caller that has the
    /// handle of the same frames may leave the frames out: they are not looked at then.
    pub(crate) fn add_sample_with(
        &mut self,
        sample: NewSample<'_>,
        wait: WaitPart,
        known: Option<KnownStack>,
    ) -> Added {
        self.add(EventId::FIRST, sample, wait, known)
    }

    /// Adds a sample. It is refused, and counted, if it is too old or if there is no room. If there
    /// are more frames than [`STACK_DEPTH_MAX`], the outermost ones are cut, and the ending says
    /// so.
    fn add(
        &mut self,
        event: EventId,
        sample: NewSample<'_>,
        wait: WaitPart,
        known: Option<KnownStack>,
    ) -> Added {
        if !self.histories.has(event) {
            debug_assert!(false, "{event:?} is of another store");
            return Added::Refused;
        }
        let stamp = sample.time_ns / STAMP_NS;
        let second = stamp / STAMPS_PER_SECOND;
        // Done before anything is stored, because a new second makes room.
        if second > self.newest_second {
            self.enter_second(second);
        }
        if second < self.oldest_wanted() {
            self.refused_late += 1;
            return Added::Refused;
        }
        if self.is_full {
            self.refused_memory += 1;
            return Added::Refused;
        }

        let depth = sample.frames.len().min(STACK_DEPTH_MAX);
        let stack = match known {
            Some(known) if !self.stacks.is_still(known.stack, known.serial) => {
                return Added::Forgotten;
            }
            Some(known) => Some(known.stack),
            None => self.intern_stack(&sample.frames[..depth]),
        };
        let Some(stack) = stack else {
            self.refused_memory += 1;
            return Added::Refused;
        };
        self.stacks.add_use(stack);
        let thread = self
            .processes
            .add_sample(sample.process, sample.tid, sample.comm, second);
        self.histories.push(
            event,
            Sample {
                stamp,
                cpu: sample.cpu,
                thread,
                stack,
                ending: if depth < sample.frames.len() {
                    Ending::TooDeep
                } else {
                    sample.ending
                },
                in_kernel: sample.kernel_frames > 0,
                weight: sample.weight,
            },
            wait,
        );
        let begin = self.begin_ns.get_or_insert(sample.time_ns);
        *begin = (*begin).min(sample.time_ns);
        let serial = self.stacks.serial(stack);
        self.check_memory_sometimes();
        Added::Kept(KnownStack { stack, serial })
    }

    /// Returns an immutable view of the current contents, to be queried on any thread.
    pub fn view(&self) -> View {
        View {
            tables: Arc::new(Tables {
                history: self.histories.first().clone(),
                others: match self.histories.others() {
                    [] => Arc::default(),
                    others => others.into(),
                },
                stacks: self.stacks.table().clone(),
                frames: self.frames.table().clone(),
                names: self.names.table().clone(),
                sources: self.sources.table().clone(),
                modules: self.modules.table().clone(),
                processes: self.processes.table().clone(),
                info: Arc::clone(&self.info),
                probes: Arc::clone(&self.probes),
                states: Arc::clone(&self.states),
                busy: self.busy,
                begin_ns: self.begin_ns,
                end_ns: self.end_of_history(),
                kept_seconds: self.kept_seconds(),
            }),
        }
    }

    /// Returns the number of the next report, from one on.
    pub(crate) fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    /// The info that was set last.
    pub(crate) fn info(&self) -> &Info {
        &self.info
    }

    /// Sets where and how the samples are taken.
    pub fn set_info(&mut self, info: Info) {
        self.info = Arc::new(info);
    }

    /// Sets how busy the CPUs were so far; replaces the previous value.
    pub fn set_busy(&mut self, busy: Busy) {
        self.busy = busy;
    }

    /// Sets what probes have counted so far; replaces the previous value.
    pub fn set_probes(&mut self, probes: Arc<ProbeLog>) {
        self.probes = probes;
    }

    /// The log of what threads did.
    pub fn states(&self) -> &StateLog {
        &self.states
    }

    /// The log of what threads did, for adding to it.
    pub fn states_mut(&mut self) -> &mut StateLog {
        Arc::make_mut(&mut self.states)
    }

    /// The counts of probes, for adding to them.
    pub fn probes_mut(&mut self) -> &mut ProbeLog {
        Arc::make_mut(&mut self.probes)
    }

    /// Returns the frame of a number that the store assigned.
    pub fn frame(&self, id: FrameId) -> Option<Frame> {
        self.frames.get(id)
    }

    /// Path and build-id of a module, as far as they are known.
    pub fn module(&self, id: ModuleId) -> (Arc<str>, Arc<[u8]>) {
        let module = self.modules.get(id);
        (module.path, module.build_id)
    }

    /// Returns the number of a frame, if a stack has it.
    pub fn find_frame(&self, frame: &Frame) -> Option<FrameId> {
        self.frames.find(frame)
    }

    /// The end of the history. An end that was set before the newest second is ignored, as samples
    /// were added since. Without any sample it is the end of what probes counted.
    fn end_of_history(&self) -> Option<u64> {
        const SECOND_NS: u64 = STAMP_NS * STAMPS_PER_SECOND;
        let newest = self
            .histories
            .newest_second()
            .or_else(|| self.probes.newest_second())?;
        let told = self
            .end_ns
            .filter(|end| *end > newest.saturating_mul(SECOND_NS));
        Some(told.unwrap_or((newest + 1).saturating_mul(SECOND_NS)))
    }

    /// When the history begins; `None` while it is empty.
    pub fn begin_ns(&self) -> Option<u64> {
        self.begin_ns
    }

    /// When sampling ended, as set by [`Store::end`], even if there are no samples.
    pub fn told_end_ns(&self) -> Option<u64> {
        self.end_ns
    }

    /// Length of the history in seconds.
    pub fn kept_seconds(&self) -> f64 {
        let Some(end_ns) = self.end_of_history() else {
            return 0.0;
        };
        end_ns.saturating_sub(self.begin_ns.unwrap_or(end_ns)) as f64 / 1e9
    }

    /// Changes the memory bound.
    pub fn set_memory_bytes_max(&mut self, bytes: usize) {
        self.limits.memory_bytes = bytes;
    }

    /// Estimates the memory of the store in bytes; cheap enough for each refresh.
    pub fn memory_bytes(&self) -> usize {
        self.histories.memory_bytes()
            + self.stacks.memory_bytes()
            + self.frames.memory_bytes()
            + self.names.memory_bytes()
            + self.sources.memory_bytes()
            + self.modules.memory_bytes()
            + self.processes.memory_bytes()
            + self.naming.memory_bytes()
    }

    /// Counts what is stored, and what was refused.
    pub fn stats(&self) -> StoreStats {
        StoreStats {
            samples: self.histories.samples(),
            seconds: self.histories.seconds(),
            stacks: self.stacks.stored(),
            frames: self.frames.used(),
            functions: self.names.functions() - RESERVED as usize,
            modules: self.modules.count(),
            processes: self.processes.count(),
            threads: self.processes.count_threads(),
            memory_bytes: self.memory_bytes(),
            refused_late: self.refused_late,
            refused_memory: self.refused_memory,
        }
    }

    /// Returns the number of a stack, which is stored if it is new; `None` if there is no room. An
    /// empty stack becomes the stack of the one frame [`NO_STACK`].
    fn intern_stack(&mut self, frames: &[Frame]) -> Option<StackId> {
        let hash = self.stacks.hash(frames);
        let known = if frames.is_empty() {
            self.stacks.find(hash, 1, |_, id| id == NO_STACK)
        } else {
            let table = &self.frames;
            self.stacks.find(hash, frames.len(), |at, id| {
                id.0 >= RESERVED && table.get(id) == Some(frames[at])
            })
        };
        known.or_else(|| self.add_stack(hash, frames))
    }

    /// Stores a new stack and interns its frames. If one of them needs a name, the stack is
    /// remembered for [`Store::frames_to_name`].
    fn add_stack(&mut self, hash: u32, frames: &[Frame]) -> Option<StackId> {
        // Done before any frame of this stack is interned: its new frames are on no stack yet, and
        // would be released.
        if self.frames.is_full() {
            self.release_frames();
        }
        let mut ids = std::mem::take(&mut self.scratch);
        ids.clear();
        let mut wants_names = false;
        for frame in frames {
            let interned = self.frames.intern(frame);
            if interned.is_new {
                self.names.add(interned.id);
                self.modules.add_frame(frame.module);
            }
            wants_names |= self.names.tag(interned.id).is_new();
            ids.push(interned.id);
        }
        if ids.is_empty() {
            ids.push(NO_STACK);
        }
        let stack = self.stacks.insert(hash, &ids);
        self.scratch = ids;
        if wants_names && let Some(stack) = stack {
            self.naming.add_stack(stack);
        }
        stack
    }
}

/// The name of the function that samples without any frame are charged to.
const NO_STACK_NAME: &str = "[no stack]";

/// The name of the function that samples are charged to if a filter hides all their frames.
const HIDDEN_NAME: &str = "[hidden]";

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::FrameKind;

    pub(crate) fn store() -> Store {
        Store::new(Limits::default())
    }

    /// The metric of an event that is not a clock tick.
    pub(crate) fn waiting() -> Metric {
        Metric {
            name: "offcpu".into(),
            unit: "nanoseconds".into(),
        }
    }

    pub(crate) fn frame(address: u64) -> Frame {
        Frame {
            module: ModuleId(1),
            address,
            kind: FrameKind::User,
        }
    }

    pub(crate) fn sample(time_ns: u64, frames: &[Frame]) -> NewSample<'_> {
        NewSample {
            time_ns,
            cpu: 0,
            process: ProcessId(1),
            tid: 1,
            comm: "test",
            frames,
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 1,
        }
    }

    #[test]
    fn an_event_that_came_later_has_a_shorter_history() {
        const SECOND: u64 = 1_000_000_000;
        let mut store = store();
        let here = [frame(1)];
        for second in 0..10 {
            store.add_sample(sample(second * SECOND, &here));
        }
        let waits = store.add_event_since(waiting(), 7 * SECOND).unwrap();
        store.add_sample_of(waits, sample(9 * SECOND, &here));
        store.end(10 * SECOND);
        let view = store.view();
        let seconds = |view: &View, range| view.window(range).seconds();
        let waited = view.of_event(waits).unwrap();
        assert_eq!(waited.begin_ns(), Some(7 * SECOND));
        assert_eq!((view.kept_seconds(), waited.kept_seconds()), (10.0, 3.0));
        let last = crate::TimeRange::last(std::time::Duration::from_secs(5), 10 * SECOND);
        assert_eq!((seconds(&view, last), seconds(&waited, last)), (5.0, 3.0));
        // The window lies before the event was counted.
        let before = crate::TimeRange::between(2 * SECOND, 6 * SECOND);
        assert_eq!(
            (seconds(&view, before), seconds(&waited, before)),
            (4.0, 0.0)
        );
    }

    #[test]
    fn events_are_counted_each_by_itself() {
        let mut store = store();
        let waits = store.add_event(waiting()).unwrap();
        let [here, there] = [[frame(1)], [frame(2)]];
        for second in 0..3 {
            store.add_sample(sample(second * 1_000_000_000, &here));
        }
        for (frames, weight) in [(&here, 700), (&there, 300)] {
            let sample = sample(0, frames);
            assert!(store.add_sample_of(waits, NewSample { weight, ..sample }));
        }
        let view = store.view();
        let told = view
            .events()
            .map(|(event, metric, samples)| (event, metric.clone(), samples));
        let expected = [
            (EventId::FIRST, Metric::default(), 3),
            (waits, waiting(), 2),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let rows = |view: &View| {
            let all = view.select(&crate::Query::default(), &crate::Cancel::new());
            let report = all.unwrap().report();
            let mut rows: Vec<_> = report
                .functions
                .iter()
                .map(|row| row.self_samples)
                .collect();
            rows.sort_unstable();
            rows
        };
        assert_eq!(rows(&view), [3]);
        let waited = view.of_event(waits).unwrap();
        assert_eq!(rows(&waited), [300, 700]);
        assert_eq!(waited.info().metric, waiting());
        // The same places have the same numbers.
        assert_eq!(view.of_event(EventId::FIRST).unwrap().samples(), 3);
        assert!(waited.of_event(waits).is_none());
    }

    #[test]
    fn a_stack_too_deep_is_cut_at_its_root_and_says_so() {
        let mut store = store();
        let deep: Vec<Frame> = (0..STACK_DEPTH_MAX as u64 + 5).map(frame).collect();
        store.add_sample(sample(0, &deep));
        let report = store.report(Duration::from_secs(1), 1);
        assert_eq!(report.completeness.frames, STACK_DEPTH_MAX as u64);
        assert_eq!(report.completeness.endings, [(Ending::TooDeep, 1)]);
        assert_eq!(report.functions[0].address, 0);
    }

    #[test]
    fn history_begins_when_sampling_does() {
        let mut store = store();
        store.begin(1_000_000_000);
        store.add_sample(sample(3_500_000_000, &[frame(1)]));
        assert_eq!(store.kept_seconds(), 3.0);
        let report = store.report(Duration::from_secs(10), 4_000_000_000);
        assert_eq!(report.window.seconds(), 3.0);
    }
}
