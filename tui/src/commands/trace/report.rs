//! The results of probes as text, CSV or JSON: of a trace that has just ended, or of a recording.

mod json;
mod text;

use crate::choices::Format;
use engine::probes::{self, Shares};
use profile::probes::{CallTally, ProbeAbout};
use profile::{TimeRange, View};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of values, and of stacks, that are shown of each probe.
const TOP: usize = 10;

/// The word in recordings for the site of a tracepoint's hits.
const POINT: &str = "tracepoint";

/// The format of a report, and facts about the run that the results do not contain.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub format: Format,
    /// How long calls were counted.
    pub time: Duration,
    /// Whether the ends of calls were traced. None for a recording, which only has their times if
    /// they were.
    pub is_timed: Option<bool>,
    /// Whether stacks were wanted. None means to show stacks if there are any.
    pub stacks: Option<bool>,
    /// When the command began, on the clock of samples. None without a command, and for a
    /// recording, which does not contain it.
    pub command_ns: Option<u64>,
}

impl Manner {
    /// Returns the manner for a recording.
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

/// Returns the results of all probes of a recording.
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
        // The command line allows no other format.
        Format::Text | Format::Md => text::render(&reports, manner),
        Format::Json => json::render(&reports, manner.time),
        Format::Csv => csv(&reports),
    }
}

/// The results of one probe.
struct Report<'r> {
    about: &'r ProbeAbout,
    tally: CallTally,
    values: Vec<ValueReport<'r>>,
    /// Stacks without the function itself.
    callers: Shares,
    has_stacks: bool,
    /// Number of stacks that do not reach the first function of their thread.
    stacks_cut: u64,
    /// How long the command had run when the probe was placed: earlier calls are not counted. None
    /// if the probe was placed before.
    late: Option<Duration>,
    /// Why the probe was removed before the end.
    removed: Option<&'r str>,
    /// How long the probe was in place.
    time: Duration,
    /// Number of seconds for which the recording had no room.
    forgotten: u64,
}

/// The results for one value.
struct ValueReport<'r> {
    expression: &'r str,
    /// The place of the value, in words.
    register: &'r str,
    /// The most frequent values as they are shown, each with its number of calls.
    top: Vec<(Arc<str>, u64)>,
    /// Number of calls with other values.
    others: u64,
    unreadable: u64,
}

impl Report<'_> {
    /// Whether it is a tracepoint of the kernel, and not a function.
    fn is_point(&self) -> bool {
        &*self.about.site == POINT
    }

    /// Returns the class of the instruction at the slowest breakpoint, on which the cost of a hit
    /// depends. A tracepoint has no breakpoint.
    fn class(&self) -> &'static str {
        if self.is_point() {
            POINT
        } else if self.about.is_stepped || self.has_breakpoints_at_returns() {
            "stepped"
        } else {
            "emulated"
        }
    }

    /// Whether the ends of calls have breakpoints. A breakpoint on `ret` is always single-stepped.
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
