//! What `trace` prints.

mod json;
mod text;

use super::callers::{Caller, Callers};
use super::watch::{Traced, TracedProbe};
use crate::choices::Format;
use crate::cli::TraceConfig;
use engine::probes::expression::Expression;
use symbolize::{Symbolizer, sanitize};

/// How many values, and how many stacks, are shown of each probe.
const TOP: usize = 10;

/// The report in the format that was asked for.
pub fn render(traced: &Traced, callers: &Callers, config: &TraceConfig) -> String {
    let symbolizer = Symbolizer::new().with_files(probe::files::of_targets());
    let probes = traced.probes.iter();
    let probes: Vec<_> = { probes }
        .map(|probe| Report::of(probe, callers, config, &symbolizer))
        .collect();
    match config.format {
        // The command line takes no other format.
        Format::Text | Format::Md => text::render(&probes, traced.time, config),
        Format::Json => json::render(&probes, traced.time),
        Format::Csv => csv(&probes),
    }
}

/// What is reported of one probe.
struct Report<'r> {
    probe: &'r TracedProbe,
    values: Vec<ValueReport<'r>>,
    callers: Vec<Caller>,
}

/// What is reported of one value.
struct ValueReport<'r> {
    expression: &'r Expression,
    /// Where it was, in words.
    register: String,
    /// The most frequent ones: as they are shown, and how often they came.
    top: Vec<(String, u64)>,
    /// How many others there were.
    others: u64,
    unreadable: u64,
}

impl<'r> Report<'r> {
    fn of(
        probe: &'r TracedProbe,
        callers: &Callers,
        config: &'r TraceConfig,
        symbolizer: &Symbolizer,
    ) -> Self {
        let values = config.values.iter().enumerate();
        Report {
            probe,
            values: values
                .map(|(slot, expression)| ValueReport::of(probe, slot, expression))
                .collect(),
            callers: if config.stacks {
                callers.of_probe(probe.number, symbolizer, TOP)
            } else {
                Vec::new()
            },
        }
    }

    /// Calls that began and did not end while it was watched.
    fn unreturned(&self) -> u64 {
        let reading = &self.probe.reading;
        reading.calls.saturating_sub(reading.returns)
    }

    /// Returns the class of instruction of the slowest of its sites, on which the cost of a
    /// hit depends.
    fn class(&self) -> symbolize::sites::Class {
        let sites = self.probe.found.sites.iter();
        // One stepped site is enough to make the slowest hit a stepped one.
        let stepped = { sites }.find(|site| site.class == symbolize::sites::Class::Stepped);
        stepped
            .or(self.probe.found.sites.first())
            .map_or(symbolize::sites::Class::Emulated, |site| site.class)
    }

    /// Returns a quantile of the times of calls in nanoseconds: the middle of the bucket
    /// that it is in. None if there are no times.
    fn quantile(&self, share: f64) -> Option<u64> {
        let (low, high) = self.probe.reading.quantile(share)?;
        Some(low + (high - low) / 2)
    }
}

impl<'r> ValueReport<'r> {
    /// Collects the values of one slot, texts and numbers alike, most frequent first.
    fn of(probe: &TracedProbe, slot: usize, expression: &'r Expression) -> Self {
        let texts = probe.texts.texts.iter().filter(|text| text.slot == slot);
        let texts = texts.map(|text| {
            let cut = if text.is_cut { "…" } else { "" };
            (format!("\"{}\"{cut}", sanitize(&text.bytes)), text.count)
        });
        let numbers = probe.texts.numbers.iter();
        let numbers = numbers.filter(|number| number.slot == slot);
        let numbers = numbers.map(|number| (expression.number.show(number.number), number.count));
        let mut top: Vec<(String, u64)> = texts.chain(numbers).collect();
        top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let others = top.iter().skip(TOP).map(|(_, count)| count).sum();
        top.truncate(TOP);
        ValueReport {
            expression,
            register: expression.register(probe.found.language),
            top,
            others,
            unreadable: probe.reading.unreadable[slot],
        }
    }
}

/// Returns the report as CSV, with a line for each probe.
fn csv(probes: &[Report<'_>]) -> String {
    let mut text = String::from(
        "function,module,address,language,site,instruction_class,count,unreturned,cost_ns,\
         p50_ns,p90_ns,p99_ns,max_ns\n",
    );
    for report in probes {
        let (found, reading) = (&report.probe.found, &report.probe.reading);
        let quantile = |share| {
            report
                .quantile(share)
                .map_or(String::new(), |ns| ns.to_string())
        };
        let name = format!("\"{}\"", found.name.replace('"', "\"\""));
        let fields = [
            name,
            format!("\"{}\"", found.module.replace('"', "\"\"")),
            format!("{:#x}", found.address),
            found.language.label().into(),
            found
                .sites
                .first()
                .map_or("", |site| site.kind.label())
                .into(),
            report.class().label().into(),
            reading.calls.to_string(),
            report.unreturned().to_string(),
            report.probe.cost_ns.to_string(),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            report
                .quantile(1.0)
                .map_or(String::new(), |_| reading.longest_ns().to_string()),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}
