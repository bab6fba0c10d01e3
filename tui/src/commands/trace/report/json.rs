//! The report as one JSON object on one line: docs/trace-json.md describes every field.

use super::Report;
use crate::output::json_line;
use serde::Serialize;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

/// Version of the format. It goes up only when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// Returns the whole report, with a newline at its end. `time` is how long calls were counted.
pub fn render(probes: &[Report<'_>], time: Duration) -> String {
    json_line(&Document {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        time_s: time.as_secs_f64(),
        probes: probes.iter().map(Probe::of).collect(),
    })
}

/// The whole report: one object for each probe, in the order in which they were placed.
#[derive(Serialize)]
struct Document<'r> {
    schema: u32,
    version: &'r str,
    time_s: f64,
    probes: Vec<Probe<'r>>,
}

/// The results of one probe. Counts are numbers of calls, times are nanoseconds.
#[derive(Serialize)]
struct Probe<'r> {
    function: &'r str,
    module: &'r str,
    address: String,
    language: &'r str,
    site: &'r str,
    sites: u32,
    instruction_class: &'r str,
    count: u64,
    unreturned: u64,
    strangers: u64,
    short: u64,
    others: u64,
    missed: u64,
    cost_ns: u64,
    floor_ns: u64,
    late_s: Option<f64>,
    removed: Option<&'r str>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
    histogram: Vec<[u64; 3]>,
    args: Vec<Argument<'r>>,
    values: Vec<Value<'r>>,
    returns: Option<Returns<'r>>,
    stacks: u64,
    stacks_cut: u64,
    stacks_lost: u64,
    callers: Vec<Stack<'r>>,
}

/// An argument by its number, for `--args` and `--value argN`.
#[derive(Serialize)]
struct Argument<'r> {
    index: u32,
    register: &'r str,
    top: Vec<Top>,
    others: u64,
}

/// The values of any other expression.
#[derive(Serialize)]
struct Value<'r> {
    expression: &'r str,
    top: Vec<Top>,
    others: u64,
    unreadable: u64,
}

/// The return values, for `--ret`.
#[derive(Serialize)]
struct Returns<'r> {
    register: &'r str,
    top: Vec<Top>,
    others: u64,
}

/// A value as it is shown, a number or a text, and how often it was seen.
#[derive(Serialize)]
struct Top {
    value: String,
    count: u64,
}

/// A stack as names, from the function itself to its outermost caller, and how many of the taken
/// stacks are equal to it.
#[derive(Serialize)]
struct Stack<'r> {
    stack: Vec<&'r str>,
    count: u64,
}

impl<'r> Probe<'r> {
    fn of(report: &'r Report<'r>) -> Self {
        let (about, tally) = (report.about, &report.tally);
        let top = |top: &[(Arc<str>, u64)]| -> Vec<Top> {
            let top = top.iter().map(|(value, count)| Top {
                value: value.to_string(),
                count: *count,
            });
            top.collect()
        };
        // Returns N for the expression `argN`. Any other expression does not parse as a number.
        let argument = |text: &str| text.strip_prefix("arg")?.parse::<u32>().ok();
        let mut document = Self {
            function: &about.name,
            module: &about.module,
            address: format!("{:#x}", about.address),
            language: &about.language,
            site: &about.site,
            sites: about.copies,
            instruction_class: report.class(),
            count: tally.calls,
            unreturned: tally.unreturned(),
            strangers: tally.strangers,
            short: tally.short,
            others: tally.others,
            missed: tally.missed,
            cost_ns: about.hit_ns,
            floor_ns: about.floor_ns,
            late_s: report.late.map(|late| late.as_secs_f64()),
            removed: report.removed,
            p50_ns: tally.quantile_ns(0.5),
            p90_ns: tally.quantile_ns(0.9),
            p99_ns: tally.quantile_ns(0.99),
            max_ns: tally.quantile_ns(1.0).map(|_| tally.max_ns),
            histogram: tally
                .buckets
                .iter()
                .map(|((from, below), calls)| [*from, *below, *calls])
                .collect(),
            args: Vec::new(),
            values: Vec::new(),
            returns: None,
            stacks: tally.stacks,
            stacks_cut: report.stacks_cut,
            stacks_lost: tally.stacks_lost,
            callers: report
                .callers
                .rows
                .iter()
                .filter(|_| report.has_stacks)
                .map(|(callers, count)| Stack {
                    stack: iter::once(&*about.name)
                        .chain(callers.iter().map(|name| &**name))
                        .collect(),
                    count: *count,
                })
                .collect(),
        };
        // The list of values becomes three fields, one for each kind of expression.
        for value in &report.values {
            match (value.expression, argument(value.expression)) {
                (_, Some(index)) => document.args.push(Argument {
                    index,
                    register: value.register,
                    top: top(&value.top),
                    others: value.others,
                }),
                ("ret", _) => {
                    document.returns = Some(Returns {
                        register: value.register,
                        top: top(&value.top),
                        others: value.others,
                    });
                }
                (expression, _) => document.values.push(Value {
                    expression,
                    top: top(&value.top),
                    others: value.others,
                    unreadable: value.unreadable,
                }),
            }
        }
        document
    }
}
