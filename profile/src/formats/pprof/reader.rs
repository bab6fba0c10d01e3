//! Reads a message into a store.
//!
//! All samples get one time, the last moment of the duration, as pprof does not store the times of
//! samples.

use super::field;
use super::labels::{Keys, Labels};
use super::meaning::{Meaning, meaning};
use super::proto::{Fields, Value};
use super::tables::{Line, Location, Mapping, Tables, damaged, kind_of, room};
use crate::few;
use crate::formats::{FormatError, Metered};
use crate::{
    Ending, Frame, FrameKind, Limits, ModuleId, NewSample, ProcessId, STACK_DEPTH_MAX, Store,
};
use flate2::bufread::MultiGzDecoder;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

/// Limit of the unpacked size: a hundred times an hour of a busy machine.
const RAW_BYTES_MAX: u64 = 512 << 20;

/// Upper limit of the weight of all samples together: up to here sums are exact as `f64`.
const WEIGHT_MAX: u64 = 1 << 53;

/// Longest accepted duration: a year, longer than any real recording.
const DURATION_NS_MAX: u64 = 366 * 86_400 * 1_000_000_000;

/// The module of locations that are in no mapping.
const NO_MAPPING: ModuleId = ModuleId(0);

/// Reads a whole file; the returned sentences say what was left out.
pub fn read(input: impl Read, limits: Limits) -> Result<(Store, Vec<String>), FormatError> {
    let read = read_metric(input, limits, None)?;
    Ok((read.store, read.notes))
}

/// Reads as [`read`] does, by the wanted metric. The store has the stacks of all samples, whatever
/// they count, so that they have the same numbers whichever metric is read.
///
/// The message is read twice: first the definitions, as they may come after the samples that use
/// them, then the samples. Names are set last, when the store has their frames.
pub fn read_metric(
    input: impl Read,
    limits: Limits,
    wanted: Option<&str>,
) -> Result<Metered, FormatError> {
    let message = unpack(BufReader::new(input), RAW_BYTES_MAX)?;
    let mut reader = Reader::new(&message, limits, wanted)?;
    reader.add_modules()?;
    reader.add_locations()?;
    let mut fields = Fields::new(&message);
    while let Some((field, value)) = fields.next()? {
        if field == field::profile::SAMPLE {
            reader.add_sample(value)?;
        }
    }
    reader.add_names()?;
    let left_out = reader.left_out;
    let note = format!("{left_out} samples count below zero and were left out");
    let notes = (left_out > 0).then_some(note);
    Ok(Metered {
        store: reader.store,
        notes: notes.into_iter().collect(),
        metrics: reader.metrics,
    })
}

/// Unpacks a message of at most `bytes_max` bytes. gzip may consist of several members, one after
/// the other, as in concatenated files.
fn unpack(mut input: impl BufRead, bytes_max: u64) -> Result<Vec<u8>, FormatError> {
    let mut message = Vec::new();
    // One byte more than is allowed, to notice if there is more.
    let limit = bytes_max + 1;
    if input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        let unpacked = MultiGzDecoder::new(input)
            .take(limit)
            .read_to_end(&mut message);
        unpacked.map_err(|_| damaged("it cannot be unpacked"))?;
    } else {
        input.take(limit).read_to_end(&mut message)?;
    }
    if message.len() as u64 > bytes_max {
        Err(FormatError::TooLarge("it unpacks to more than 512 MB"))
    } else {
        Ok(message)
    }
}

/// What a location stands for on a stack.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Frame(Frame),
    /// Written by proftop: why the walk did not reach the root.
    Stopped(Ending),
    /// Written by proftop: the sample has no stack.
    NoStack,
}

/// Reads one message into one store. Ids in the file are arbitrary numbers except 0, so everything
/// is found by maps.
pub(super) struct Reader<'a> {
    pub(super) tables: Tables<'a>,
    pub(super) store: Store,
    /// Index of the value of each sample that counts.
    value: usize,
    /// The names of all metrics of the file, for a user who asks for another.
    metrics: Vec<String>,
    /// The time that all samples get.
    time_ns: u64,
    /// Module, mapping and path of each mapping, by its id.
    modules: HashMap<u64, (ModuleId, Mapping, Arc<str>)>,
    /// What each location stands for, by its id.
    pub(super) steps: HashMap<u64, Step>,
    /// Processes by pid and number of the name: some samplers store only one of the two, and that
    /// one has to tell processes apart.
    processes: HashMap<(u32, u64), ProcessId>,
    /// Name of the recorded program, used for samples without labels.
    program: Arc<str>,
    /// Labels whose meaning was already looked up.
    keys: Keys,
    /// All weights so far.
    weight: u64,
    /// Number of samples with a negative value, as in differences of two profiles, which are left
    /// out.
    left_out: u64,
}

impl<'a> Reader<'a> {
    fn new(message: &'a [u8], limits: Limits, wanted: Option<&str>) -> Result<Self, FormatError> {
        let mut tables = Tables::read(message)?;
        let mut store = Store::new(limits);
        let Meaning {
            value,
            info,
            metrics,
        } = meaning(&mut tables, wanted)?;
        let duration = Some(tables.duration_ns).filter(|ns| *ns <= DURATION_NS_MAX);
        store.begin(0);
        store.set_info(info);
        Ok(Self {
            store,
            value,
            metrics,
            time_ns: duration.unwrap_or(0).saturating_sub(1),
            modules: HashMap::new(),
            steps: HashMap::new(),
            processes: HashMap::new(),
            program: "[unknown]".into(),
            keys: Keys::default(),
            weight: 0,
            left_out: 0,
            tables,
        })
    }

    /// Adds a module for each mapping; the first mapping is the program.
    fn add_modules(&mut self) -> Result<(), FormatError> {
        self.store.add_module(NO_MAPPING, "", "");
        let mut mappings: Vec<(u64, Mapping)> = self
            .tables
            .mappings
            .iter()
            .map(|(id, mapping)| (*id, *mapping))
            .collect();
        few::sort_by_key(&mut mappings, |(id, _)| *id);
        // Several mappings of one file are one module.
        let mut known: HashMap<(u64, u64), ModuleId> = HashMap::new();
        for (id, mapping) in mappings {
            let path = self.tables.text(mapping.file)?;
            let name = if path.starts_with('[') {
                &path[..]
            } else {
                path.rsplit('/').next().unwrap_or_default()
            };
            let next = ModuleId(known.len() as u32 + 1);
            let module = *known
                .entry((mapping.file, mapping.build_id))
                .or_insert(next);
            if module == next {
                self.store.add_module(module, name, &path);
                let build_id = hex(self.tables.bytes(mapping.build_id)?);
                self.store.set_build_id(module, &build_id);
                if module.0 == 1 && !name.is_empty() && !name.starts_with('[') {
                    self.program = name.into();
                }
            }
            self.modules.insert(id, (module, mapping, path));
        }
        Ok(())
    }

    /// Gives each location its own frame.
    fn add_locations(&mut self) -> Result<(), FormatError> {
        let mut taken: HashSet<Frame> = HashSet::new();
        let mut lines = Vec::new();
        for at in 0..self.tables.locations.len() {
            let (id, location) = self.tables.locations[at];
            let step = match self.honest_step(&location, &mut lines)? {
                Some(step) => step,
                None => {
                    let mut frame = self.frame(&location)?;
                    // Two locations may share an address and differ in their lines. A
                    // frame has one chain, so each needs a frame of its own: bit 62 and
                    // the number of the location make an address that no code has.
                    if location.address == 0 || !taken.insert(frame) {
                        // Interpreters and filters write functions without addresses.
                        frame.address = 1 << 62 | at as u64;
                        taken.insert(frame);
                    }
                    Step::Frame(frame)
                }
            };
            if id == 0 || self.steps.insert(id, step).is_some() {
                return Err(damaged("two locations have one number"));
            }
        }
        Ok(())
    }

    /// Converts a location to a place in a file: its address minus the start of the mapping plus
    /// the mapping's offset. Addresses outside of mappings stay as they are. The arithmetic wraps,
    /// as the numbers are not trusted; the result is then wrong but harmless.
    fn frame(&self, location: &Location<'_>) -> Result<Frame, FormatError> {
        let address = location.address;
        if location.mapping == 0 {
            return Ok(Frame {
                module: NO_MAPPING,
                address,
                kind: kind_of("", address),
            });
        }
        let known = self.modules.get(&location.mapping);
        let (module, mapping, path) =
            known.ok_or_else(|| damaged("a mapping is used that it does not have"))?;
        Ok(Frame {
            module: *module,
            address: address
                .wrapping_sub(mapping.start)
                .wrapping_add(mapping.offset),
            kind: kind_of(path, address),
        })
    }

    /// Recognizes a function that stands for a missing part of a stack; `None` for a place in code.
    fn honest_step(
        &mut self,
        location: &Location<'_>,
        lines: &mut Vec<Line>,
    ) -> Result<Option<Step>, FormatError> {
        if location.mapping != 0 || location.address != 0 {
            return Ok(None);
        }
        location.lines(lines)?;
        let [line] = lines[..] else { return Ok(None) };
        let name = self
            .tables
            .bytes(self.tables.function(line.function)?.name)?;
        if name == b"[no stack]" {
            return Ok(Some(Step::NoStack));
        }
        let cause = name
            .strip_prefix(b"[stopped: ")
            .and_then(|rest| rest.strip_suffix(b"]"));
        Ok(cause.and_then(ending).map(Step::Stopped))
    }

    /// Adds one sample: its stack, the value that counts, and its labels.
    fn add_sample(&mut self, sample: Value<'_>) -> Result<(), FormatError> {
        let mut fields = sample.fields()?;
        let (mut frames, mut end, mut weight) = (Vec::new(), Ending::Root, 0i64);
        let mut labels = Labels::default();
        let mut values = 0;
        while let Some((field, value)) = fields.next()? {
            match field {
                field::sample::LOCATION => value.each_number(|id| {
                    match self.steps.get(&id) {
                        // The store marks stacks that are longer as cut.
                        Some(Step::Frame(_)) if frames.len() > STACK_DEPTH_MAX => {}
                        Some(Step::Frame(frame)) => frames.push(*frame),
                        Some(Step::Stopped(ending)) => end = *ending,
                        Some(Step::NoStack) => {}
                        None => return Err(damaged("a location is used that it does not have")),
                    }
                    Ok(())
                })?,
                field::sample::VALUE => value.each_number(|number| {
                    if values == self.value {
                        weight = number.cast_signed();
                    }
                    values += 1;
                    Ok(())
                })?,
                field::sample::LABEL => {
                    labels.add(value.fields()?, &mut self.keys, &self.tables)?
                }
                _ => {}
            }
        }
        // With another number of values it is unclear which one is which.
        if values != self.tables.types.len() {
            return Err(damaged(
                "a sample has not as many values as there are types",
            ));
        }
        let weight = match u64::try_from(weight) {
            Ok(weight) => weight,
            Err(_) => {
                self.left_out += 1;
                0
            }
        };
        // With several metrics the stack is kept nevertheless: see `read_metric`.
        if weight == 0 && self.metrics.len() < 2 {
            return Ok(());
        }
        self.weight = self.weight.saturating_add(weight);
        if self.weight > WEIGHT_MAX {
            return Err(FormatError::TooLarge(
                "its samples add up to more than 2^53",
            ));
        }
        if labels.ending != 0 {
            end = ending(self.tables.bytes(labels.ending)?).unwrap_or(end);
        }
        self.keep(&labels, &frames, end, weight)
    }

    /// Adds a sample to the store. A sample without labels belongs to a process named after the
    /// program, which is the first mapping's file.
    fn keep(
        &mut self,
        labels: &Labels,
        frames: &[Frame],
        ending: Ending,
        weight: u64,
    ) -> Result<(), FormatError> {
        let thread = [labels.thread, labels.comm]
            .into_iter()
            .find(|text| *text != 0);
        let comm = match thread {
            Some(text) => self.tables.comm(text)?,
            None => Arc::clone(&self.program),
        };
        let next = ProcessId(self.processes.len() as u32 + 1);
        let process = *self
            .processes
            .entry((labels.pid, labels.comm))
            .or_insert(next);
        if process == next {
            room(self.processes.len())?;
            let name = match labels.comm {
                0 => Arc::clone(&self.program),
                text => self.tables.comm(text)?,
            };
            self.store.add_process(process, labels.pid, &name);
        }
        let in_kernel = |frame: &Frame| frame.kind == FrameKind::Kernel;
        self.store.add_sample(NewSample {
            time_ns: self.time_ns,
            cpu: 0,
            process,
            tid: labels.tid,
            comm: &comm,
            frames,
            kernel_frames: usize::from(frames.first().is_some_and(in_kernel)),
            ending,
            weight,
        });
        Ok(())
    }
}

/// Returns the ending with this label.
fn ending(word: &[u8]) -> Option<Ending> {
    Ending::ALL
        .into_iter()
        .find(|ending| ending.label().as_bytes() == word)
}

/// Converts a build-id to bytes; Go's build-ids, which are not hexadecimal, are kept as text.
fn hex(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pairs = text.chunks_exact(2);
    let whole = pairs.remainder().is_empty();
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect();
    match bytes {
        Some(bytes) if whole => bytes,
        _ => text[..text.len().min(64)].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_bomb_is_refused() {
        let level = flate2::Compression::fast();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), level);
        packed.write_all(&[0; 5000]).expect("memory takes all");
        // Several members in one file are one text.
        let twice = packed.finish().expect("memory takes all").repeat(2);
        assert_eq!(unpack(&twice[..], 10_000).expect("fits").len(), 10_000);
        for bytes in [&twice[..], &[8; 10_000]] {
            let refused = unpack(bytes, 9_999);
            assert!(matches!(refused, Err(FormatError::TooLarge(_))));
        }
    }

    #[test]
    fn build_ids_are_bytes_or_else_letters() {
        assert_eq!(hex(b"ab09"), [0xab, 9]);
        assert_eq!(hex(b"abc"), *b"abc");
        assert_eq!(hex(b"go/x"), *b"go/x");
        assert_eq!(hex(b""), [0; 0]);
    }
}
