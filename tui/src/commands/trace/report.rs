//! What probes counted, in text, CSV or JSON: of a trace that has just ended, or of a
//! recording.

mod json;
mod text;

use crate::choices::Format;
use engine::probes::{self, Shares};
use profile::probes::{CallTally, ProbeAbout};
use profile::{TimeRange, View};
use std::sync::Arc;
use std::time::Duration;

/// How many values, and how many stacks, are shown of each probe.
const TOP: usize = 10;

/// Where hits of a tracepoint are seen, in the word that recordings have.
const POINT: &str = "tracepoint";

/// What is told beside the numbers.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub format: Format,
    /// How long was counted.
    pub time: Duration,
    /// Whether the ends of calls were to be seen. None if that is not known: a recording
    /// says only whether they were.
    pub is_timed: Option<bool>,
    /// Whether stacks were to be taken. None: those that there are.
    pub stacks: Option<bool>,
    /// When the command began, on the clock of the samples. None without one, and of a
    /// recording, which does not say.
    pub command_ns: Option<u64>,
}

impl Manner {
    /// How a recording is told in a format.
    pub fn of_recording(view: &View, format: Format) -> Self {
        let window = view.window(TimeRange::ALL);
        Manner {
            format,
            time: Duration::from_nanos(window.end_ns.saturating_sub(window.start_ns)),
            is_timed: None,
            stacks: None,
            command_ns: None,
        }
    }
}

/// Returns what all probes of a recording counted.
pub fn render(view: &View, manner: Manner) -> String {
    let log = view.probes();
    let seen = probes::recorded(view, TimeRange::ALL).list;
    let each = log.probes().iter().zip(seen);
    let reports: Vec<Report<'_>> = each
        .enumerate()
        .map(|(number, (record, probe))| {
            let tally = record.total(TimeRange::ALL);
            let callers = probes::callers(log, record, &tally, TOP, |names| names);
            let values = record.about().values.iter().enumerate();
            Report {
                about: record.about(),
                values: values
                    .map(|(slot, value)| {
                        let (top, others) = probes::top_values(record, &tally, slot, TOP);
                        ValueReport {
                            expression: &value.text,
                            register: &value.register,
                            top,
                            others,
                            unreadable: tally.values.get(slot).map_or(0, |it| it.unreadable),
                        }
                    })
                    .collect(),
                callers,
                stacks_cut: probes::cut_stacks(log, record, &tally),
                has_stacks: manner.stacks.unwrap_or(tally.stacks > 0),
                late: manner
                    .command_ns
                    .and_then(|begun_ns| record.about().placed_ns.checked_sub(begun_ns))
                    .map(Duration::from_nanos),
                removed: record.end().map(|end| &*end.why),
                time: probe.seen.map_or(manner.time, |seen| seen.time),
                forgotten: log.probes()[number].forgotten(),
                tally,
            }
        })
        .collect();
    match manner.format {
        // The command line takes no other format.
        Format::Text | Format::Md => text::render(&reports, manner),
        Format::Json => json::render(&reports, manner.time),
        Format::Csv => csv(&reports),
    }
}

/// What is reported of one probe.
struct Report<'r> {
    about: &'r ProbeAbout,
    tally: CallTally,
    values: Vec<ValueReport<'r>>,
    /// Stacks without the function itself.
    callers: Shares,
    has_stacks: bool,
    /// Stacks that do not reach their thread's first function.
    stacks_cut: u64,
    /// How long the command had run when it was placed: earlier calls are not counted. None
    /// if it was there first.
    late: Option<Duration>,
    /// Why it was taken away before the end.
    removed: Option<&'r str>,
    /// How long it was in place.
    time: Duration,
    /// Seconds for which the recording had no room.
    forgotten: u64,
}

/// What is reported of one value.
struct ValueReport<'r> {
    expression: &'r str,
    /// Where it was, in words.
    register: &'r str,
    /// The most frequent ones: as they are shown, and how often they came.
    top: Vec<(Arc<str>, u64)>,
    /// How many others there were.
    others: u64,
    unreadable: u64,
}

impl Report<'_> {
    /// Whether it is a tracepoint of the kernel, and no function.
    fn is_point(&self) -> bool {
        &*self.about.site == POINT
    }

    /// Returns the class of instruction of the slowest of its breakpoints, on which the cost of
    /// a hit depends. A tracepoint has no breakpoint.
    fn class(&self) -> &'static str {
        if self.is_point() {
            POINT
        } else if self.about.is_stepped || self.has_breakpoints_at_returns() {
            "stepped"
        } else {
            "emulated"
        }
    }

    /// Whether the ends of calls are seen by breakpoints. A `ret` is always stepped.
    fn has_breakpoints_at_returns(&self) -> bool {
        self.about.breakpoints > self.about.copies
    }
}

/// Returns the report as CSV, with a line for each probe.
fn csv(probes: &[Report<'_>]) -> String {
    let mut text = String::from(
        "function,module,address,language,site,instruction_class,count,unreturned,cost_ns,\
         p50_ns,p90_ns,p99_ns,max_ns\n",
    );
    for report in probes {
        let (about, tally) = (report.about, &report.tally);
        let quantile = |share| {
            tally
                .quantile_ns(share)
                .map_or(String::new(), |ns| ns.to_string())
        };
        let fields = [
            format!("\"{}\"", about.name.replace('"', "\"\"")),
            format!("\"{}\"", about.module.replace('"', "\"\"")),
            format!("{:#x}", about.address),
            about.language.to_string(),
            about.site.to_string(),
            report.class().into(),
            tally.calls.to_string(),
            tally.unreturned().to_string(),
            about.hit_ns.to_string(),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            tally
                .quantile_ns(1.0)
                .map_or(String::new(), |_| tally.max_ns.to_string()),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}
