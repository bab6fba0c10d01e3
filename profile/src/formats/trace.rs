//! *Trace events*: what ran when, as JSON for <https://ui.perfetto.dev>,
//! `chrome://tracing` and speedscope.
//!
//! "Trace Event Format" of the Chromium project describes it. Samples have no length: a function
//! that two neighbouring samples of a thread have on their stacks is taken to have run between
//! them, and one sample stands for a tick of the clock. The count of a probe is written as one
//! counter value for each second.

use super::FormatError;
use super::json::Text;
use crate::query::Timed;
use crate::time::STAMP_NS;
use crate::{FunctionId, Role, Selection};
use std::collections::HashMap;
use std::io::Write;

const SECOND_NS: u64 = 1_000_000_000;

/// Length of one sample if the rate is unknown.
const TICK_NS: u64 = 10_000_000;

/// Writes the samples of a selection, one thread after the other.
pub fn write(selection: &Selection, out: impl Write) -> Result<(), FormatError> {
    let info = selection.info();
    let mut writer = Writer {
        selection,
        out,
        tick_ns: match info.rates.first_hz {
            0 => TICK_NS,
            hz => 1_000_000_000 / u64::from(hz),
        },
        begin_ns: selection.window().start_ns,
        names: HashMap::new(),
        texts: Vec::new(),
        paths: HashMap::new(),
        is_first: true,
    };
    let version = env!("CARGO_PKG_VERSION");
    write!(
        writer.out,
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"exporter\":\"proftop {version}\",\
         \"host\":{},\"scope\":{},\"rate_hz\":{},\"start_unix_ms\":{}}},\n\"traceEvents\":[",
        Text(&info.host.name),
        Text(&info.scope),
        info.rates.first_hz,
        info.epoch_unix_ms,
    )?;
    let samples = selection.timed();
    for samples in samples.chunk_by(|a, b| a.trace.thread == b.trace.thread) {
        writer.add_thread(samples)?;
    }
    writer.add_probes()?;
    writeln!(writer.out, "]}}")?;
    writer.out.flush()?;
    Ok(())
}

/// Writes one thread after the other, as pairs of events: `B` where a function begins and `E` where
/// it ends. For each sample only the difference to the one before is written:
///
/// ```text
/// stacks:   a b c │ a b d │ a        each sample outermost first
/// events:   B a, B b, B c │ E c, B d │ E d, E b │ E a
/// ```
struct Writer<'a, W> {
    selection: &'a Selection,
    out: W,
    /// Length of a sample.
    tick_ns: u64,
    /// The time that becomes 0 in the file.
    begin_ns: u64,
    /// Index of each name in `texts`, by function and whether it was inlined.
    names: HashMap<(FunctionId, bool), u32>,
    /// Each name with its module, as JSON.
    texts: Vec<String>,
    /// The names on each stack, outermost first, by stack and ending.
    paths: HashMap<(u32, u8), Vec<u32>>,
    /// Whether no event was written yet: then no comma precedes the next one.
    is_first: bool,
}

/// A period in which a thread had one stack.
struct Stretch {
    start_ns: u64,
    end_ns: u64,
}

impl<W: Write> Writer<'_, W> {
    /// Writes the events of one thread; the samples are in the order of time.
    fn add_thread(&mut self, samples: &[Timed]) -> Result<(), FormatError> {
        let people = &self.selection.view().tables.processes;
        let thread = people.thread(samples[0].trace.thread);
        let process = people.get(thread.process);
        let (comm, pid) = process.map_or((&thread.comm, thread.tid), |p| (&p.comm, p.pid));
        let who = format!("\"pid\":{pid},\"tid\":{}", thread.tid);
        for (what, name) in [("process_name", comm), ("thread_name", &thread.comm)] {
            let name = Text(name);
            let event =
                format!("\"ph\":\"M\",{who},\"name\":\"{what}\",\"args\":{{\"name\":{name}}}");
            self.event(&event)?;
        }
        let mut open: Vec<u32> = Vec::new();
        let mut last_end = 0;
        for (at, sample) in samples.iter().enumerate() {
            let stretch = self.stretch(sample, samples.get(at + 1), last_end);
            let path = self.path(sample);
            // Nothing continues over a gap: the thread was not on a CPU in between.
            let is_gap = stretch.start_ns > last_end;
            let shared = if is_gap {
                0
            } else {
                open.iter().zip(&path).take_while(|(a, b)| a == b).count()
            };
            let closed = last_end.min(stretch.start_ns);
            self.close(&mut open, shared, closed, &who)?;
            for name in &path[shared..] {
                let (time, text) = (self.time(stretch.start_ns), &self.texts[*name as usize]);
                let event = format!("\"ph\":\"B\",{who},\"ts\":{time},{text}");
                self.event(&event)?;
                open.push(*name);
            }
            last_end = stretch.end_ns;
        }
        self.close(&mut open, 0, last_end, &who)
    }

    /// Writes the counts of probes as counters of a separate process: for each second the number of
    /// calls, the median of their times, and a high quantile. Single calls are not recorded.
    fn add_probes(&mut self) -> Result<(), FormatError> {
        let log = self.selection.view().probes();
        if log.is_empty() {
            return Ok(());
        }
        let who = "\"pid\":0,\"tid\":0";
        self.event(&format!(
            "\"ph\":\"M\",{who},\"name\":\"process_name\",\"args\":{{\"name\":\"probes\"}}"
        ))?;
        for probe in log.probes() {
            let calls = format!("calls/s of {}", probe.about().name);
            let time = format!("time of {}", probe.about().name);
            let (calls, time) = (Text(&calls), Text(&time));
            let seconds = probe.seconds(self.selection.query().window);
            for (second, tally) in &seconds {
                let at = self.time(second.saturating_mul(SECOND_NS));
                let head = format!("\"ph\":\"C\",{who},\"ts\":{at}");
                let args = format!("{{\"calls\":{}}}", tally.calls);
                self.event(&format!("{head},\"name\":{calls},\"args\":{args}"))?;
                if let (Some(p50), Some(p99)) = (tally.quantile_ns(0.5), tally.quantile_ns(0.99)) {
                    let [p50, p99] = [p50, p99].map(|ns| ns as f64 / 1e3);
                    let args = format!("{{\"p50_us\":{p50},\"p99_us\":{p99}}}");
                    self.event(&format!("{head},\"name\":{time},\"args\":{args}"))?;
                }
                // A counter keeps its value until the next one is written.
                if !seconds.contains_key(&(second + 1)) {
                    let at = self.time((second + 1).saturating_mul(SECOND_NS));
                    self.event(&format!(
                        "\"ph\":\"C\",{who},\"ts\":{at},\"name\":{calls},\"args\":{{\"calls\":0}}"
                    ))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the stretch of a sample, which lasts to the next one if that comes when it is due.
    fn stretch(&self, sample: &Timed, next: Option<&Timed>, last_end: u64) -> Stretch {
        let start_ns = sample.time_ns.max(last_end);
        let length = self
            .tick_ns
            .saturating_mul(sample.trace.samples)
            .min(1 << 60);
        let due = start_ns.saturating_add(length);
        // Half a tick and one stamp late still counts as due, as ticks are not exactly even and
        // sample times are rounded to stamps.
        let latest = due
            .saturating_add(self.tick_ns / 2)
            .saturating_add(STAMP_NS);
        let end_ns = match next {
            Some(next) if sample.trace.samples == 1 && next.time_ns <= latest => {
                next.time_ns.max(start_ns)
            }
            _ => due,
        };
        Stretch { start_ns, end_ns }
    }

    /// Ends all functions except the outermost `keep`, innermost first.
    fn close(
        &mut self,
        open: &mut Vec<u32>,
        keep: usize,
        at_ns: u64,
        who: &str,
    ) -> Result<(), FormatError> {
        while open.len() > keep {
            let name = open.pop().unwrap_or_default() as usize;
            let (time, text) = (self.time(at_ns), &self.texts[name]);
            // Readers use the names to order ends and begins at the same time.
            let event = format!("\"ph\":\"E\",{who},\"ts\":{time},{text}");
            self.event(&event)?;
        }
        Ok(())
    }

    /// Formats a time in microseconds since the beginning.
    fn time(&self, ns: u64) -> String {
        let ns = ns.saturating_sub(self.begin_ns);
        format!("{}.{:03}", ns / 1000, ns % 1000)
    }

    /// Returns the stack of a sample as names, outermost first.
    fn path(&mut self, sample: &Timed) -> Vec<u32> {
        let key = (sample.trace.stack.0, sample.trace.ending as u8);
        if let Some(known) = self.paths.get(&key) {
            return known.clone();
        }
        let steps = self.selection.functions_of(&sample.trace);
        let path: Vec<u32> = steps.into_iter().map(|step| self.name(step)).collect();
        self.paths.insert(key, path.clone());
        path
    }

    /// Returns the number of a function's name, which is created when it is first met.
    fn name(&mut self, step: (FunctionId, bool)) -> u32 {
        let next = self.texts.len() as u32;
        let number = *self.names.entry(step).or_insert(next);
        if number == next {
            let function = self.selection.view().function(step.0);
            let module = match function.role {
                Role::Function if step.1 => format!("{},inlined", function.module),
                Role::Function => function.module.to_string(),
                _ => "missing".into(),
            };
            let (name, module) = (Text(&function.name), Text(&module));
            self.texts.push(format!("\"name\":{name},\"cat\":{module}"));
        }
        number
    }

    /// Writes one event, given as JSON without its braces.
    fn event(&mut self, event: &str) -> Result<(), FormatError> {
        let comma = if self.is_first { "" } else { "," };
        self.is_first = false;
        write!(self.out, "{comma}\n{{{event}}}")?;
        Ok(())
    }
}
