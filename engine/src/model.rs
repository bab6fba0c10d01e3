//! The model: the thread that owns the profile store.
//!
//! All data of a run is collected by this thread, so nothing has to be locked: samples from the
//! sampler, names and lines from the workers, commands of the user. It publishes snapshots, which
//! never change and which other threads can read as long as they like.
//!
//! ```text
//! sampler ── News ────────►┌───────┐── Snapshot ──► screen, reports
//! user ───── Command ─────►│ Model │── Wish ──────► sampler
//! workers ◄─ ask, answer ─►│       │◄─ order, news ─► probes
//!                          └───────┘
//! ```

mod account;
mod course;
mod happening;
mod memory;
mod modules;
mod probing;
mod python;
mod runners;
mod sampling;
mod waiting;
mod workers;

use crate::alike::how_it_ended;
use crate::clock::{ClockInput, Due, SnapshotClock};
use crate::governor::{Budget, Governor};
use crate::probes::ProbeOrder;
use crate::process_end::fields_behind_name;
use crate::sampler::{News, Wish, Wishes};
use crate::settings::{Command, LineReading, Rows, Schedule, Settings};
use crate::snapshot::{Asked, Comparison, Metered, Names, Run, Snapshot, Source, Waited};
use crate::users::Users;
use account::Account;
use course::Course;
use faults::Patience;
use happening::Happenings;
use modules::Modules;
use probe::alarm::Alarm;
use probe::channel::Receiver;
use probe::{Batch, ProcessInfo, SourceInfo};
use probing::Probing;
use profile::{Cancel, Metric, Query, Report, Store, TimeRange, View};
use profile::{EventId, Frame, ModuleId, NewSample, ProcessDetails, ProcessId};
use sampling::Sampling;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use waiting::Waiting;
use workers::Workers;

/// How long the model sleeps when no message comes and nothing is due: debug files that were fetched
/// and counts of probes come without a message.
const NAP: Duration = Duration::from_secs(1);

/// How long it sleeps while names or results of probes are expected, which come without a message.
const SHORT_NAP: Duration = Duration::from_millis(50);

/// Receives a snapshot; returns whether more are wanted.
type Publish = Box<dyn FnMut(Arc<Snapshot>) -> bool + Send>;

/// The model of one run; [`Model::run`] is its thread.
pub struct Model {
    settings: Settings,
    wishes: Wishes,
    /// Called with each snapshot.
    publish: Publish,
    clock: SnapshotClock,
    /// The number of the newest snapshot.
    generation: u64,
    store: Store,
    /// Every module of the run: the store drops those without frames.
    modules: Modules,
    workers: Workers,
    users: Users,
    sampling: Sampling,
    /// Whether the run has begun, continues or is over, and up to when samples are complete.
    course: Course,
    /// What was lost, cut, or used.
    account: Account,
    probing: Probing,
    /// `None` if waits are not followed.
    waiting: Option<Waiting>,
    /// `None` if nothing but time is counted.
    happenings: Option<Happenings>,
    /// `None` without a budget, and before sampling has begun.
    governor: Option<Governor>,
    /// The last published snapshot.
    last: Option<Arc<Snapshot>>,
}

impl Model {
    /// Creates the model; it sends its requests to the sampler through `wishes`.
    pub fn new(settings: Settings, wishes: Wishes, publish: Publish) -> Self {
        let probing = Probing::new(wishes.clone(), settings.reach.clone());
        let sampling = Sampling::new(&settings, wishes.clone());
        let mut store = Store::new(settings.limits);
        Self {
            clock: SnapshotClock::new(settings.schedule.clone()),
            generation: 0,
            waiting: Waiting::new(&settings.counted, &mut store),
            happenings: Happenings::new(&settings.counted, &mut store),
            store,
            modules: Modules::default(),
            workers: Workers::start(settings.consent, settings.lines),
            users: Users::read(),
            account: Account::new(&sampling.host().sampled_cpus),
            sampling,
            course: Course::of(&settings.pids),
            probing,
            governor: None,
            last: None,
            wishes,
            settings,
            publish,
        }
    }

    /// Runs the loop of the model thread. The alarm rings when there is a message, or `stop` was set.
    /// Returns when `stop` is set, when the receivers of snapshots are gone, when all reports are
    /// made, or when making them panics again and again.
    pub fn run(
        &mut self,
        news: &Receiver<News>,
        commands: &Receiver<Command>,
        alarm: &Alarm,
        stop: &AtomicBool,
    ) {
        let mut patience = Patience::default();
        while !stop.load(Ordering::Relaxed) {
            alarm.wait(self.nap());
            // Everything that has accumulated is one step: only the newest state is shown. If the
            // sampler has ended, the screen continues to show what there is.
            for news in news.try_iter() {
                self.handle_news(news);
            }
            let turn = faults::catch("making a report", || self.take_turn(commands));
            match patience.take(turn) {
                Ok(Some(true) | None) => {}
                Ok(Some(false)) => return,
                Err(fault) => {
                    let why = format!("sampling has ended: {}", fault.repeated());
                    self.course.fail(why);
                    // If no report can be made, the failure is still shown when the run has ended.
                    _ = faults::catch("making a report", || self.publish_if_due());
                    return;
                }
            }
        }
    }

    /// How long to sleep unless a message comes.
    fn nap(&self) -> Duration {
        if self.is_waiting() {
            SHORT_NAP
        } else {
            NAP.min(self.clock.time_to_next())
        }
    }

    /// Whether results are expected that the user waits for.
    fn is_waiting(&self) -> bool {
        self.workers.outstanding() > 0 || self.probing.has_begun() || self.course.is_finishing()
    }

    /// Handles the commands that came, and publishes the snapshot that is due. Returns false if the
    /// receivers of snapshots are gone, or if all reports are made.
    fn take_turn(&mut self, commands: &Receiver<Command>) -> bool {
        commands
            .try_iter()
            .for_each(|command| self.handle_command(command));
        self.course.notice_end(&self.settings.scope);
        let are_names_needed = self.clock.has_just_ended(&self.clock_input());
        self.workers
            .exchange(&mut self.store, &mut self.modules, are_names_needed);
        self.govern();
        if let Some(log) = self.probing.receive_news() {
            self.store.set_probes(log);
        }
        self.publish_if_due() && !self.has_reported_all()
    }

    /// Why the source stopped by itself; `None` if it did not.
    pub fn failure(&self) -> Option<String> {
        self.course.failure().map(String::from)
    }

    /// Handles a message of the sampler.
    fn handle_news(&mut self, news: News) {
        match news {
            News::Started { info, at_ns } => {
                self.sampling.set_source(info);
                self.course.begin(at_ns);
                self.store.begin(at_ns);
                self.begin_governing();
                self.place_first_probes();
            }
            News::Batch(batch) => self.add_batch(&batch),
            News::Rate { info, from_ns } => self.sampling.change_rate(info, from_ns),
            News::Noted(info) => self.sampling.set_source(info),
            News::RateKept(sentence) => self.sampling.keep_rate(sentence),
            News::Waits { info, since_ns } => self.begin_waiting(info, since_ns),
            News::WaitsRefused(sentence) => {
                self.sampling.refuse_waits(&sentence);
                self.clock.hurry();
            }
            News::Failed(sentence) => self.course.fail(sentence),
        }
    }

    /// Begins to count waits as well, which the sampler follows since `since_ns`. On a screen the
    /// metrics appear with the next snapshot.
    fn begin_waiting(&mut self, info: SourceInfo, since_ns: u64) {
        self.sampling.set_source(info);
        if self.waiting.is_none() {
            self.waiting = Waiting::since(since_ns, &mut self.store);
        }
        if self.waiting.is_none() {
            self.sampling
                .refuse_waits("there is no room for more metrics");
        }
        self.clock.hurry();
    }

    /// Starts the governor, if there is a budget.
    fn begin_governing(&mut self) {
        // The source may be started again in another mode.
        let Some(percent) = self
            .settings
            .budget_percent
            .filter(|_| self.governor.is_none())
        else {
            return;
        };
        let rate_hz = self
            .sampling
            .is_changeable()
            .then_some(self.settings.rate_hz);
        let has_lines = self.settings.lines == LineReading::WithNames;
        let governor = Governor::new(percent, rate_hz, has_lines, Instant::now());
        self.governor = Some(governor);
    }

    /// Gives up detail if proftop costs more than its budget, or resumes it.
    fn govern(&mut self) {
        let (governor, account) = (&mut self.governor, &self.account);
        let change = governor
            .as_mut()
            .and_then(|governor| governor.judge(|| account.spent(), Instant::now()));
        let Some(change) = change else {
            return;
        };
        if change.is_about_lines {
            let is_reading = !change.now.omits_lines;
            self.workers
                .set_reading_lines(is_reading, &self.store, &self.modules);
        }
        self.sampling
            .want_rate(self.settings.rate_hz / change.now.divisor);
    }

    /// Handles the user's request for another rate.
    fn set_rate(&mut self, hz: u32) {
        self.settings.rate_hz = hz;
        if let Some(governor) = &mut self.governor {
            governor.set_rate(hz, Instant::now());
        }
        self.sampling.want_rate(hz);
    }

    /// Handles the user's request to count waits.
    fn count_waits(&mut self) {
        if self.waiting.is_none() {
            self.sampling.want_waits();
        }
    }

    /// Places the probes with which the run begins.
    fn place_first_probes(&mut self) {
        let first = std::mem::take(&mut self.settings.probes);
        for name in first.functions {
            let values = first.values.clone();
            let order = ProbeOrder::Keep {
                name,
                values,
                limits: first.limits,
            };
            let symbolizer = self.workers.symbolizer();
            self.probing.order(order, &self.modules, symbolizer);
        }
    }

    /// Handles a command of the user or the front end.
    fn handle_command(&mut self, command: Command) {
        match command {
            Command::SetWindow(span) => self.clock.set_window(span),
            Command::SetRate(hz) => self.set_rate(hz),
            Command::CountWaits => self.count_waits(),
            Command::Fetch(is_allowed) => self.workers.allow_fetching(is_allowed),
            Command::ReadLines => self.workers.read_lines(&self.store, &self.modules),
            Command::TargetEnded { words, at_ns } => self.course.end(words, at_ns),
            Command::Probe(order) => {
                let symbolizer = self.workers.symbolizer();
                self.probing.order(order, &self.modules, symbolizer);
            }
            Command::Finish => {
                self.course.finish();
                // If the sampler has ended, everything is here already.
                _ = self.wishes.send(Wish::Read);
            }
            Command::Output(lines) => self.course.add_output(lines),
        }
    }

    /// Adds a batch of the sampler: new modules and processes first, as its samples refer to them.
    fn add_batch(&mut self, batch: &Batch) {
        for module in &batch.modules {
            let described = self.modules.add(module);
            described.add_to(ModuleId(module.id.0), &mut self.store);
        }
        for process in &batch.processes {
            self.settings.follow_name(process.pid, &process.comm);
            self.add_process(process);
        }
        // A panic loses the samples of this batch that were not counted yet, and nothing more.
        // Modules and processes are added outside of it: each of them is reported only once, and
        // later samples need them.
        _ = faults::catch("counting samples", || {
            for sample in &batch.samples {
                self.add_sample(sample);
            }
        });
        if let Some(waiting) = &mut self.waiting {
            waiting.add_batch(batch, &mut self.store);
        }
        if let Some(happenings) = &mut self.happenings {
            happenings.add_batch(batch);
        }
        self.modules.note_gone(&batch.gone, Instant::now());
        self.account.add(batch, &mut self.users);
        self.course.advance(batch);
    }

    /// Adds a process to the store, or updates it.
    fn add_process(&mut self, process: &ProcessInfo) {
        let id = ProcessId(process.id.0);
        self.store.add_process(id, process.pid, &process.comm);
        let owner = &process.owner;
        let details = ProcessDetails {
            host: None,
            cgroup: owner.cgroup.clone(),
            user: owner.uid.map(|uid| self.users.name(uid)),
            command_line: owner.command_line.clone(),
            started_unix_ms: owner.started_unix_ms,
            parent: owner.parent,
            ancestors: owner
                .ancestors
                .iter()
                .map(|one| (one.pid, Arc::clone(&one.comm)))
                .collect(),
        };
        self.store.set_process_details(id, details);
        self.probing.note_process(id, process.pid, process.exited);
        if process.exited {
            self.store.process_exited(id);
        }
    }

    /// Adds a sample according to its event: ticks count as time on a CPU, calls go to their probe,
    /// waits and other events have metrics of their own. A frame of an unknown module is left out.
    fn add_sample(&mut self, sample: &probe::Sample) {
        // If waits are followed, the clocks tick for half a second before the run begins, while the
        // programs for waits are loaded.
        if self.waiting.is_some() && sample.time_ns < self.course.begin_ns() {
            return;
        }
        match sample.event {
            probe::Event::Tick => {}
            // Stacks of calls are handled by the probe.
            probe::Event::Call(number) | probe::Event::SlowCall(number) => {
                return self.probing.take_stack(number, sample, &self.modules);
            }
            probe::Event::Wait | probe::Event::Wake | probe::Event::Happening => {}
        }
        let mut frames = Vec::with_capacity(sample.frames.len());
        for frame in &sample.frames {
            let module = ModuleId(frame.module.0);
            // A module is reported before the first sample that uses it.
            let Some(described) = self.modules.get(module) else {
                continue;
            };
            // Under memory pressure the store drops modules with their last frame.
            if !self.store.has_module(module) {
                described.add_to(module, &mut self.store);
            }
            frames.push(Frame {
                module,
                address: frame.address,
                kind: described.kind,
            });
        }
        if let Some(leaf) = frames.first() {
            self.workers.note_sample(leaf.module);
        }
        // The outermost user frame, where the walk ended.
        let last = sample.frames[sample.kernel_frames.min(sample.frames.len())..].last();
        let stopped_in = last.map(|frame| ModuleId(frame.module.0));
        let ending = how_it_ended(sample);
        self.account.note_ending(ending, stopped_in);
        let rate_hz = self.sampling.rate_hz();
        let wait = sample.wait;
        let event = sample.event;
        if event == probe::Event::Tick {
            self.probing.count(sample, &frames, &self.modules, rate_hz);
        }
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
        if event == probe::Event::Happening {
            if let Some(happenings) = &self.happenings {
                happenings.add(sample, &mut self.store);
            }
            return;
        }
        match (wait, &mut self.waiting) {
            (Some(wait), Some(waiting)) if event == probe::Event::Wake => {
                waiting.add_wake(sample, wait, &mut self.store);
            }
            (Some(wait), Some(waiting)) => waiting.add_wait(sample, wait, &mut self.store),
            // A sample of an event that was not requested.
            (Some(_), None) => {}
            (None, waiting) => {
                if let Some(waiting) = waiting {
                    let ns = 1_000_000_000 / u64::from(rate_hz.max(1));
                    waiting.add_tick(sample, ns, &mut self.store);
                }
                self.store.add_sample_of(EventId::FIRST, sample);
            }
        }
    }

    /// Publishes a snapshot if one is due. Returns false if no snapshots are wanted any more.
    fn publish_if_due(&mut self) -> bool {
        match self.clock.due(&self.clock_input()) {
            Some(due) => {
                let snapshot = self.snapshot(due);
                self.publish(snapshot)
            }
            // A change of a probe is shown before the next report is due.
            None if self.probing.is_urgent() => match &self.last {
                Some(last) => {
                    self.generation += 1;
                    let snapshot = Snapshot {
                        generation: self.generation,
                        probes: self.probing.told(),
                        ..(**last).clone()
                    };
                    self.publish(snapshot)
                }
                None => true,
            },
            None => true,
        }
    }

    /// Returns the state of the run for the clock.
    fn clock_input(&self) -> ClockInput {
        ClockInput {
            complete_until_ns: self.course.complete_until_ns(),
            begin_ns: self.course.begin_ns(),
            names_outstanding: self.workers.outstanding(),
            has_samples: self.course.has_samples(),
            has_names: self.workers.has_names(),
            ended: self.course.is_over(),
            is_hurried: self.course.is_finishing(),
        }
    }

    /// Sends a snapshot to its receivers. Returns false if there are none any more.
    fn publish(&mut self, snapshot: Snapshot) -> bool {
        let snapshot = Arc::new(snapshot);
        self.last = Some(Arc::clone(&snapshot));
        (self.publish)(snapshot)
    }

    /// Whether a run of reports is complete; always false for a screen.
    fn has_reported_all(&self) -> bool {
        match self.settings.schedule {
            Schedule::Live { .. } => false,
            Schedule::Reports { .. } => {
                let complete_until_ns = self.course.complete_until_ns();
                self.clock.is_finished()
                    || self.course.is_over() && self.clock.is_caught_up(complete_until_ns)
            }
        }
    }

    /// Makes the snapshot that is due. Notes are collected first, because the view that is taken
    /// next has them in its info.
    fn snapshot(&mut self, due: Due) -> Snapshot {
        self.generation += 1;
        self.modules.sweep(&mut self.store, Instant::now());
        let notes = self.notes();
        self.set_info(
            notes
                .iter()
                .cloned()
                .chain(self.note_of_late_waits())
                .collect(),
        );
        self.count_calls();
        // A file that is written from it ends where its window does, so that both have the same
        // samples in their last seconds.
        self.store.end(due.end_ns);
        let view = self.store.view();
        let query = Query {
            window: TimeRange::last(due.window, due.end_ns),
            filter: self.settings.filter.clone(),
            ..Query::default()
        };
        let kept_waiting = self
            .waiting
            .as_ref()
            .map(Waiting::kept_waiting)
            .and_then(|event| view.of_event(event));
        let (mut report, offered, view) = self.report(&query, view);
        let (mut health, busy_cpus) = self.account.health(report.window, &self.modules, notes);
        health.own_memory = memory::by_part(&self.store, &self.workers);
        let bytes_max = self.settings.limits.memory_bytes;
        memory::bound(&mut self.store, &health.own_memory, bytes_max);
        let has_rows = self.settings.rows != Rows::Absent;
        let waited = kept_waiting.filter(|_| has_rows).map(|kept_waiting| {
            let mut waited = Waited::told(&mut report, &view, &query);
            waited.learn_ends(&kept_waiting, &query);
            waited
        });
        Snapshot {
            generation: self.generation,
            asked: Asked {
                query,
                turn: 0,
                window: self.clock.window(),
            },
            offered,
            report: Arc::new(report),
            metrics: if self.sampling.tells_wakers() {
                Metered::of_events(&view)
            } else {
                Metered::without(&view, &Metric::kept_waiting())
            },
            view: Some(view),
            comparison: Comparison::default(),
            health,
            run: Run {
                scope: self.settings.scope.clone(),
                target: self.course.target().clone(),
                is_stopped: are_stopped(&self.settings.pids),
                elapsed: self.course.elapsed(),
                busy_cpus,
                losses: Some(self.account.losses()),
                command_output: self.course.output().cloned().collect(),
            },
            source: Source {
                budget: self.budget(),
                ..self.sampling.snapshot()
            },
            probes: self.probing.told(),
            waited: waited.map(Arc::new),
            names: Names {
                from: Arc::new(self.modules.names_from()),
                loading: self.workers.loading().collect(),
                fetching: self.workers.fetching(),
            },
        }
    }

    /// Updates the counts of probes in the store. A screen shows the last counts that the keeper
    /// sent; a report waits for new ones, as it may be the last one of its file.
    fn count_calls(&mut self) {
        if let Schedule::Reports { .. } = self.settings.schedule
            && let Some(log) = self.probing.fresh_news()
        {
            self.store.set_probes(log);
        }
    }

    /// Returns the report of a window, the number of samples before the filter, and the view that
    /// it was made from. On a screen the view counts time on CPUs, and has the other metrics as
    /// further events; reports and recordings use the requested metric.
    fn report(&self, query: &Query, view: View) -> (Report, u64, View) {
        let waits = self.waiting.as_ref().map(Waiting::event);
        let event = waits.or(self.happenings.as_ref().map(Happenings::event));
        let counted = match (event, &self.settings.schedule) {
            (Some(event), Schedule::Reports { .. }) => view.of_event(event),
            _ => None,
        };
        let counted = counted.unwrap_or(view);
        let rows = self.settings.rows;
        if rows == Rows::Absent {
            let report = Report {
                window: counted.window(query.window),
                ..Report::default()
            };
            return (report, 0, counted);
        }
        let selection = counted
            .select(query, &Cancel::new())
            .expect("nobody cancels it");
        let report = if rows == Rows::WithTrends {
            selection.report()
        } else {
            selection.report_without_trends()
        };
        let offered = selection.offered();
        (report, offered, counted)
    }

    /// Sets the store's info: what files say about a profile in addition to its samples.
    fn set_info(&mut self, notes: Vec<String>) {
        if let Some(begin_ns) = self.store.begin_ns() {
            self.sampling.forget_rates_before(begin_ns);
        }
        self.sampling.follow_clock();
        let (scope, lost) = (&self.settings.scope, self.account.lost());
        self.store.set_info(self.sampling.info(scope, lost, notes));
        self.store.set_busy(self.account.used());
    }

    /// Returns the note for files that waits were counted only in a part of the history: readers of
    /// files do not know the other metrics.
    fn note_of_late_waits(&self) -> Option<String> {
        let since_ns = self.waiting.as_ref()?.since_ns()?;
        let is_within = self.store.begin_ns()? < since_ns;
        let after = since_ns.saturating_sub(self.course.begin_ns()) as f64 / 1e9;
        is_within.then(|| {
            format!(
                "waits were counted from {after:.1} s after the start on: what threads did before is not known, and off-cpu, wall and kept-waiting begin there"
            )
        })
    }

    /// The state of the budget, if there is one.
    fn budget(&self) -> Option<Budget> {
        let governor = self.governor.as_ref()?;
        Some(governor.budget(self.settings.rate_hz))
    }

    /// Sentences about what is missing, and why.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.sampling.notes().collect();
        notes.extend(memory::note(self.settings.room));
        notes.extend(self.budget().and_then(Budget::note));
        notes.extend(self.account.notes());
        notes.extend(self.workers.notes());
        notes.extend(self.waiting.iter().flat_map(Waiting::notes));
        notes.extend(self.happenings.as_ref().and_then(Happenings::note));
        notes.extend(faults::seen().iter().map(ToString::to_string));
        let forgotten = self.store.states().forgotten();
        if forgotten > 0 {
            notes.push(format!(
                "what threads did is not known of all the time: {forgotten} parts of it did not fit"
            ));
        }
        let stats = self.store.stats();
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

/// Maximum number of processes that are checked for being stopped: no one stops more than a few.
const STOPPED_MAX: usize = 16;

/// Whether all of these processes are stopped (proc_pid_stat(5): `T`, and `t` by a debugger).
fn are_stopped(pids: &[u32]) -> bool {
    let is_stopped = |pid: &u32| {
        let fields = fields_behind_name(*pid)?;
        Some(fields.trim_start().starts_with(['T', 't']))
    };
    let is_few = !pids.is_empty() && pids.len() <= STOPPED_MAX;
    is_few && pids.iter().all(|pid| is_stopped(pid) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::are_stopped;
    use rustix::process::Signal;
    use std::process::Command;
    use test_support::{Process, wait_until};

    #[test]
    fn a_stopped_process_is_known() {
        let sleeper = Process::start(Command::new("sleep").arg("600"));
        let pids = [sleeper.pid()];
        assert!(!are_stopped(&pids) && !are_stopped(&[]));
        sleeper.signal(Signal::STOP);
        wait_until("it is stopped", || are_stopped(&pids));
        assert!(!are_stopped(&[sleeper.pid(), std::process::id()]));
        sleeper.signal(Signal::CONT);
        wait_until("it goes on", || !are_stopped(&pids));
    }
}
