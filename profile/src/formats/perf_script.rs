//! *perf script*: the samples in the text that `perf script` prints: a head (thread, time, event),
//! then one line for each frame, innermost first.
//!
//! A thread's name may contain anything, so heads are recognized by what follows the name. Inlined
//! functions say `(inlined)` where others name their file, and come before the function that
//! contains them.

use super::FormatError;
use super::import::{Import, Link, kind_of, plain_ending};
use crate::{
    Frame, FrameKind, Info, Limits, Metric, NewSample, NoName, Rates, STACK_DEPTH_MAX, Store,
};
use regex::Regex;
use std::io::BufRead;
use std::sync::LazyLock;

/// Longest line that is read as one, in bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Matches the head of a sample; parts in brackets may be missing:
///
/// ```text
/// comm  pid[/tid]  [CPU]  seconds.fraction:  [period]  [event: [first frame]]
/// ```
///
/// A name may hold spaces, digits and brackets; the shortest one that makes the rest
/// fit is taken.
static HEAD: LazyLock<Regex> = LazyLock::new(|| {
    let head = r"^\s*(?<comm>\S.*?)\s+(?<pid>-?\d+)(?:/(?<tid>-?\d+))?\s+(?:\[(?<cpu>\d+)\]\s+)?(?<s>\d+)\.(?<f>\d{1,9}):\s+(?:(?<period>\d+)\s+)?(?:(?<event>\S+):(?:\s+(?<rest>.*)|))?$";
    Regex::new(head).expect("it is one")
});

/// Matches the line under a frame that names its source location, `file:line`.
static SOURCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s+(?<file>\S.*):(?<line>\d+)$").expect("it is one"));

/// Whether a text begins like the output of `perf script`.
pub(super) fn is_start(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| HEAD.is_match(line))
}

/// Reads a text to its end; the returned sentences say what was left out.
pub(super) fn read(
    mut input: impl BufRead,
    limits: Limits,
) -> Result<(Store, Vec<String>), FormatError> {
    let mut reader = Reader {
        import: Import::new(limits),
        event: None,
        rate_hz: 0,
        sample: None,
        other_events: 0,
        lines: 0,
        not_understood: 0,
        has_pids: false,
    };
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let mut limited = std::io::Read::take(&mut input, LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&bytes);
        reader.add_line(line.trim_end())?;
    }
    reader.finish()
}

/// The state of reading a text, line by line.
struct Reader {
    import: Import,
    /// The first event of the text; samples of other events are not counted.
    event: Option<String>,
    /// Samples per second, if the event is a clock, from the period of its last sample; 0 if
    /// unknown.
    rate_hz: u32,
    /// The sample whose frames are being read.
    sample: Option<Sample>,
    /// Samples of other events than the first.
    other_events: u64,
    lines: u64,
    /// Lines that are neither head nor frame, where one should be.
    not_understood: u64,
    /// Whether any head has a process and not only a thread.
    has_pids: bool,
}

/// A sample whose head was read.
struct Sample {
    comm: String,
    pid: u32,
    tid: u32,
    cpu: u16,
    time_ns: u64,
    weight: u64,
    frames: Vec<Frame>,
    /// Inlined functions of the next frame, innermost first.
    inlined: Vec<Link>,
    /// The frame that was read last, kept because a line with its source may follow.
    last: Option<(Frame, Vec<Link>)>,
}

impl Reader {
    /// Handles a line, by the first rule that fits:
    ///
    /// 1. empty: the sample ends
    /// 2. `#`: a comment
    /// 3. indented, within a sample: a frame, or the source of the frame before
    /// 4. a head: the sample before ends, if no empty line did, and another begins
    /// 5. anything else is counted as not understood
    fn add_line(&mut self, line: &str) -> Result<(), FormatError> {
        self.lines += 1;
        if line.is_empty() {
            return self.end_sample();
        }
        if line.starts_with('#') {
            return Ok(());
        }
        let is_indented = line.starts_with([' ', '\t']);
        if is_indented
            && self.sample.is_some()
            && (self.add_frame(line)? || self.add_source(line)?)
        {
            return Ok(());
        }
        match HEAD.captures(line) {
            Some(head) => {
                self.end_sample()?;
                self.begin_sample(&head)
            }
            // Not a frame: registers, raw data or events of other kinds.
            None => {
                self.not_understood += u64::from(self.sample.is_some() || self.event.is_none());
                Ok(())
            }
        }
    }

    /// Begins a sample, if its event is the first one of the text. Without a call chain, its one
    /// frame is on the same line behind the event.
    fn begin_sample(&mut self, head: &regex::Captures<'_>) -> Result<(), FormatError> {
        let number = |name: &str| head.name(name).and_then(|text| text.as_str().parse().ok());
        let event = head.name("event").map_or("", |event| event.as_str());
        // Printed with `--show-mmap-events` and similar options: these are not samples.
        if event.starts_with("PERF_RECORD_") {
            return Ok(());
        }
        let first = self.event.get_or_insert_with(|| event.to_string());
        if first != event {
            self.other_events += 1;
            return Ok(());
        }
        let is_clock = is_clock(event);
        let period: Option<u64> = head
            .name("period")
            .and_then(|text| text.as_str().parse().ok());
        if let Some(period @ 1..) = period
            && is_clock
        {
            self.rate_hz = u32::try_from((1_000_000_000 + period / 2) / period).unwrap_or(0);
        }
        let digits = &head["f"];
        let fraction: u64 = digits.parse().unwrap_or(0);
        // The fraction has microseconds as a rule, nanoseconds with `--ns`.
        let fraction = fraction * 10u64.pow(9 - digits.len() as u32);
        let seconds: u64 = head["s"].parse().unwrap_or(0);
        let pid = number("pid").unwrap_or(0);
        self.has_pids |= head.name("tid").is_some();
        self.sample = Some(Sample {
            comm: head["comm"].to_string(),
            pid,
            tid: number("tid").unwrap_or(pid),
            cpu: number("cpu").unwrap_or(0).min(u32::from(u16::MAX)) as u16,
            time_ns: seconds.min(1 << 33) * 1_000_000_000 + fraction,
            weight: if is_clock { 1 } else { period.unwrap_or(1) },
            frames: Vec::new(),
            inlined: Vec::new(),
            last: None,
        });
        if let Some(rest) = head.name("rest") {
            self.add_frame(rest.as_str())?;
        }
        Ok(())
    }

    /// Reads the line of a frame, such as `  ffffffff81000000 name+0x10 (module)`.
    ///
    /// Returns `false` if the line is not a frame. The offset behind the name is dropped, as the
    /// address is more exact. A frame is added to `import` only when the next line is known,
    /// because a line with its source may follow.
    fn add_frame(&mut self, line: &str) -> Result<bool, FormatError> {
        let Some(sample) = &mut self.sample else {
            return Ok(false);
        };
        let line = line.trim();
        let Some((address, rest)) = line.split_once(char::is_whitespace) else {
            return Ok(false);
        };
        let Ok(address) = u64::from_str_radix(address, 16) else {
            return Ok(false);
        };
        let Some((symbol, module)) = split_module(rest.trim()) else {
            return Ok(false);
        };
        let name = match symbol.rsplit_once("+0x") {
            Some((name, offset)) if u64::from_str_radix(offset, 16).is_ok() => name,
            _ => symbol,
        };
        let link = Link {
            function: self.import.text(name)?,
            file: self.import.text("")?,
            line: 0,
        };
        if module == "inlined" {
            sample.inlined.push(link);
            return Ok(true);
        }
        let is_unknown = name == "[unknown]" || name.is_empty();
        // The upper half of the address space belongs to the kernel.
        let kind = match kind_of(module) {
            FrameKind::User if module == "[unknown]" && address >> 63 == 1 => FrameKind::Kernel,
            kind => kind,
        };
        let id = self.import.module(module, &[])?;
        let known = (!is_unknown).then_some(&link.function);
        let frame = self.import.frame(id, Some(address), kind, known)?;
        let mut chain = std::mem::take(&mut sample.inlined);
        if let Some((before, chain)) = sample.last.take() {
            self.import.set_chain(before, chain);
        }
        if is_unknown {
            self.import.tell_unnamed(frame, NoName::NotTold);
        } else {
            chain.push(link);
            sample.last = Some((frame, chain));
        }
        if sample.frames.len() <= STACK_DEPTH_MAX {
            sample.frames.push(frame);
        }
        Ok(true)
    }

    /// Reads the source location that `-F +srcline` prints under a frame.
    fn add_source(&mut self, line: &str) -> Result<bool, FormatError> {
        let Some(found) = SOURCE.captures(line) else {
            return Ok(false);
        };
        let file = self.import.text(&found["file"])?;
        let line = found["line"].parse().unwrap_or(0);
        let Some(sample) = &mut self.sample else {
            return Ok(false);
        };
        let told = sample
            .inlined
            .last_mut()
            .or(sample.last.as_mut().and_then(|(_, chain)| chain.last_mut()));
        if let Some(link) = told {
            (link.file, link.line) = (file, line);
        }
        Ok(true)
    }

    /// Adds the sample that was being read to the store.
    fn end_sample(&mut self) -> Result<(), FormatError> {
        let Some(sample) = self.sample.take() else {
            return Ok(());
        };
        if let Some((frame, chain)) = sample.last {
            self.import.set_chain(frame, chain);
        }
        let process = self.import.process(sample.pid, &sample.comm)?;
        let comm = self.import.comm(&sample.comm)?;
        let in_kernel = sample
            .frames
            .first()
            .is_some_and(|f| f.kind == FrameKind::Kernel);
        self.import.sample(NewSample {
            time_ns: sample.time_ns,
            cpu: sample.cpu,
            process,
            tid: sample.tid,
            comm: &comm,
            frames: &sample.frames,
            kernel_frames: usize::from(in_kernel),
            ending: plain_ending(&sample.frames),
            weight: sample.weight,
        })
    }

    /// Ends the last sample. Returns an error if the text has none.
    fn finish(mut self) -> Result<(Store, Vec<String>), FormatError> {
        self.end_sample()?;
        let Some(event) = self.event else {
            return Err(FormatError::Unknown);
        };
        let metric = if is_clock(&event) {
            Metric::default()
        } else {
            Metric {
                name: super::wire::clean(&event),
                unit: "events".into(),
            }
        };
        self.import.store.set_info(Info {
            metric,
            rates: Rates::always(self.rate_hz),
            ..Info::default()
        });
        let mut notes = Vec::new();
        if self.other_events > 0 {
            let event = super::wire::clean(&event);
            let count = self.other_events;
            notes.push(format!(
                "{count} samples are of other events than {event} and were left out"
            ));
        }
        if self.not_understood > 0 {
            let count = self.not_understood;
            notes.push(format!("{count} lines were not understood"));
        }
        if !self.has_pids {
            notes.push("the text has no process numbers: threads are shown as processes (perf script -F +pid)".into());
        }
        Ok((self.import.finish(), notes))
    }
}

/// Whether the event is a clock, so that each sample is one tick.
pub(super) fn is_clock(event: &str) -> bool {
    let event = event.split([':', '/']).next().unwrap_or_default();
    matches!(event, "" | "cpu-clock" | "task-clock")
}

/// Splits off the last text in parentheses, which may contain parentheses itself: `(/tmp/x
/// (deleted))`.
fn split_module(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_suffix(')')?;
    let mut open = 1;
    for (at, c) in inside.char_indices().rev() {
        match c {
            ')' => open += 1,
            '(' => open -= 1,
            _ => {}
        }
        if open == 0 {
            let module = &inside[at + 1..];
            let module = module.strip_suffix(" (deleted)").unwrap_or(module);
            return Some((inside[..at].trim_end(), module));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_found_behind_any_name() {
        for (line, comm, pid, event) in [
            (
                "my [odd] prog 22010 25934.314797:    1001001 cpu-clock: ",
                "my [odd] prog",
                "22010",
                "cpu-clock",
            ),
            (
                "swapper     0/0     [003] 1.5: 1 cycles:u:",
                "swapper",
                "0",
                "cycles:u",
            ),
            (
                "kworker/0:1-ev 77 [000] 12.000001: sched:sched_switch: prev=x",
                "kworker/0:1-ev",
                "77",
                "sched:sched_switch",
            ),
            (
                "a 1 2 3 12.5: cpu_core/cycles/P:",
                "a 1 2",
                "3",
                "cpu_core/cycles/P",
            ),
        ] {
            let head = HEAD.captures(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(
                (&head["comm"], &head["pid"], &head["event"]),
                (comm, pid, event)
            );
        }
        assert!(!is_start("main;f;g 12\n"));
    }

    #[test]
    fn modules_are_what_is_last_in_parentheses() {
        let split = |text| split_module(text).unwrap();
        assert_eq!(split("f(int) (/x/y)"), ("f(int)", "/x/y"));
        assert_eq!(
            split("operator()() const+0x1 (/x (deleted))"),
            ("operator()() const+0x1", "/x")
        );
        assert_eq!(split_module("no module"), None);
    }
}
