//! Reads a document into a store: each of its profiles becomes a thread.
//!
//! `sampled` profiles have stacks with weights, `evented` ones say when a function was entered and
//! left. The latter become samples as well: between two events, the stack consists of the open
//! functions, and the time between the events is its weight. Neither kind stores the time of day,
//! so all samples are at time 0.

use crate::formats::import::{Import, Link, kind_of, plain_ending};
use crate::formats::json::{Column, List, Times};
use crate::formats::wire::clean;
use crate::formats::{FormatError, json};
use crate::{
    Ending, Frame, FrameKind, Info, Limits, Metric, NewSample, ProcessId, Rates, STACK_DEPTH_MAX,
    Store,
};
use serde::Deserialize;

/// Maximum number of frames of all samples together: a small file can stand for very many.
const STEPS_MAX: u64 = 1 << 31;

/// The part of `https://www.speedscope.app/file-format-schema.json` that is read; other keys are
/// ignored.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    exporter: Option<String>,
    shared: Shared,
    profiles: List<Profile, 65_536>,
}

#[derive(Deserialize)]
struct Shared {
    frames: List<Told, { 4 << 20 }>,
}

/// A function, with a file and a line if they are known. Profiles refer to it by its number.
#[derive(Deserialize)]
struct Told {
    name: String,
    file: Option<String>,
    line: Option<f64>,
}

/// One thread, or whatever the writer of the file distinguishes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Profile {
    /// `sampled` or `evented`.
    r#type: String,
    name: String,
    /// Unit of weights and times: `none`, `milliseconds`, `bytes` and others.
    unit: String,
    start_value: f64,
    /// Stacks of a `sampled` profile, each outermost first.
    samples: List<Column, { 16 << 20 }>,
    /// Weight of each sample; without weights each sample counts one.
    weights: Times,
    /// Events of an `evented` profile.
    events: List<Event, { 16 << 20 }>,
}

/// A function is opened (`O`) or closed (`C`) at a time, given in the profile's unit.
#[derive(Deserialize)]
struct Event {
    r#type: char,
    at: f64,
    frame: u32,
}

/// Reads a document that is completely in memory; the returned sentences say what was left out.
pub(in super::super) fn read(
    text: &[u8],
    limits: Limits,
) -> Result<(Store, Vec<String>), FormatError> {
    let document: Document = json::parse(text)?;
    let mut reader = Reader::new(&document, limits)?;
    for (number, profile) in (1..).zip(&document.profiles.0) {
        let name = if profile.name.is_empty() {
            "[unknown]"
        } else {
            &profile.name
        };
        let process = reader.import.process(number, name)?;
        match profile.r#type.as_str() {
            "sampled" => reader.add_sampled(profile, process)?,
            "evented" => reader.add_evented(profile, process)?,
            other => {
                let other = clean(other);
                return Err(damaged(&format!("a profile of the type \"{other}\"")));
            }
        }
    }
    let notes = match reader.negative {
        0 => Vec::new(),
        count => vec![format!(
            "{count} samples count below zero and were left out"
        )],
    };
    Ok((reader.import.finish(), notes))
}

fn damaged(what: &str) -> FormatError {
    FormatError::Damaged(what.into())
}

/// Factor from the file's unit to the store's.
#[derive(Debug, Clone, Copy)]
struct Scale(f64);

/// The state of reading one document, profile by profile.
struct Reader {
    import: Import,
    /// The meaning of each frame, by its number in the file.
    frames: Vec<Step>,
    /// Sampling rate, if the name of the exporter contains it; 0 if not: then times stay times.
    rate_hz: u32,
    /// Number of frames of all samples so far, limited by [`STEPS_MAX`].
    steps: u64,
    /// Number of samples with a negative weight.
    negative: u64,
}

/// The meaning of a function of the file on a stack. The last two stand for a missing part, as our
/// writer writes them.
#[derive(Debug, Clone, Copy)]
enum Step {
    Frame(Frame),
    Stopped(Ending),
    NoStack,
}

impl Reader {
    /// Reads what all profiles have in common. A document with several units is refused, as a store
    /// has one.
    fn new(document: &Document, limits: Limits) -> Result<Self, FormatError> {
        let mut import = Import::new(limits);
        let exporter = document.exporter.as_deref().unwrap_or_default();
        let rate_hz = rate_of(exporter).unwrap_or(0);
        let unit = document.profiles.0.first().map_or("none", |p| &p.unit);
        if document
            .profiles
            .0
            .iter()
            .any(|profile| profile.unit != unit)
        {
            return Err(FormatError::Unsupported(
                "its profiles are in several units, which do not add up",
            ));
        }
        import.store.begin(0);
        import.store.set_info(Info {
            metric: metric(unit, rate_hz),
            rates: Rates::always(rate_hz),
            scope: clean(document.name.as_deref().unwrap_or_default()),
            ..Info::default()
        });
        let mut frames = Vec::new();
        for told in &document.shared.frames.0 {
            frames.push(step(told, &mut import)?);
        }
        Ok(Self {
            import,
            frames,
            rate_hz,
            steps: 0,
            negative: 0,
        })
    }

    /// Returns the factor from `unit` to whole numbers: milliseconds of our own writer become
    /// samples again, by their rate; other times become nanoseconds.
    fn scale(&self, unit: &str) -> Scale {
        let per_second = f64::from(self.rate_hz);
        Scale(match unit {
            "milliseconds" if self.rate_hz > 0 => per_second / 1e3,
            "seconds" => 1e9,
            "milliseconds" => 1e6,
            "microseconds" => 1e3,
            _ => 1.0,
        })
    }

    /// Adds the samples of a `sampled` profile.
    fn add_sampled(&mut self, profile: &Profile, process: ProcessId) -> Result<(), FormatError> {
        let comm = self.import.comm(&profile.name)?;
        let scale = self.scale(&profile.unit);
        for (at, sample) in profile.samples.0.iter().enumerate() {
            let weight = match profile.weights.len() {
                0 => 1.0,
                _ => profile.weights.get(at).unwrap_or(0.0),
            };
            let stack = (0..sample.len()).map(|at| sample.get(at).unwrap_or(usize::MAX));
            let stack: Vec<usize> = stack.collect();
            self.add(process, &comm, &stack, weight, scale)?;
        }
        Ok(())
    }

    /// Adds a sample for each pair of neighbouring events: the functions that were open, and for
    /// how long. An event that is earlier than the one before changes the stack and takes no time.
    fn add_evented(&mut self, profile: &Profile, process: ProcessId) -> Result<(), FormatError> {
        let comm = self.import.comm(&profile.name)?;
        let scale = self.scale(&profile.unit);
        let mut stack: Vec<usize> = Vec::new();
        let mut last = profile.start_value;
        for event in &profile.events.0 {
            if event.at > last {
                if !stack.is_empty() {
                    self.add(process, &comm, &stack, event.at - last, scale)?;
                }
                last = event.at;
            }
            match event.r#type {
                'O' if stack.len() < STACK_DEPTH_MAX => stack.push(event.frame as usize),
                'O' => return Err(FormatError::TooLarge("the depth of its stacks")),
                'C' if stack.last() == Some(&(event.frame as usize)) => _ = stack.pop(),
                'C' => return Err(damaged("a frame is closed that is not the innermost")),
                _ => return Err(damaged("an event that neither opens nor closes")),
            }
        }
        Ok(())
    }

    /// Adds one sample; its stack is given outermost first.
    fn add(
        &mut self,
        process: ProcessId,
        comm: &str,
        stack: &[usize],
        weight: f64,
        scale: Scale,
    ) -> Result<(), FormatError> {
        self.steps += stack.len() as u64;
        if self.steps > STEPS_MAX {
            return Err(FormatError::TooLarge("its stacks"));
        }
        if weight < 0.0 {
            self.negative += 1;
            return Ok(());
        }
        let mut frames = Vec::with_capacity(stack.len());
        let mut ending = None;
        for at in stack.iter().rev() {
            let step = self.frames.get(*at);
            match step.ok_or_else(|| damaged("a frame is used that it does not have"))? {
                Step::Frame(frame) => frames.push(*frame),
                Step::Stopped(cause) => ending = Some(*cause),
                Step::NoStack => {}
            }
        }
        let in_kernel = frames
            .first()
            .is_some_and(|frame| frame.kind == FrameKind::Kernel);
        self.import.sample(NewSample {
            time_ns: 0,
            cpu: 0,
            process,
            tid: process.0,
            comm,
            frames: &frames,
            kernel_frames: usize::from(in_kernel),
            ending: ending.unwrap_or(plain_ending(&frames)),
            weight: (weight * scale.0).round() as u64,
        })
    }
}

/// Returns the rate in an exporter's name as we write it: `proftop 0.1.0 at 99 Hz`.
fn rate_of(exporter: &str) -> Option<u32> {
    let (_, rate) = exporter.strip_prefix("proftop ")?.rsplit_once(" at ")?;
    rate.strip_suffix(" Hz")?.parse().ok()
}

/// Returns what the values count, after they were scaled by [`Reader::scale`].
fn metric(unit: &str, rate_hz: u32) -> Metric {
    let (name, unit) = match unit {
        "milliseconds" if rate_hz > 0 => return Metric::default(),
        "seconds" | "milliseconds" | "microseconds" | "nanoseconds" => ("time", "nanoseconds"),
        "bytes" => ("alloc_space", "bytes"),
        _ => return Metric::default(),
    };
    Metric {
        name: name.into(),
        unit: unit.into(),
    }
}

/// Converts a function to a frame. There are no addresses, so name and file identify a function.
fn step(told: &Told, import: &mut Import) -> Result<Step, FormatError> {
    if told.name == "[no stack]" {
        return Ok(Step::NoStack);
    }
    let cause = told
        .name
        .strip_prefix("[stopped: ")
        .and_then(|rest| rest.strip_suffix(']'));
    let ending = |cause| {
        Ending::ALL
            .into_iter()
            .find(|ending| ending.label() == cause)
    };
    if let Some(ending) = cause.and_then(ending) {
        return Ok(Step::Stopped(ending));
    }
    let file = told.file.as_deref().unwrap_or_default();
    let line = told.line.unwrap_or(0.0).clamp(0.0, f64::from(u32::MAX)) as u32;
    // Without a line, the file is the binary, as samplers of native code write it.
    let (module, file) = match line {
        0 => (file, ""),
        _ => ("", file),
    };
    let link = Link {
        function: import.text(&told.name)?,
        file: import.text(file)?,
        line,
    };
    let id = import.module(module, &[])?;
    let key = import.text(&format!("{}\u{0}{file}", told.name))?;
    let frame = import.frame(id, None, kind_of(module), Some(&key))?;
    import.set_chain(frame, vec![link]);
    Ok(Step::Frame(frame))
}
