//! Reads a document into a store.
//!
//! The document's times are in ms, with fractions, relative to a start that may lie after the first
//! sample. In the store they are in ns relative to the earlier of the two.

use super::layout::{Profile, Samples, Thread};
use super::tables::{Stack, Tables};
use crate::formats::import::{Import, plain_ending};
use crate::formats::{FormatError, json};
use crate::{FrameKind, Host, Info, Limits, Metric, NewSample, Rates, Store};
/// Latest accepted time in ms: a year, longer than any real recording.
const TIME_MAX: f64 = 366.0 * 86_400_000.0;

/// Maximum number of frames of all samples together: a small file can stand for very many.
const STEPS_MAX: u64 = 1 << 31;

/// Reads a document that is completely in memory. The returned sentences say what was left out.
pub(in super::super) fn read(
    text: &[u8],
    limits: Limits,
) -> Result<(Store, Vec<String>), FormatError> {
    let profile: Profile = json::parse(text)?;
    if profile.meta.preprocessed_profile_version.is_none() {
        return Err(FormatError::Unsupported(
            "it is as Firefox itself writes it: open it at profiler.firefox.com and save it there",
        ));
    }
    let mut reader = Reader {
        import: Import::new(limits),
        categories: categories(&profile),
        idle: 0,
        negative: 0,
        steps: 0,
        first: first_time(&profile),
    };
    reader.set_info(&profile);
    for thread in &profile.threads.0 {
        reader.add_thread(thread, &profile)?;
    }
    let mut notes = Vec::new();
    for (count, what) in [
        (reader.idle, "samples without a stack were left out: idle"),
        (
            reader.negative,
            "samples count below zero and were left out",
        ),
    ] {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    }
    Ok((reader.import.finish(), notes))
}

/// The state of reading one document, thread by thread.
struct Reader {
    import: Import,
    /// The kind of code of each category, by its number.
    categories: Vec<FrameKind>,
    /// Time of the first sample in ms.
    first: f64,
    /// Number of samples without a stack.
    idle: u64,
    /// Number of samples with a negative weight, such as freed memory.
    negative: u64,
    /// Number of frames of all samples so far, limited by [`STEPS_MAX`].
    steps: u64,
}

/// Returns the kind of code of each category, recognized by its name; an unknown name means user
/// code.
fn categories(profile: &Profile) -> Vec<FrameKind> {
    let kind = |name: &str| match name {
        "Kernel" => FrameKind::Kernel,
        "JIT" | "JavaScript" => FrameKind::Jit,
        "Python" => FrameKind::Python,
        _ => FrameKind::User,
    };
    let names = profile.meta.categories.0.iter();
    names.map(|category| kind(&category.name)).collect()
}

/// Returns the time of each sample in ms. Documents have either times or differences between
/// neighbouring samples.
fn times(samples: &Samples) -> impl Iterator<Item = f64> {
    let mut sum = 0.0;
    (0..samples.stack.len()).map(move |at| match samples.time.len() {
        0 => {
            sum += samples.time_deltas.get(at).unwrap_or(0.0);
            sum
        }
        _ => samples.time.get(at).unwrap_or(0.0),
    })
}

/// The time that becomes 0 in the store: the start, or the first sample if that is earlier.
fn first_time(profile: &Profile) -> f64 {
    let all = profile
        .threads
        .0
        .iter()
        .flat_map(|thread| times(&thread.samples));
    all.fold(0.0, f64::min).max(-TIME_MAX)
}

impl Reader {
    /// Sets what is counted, from the weight type of the first thread that has one.
    fn set_info(&mut self, profile: &Profile) {
        let meta = &profile.meta;
        // Accepts rates from one sample in 100 s up to 10 MHz; anything else is a mistake of the
        // writer.
        let hz = match meta.interval {
            ms @ 0.0001..=100_000.0 => (1000.0 / ms).round() as u32,
            _ => 0,
        };
        let weights = profile
            .threads
            .0
            .iter()
            .find_map(|thread| thread.samples.weight_type.as_deref());
        let metric = match weights {
            Some("bytes") => Metric {
                name: "alloc_space".into(),
                unit: "bytes".into(),
            },
            Some("tracing-ms") => Metric {
                name: "time".into(),
                unit: "microseconds".into(),
            },
            _ => Metric::default(),
        };
        // If weights are times, a unit of weight is not a tick of the clock.
        let hz = if metric.counts_samples() { hz } else { 0 };
        let epoch = meta.start_time + self.first;
        let product = super::super::wire::clean(&meta.product);
        self.import.store.begin(0);
        self.import.store.set_info(Info {
            metric,
            host: Host {
                kernel: meta
                    .oscpu
                    .as_deref()
                    .map(super::super::wire::clean)
                    .unwrap_or_default(),
                cpus: meta.logical_cpus.unwrap_or(0),
                ..Host::default()
            },
            rates: Rates::always(hz),
            scope: product,
            epoch_unix_ms: epoch.clamp(0.0, 1e15) as i64,
            ..Info::default()
        });
    }

    /// Adds the samples of one thread.
    fn add_thread(&mut self, thread: &Thread, profile: &Profile) -> Result<(), FormatError> {
        let samples = &thread.samples;
        if samples.stack.len() == 0 {
            return Ok(());
        }
        let categories = std::mem::take(&mut self.categories);
        let mut tables = Tables::of(thread, &profile.shared, &profile.libs.0, &categories)?;
        let process = thread
            .process_name
            .as_deref()
            .filter(|name| !name.is_empty());
        let process = self
            .import
            .process(thread.pid.number(), process.unwrap_or(&thread.name))?;
        let comm = self.import.comm(&thread.name)?;
        // Milliseconds with fractions become whole microseconds.
        let scale = match samples.weight_type.as_deref() {
            Some("tracing-ms") => 1000.0,
            _ => 1.0,
        };
        let mut last: Option<(usize, Stack)> = None;
        for (at, time) in times(samples).enumerate() {
            let Some(number) = samples.stack.get(at) else {
                self.idle += 1;
                continue;
            };
            let weight = samples.weight.get(at).unwrap_or(1.0) * scale;
            if weight < 0.0 {
                self.negative += 1;
                continue;
            }
            // Neighbouring samples often have the same stack.
            let stack = match last.take() {
                Some((before, stack)) if before == number => stack,
                _ => tables.stack(number, &mut self.import)?,
            };
            self.steps += stack.frames.len() as u64;
            if self.steps > STEPS_MAX {
                return Err(FormatError::TooLarge("its stacks"));
            }
            let in_kernel = stack
                .frames
                .first()
                .is_some_and(|f| f.kind == FrameKind::Kernel);
            self.import.sample(NewSample {
                time_ns: ((time - self.first).clamp(0.0, TIME_MAX) * 1e6) as u64,
                cpu: 0,
                process,
                tid: thread.tid.number(),
                comm: &comm,
                frames: &stack.frames,
                kernel_frames: usize::from(in_kernel),
                ending: stack.ending.unwrap_or(plain_ending(&stack.frames)),
                weight: weight.round() as u64,
            })?;
            last = Some((number, stack));
        }
        self.categories = categories;
        Ok(())
    }
}
