//! A report as one JSON object on one line. `docs/batch-json.md` describes every field; a test in
//! this file compares the document with the fields that are written.

use super::BatchReport;
use crate::output::json_line;
use crate::words::held;
use engine::snapshot::{TargetState, ThreadStates, Waited};
use probe::{EngineKind, WaitState};
use profile::{
    Delays, FrameKind, FunctionRow, Held, HeldBy, ProcessRow, Report, RowName, STATES, TREND_LEN,
    ThreadRow,
};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Version of the format. It goes up only when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// Returns the report as one line, with a newline at its end.
pub(super) fn render(report: &BatchReport<'_>) -> String {
    json_line(&Object::new(report))
}

/// The whole report. The fields are in the order in which `docs/batch-json.md` lists and explains
/// them.
#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    version: &'a str,
    /// The end of the window that the report covers.
    time_unix_ms: u64,
    host: &'a str,
    kernel: &'a str,
    arch: &'a str,
    cpus: u32,
    sampled_cpus: &'a [u16],
    /// Busy CPUs in the last second; only sampled CPUs count.
    busy_cpus: f64,
    scope: &'a str,
    pids: &'a [u32],
    target: &'static str,
    elapsed_s: f64,
    window_s: f64,
    rate_hz: u32,
    engine: &'static str,
    metric: &'a str,
    samples: u64,
    lost: u64,
    /// Since sampling began, as is `lost_run`; `samples` and `lost` are of the window.
    samples_run: u64,
    lost_run: u64,
    user_stacks: u64,
    /// Number of complete stacks among `user_stacks`. `endings` has all samples, by how their stack
    /// ended.
    whole: u64,
    endings: BTreeMap<&'static str, u64>,
    /// Frames of all samples: the sum of `named`, `pending` and all of `unnamed`.
    frames: u64,
    named: u64,
    pending: u64,
    unnamed: BTreeMap<&'static str, u64>,
    own: Own,
    /// Of the whole run, while `endings` is of the window.
    stops_run: Vec<Stop<'a>>,
    languages_run: Vec<Language<'a>>,
    notes: Vec<Cow<'a, str>>,
    /// Number of all functions in the window; `functions` has only those that are listed.
    functions_found: usize,
    functions: Vec<Function<'a>>,
    processes: Vec<Process<'a>>,
    threads: Vec<Thread<'a>>,
    holders: Vec<Holder<'a>>,
    /// Threads that wait for each other. Empty unless waits are counted.
    deadlocks: Vec<Circle>,
}

/// How complete the stacks of the run are in programs of one language.
#[derive(Serialize)]
struct Language<'a> {
    language: String,
    samples: u64,
    whole: u64,
    lacking: BTreeMap<&'a str, u64>,
    lock_known: u64,
    lock_held: u64,
}

fn language(stacks: &profile::LanguageStacks) -> Language<'_> {
    Language {
        language: stacks.language.to_lowercase(),
        samples: stacks.samples(),
        whole: stacks.whole,
        lacking: stacks.lacking.iter().copied().collect(),
        lock_known: stacks.lock_known,
        lock_held: stacks.lock_held,
    }
}

/// A cause for which stacks of the run ended early, and the module where they ended.
#[derive(Serialize)]
struct Stop<'a> {
    cause: &'static str,
    module: &'a str,
    samples: u64,
}

fn stop(stop: &profile::Stop) -> Stop<'_> {
    Stop {
        cause: stop.cause.label(),
        module: &stop.module,
        samples: stop.samples,
    }
}

/// The CPU time and memory that proftop itself uses.
#[derive(Serialize)]
struct Own {
    cpu_percent: f64,
    rss_bytes: u64,
    samples_bytes: u64,
    symbols_bytes: u64,
    helpers_bytes: u64,
    table_bytes: u64,
}

/// A function that the report lists.
#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    module: &'a str,
    module_path: &'a str,
    kind: &'static str,
    /// The address as text, because most readers lose digits of numbers above 2^53.
    address: String,
    /// Why the function has no name; None if it has one.
    no_name: Option<&'static str>,
    #[serde(rename = "self")]
    self_samples: u64,
    total: u64,
    /// The samples in nanoseconds. None unless the metric counts time; `total_ns` likewise.
    self_ns: Option<u64>,
    total_ns: Option<u64>,
    /// Number of waits. None unless waits are known; the three fields below likewise.
    waits: Option<u64>,
    waits_drawn: Option<u64>,
    mean_wait_ns: Option<u64>,
    longest_wait_ns: Option<u64>,
    /// Whether the longest wait is not over, so that it is longer than the given time.
    longest_wait_is_open: Option<bool>,
    /// Half the width of the 95 % band of `self`, in percentage points of all samples. None if the
    /// number of samples is not known.
    err_pp: Option<f64>,
    /// Samples of its own in each of the last seconds, the oldest first.
    trend: [u64; TREND_LEN],
    file: Option<&'a str>,
    /// None if the line is not known, for which the report has 0.
    line: Option<u32>,
}

/// A process with samples.
#[derive(Serialize)]
struct Process<'a> {
    /// The machine. None unless the report covers processes of several machines.
    host: Option<&'a str>,
    pid: u32,
    comm: &'a str,
    samples: u64,
    kernel_samples: u64,
    threads: u32,
    top_function: Option<&'a str>,
    /// Whether the process has ended.
    exited: bool,
    trend: [u64; TREND_LEN],
    states: Option<States>,
    delay_p50_ns: Option<u64>,
    delay_p99_ns: Option<u64>,
}

/// A thread with samples. If waits are counted, also a thread that has states only.
#[derive(Serialize)]
struct Thread<'a> {
    pid: u32,
    tid: u32,
    comm: &'a str,
    samples: u64,
    kernel_samples: u64,
    top_function: Option<&'a str>,
    trend: [u64; TREND_LEN],
    /// None unless waits are counted.
    states: Option<States>,
    /// None if the thread never was in the run queue.
    delay_p50_ns: Option<u64>,
    delay_p99_ns: Option<u64>,
    /// The thread that holds the lock for which this one waits at the end of the window.
    lock_owner: Option<u32>,
    /// The state of the thread at the end of the window, how long it had lasted by then, and
    /// whether it began before the thread was first seen. None if the state is not known.
    now: Option<&'static str>,
    now_ns: Option<u64>,
    now_is_longer: Option<bool>,
}

/// The state of a thread at the end of the window.
#[derive(Default)]
struct Doing {
    state: Option<&'static str>,
    ns: Option<u64>,
    is_longer: Option<bool>,
}

impl Doing {
    fn of(thread: &ThreadStates, waited: Option<&Waited>) -> Self {
        if thread.has_ended {
            return Doing::default();
        }
        Doing {
            state: Some(thread.state.word()),
            ns: waited.map(|waited| waited.for_ns(thread)),
            is_longer: Some(thread.was_so_before),
        }
    }
}

/// Nanoseconds in each state, by the word for the state.
type States = BTreeMap<&'static str, u64>;

/// A thread that waited, who or what ended its wait, and how long it waited.
#[derive(Serialize)]
struct Holder<'a> {
    waiter: u32,
    /// The process that ended the wait; None if no thread ended it.
    holder: Option<u32>,
    holder_thread: Option<u32>,
    /// The function in which the holder thread ended the longest waits of others. None if that is
    /// not known.
    holder_function: Option<&'a str>,
    kind: &'static str,
    state: &'static str,
    ns: u64,
    waits: u64,
    /// How long the wait that is not over has lasted. None if all waits are over.
    open_ns: Option<u64>,
}

/// Threads that wait for each other.
#[derive(Serialize)]
struct Circle {
    threads: Vec<u32>,
    ns: u64,
    is_longer: bool,
}

impl<'a> Object<'a> {
    /// Collects the fields. Numbers that may be infinite go through [`number`].
    fn new(batch: &'a BatchReport<'a>) -> Self {
        let snapshot = batch.snapshot;
        let (report, health) = (&snapshot.report, &snapshot.health);
        let host = &*snapshot.source.host;
        let lacks = &report.completeness;
        let waited = snapshot.waited.as_deref();
        let (shown, _) = batch.split();
        let endings = lacks.endings.iter();
        let unnamed = lacks.unnamed.iter();
        Self {
            schema: SCHEMA,
            version: batch.version,
            time_unix_ms: batch.time_unix_ms,
            host: &host.name,
            kernel: &host.kernel,
            arch: &host.arch,
            cpus: host.cpus,
            sampled_cpus: &host.sampled_cpus,
            busy_cpus: busy_cpus(batch),
            scope: &snapshot.run.scope,
            pids: batch.pids,
            target: target_word(&snapshot.run.target),
            elapsed_s: snapshot.run.elapsed.as_secs_f64(),
            window_s: batch.window_seconds().unwrap_or(0.0),
            rate_hz: report.rate_hz,
            engine: snapshot.source.engine.map_or("", EngineKind::label),
            metric: batch.metric_word(),
            samples: report.samples,
            lost: health.lost,
            samples_run: health.taken_run,
            lost_run: health.lost_run,
            user_stacks: lacks.user_stacks,
            whole: lacks.whole,
            endings: endings.map(|(e, count)| (e.label(), *count)).collect(),
            frames: lacks.frames,
            named: lacks.named,
            pending: lacks.pending,
            unnamed: unnamed.map(|(why, count)| (why.label(), *count)).collect(),
            own: Own {
                cpu_percent: number(health.own_cpu_percent),
                rss_bytes: health.own_rss_bytes,
                samples_bytes: health.own_memory.samples,
                symbols_bytes: health.own_memory.symbols,
                helpers_bytes: health.own_memory.helpers,
                table_bytes: health.table_bytes,
            },
            stops_run: health.stops.iter().map(stop).collect(),
            languages_run: health.languages.iter().map(language).collect(),
            notes: batch.notes().collect(),
            functions_found: report.functions.len(),
            functions: shown.iter().map(|f| function(f, batch)).collect(),
            processes: report
                .processes
                .iter()
                .map(|row| process(row, waited))
                .collect(),
            threads: threads(report, waited),
            holders: waited.map_or(Vec::new(), holders),
            deadlocks: waited.map_or(Vec::new(), deadlocks),
        }
    }
}

/// Returns a function with its numbers. Weights are samples or, if the metric counts time,
/// nanoseconds: then the same number is in both fields.
fn function<'a>(row: &'a FunctionRow, batch: &BatchReport<'_>) -> Function<'a> {
    let report = &batch.snapshot.report;
    let ns = |weight: u64| batch.counts_time().then_some(weight);
    Function {
        name: &row.name,
        module: &row.module,
        module_path: &row.module_path,
        kind: kind_word(row.kind),
        address: format!("{:#x}", row.address),
        no_name: match row.name_state {
            RowName::Named => None,
            RowName::Pending => Some("pending"),
            RowName::Unnamed(reason) => Some(reason.label()),
        },
        self_samples: row.self_samples,
        total: row.total_samples,
        self_ns: ns(row.self_samples),
        total_ns: ns(row.total_samples),
        waits: row.waits.map(|waits| waits.count),
        waits_drawn: row.waits.map(|waits| waits.drawn),
        mean_wait_ns: row.waits.and_then(|waits| waits.mean_ns()),
        longest_wait_ns: row.waits.map(|waits| waits.longest_ns),
        longest_wait_is_open: row.waits.map(|waits| waits.longest_is_open),
        err_pp: report.band_points(row.self_samples, report.samples),
        trend: row.trend,
        file: row.file.as_deref(),
        line: (row.line > 0).then_some(row.line),
    }
}

/// Returns a process, with the states of all its threads added up if waits are counted.
fn process<'a>(row: &'a ProcessRow, waited: Option<&Waited>) -> Process<'a> {
    let own =
        |waited: &Waited| states(waited.threads.iter().filter(|thread| thread.pid == row.pid));
    let mut delays = Delays::default();
    let threads = waited.into_iter().flat_map(|waited| &waited.threads);
    for thread in threads.filter(|thread| thread.pid == row.pid) {
        delays.add(&thread.delays);
    }
    Process {
        host: row.details.host.as_deref(),
        pid: row.pid,
        comm: &row.comm,
        samples: row.samples,
        kernel_samples: row.kernel_samples,
        threads: row.threads,
        top_function: row.top_function.as_deref(),
        exited: row.exited,
        trend: row.trend,
        states: waited.map(own),
        delay_p50_ns: delay_ns(&delays, 50),
        delay_p99_ns: delay_ns(&delays, 99),
    }
}

/// Returns the threads that have samples, then those of which only the states are known.
fn threads<'a>(report: &'a Report, waited: Option<&'a Waited>) -> Vec<Thread<'a>> {
    // Threads with samples are removed from the map, so that those without samples remain in it.
    let mut by_tid: BTreeMap<u32, &ThreadStates> = BTreeMap::new();
    let waited_threads = waited.into_iter().flat_map(|waited| &waited.threads);
    by_tid.extend(waited_threads.map(|thread| (thread.tid, thread)));
    let sampled = report.threads.iter().map(|row| {
        let own = by_tid.remove(&row.tid);
        let now = own.map_or_else(Doing::default, |own| Doing::of(own, waited));
        let delay = |percent| own.and_then(|own| delay_ns(&own.delays, percent));
        Thread {
            states: own.map(|own| states([own].into_iter())),
            delay_p50_ns: delay(50),
            delay_p99_ns: delay(99),
            lock_owner: own.and_then(|own| own.owner),
            now: now.state,
            now_ns: now.ns,
            now_is_longer: now.is_longer,
            ..thread(row)
        }
    });
    let mut threads: Vec<Thread<'_>> = sampled.collect();
    threads.extend(
        by_tid
            .into_values()
            .map(|own| (own, Doing::of(own, waited)))
            .map(|(own, now)| Thread {
                now: now.state,
                now_ns: now.ns,
                now_is_longer: now.is_longer,
                pid: own.pid,
                tid: own.tid,
                comm: &own.comm,
                samples: 0,
                kernel_samples: 0,
                top_function: None,
                trend: [0; TREND_LEN],
                states: Some(states([own].into_iter())),
                delay_p50_ns: delay_ns(&own.delays, 50),
                delay_p99_ns: delay_ns(&own.delays, 99),
                lock_owner: own.owner,
            }),
    );
    threads
}

/// Returns a percentile of the times in the run queue: the upper end of its histogram slot.
fn delay_ns(delays: &Delays, percent: u64) -> Option<u64> {
    delays.percentile(percent).map(|delay| delay.ns)
}

/// Adds up the nanoseconds in each state. Every state has an entry, so that readers find
/// all words in each object.
fn states<'a>(threads: impl Iterator<Item = &'a ThreadStates>) -> States {
    let mut sums: States = WaitState::ALL.map(|state| (state.word(), 0)).into();
    for thread in threads {
        for (state, ns) in WaitState::ALL.into_iter().zip(thread.ns) {
            *sums.entry(state.word()).or_default() += ns;
        }
    }
    sums
}

/// Returns the pairs of waiter and holder, in the order of the snapshot: the longest waits first.
fn holders(waited: &Waited) -> Vec<Holder<'_>> {
    let held = waited.holders.iter().map(|held| Holder {
        waiter: held.waiter,
        holder: held.by.is_thread().then_some(held.holder),
        holder_thread: held.by.is_thread().then_some(held.holder_thread),
        holder_function: waited.ends_in.get(&held.holder_thread).map(|name| &**name),
        kind: match held.by {
            HeldBy::Owner => "owner",
            HeldBy::Waker => "waker",
            HeldBy::Timer => "timer",
            HeldBy::Interrupt => "interrupt",
        },
        state: STATES[held.state],
        ns: held.ns,
        waits: held.waits,
        open_ns: open_ns(held, waited),
    });
    held.collect()
}

/// Returns how long a thread has been waiting for the owner of its lock. None if it does not wait.
fn open_ns(held: &Held, waited: &Waited) -> Option<u64> {
    let waiter = waited.thread(held.waiter)?;
    let is_open = !waiter.has_ended
        && held.by == HeldBy::Owner
        && waiter.owner == Some(held.holder_thread)
        && waiter.state.number() == held.state;
    is_open.then(|| waited.for_ns(waiter))
}

/// Returns the threads that wait for each other.
fn deadlocks(waited: &Waited) -> Vec<Circle> {
    let circles = held::deadlocks(waited).into_iter().map(|circle| Circle {
        threads: circle.threads,
        ns: circle.for_ns,
        is_longer: circle.is_longer,
    });
    circles.collect()
}

/// Returns a thread without its states, which its row does not have.
fn thread(row: &ThreadRow) -> Thread<'_> {
    Thread {
        pid: row.pid,
        tid: row.tid,
        comm: &row.comm,
        samples: row.samples,
        kernel_samples: row.kernel_samples,
        top_function: row.top_function.as_deref(),
        trend: row.trend,
        states: None,
        delay_p50_ns: None,
        delay_p99_ns: None,
        lock_owner: None,
        now: None,
        now_ns: None,
        now_is_longer: None,
    }
}

/// Returns the word for the state of the target. How it ended is in the notes.
fn target_word(target: &TargetState) -> &'static str {
    match target {
        TargetState::Starting => "starting",
        TargetState::Running => "running",
        TargetState::Recorded => "recorded",
        TargetState::Exited { .. } => "exited",
        TargetState::Failed(_) => "failed",
    }
}

/// Returns the word for the kind of a function's code.
fn kind_word(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::User => "user",
        FrameKind::Kernel => "kernel",
        FrameKind::Jit => "jit",
        FrameKind::Python => "python",
    }
}

/// Returns how many CPUs were busy, as measured while sampling. For a recording, only the CPUs that
/// its samples stand for are known.
fn busy_cpus(batch: &BatchReport<'_>) -> f64 {
    let snapshot = batch.snapshot;
    match snapshot.source.recording {
        None => number(snapshot.run.busy_cpus),
        Some(_) => batch.cpus_in_samples().unwrap_or(0.0),
    }
}

/// JSON has no infinity; `null` would change the field's type.
fn number(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use crate::batch::Format;
    use crate::batch::fixture::{Fixture, hostile};
    use crate::fixture::json_fields;
    use profile::{Ending, NoName};
    use serde_json::Value;
    use std::collections::BTreeSet;

    const DOCUMENT: &str = include_str!("../../../docs/batch-json.md");

    fn parse(fixture: &Fixture, top: Option<usize>) -> Value {
        let json = fixture.batch(top).render(Format::Json, true);
        assert_eq!(json.lines().count(), 1, "one line per report");
        assert!(json.ends_with('\n'));
        serde_json::from_str(&json).expect("valid JSON")
    }

    #[test]
    fn the_document_has_every_field_and_no_other() {
        // The keys of these objects are data, and documented separately.
        let apart = ["endings", "unnamed", "states", "lacking"];
        let emitted = json_fields(&parse(&Fixture::postgres(), None), &apart);
        let json_part = DOCUMENT.split("## CSV").next().expect("a part on JSON");
        let documented: BTreeSet<String> = json_part
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .map(str::to_string)
            .collect();
        assert_eq!(emitted, documented);
    }

    #[test]
    fn the_document_has_every_ending() {
        for ending in Ending::ALL {
            let word = format!("- `{}`", ending.label());
            let (_, text) = DOCUMENT.split_once(&word).expect(&word);
            let text = text.split("\n- ").next().unwrap_or_default();
            let is_left_out = text.contains("Not part of `user_stacks`.");
            assert_eq!(is_left_out, !ending.is_user_stack(), "{word}");
        }
    }

    #[test]
    fn the_document_has_every_reason_without_a_name() {
        let (_, section) = DOCUMENT
            .split_once("### Why frames have no name")
            .expect("a section");
        let documented: BTreeSet<&str> = section
            .split("\n### ")
            .next()
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.strip_prefix("- `")?.split('`').next())
            .collect();
        let all = NoName::ALL.iter().map(|reason| reason.label());
        assert_eq!(documented, all.collect());
    }

    #[test]
    fn fields_hold_what_the_report_says() {
        let json = parse(&Fixture::postgres(), Some(1));
        assert_eq!(json["schema"], 1);
        assert_eq!(json["host"], "db-01");
        assert_eq!(json["window_s"], 10.0);
        assert_eq!(json["samples"], 3277);
        assert_eq!(json["endings"]["root"], 3241);
        assert_eq!(json["unnamed"]["stripped"], 3500);
        assert_eq!(json["own"]["rss_bytes"], 34 << 20);
        assert_eq!(json["own"]["samples_bytes"], 9 << 20);
        let functions = json["functions"].as_array().expect("a list");
        assert_eq!(functions.len(), 1);
        assert_eq!(json["functions_found"], 5);
        assert_eq!(functions[0]["name"], "hash_search_with_hash_value");
        assert_eq!(functions[0]["self"], 465);
        assert_eq!(functions[0]["file"], Value::Null);
        assert_eq!(json["processes"][0]["pid"], 4121);
        assert_eq!(json["threads"][0]["comm"], "postgres");
    }

    #[test]
    fn what_threads_waited_for_is_there() {
        let json = parse(&Fixture::postgres(), None);
        assert_eq!(json["metric"], "on-cpu");
        assert_eq!(json["functions"][0]["self_ns"], Value::Null);
        let threads = json["threads"].as_array().expect("a list");
        assert_eq!(threads[0]["states"]["lock"], 9_000_000_000u64);
        assert_eq!(json["processes"][0]["states"]["lock"], 27_000_000_000u64);
        assert_eq!(
            (&threads[0]["now"], &threads[0]["now_ns"]),
            (&"lock".into(), &25_000_000_000u64.into())
        );
        assert_eq!(
            json["deadlocks"][0]["threads"],
            serde_json::json!([4130, 4131])
        );
        assert_eq!(json["deadlocks"][0]["ns"], 25_000_000_000u64);
        // A thread without samples.
        let last = threads.last().expect("threads");
        assert_eq!((&last["tid"], &last["samples"]), (&4199.into(), &0.into()));
        assert_eq!(json["holders"][0]["holder_thread"], 4199);
        let by_timer = &json["holders"][1];
        assert_eq!(by_timer["kind"], "timer");
        assert_eq!(by_timer["holder"], Value::Null);
        assert_eq!(by_timer["holder_thread"], Value::Null);
    }

    #[test]
    fn any_string_survives() {
        let fixture = hostile();
        let json = parse(&fixture, None);
        let functions = json["functions"].as_array().expect("a list");
        for (value, row) in functions.iter().zip(fixture.batch(None).split().0) {
            assert_eq!(value["name"], *row.name);
        }
        assert_eq!(json["notes"].as_array().map(Vec::len), Some(2));
        assert_eq!(json["target"], "exited");
        assert_eq!(json["busy_cpus"], 0.0, "was not a number");
    }
}
