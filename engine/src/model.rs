//! The model: the thread that owns the profile store.

use super::clock::{Due, SnapshotClock, State};
use super::cost::Meter;
use super::debuginfod::Fetching;
use super::naming::{Line, NamedModule, Naming};
use super::sources::{DEBUG_BYTES_MAX, Sources};
use super::stops::Stops;
use super::users::Users;
use crate::alike::ending;
use crate::host;
use crate::losses::Losses;
use crate::sampler::News;
use crate::settings::{Command, Schedule, Settings};
use crate::snapshot::{Host, Metered, NamesFrom, Sampler, Snapshot, TargetState};
use probe::{Batch, Counters, ModuleKind, ProcessInfo, SourceInfo, TableStats};
use profile::{
    EventId, Frame, FrameId, FrameKind, Health, Info, Metric, ModuleId, NewSample, ProcessDetails,
    ProcessId, Query, SourceFrame, Stop, Store, TimeRange,
};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use symbolize::{Symbolizer, TableCache, table_cache};

/// How long the model sleeps when nothing comes in: the longest that a command
/// or a name waits.
const NAP: Duration = Duration::from_millis(50);

/// Frames sent to the naming workers at once; the rest follow when they are
/// named, so that the hottest of then come first.
const FRAMES_ASKED_MAX: usize = 20_000;

/// Files held open for the naming workers. The rest is found again by path.
const FILES_OPEN_MAX: usize = 256;

/// Lines of the started command's output that are kept.
const OUTPUT_LINES_MAX: usize = 1000;

/// A module as the store and the naming workers want to know it.
struct Described {
    named: Arc<NamedModule>,
    kind: FrameKind,
    name: String,
    path: String,
    build_id: Arc<[u8]>,
    /// A frame of it was found in source text.
    has_lines: bool,
}

type Publish = Box<dyn FnMut(Arc<Snapshot>) -> bool + Send>;

pub struct Model {
    settings: Settings,
    publish: Publish,
    clock: SnapshotClock,
    store: Store,
    naming: Naming,
    sources: Sources,
    /// If debug files may be fetched.
    fetching: Option<Fetching>,
    modules: HashMap<ModuleId, Described>,
    open_files: VecDeque<Arc<NamedModule>>,
    meter: Meter,
    losses: Arc<Losses>,
    stops: Stops,
    users: Users,
    counters: Counters,
    tables: TableStats,
    /// Users, and how many of their processes are not walked: they have their share.
    over_share: Vec<(Arc<str>, usize)>,
    /// Processes that have more mappings than are kept of one.
    processes_cut: usize,
    host: Arc<Host>,
    source: SourceInfo,
    sampler: Option<Arc<Sampler>>,
    /// Tells the sampler which rate is wanted.
    rates: Sender<u32>,
    /// Why the rate that was wanted last is not taken.
    rate_kept: Option<String>,
    /// With the rates there were.
    info: Info,
    target: TargetState,
    /// What is to be the target's state when samples have come in up to then.
    ends: Option<(String, u64)>,
    /// Nobody wants to wait for more.
    finishing: bool,
    output: VecDeque<String>,
    begin_ns: u64,
    complete_until_ns: u64,
    generation: u64,
}

impl Model {
    pub fn new(settings: Settings, rates: Sender<u32>, publish: Publish) -> Self {
        let symbolizer = Arc::new(symbolizer());
        let host = host::read(&settings.cpus);
        let epoch_unix_ms = epoch_unix_ms();
        let info = Info {
            metric: Metric::default(),
            host: host.name.clone(),
            kernel: host.kernel.clone(),
            arch: host.arch.clone(),
            cpus: host.cpus,
            sampled_cpus: host.sampled_cpus.clone(),
            rate_hz: settings.rate_hz,
            scope: settings.scope.to_string(),
            epoch_unix_ms,
            ..Info::default()
        };
        Self {
            clock: SnapshotClock::new(settings.schedule.clone()),
            store: Store::new(settings.limits),
            settings,
            publish,
            naming: Naming::start(symbolizer.clone()),
            sources: Sources::start(symbolizer.clone()),
            fetching: Fetching::start(symbolizer),
            modules: HashMap::new(),
            open_files: VecDeque::new(),
            meter: Meter::new(&host.sampled_cpus),
            losses: Arc::default(),
            stops: Stops::default(),
            users: Users::read(),
            counters: Counters::default(),
            tables: TableStats::default(),
            over_share: Vec::new(),
            processes_cut: 0,
            host: Arc::new(host),
            source: SourceInfo::default(),
            sampler: None,
            rates,
            rate_kept: None,
            info,
            target: TargetState::Starting,
            ends: None,
            finishing: false,
            output: VecDeque::new(),
            begin_ns: 0,
            complete_until_ns: 0,
            generation: 0,
        }
    }

    /// Runs until nobody wants more snapshots, or is told to stop.
    pub fn run(&mut self, news: &Receiver<News>, commands: &Receiver<Command>, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            match news.recv_timeout(NAP) {
                Ok(news) => self.hear(news),
                Err(RecvTimeoutError::Timeout) => {}
                // The screen goes on showing what there is.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(NAP),
            }
            // What has piled up is one step: only the newest state is shown.
            while let Ok(news) = news.try_recv() {
                self.hear(news);
            }
            commands.try_iter().for_each(|command| self.obey(command));
            self.notice_end();
            self.exchange_names();
            if !self.publish_if_due() {
                return;
            }
            if self.has_reported_all() {
                return;
            }
        }
    }

    /// Why the source stopped, if it did by itself.
    pub fn failure(&self) -> Option<String> {
        match &self.target {
            TargetState::Failed(sentence) => Some(sentence.clone()),
            _ => None,
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Started { info, at_ns } => {
                self.know_source(info);
                self.target = TargetState::Running;
                self.begin_ns = at_ns;
                self.store.begin(at_ns);
            }
            News::Batch(batch) => self.absorb(&batch),
            News::Rate { info, from_ns } => {
                self.rate_kept = None;
                self.info.change_rate(from_ns, info.rate_hz);
                self.know_source(info);
            }
            News::RateKept(sentence) => self.rate_kept = Some(sentence),
            News::Failed(sentence) => self.target = TargetState::Failed(sentence),
        }
    }

    fn know_source(&mut self, info: SourceInfo) {
        self.sampler = Some(Arc::new(Sampler {
            unwinding: info.unwinding,
            buffers: info.buffers.clone(),
            rate_is_fixed: info.rate_is_fixed,
            rate_max_hz: probe::features::max_sample_rate(),
        }));
        self.source = info;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::SetWindow(span) => self.clock.set_window(span),
            // The sampler may have ended; then there are no more samples.
            Command::SetRate(hz) => drop(self.rates.send(hz)),
            Command::TargetEnded { words, at_ns } => self.ends = Some((words, at_ns)),
            Command::Finish => self.finishing = true,
            Command::Output(lines) => {
                self.output.extend(lines);
                let surplus = self.output.len().saturating_sub(OUTPUT_LINES_MAX);
                self.output.drain(..surplus);
            }
        }
    }

    fn absorb(&mut self, batch: &Batch) {
        for module in &batch.modules {
            self.add_module(module);
        }
        for process in &batch.processes {
            self.add_process(process);
        }
        for sample in &batch.samples {
            self.add_sample(sample);
        }
        self.counters = batch.counters;
        self.tables = batch.tables;
        self.processes_cut = batch.processes_cut;
        self.over_share.clear();
        for (uid, processes) in &batch.over_share {
            let user = match *uid {
                u32::MAX => "users that are not known".into(),
                uid => self.users.name(uid),
            };
            self.over_share.push((user, *processes));
        }
        let lost = batch.counters.lost;
        if self.losses.is_news(lost) {
            Arc::make_mut(&mut self.losses).note(batch.complete_until_ns, lost, &batch.lost_by_cpu);
        }
        // Once the target is gone time stands still, so that what it did last
        // stays in the window.
        if self.target == TargetState::Running && !self.finishing {
            self.complete_until_ns = batch.complete_until_ns;
            if batch.targets_alive == Some(0) && self.ends.is_none() {
                // Samples from before may still be on their way: it has ended
                // when everything up to now has come in.
                let words = format!("{} ended", self.settings.scope);
                self.ends = Some((words, probe::now_ns()));
            }
        }
    }

    /// The target has ended, and all its samples have come in.
    fn notice_end(&mut self) {
        let is_in = |(_, at_ns): &(String, u64)| *at_ns <= self.complete_until_ns;
        let has_ended = matches!(self.target, TargetState::Exited(_));
        if self
            .ends
            .as_ref()
            .is_some_and(|end| has_ended || is_in(end))
            && let Some((words, _)) = self.ends.take()
            && self.failure().is_none()
        {
            self.target = TargetState::Exited(words);
        }
    }

    fn add_module(&mut self, module: &probe::Module) {
        let id = ModuleId(module.id.0);
        let (name, path, kind) = describe(&module.kind);
        let build_id: Arc<[u8]> = match &module.kind {
            ModuleKind::File { build_id, .. } => build_id.as_deref().unwrap_or_default().into(),
            _ => Arc::default(),
        };
        self.store.add_module(id, &name, &path);
        self.store.set_build_id(id, &build_id);
        let named = Arc::new(NamedModule::new(module));
        let is_open = match &module.kind {
            ModuleKind::File { file, .. } => file.is_some(),
            ModuleKind::Anonymous { directory, .. } => directory.is_some(),
            _ => false,
        };
        if is_open {
            self.open_files.push_back(named.clone());
            if self.open_files.len() > FILES_OPEN_MAX
                && let Some(oldest) = self.open_files.pop_front()
            {
                oldest.close_file();
            }
        }
        let described = Described {
            named,
            kind,
            name,
            path,
            build_id,
            has_lines: false,
        };
        self.modules.insert(id, described);
    }

    fn add_process(&mut self, process: &ProcessInfo) {
        let id = ProcessId(process.id.0);
        self.store.add_process(id, process.pid, &process.comm);
        let owner = &process.owner;
        let details = ProcessDetails {
            cgroup: owner.cgroup.clone(),
            user: owner.uid.map(|uid| self.users.name(uid)),
        };
        self.store.set_process_details(id, details);
        if process.exited {
            self.store.process_exited(id);
        }
    }

    fn add_sample(&mut self, sample: &probe::Sample) {
        let mut frames = Vec::with_capacity(sample.frames.len());
        for frame in &sample.frames {
            let module = ModuleId(frame.module.0);
            // A module is told before the first sample that uses it.
            let Some(described) = self.modules.get(&module) else {
                continue;
            };
            if !self.store.has_module(module) {
                // The store forgets modules of which it has no frame left.
                self.store
                    .add_module(module, &described.name, &described.path);
                self.store.set_build_id(module, &described.build_id);
            }
            frames.push(Frame {
                module,
                address: frame.address,
                kind: described.kind,
            });
        }
        if let Some((fetching, leaf)) = self.fetching.as_mut().zip(frames.first()) {
            fetching.note(leaf.module);
        }
        let last = sample.frames[sample.kernel_frames.min(sample.frames.len())..].last();
        let stopped_in = last.map(|frame| ModuleId(frame.module.0));
        let ending = how_it_ended(sample);
        self.stops.note(ending, stopped_in);
        let event = match sample.event {
            probe::Event::Tick => EventId::FIRST,
        };
        let sample = NewSample {
            time_ns: sample.time_ns,
            cpu: sample.cpu as u16,
            process: ProcessId(sample.process.0),
            tid: sample.tid,
            comm: &sample.comm,
            frames: &frames,
            kernel_frames: sample.kernel_frames,
            ending,
            weight: sample.weight,
        };
        self.store.add_sample_of(event, sample);
    }

    /// Takes in the names that were found, and asks for more.
    fn exchange_names(&mut self) {
        // In the order of the names: the hottest first.
        let mut named = Vec::new();
        for answer in self.naming.answers() {
            if answer.is_for(self.store.frame(answer.frame)) {
                let chain: Vec<SourceFrame<'_>> = answer.source.iter().map(Line::frame).collect();
                if chain.is_empty() {
                    named.extend(self.question(answer.frame));
                }
                self.store.set_name(answer.frame, answer.name);
                self.store.set_source(answer.frame, &chain);
            }
        }
        self.sources.ask(named.into_iter());
        for source in self.sources.answers() {
            let frame = self.store.frame(source.frame);
            if source.is_for(frame) {
                let chain = source.chain();
                let module = frame.and_then(|frame| self.modules.get_mut(&frame.module));
                if let Some(module) = module.filter(|_| !chain.is_empty()) {
                    module.has_lines = true;
                }
                self.store.set_source(source.frame, &chain);
            }
        }
        self.fetch_debug_files();
        if self.naming.outstanding() > FRAMES_ASKED_MAX / 2 {
            return;
        }
        let wanted = self.store.frames_to_name(FRAMES_ASKED_MAX);
        let asked = wanted.into_iter().filter_map(|id| self.question(id));
        let asked: Vec<_> = asked.collect();
        self.naming.ask(asked.into_iter());
    }

    /// Asks for what is hot, and takes in what has come: its frames want names
    /// and lines once more.
    fn fetch_debug_files(&mut self) {
        let Some(fetching) = &mut self.fetching else {
            return;
        };
        let came = fetching.answers();
        let modules = &self.modules;
        fetching.ask(|id| {
            let module = modules.get(&id).filter(|module| module.named.is_file())?;
            Some((&module.named, &module.build_id, module.name.as_str()))
        });
        for module in came {
            let frames = self.store.frames_in(module);
            let questions = frames.into_iter().filter_map(|id| self.question(id));
            let questions: Vec<_> = questions.collect();
            self.naming.ask_again(questions);
        }
    }

    /// What the workers need to know of a frame.
    fn question(&self, id: FrameId) -> Option<(FrameId, u64, Arc<NamedModule>)> {
        let frame = self.store.frame(id)?;
        let module = self.modules.get(&frame.module)?;
        Some((id, frame.address, module.named.clone()))
    }

    /// False if nobody wants snapshots any more.
    fn publish_if_due(&mut self) -> bool {
        let state = State {
            complete_until_ns: self.complete_until_ns,
            begin_ns: self.begin_ns,
            names_outstanding: self.naming.outstanding() + self.sources.outstanding(),
            ended: self.is_over(),
            is_hurried: self.finishing,
        };
        match self.clock.due(&state) {
            Some(due) => {
                let snapshot = Arc::new(self.snapshot(due));
                (self.publish)(snapshot)
            }
            None => true,
        }
    }

    /// A run of reports is over; the screen never is.
    fn has_reported_all(&self) -> bool {
        match self.settings.schedule {
            Schedule::Live { .. } => false,
            Schedule::Reports { .. } => {
                self.clock.is_finished()
                    || self.is_over() && self.clock.is_caught_up(self.complete_until_ns)
            }
        }
    }

    /// Whether what has come in is all there will be. The target of a run that
    /// is interrupted goes on.
    fn is_over(&self) -> bool {
        self.finishing || !matches!(self.target, TargetState::Starting | TargetState::Running)
    }

    fn snapshot(&mut self, due: Due) -> Snapshot {
        self.generation += 1;
        self.tell_info();
        let report = self.store.report(due.window, due.end_ns);
        let view = self.store.view();
        let cost = self.meter.look(&self.counters);
        let window = report.window;
        let query = Query {
            window: TimeRange::last(due.window, due.end_ns),
            ..Query::default()
        };
        Snapshot {
            metrics: Metered::of_events(&view),
            generation: self.generation,
            health: Health {
                lost: self.losses.between(window.start_ns, window.end_ns),
                taken_run: self.counters.taken,
                lost_run: self.counters.lost,
                own_cpu_percent: cost.own_cpu_percent,
                own_rss_bytes: cost.own_rss_bytes,
                table_bytes: self.tables.kernel_bytes,
                stops: self.stops(),
                notes: self.notes(),
            },
            offered: report.samples,
            report: Arc::new(report),
            query,
            turn: 0,
            baseline: None,
            difference: None,
            people: None,
            baseline_lacks: None,
            view: Some(view),
            host: self.host.clone(),
            busy_cpus: cost.busy_cpus,
            elapsed: Duration::from_nanos(self.complete_until_ns.saturating_sub(self.begin_ns)),
            rate_hz: self.rate_hz(),
            engine: self.source.engine,
            sampler: self.sampler.clone(),
            scope: self.settings.scope.clone(),
            window: self.clock.window(),
            target: self.target.clone(),
            loading: self.fetching.iter().filter_map(Fetching::loading).collect(),
            losses: Some(Arc::clone(&self.losses)),
            names_from: self.names_from(),
            recording: None,
            command_output: self.output.iter().cloned().collect(),
        }
    }

    /// For those who write the profile to a file.
    fn tell_info(&mut self) {
        self.info.notes = self.notes();
        self.info.lost = self.counters.lost;
        if let Some(begin_ns) = self.store.begin_ns() {
            self.info.forget_rates_before(begin_ns);
        }
        self.store.set_info(self.info.clone());
    }

    /// The one that samples are taken at now.
    fn rate_hz(&self) -> u32 {
        self.info.rate_at(u64::MAX)
    }

    fn names_from(&self) -> Arc<NamesFrom> {
        let mut all = NamesFrom::default();
        for described in self.modules.values() {
            if let Some(origin) = described.named.origin() {
                all.note(&described.name, origin, described.has_lines);
            }
        }
        Arc::new(all)
    }

    fn stops(&self) -> Vec<Stop> {
        self.stops.top(|module| {
            let described = self.modules.get(&module);
            described.map_or_else(|| "-".into(), |described| described.name.as_str().into())
        })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.source.notes.clone();
        notes.extend(probe::files::notes());
        notes.extend(self.rate_kept.clone());
        let stats = self.store.stats();
        if self.counters.events_lost > 0 {
            notes.push(format!(
                "{} process events were lost: some addresses may lack a module",
                self.counters.events_lost
            ));
        }
        let tables = &self.tables;
        if tables.files_without_room > 0 {
            notes.push(format!(
                "there was no room for the unwind tables of {} files: their stacks are cut",
                tables.files_without_room
            ));
        }
        if tables.rules_dropped + tables.processes_refused + tables.lists_cut > 0 {
            notes.push("some unwind rules or mappings did not fit: stacks may be cut".into());
        }
        if self.processes_cut > 0 {
            notes.push(format!(
                "{} map more code than is followed of one process: stacks in the rest are cut",
                processes(self.processes_cut)
            ));
        }
        notes.extend(self.over_share.iter().map(|(user, count)| {
            format!(
                "the stacks of {} of {user} are cut: together they map more than an eighth \
                 of what can be followed, and others want room",
                processes(*count)
            )
        }));
        notes.extend(self.fetching.iter().flat_map(Fetching::notes));
        if stats.refused_memory > 0 {
            notes.push(format!(
                "{} samples did not fit into --mem and are not shown",
                stats.refused_memory
            ));
        }
        if stats.refused_late > 0 {
            notes.push(format!(
                "{} samples came too late to be shown",
                stats.refused_late
            ));
        }
        notes
    }
}

/// With the range tables of earlier runs, if there is a place for them.
fn symbolizer() -> Symbolizer {
    let base = symbolize::cache_directory::default_base();
    let tables = base.and_then(|base| TableCache::open(&base, table_cache::BYTES_MAX).ok());
    let symbolizer = Symbolizer::new()
        .with_files(probe::files::of_targets())
        .with_debug_bytes_max(DEBUG_BYTES_MAX);
    let symbolizer = symbolizer.with_bpf(Box::new(probe::BpfPrograms));
    match tables {
        Some(tables) => symbolizer.with_tables(tables),
        None => symbolizer,
    }
}

/// Short name, long name, and on which side its code runs.
fn describe(kind: &ModuleKind) -> (String, String, FrameKind) {
    let same = |name: &str, kind| (name.to_string(), name.to_string(), kind);
    match kind {
        ModuleKind::Kernel => same("[kernel]", FrameKind::Kernel),
        ModuleKind::Vdso => same("[vdso]", FrameKind::User),
        ModuleKind::NarrowVdso { .. } => same("[vdso32]", FrameKind::User),
        ModuleKind::Vsyscall => same("[vsyscall]", FrameKind::User),
        ModuleKind::Anonymous { .. } => same("[anon]", FrameKind::Jit),
        ModuleKind::Unmapped { .. } => same("[unmapped]", FrameKind::User),
        ModuleKind::File { path, .. } => {
            use std::os::unix::ffi::OsStrExt as _;
            let clean = |bytes: &[u8]| symbolize::sanitize(bytes).into_owned();
            let name = path.file_name().unwrap_or(path.as_os_str());
            (
                clean(name.as_bytes()),
                clean(path.as_os_str().as_bytes()),
                FrameKind::User,
            )
        }
    }
}

fn epoch_unix_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let clock_ms = probe::now_ns() / 1_000_000;
    now.unwrap_or_default().as_millis() as i64 - clock_ms as i64
}

fn processes(count: usize) -> String {
    match count {
        1 => "1 process".into(),
        count => format!("{count} processes"),
    }
}

fn how_it_ended(sample: &probe::Sample) -> profile::Ending {
    if sample.over_share {
        return profile::Ending::OverShare;
    }
    ending(sample.ending)
}
