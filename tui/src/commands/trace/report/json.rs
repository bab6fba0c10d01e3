//! The report as one JSON object on one line: docs/trace-json.md describes every field.

use super::Report;
use serde::Serialize;
use std::time::Duration;

/// Goes up only when a field changes its meaning or goes away.
const SCHEMA: u32 = 1;

/// Returns the whole report, with a newline at its end. `time` is how long was counted.
pub fn render(probes: &[Report<'_>], time: Duration) -> String {
    let document = Document {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        time_s: time.as_secs_f64(),
        probes: probes.iter().map(Probe::of).collect(),
    };
    let mut line = serde_json::to_string(&document).expect("strings and numbers can be written");
    line.push('\n');
    line
}

/// The whole report: one object for each probe, in the order in which they were placed.
#[derive(Serialize)]
struct Document<'r> {
    schema: u32,
    version: &'r str,
    time_s: f64,
    probes: Vec<Probe<'r>>,
}

/// What one probe has counted. Counts are numbers of calls, times are nanoseconds.
#[derive(Serialize)]
struct Probe<'r> {
    function: &'r str,
    module: &'r str,
    address: String,
    language: &'r str,
    site: &'r str,
    sites: usize,
    instruction_class: &'r str,
    count: u64,
    unreturned: u64,
    strangers: u64,
    short: u64,
    others: u64,
    cost_ns: u64,
    floor_ns: u64,
    removed: Option<&'r str>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
    histogram: Vec<[u64; 3]>,
    args: Vec<Argument<'r>>,
    values: Vec<Value<'r>>,
    returns: Option<Returns>,
    stacks: u64,
    stacks_lost: u64,
    callers: Vec<Stack<'r>>,
}

/// An argument by its number: what `--args` and `--value argN` read.
#[derive(Serialize)]
struct Argument<'r> {
    index: u32,
    register: &'r str,
    top: Vec<Top>,
    others: u64,
}

/// Any other expression that was read.
#[derive(Serialize)]
struct Value<'r> {
    expression: &'r str,
    top: Vec<Top>,
    others: u64,
    unreadable: u64,
}

/// What calls returned, for `--ret`.
#[derive(Serialize)]
struct Returns {
    top: Vec<Top>,
    others: u64,
}

/// A value as it is shown, a number or a text, and how often it came.
#[derive(Serialize)]
struct Top {
    value: String,
    count: u64,
}

/// A stack as names, with the function itself first and its callers behind it, and how many
/// of the taken stacks were like it.
#[derive(Serialize)]
struct Stack<'r> {
    stack: &'r [String],
    count: u64,
}

impl<'r> Probe<'r> {
    fn of(report: &'r Report<'r>) -> Self {
        let (probe, found) = (report.probe, &report.probe.found);
        let reading = &probe.reading;
        let top = |top: &[(String, u64)]| -> Vec<Top> {
            let top = top.iter().cloned();
            top.map(|(value, count)| Top { value, count }).collect()
        };
        // `arg2` as the text of an expression; other expressions do not parse as a number
        // here.
        let argument = |text: &str| text.strip_prefix("arg")?.parse::<u32>().ok();
        let mut document = Self {
            function: &found.name,
            module: &found.module,
            address: format!("{:#x}", found.address),
            language: found.language.label(),
            site: found.sites.first().map_or("", |site| site.kind.label()),
            sites: found.sites.len(),
            instruction_class: report.class().label(),
            count: reading.calls,
            unreturned: report.unreturned(),
            strangers: reading.strangers,
            short: reading.short,
            others: reading.others,
            cost_ns: probe.cost_ns,
            floor_ns: probe.floor_ns,
            removed: probe.removed.as_deref(),
            p50_ns: report.quantile(0.5),
            p90_ns: report.quantile(0.9),
            p99_ns: report.quantile(0.99),
            max_ns: report.quantile(1.0).map(|_| reading.longest_ns()),
            histogram: reading
                .buckets()
                .map(|(low, high, calls)| [low, high, calls])
                .collect(),
            args: Vec::new(),
            values: Vec::new(),
            returns: None,
            stacks: reading.stacks,
            stacks_lost: reading.stacks_lost,
            callers: { report.callers.iter() }
                .map(|caller| Stack {
                    stack: &caller.stack,
                    count: caller.count,
                })
                .collect(),
        };
        // One list of values becomes three fields, by what kind of expression each is.
        for value in &report.values {
            match (&value.expression.text[..], argument(&value.expression.text)) {
                (_, Some(index)) => document.args.push(Argument {
                    index,
                    register: &value.register,
                    top: top(&value.top),
                    others: value.others,
                }),
                ("ret", _) => {
                    document.returns = Some(Returns {
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
