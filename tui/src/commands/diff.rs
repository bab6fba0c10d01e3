//! `diff`: what takes more time in a later recording than in an earlier one.

/// Formats a difference as one JSON object.
mod json;
/// Formats a difference as a short text with headings.
mod markdown;
/// Leaves the time in the run queue out of a comparison of waits.
mod queue;
/// Formats a difference as a table.
mod table;

use super::apart::{self, Made};
use super::input::{self, Input};
use super::open_file;
use super::open_file::Opened;
use super::resolve::Places;
use crate::choices::{Format, LiveOperand, Operand};
use crate::cli::DiffConfig;
use crate::commands::live::{self, Live};
use crate::failure::{Exit, Failure};
use crate::stderr;
use crate::words::{metric, names};
use profile::diff::{Diff, DiffRow, Side};
use profile::{Cancel, Filter, Metric, Query, Selection};
use std::path::Path;
use std::thread;

/// Runs `diff`: prints what changed from A to B. With a limit, the exit status says whether a
/// function exceeds it.
pub fn run(config: &DiffConfig) -> Result<Exit, Failure> {
    let is_stdin =
        |operand: &Operand| matches!(operand, Operand::File(path) if input::is_stdin(path));
    if is_stdin(&config.a) && is_stdin(&config.b) {
        return Err(Failure::usage("only one of the two can be standard input"));
    }
    // Before either is recorded, because recording takes time.
    for operand in [&config.a, &config.b] {
        if let Operand::Live(live) = operand {
            live::check(live.pid)?;
        }
    }
    let [a, b] = open_both(config)?;
    let places = Places::of_this_machine();
    let kept = apart::descriptors([&a, &b], places.descriptors());
    let made = apart::make(&kept, move || {
        let a = open_file::open(a, &places)?;
        make(config, &a, &open_file::open(b, &places)?)
    })?;
    made.print()
}

/// Compares the two sides.
fn make(config: &DiffConfig, a: &Opened, b: &Opened) -> Result<Made, Failure> {
    for (operand, opened) in [(&config.a, a), (&config.b, b)] {
        let name = operand_name(operand);
        let notes = opened.notes.iter();
        notes.for_each(|note| stderr::say(format_args!("{name}: {note}")));
    }
    check_same_metric(&a.view.info().metric, &b.view.info().metric)?;
    let metric = a.view.info().metric.clone();
    let halves = queue::select(&metric, &config.filter, |filter| {
        let select = |side: &Opened| select(side, filter.clone());
        Ok::<_, Failure>([select(a), select(b)])
    })?;
    let [a, b] = &halves.sides;
    let diff = Diff::new(a, b);
    let limit = config.fail_over_points;
    let exceeding = limit.and_then(|limit| diff.rows.iter().find(|row| exceeds(&diff, row, limit)));
    let mut shown = diff.clone();
    // Amounts of time are shown and tested if both sides know them. The limit is about shares, for
    // which `diff` stays as it is.
    shown.compare_time();
    let compared = Compared {
        diff: &shown,
        metric: &metric,
        names: [&config.a, &config.b].map(operand_name),
        rows_max: config.rows_max.unwrap_or(usize::MAX),
        limit,
        exceeding,
        queued_ns: halves.queued_ns,
    };
    let text = match config.format {
        Format::Json => json::render(&compared),
        Format::Md => markdown::render(&compared, config.tokens_max),
        Format::Text | Format::Csv => table::render(&compared),
    };
    let made = |exit| Made {
        bytes: text.into_bytes(),
        exit,
        told: Vec::new(),
    };
    if diff.a.samples == 0 || diff.b.samples == 0 {
        return Ok(made(Exit::NoSamples));
    }
    let (Some(limit), Some(row)) = (limit, exceeding) else {
        return Ok(made(Exit::Done));
    };
    let points = points(&diff, row);
    stderr::say(format_args!(
        "the share of {} grew by {points:.1} percentage points of all samples; the limit is {limit}",
        names::short(&row.name)
    ));
    Ok(made(Exit::Exceeded))
}

/// Returns what changed from A to B as a short text with headings, of at most `tokens_max` tokens.
/// `metrics` are those of the two sides; different ones are an error. `select` returns what a
/// filter keeps of both sides.
pub fn markdown(
    metrics: [&Metric; 2],
    filter: &Filter,
    select: impl FnMut(Filter) -> Result<[Selection; 2], String>,
    names: [String; 2],
    tokens_max: usize,
) -> Result<String, String> {
    let [before, metric] = metrics;
    check_same_metric(before, metric).map_err(|failure| failure.to_string())?;
    let halves = queue::select(metric, filter, select)?;
    let [a, b] = &halves.sides;
    let mut diff = Diff::new(a, b);
    diff.compare_time();
    let compared = Compared {
        diff: &diff,
        metric,
        names,
        rows_max: usize::MAX,
        limit: None,
        exceeding: None,
        queued_ns: halves.queued_ns,
    };
    Ok(markdown::render(&compared, tokens_max))
}

/// A comparison, as it is printed.
struct Compared<'a> {
    /// By time if both sides know it, else by shares.
    diff: &'a Diff,
    /// What both sides count.
    metric: &'a Metric,
    /// The names of A and B.
    names: [String; 2],
    rows_max: usize,
    /// The maximum growth of a function's share in percentage points, and the first function whose
    /// share surely grew by more.
    limit: Option<f64>,
    exceeding: Option<&'a DiffRow>,
    /// How long threads waited in the run queue, in A and in B, if that time is left out of both.
    queued_ns: Option<[u64; 2]>,
}

impl Compared<'_> {
    /// Describes a side, as in `3,277 samples, 10.0 s at 99 Hz`.
    fn side(&self, side: &Side) -> String {
        let counted = metric::counted_by(Some(self.metric), side.samples);
        let rate = match side.rate_hz {
            0 => String::new(),
            rate => format!(" at {rate} Hz"),
        };
        format!("{counted}, {:.1} s{rate}", side.seconds)
    }

    /// Returns sentences about the rest of the machine: that other programs decided how much CPU
    /// time there was, and how long threads waited in the run queue.
    fn beside(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let sides = self.diff.sides();
        if sides.are_crowded() {
            let busy = |side: &Side| match side.busy.percent() {
                Some(percent) => format!("{percent:.0} %"),
                None => "an unknown part".to_owned(),
            };
            let what = if self.metric.is_waiting() {
                "how long threads waited"
            } else {
                "how much time a program got"
            };
            sentences.push(format!(
                "the CPUs were busy for {} of the time in A and for {} in B, with other programs as \
                 well: {what} depends on those, so shares are compared",
                busy(&sides.a),
                busy(&sides.b),
            ));
        }
        if sides.hide_samples() {
            sentences.push(
                "a file does not say how many samples it was made of, only what they count \
                 together: nothing can be told from chance"
                    .into(),
            );
        }
        if let Some(queued) = self.queued_ns {
            let per_second =
                |queued: u64, side: &Side| queued as f64 / 1e6 / side.seconds.max(0.001);
            sentences.push(format!(
                "threads stood in the queue for a CPU for {:.1} -> {:.1} ms a second: that depends on \
                 other programs, and is left out of the rest",
                per_second(queued[0], &sides.a),
                per_second(queued[1], &sides.b),
            ));
        }
        sentences
    }

    /// Returns the milliseconds of CPU time per second of A and of B. None if a side does not know
    /// them.
    fn all(&self) -> Option<[f64; 2]> {
        let all = |side: &Side| side.cpu_ms_per_s(side.samples);
        Some([all(&self.diff.a)?, all(&self.diff.b)?])
    }
}

/// Returns an error if the sides count different things, as samples on CPUs and nanoseconds of
/// waiting: their difference has no meaning.
fn check_same_metric(a: &Metric, b: &Metric) -> Result<(), Failure> {
    if a == b {
        return Ok(());
    }
    let words = |metric: &Metric| format!("{} in {}", metric.name, metric.unit);
    Err(Failure::failed(format!(
        "cannot compare: A counts {}, B counts {}",
        words(a),
        words(b)
    )))
}

/// Returns the name of a side in messages: its file, or the process that is recorded.
fn operand_name(operand: &Operand) -> String {
    match operand {
        Operand::File(path) => input::name(path),
        Operand::Live(live) => format!("pid {}", live.pid),
    }
}

/// Opens both sides. If a file is compared with a process, the file is read first: recording counts
/// time on CPUs, and if the file counts something else, recording is pointless.
fn open_both(config: &DiffConfig) -> Result<[Input; 2], Failure> {
    match (&config.a, &config.b) {
        (Operand::File(file), Operand::Live(live)) => {
            let a = counting_time(file, check_same_metric)?;
            Ok([a, record(live)?])
        }
        (Operand::Live(live), Operand::File(file)) => {
            let b = counting_time(file, |metric, recorded| check_same_metric(recorded, metric))?;
            Ok([record(live)?, b])
        }
        (Operand::File(a), Operand::File(b)) => Ok([Input::open(a)?, Input::open(b)?]),
        // Both are recorded at the same time.
        (Operand::Live(a), Operand::Live(b)) => {
            let (a, b) = thread::scope(|scope| {
                let a = scope.spawn(|| record(a));
                let b = record(b);
                (a.join().expect("recording does not panic"), b)
            });
            Ok([a?, b?])
        }
    }
}

/// Opens a file that is compared with a process, and checks its metric, without keeping what was
/// read of it.
fn counting_time(
    file: &Path,
    check: impl FnOnce(&Metric, &Metric) -> Result<(), Failure>,
) -> Result<Input, Failure> {
    let input = Input::open(file)?.that_can_be_read_again()?;
    let (once, places) = (input.try_clone()?, Places::of_this_machine());
    apart::make(
        &apart::descriptors([&once], places.descriptors()),
        move || {
            let opened = open_file::open(once, &places)?;
            check(&opened.view.info().metric, &Metric::default())?;
            Ok(Made {
                bytes: Vec::new(),
                exit: Exit::Done,
                told: Vec::new(),
            })
        },
    )?;
    input.rewind()
}

fn record(live: &LiveOperand) -> Result<Input, Failure> {
    Live::start(live.pid, live.duration)?.record()
}

/// Returns the samples of a side that pass a filter.
fn select(opened: &Opened, filter: Filter) -> Selection {
    let query = Query {
        filter,
        ..Query::default()
    };
    let selection = opened.view.select(&query, &Cancel::new());
    selection.expect("nobody cancels it")
}

/// Returns by how many percentage points a function's share of all samples has grown.
fn points(diff: &Diff, row: &DiffRow) -> f64 {
    diff.b.share(row.b_self) - diff.a.share(row.a_self)
}

/// Whether a function's share has grown by more than the limit. Changes that could be chance do not
/// count, so that they never fail a build.
fn exceeds(diff: &Diff, row: &DiffRow, limit: f64) -> bool {
    row.sure && points(diff, row) > limit
}

#[cfg(test)]
mod tests {
    use super::{Compared, exceeds};
    use profile::diff::Diff;
    use profile::{
        Cancel, Ending, Frame, FrameKind, Info, Limits, Metric, ModuleId, NameState, NewSample,
        ProcessId, Query, Rates, Selection, Store,
    };

    const SECOND_NS: u64 = 1_000_000_000;

    /// Returns ten seconds at 99 Hz, with a number of samples for each of three functions of a
    /// file.
    fn side(file: &str, counts: [u64; 3]) -> Selection {
        let mut store = Store::new(Limits::default());
        store.set_info(Info {
            rates: Rates::always(99),
            ..Info::default()
        });
        store.add_module(ModuleId(0), file, file);
        store.set_build_id(ModuleId(0), file.as_bytes());
        store.add_process(ProcessId(1), 7, "server");
        store.begin(SECOND_NS);
        let samples = (0..)
            .zip(counts)
            .flat_map(|(at, count)| (0..count).map(move |n| (at, n, count)));
        for (at, number, count) in samples {
            let frame = Frame {
                module: ModuleId(0),
                address: at * 0x1000,
                kind: FrameKind::User,
            };
            store.add_sample(NewSample {
                // Evenly over the ten seconds.
                time_ns: SECOND_NS + 10 * SECOND_NS * (2 * number + 1) / (2 * count),
                cpu: 0,
                process: ProcessId(1),
                tid: 7,
                comm: "server",
                frames: &[frame],
                kernel_frames: 0,
                ending: Ending::Root,
                weight: 1,
            });
        }
        store.end(11 * SECOND_NS);
        for id in store.frames_to_name(10) {
            let at = store.frame(id).expect("it was asked for").address / 0x1000;
            let name = ["work<`x`>", "rest", "old"][at as usize];
            store.set_name(id, NameState::Named(name.into()));
        }
        let selection = store.view().select(&Query::default(), &Cancel::new());
        selection.expect("nobody cancels it")
    }

    fn with<R>(a: &Selection, b: &Selection, act: impl FnOnce(&Compared<'_>) -> R) -> R {
        let diff = Diff::new(a, b);
        let limit = 5.0;
        let mut shown = diff.clone();
        shown.compare_time();
        act(&Compared {
            diff: &shown,
            metric: &Metric::default(),
            names: ["before.pft", "after.pft"].map(String::from),
            rows_max: usize::MAX,
            limit: Some(limit),
            exceeding: diff.rows.iter().find(|row| exceeds(&diff, row, limit)),
            queued_ns: None,
        })
    }

    /// Compares two sides: one function takes much more time in B, another is gone.
    pub fn compared<R>(act: impl FnOnce(&Compared<'_>) -> R) -> R {
        let (a, b) = (
            side("server", [100, 500, 20]),
            side("server", [400, 500, 0]),
        );
        with(&a, &b, act)
    }

    /// Compares two sides that differ by chance only.
    pub fn same<R>(act: impl FnOnce(&Compared<'_>) -> R) -> R {
        let (a, b) = (
            side("server", [100, 500, 20]),
            side("server", [104, 495, 21]),
        );
        with(&a, &b, act)
    }

    /// Compares two equal sides.
    pub fn equal<R>(act: impl FnOnce(&Compared<'_>) -> R) -> R {
        let (a, b) = (
            side("server", [100, 500, 20]),
            side("server", [100, 500, 20]),
        );
        with(&a, &b, act)
    }

    /// Compares two versions whose files have different names.
    pub fn renamed<R>(act: impl FnOnce(&Compared<'_>) -> R) -> R {
        let (a, b) = (
            side("server-1.2", [100, 500, 20]),
            side("server-1.3", [400, 500, 20]),
        );
        with(&a, &b, act)
    }
}
