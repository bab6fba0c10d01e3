//! Writes a selection as a message.

mod probes;

use super::proto::Message;
use super::{ENDING_LABEL, field};
use crate::few;
use crate::formats::FormatError;
use crate::query::{Trace, TraceFrame};
use crate::tables::Module;
use crate::{Frame, FrameId, FunctionId, Info, ModuleId, NameState, Selection, View};
use flate2::Compression;
use flate2::write::GzEncoder;
use foldhash::{HashMap, HashMapExt as _};
use std::io::Write;
use std::sync::Arc;

/// gzip level: nearly as small as the best, at a quarter of its time.
const LEVEL: u32 = 6;

/// Mappings end at pages.
const PAGE: u64 = 4096;

/// Writes the stacks of a selection, grouped by thread.
///
/// Everything is built in memory and compressed at the end: mappings are known only when all frames
/// were seen, and strings only when everything else was. A pprof file is small, as it has each
/// stack once, with a sum.
pub fn write(selection: &Selection, out: impl Write) -> Result<(), FormatError> {
    let mut writer = Writer::new(selection.view(), selection.info());
    let scale = writer.add_types();
    writer.add_probe_types();
    for trace in selection.traces() {
        writer.add_sample(selection, &trace, scale);
    }
    writer.add_probes(selection);
    writer.add_times(selection);
    writer.add_comments();
    let profile = writer.finish();
    let mut packed = GzEncoder::new(out, Compression::new(LEVEL));
    packed.write_all(&profile.0)?;
    packed.finish()?.flush()?;
    Ok(())
}

/// Builds one message. Each table numbers a thing when it is first met and writes its description
/// into `profile` at once; mappings and strings are written at the end.
struct Writer<'a> {
    view: &'a View,
    info: Info,
    /// The message so far.
    profile: Message,
    strings: Strings,
    /// Mappings by number minus one, as 0 stands for none.
    mappings: Vec<Mapping>,
    mapping_of: HashMap<ModuleId, u64>,
    /// Number of each location: a machine address, or a whole function where the selection shows
    /// functions.
    locations: HashMap<TraceFrame, u64>,
    /// Number of each function, by function and number of its file's name: a function with lines in
    /// two files is two functions there.
    functions: HashMap<(FunctionId, u64), u64>,
    /// Numbers of functions and of their locations that only stacks of probes have, by name.
    probed: HashMap<Arc<str>, (u64, u64)>,
    /// The file of each function for which some line does not name one.
    files: HashMap<FunctionId, &'a str>,
}

/// A module as a pprof mapping, from address 0 up to `limit`, so that addresses are offsets in the
/// file.
struct Mapping {
    module: Module,
    /// End of the page with the highest address met.
    limit: u64,
    /// Whether all its frames have names; if not, `pprof` may look for them in the file.
    is_named: bool,
    has_files: bool,
    has_inlined: bool,
}

/// All texts, each once; the first one is empty.
#[derive(Default)]
struct Strings {
    known: HashMap<Arc<str>, u64>,
    ordered: Vec<Arc<str>>,
}

impl Strings {
    /// Returns the number of a text, which is added if it is new.
    fn add(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        let text: Arc<str> = text.into();
        self.ordered.push(Arc::clone(&text));
        let number = self.ordered.len() as u64;
        self.known.insert(text, number);
        number
    }
}

/// Nanoseconds that a sample stands for, if samples are ticks of known length; else `None`.
fn period_ns(info: &Info) -> Option<u64> {
    let is_cpu = info.metric.name == "cpu" && info.metric.unit == "samples";
    let hz = u64::from(info.rates.first_hz);
    (is_cpu && hz > 0).then(|| 1_000_000_000 / hz)
}

impl<'a> Writer<'a> {
    fn new(view: &'a View, info: Info) -> Self {
        Self {
            view,
            info,
            profile: Message::default(),
            strings: Strings::default(),
            mappings: Vec::new(),
            mapping_of: HashMap::new(),
            locations: HashMap::new(),
            functions: HashMap::new(),
            probed: HashMap::new(),
            files: view.files(),
        }
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message
            .number(field::value_type::NAME, self.strings.add(name))
            .number(field::value_type::UNIT, self.strings.add(unit));
        message
    }

    /// Writes what the values mean. Returns the nanoseconds of a sample if each sample has its time
    /// as a second value.
    fn add_types(&mut self) -> Option<u64> {
        let info = self.info.clone();
        let period_ns = period_ns(&info);
        let is_cpu = info.metric.name == "cpu" && info.metric.unit == "samples";
        let counts = if is_cpu {
            self.value_type("samples", "count")
        } else {
            self.value_type(&info.metric.name, &info.metric.unit)
        };
        self.profile.message(field::profile::SAMPLE_TYPE, &counts);
        if let Some(period_ns) = period_ns {
            let times = self.value_type("cpu", "nanoseconds");
            self.profile
                .message(field::profile::SAMPLE_TYPE, &times)
                .message(field::profile::PERIOD_TYPE, &times)
                .number(field::profile::PERIOD, period_ns);
        }
        period_ns
    }

    /// Adds a stack of one thread, with the number of our samples that it stands for. The second
    /// value is their time in nanoseconds, where ticks have a known length (`scale`).
    ///
    /// Values are `int64` in pprof, so times are cut to its maximum.
    fn add_sample(&mut self, selection: &Selection, trace: &Trace, scale: Option<u64>) {
        let places = selection.places(trace);
        let locations: Vec<u64> = places
            .into_iter()
            .map(|place| self.location(place))
            .collect();
        let mut sample = Message::default();
        sample.numbers(field::sample::LOCATION, &locations);
        let time = scale.map(|ns| trace.samples.saturating_mul(ns).min(i64::MAX as u64));
        let values = [Some(trace.samples), time].into_iter().flatten();
        let values: Vec<u64> = values.chain(self.probe_values(&[])).collect();
        sample.numbers(field::sample::VALUE, &values);

        let people = &self.view.tables.processes;
        let thread = people.thread(trace.thread);
        let process = people.get(thread.process);
        // A thread of an unknown process counts as a process of its own.
        let (comm, pid) = process.map_or((&thread.comm, thread.tid), |p| (&p.comm, p.pid));
        let ending = if trace.ending.is_user_stack() {
            ""
        } else {
            trace.ending.label()
        };
        for (key, text) in [
            ("thread", &*thread.comm),
            ("comm", &**comm),
            (ENDING_LABEL, ending),
        ] {
            if !text.is_empty() {
                let mut label = Message::default();
                label
                    .number(field::label::KEY, self.strings.add(key))
                    .number(field::label::TEXT, self.strings.add(text));
                sample.message(field::sample::LABEL, &label);
            }
        }
        for (key, number) in [("tid", thread.tid), ("pid", pid)] {
            let mut label = Message::default();
            label
                .number(field::label::KEY, self.strings.add(key))
                .number(field::label::NUMBER, number.into());
            sample.message(field::sample::LABEL, &label);
        }
        self.profile.message(field::profile::SAMPLE, &sample);
    }

    /// Returns the number of a place, which is described when it is first met. A whole function
    /// gets a line and no address.
    fn location(&mut self, place: TraceFrame) -> u64 {
        if let Some(number) = self.locations.get(&place) {
            return *number;
        }
        let number = (self.locations.len() + self.probed.len()) as u64 + 1;
        self.locations.insert(place, number);
        let mut location = Message::default();
        location.number(field::location::ID, number);
        match place {
            TraceFrame::Frame(id) => self.describe_frame(id, &mut location),
            TraceFrame::Function(id) => {
                let function = self.view.function(id);
                let mapping = match self.view.frame(id) {
                    Some(frame) if id.0 >= crate::intern::RESERVED => self.mapping(frame),
                    _ => 0,
                };
                location.number(field::location::MAPPING, mapping);
                let file = function.file.as_deref().unwrap_or_default();
                let line = self.line(id, &function.name, file, 0);
                location.message(field::location::LINE, &line);
            }
        }
        self.profile.message(field::profile::LOCATION, &location);
        number
    }

    /// Adds the functions of a frame, the innermost inlined one first, as in our own chains.
    fn describe_frame(&mut self, id: FrameId, location: &mut Message) {
        let tables = &*self.view.tables;
        let frame = tables.frames.at(id);
        let mapping = self.mapping(frame);
        location
            .number(field::location::MAPPING, mapping)
            .number(field::location::ADDRESS, frame.address);
        let chain = tables.sources.chain(id);
        let mapping = &mut self.mappings[mapping as usize - 1];
        mapping.has_files |= chain
            .iter()
            .any(|link| tables.sources.file(*link).is_some());
        mapping.has_inlined |= chain.len() > 1;
        let NameState::Named(name) = tables.names.state(id) else {
            // A receiver with the file can name the inlined functions, too.
            mapping.is_named = false;
            return;
        };
        let own = chain.last();
        for link in tables.sources.inlined_in(id) {
            let file = tables.sources.file(*link).map_or("", |file| file);
            let inlined = tables.names.name(link.function).map_or("", |name| name);
            let line = self.line(link.function, inlined, file, link.line);
            location.message(field::location::LINE, &line);
        }
        let file = own.and_then(|link| tables.sources.file(*link));
        let line = self.line(
            self.view.function_of(id),
            &name,
            file.map_or("", |file| file),
            own.map_or(0, |link| link.line),
        );
        location.message(field::location::LINE, &line);
    }

    /// Describes a function at a line; a location has several of them if functions were inlined.
    /// The function itself is described when it is first met; line 0 means unknown.
    fn line(&mut self, id: FunctionId, name: &str, file: &str, line: u32) -> Message {
        let file = if file.is_empty() {
            self.files.get(&id).copied().unwrap_or_default()
        } else {
            file
        };
        let file = self.strings.add(file);
        let next = (self.functions.len() + self.probed.len()) as u64 + 1;
        let number = *self.functions.entry((id, file)).or_insert(next);
        if number == next {
            let name = self.strings.add(name);
            let mut function = Message::default();
            function
                .number(field::function::ID, number)
                .number(field::function::NAME, name)
                .number(field::function::SYSTEM_NAME, name)
                .number(field::function::FILE, file);
            self.profile.message(field::profile::FUNCTION, &function);
        }
        let mut message = Message::default();
        message
            .number(field::line::FUNCTION, number)
            .number(field::line::LINE, line.into());
        message
    }

    /// Returns the mapping of the frame's module, extended up to the frame's address.
    fn mapping(&mut self, frame: Frame) -> u64 {
        let next = self.mappings.len() as u64 + 1;
        let number = *self.mapping_of.entry(frame.module).or_insert(next);
        if number == next {
            self.mappings.push(Mapping {
                module: self.view.tables.modules.get(frame.module),
                limit: 0,
                is_named: true,
                has_files: false,
                has_inlined: false,
            });
        }
        let mapping = &mut self.mappings[number as usize - 1];
        let end = (frame.address / PAGE)
            .saturating_add(1)
            .saturating_mul(PAGE);
        mapping.limit = mapping.limit.max(end);
        number
    }

    /// Writes the start of the selection, if the wall clock of the recording is known, and its
    /// duration.
    fn add_times(&mut self, selection: &Selection) {
        let window = selection.window();
        let epoch_ms = self.info.epoch_unix_ms;
        if let Ok(epoch_ms @ 1..) = u64::try_from(epoch_ms) {
            let time = epoch_ms
                .saturating_mul(1_000_000)
                .saturating_add(window.start_ns)
                .min(i64::MAX as u64);
            self.profile.number(field::profile::TIME_NS, time);
        }
        let duration = (window.end_ns - window.start_ns).min(i64::MAX as u64);
        self.profile.number(field::profile::DURATION_NS, duration);
    }

    /// Writes properties for which the message has no fields as comments `key: value`; our reader
    /// understands them (`note` in `meaning.rs`).
    fn add_comments(&mut self) {
        let info = self.info.clone();
        let mut comments = vec![format!("proftop {}", env!("CARGO_PKG_VERSION"))];
        for (what, text) in [
            ("host", &info.host.name),
            ("kernel", &info.host.kernel),
            ("arch", &info.host.arch),
            ("scope", &info.scope),
        ] {
            if !text.is_empty() {
                comments.push(format!("{what}: {text}"));
            }
        }
        if info.host.cpus > 0 {
            comments.push(format!("cpus: {}", info.host.cpus));
        }
        if info.lost > 0 {
            comments.push(format!("lost samples: {}", info.lost));
        }
        comments.extend(info.notes.iter().cloned());
        for comment in comments {
            let number = self.strings.add(&comment);
            self.profile.number(field::profile::COMMENT, number);
        }
    }

    /// Returns the number of the mapping of the program that ran, if there was only one: viewers
    /// name the profile after the file of the first mapping.
    fn only_program(&self) -> Option<u64> {
        let mut programs = (1u64..).zip(&self.mappings).filter(|(_, mapping)| {
            let path = &mapping.module.path;
            let name = path.rsplit('/').next().unwrap_or_default();
            path.starts_with('/') && !name.ends_with(".so") && !name.contains(".so.")
        });
        let (number, _) = programs.next()?;
        programs.next().is_none().then_some(number)
    }

    /// Adds what had to wait: the mappings, starting with the program's, then the strings, of which
    /// number 0 must be the empty one.
    fn finish(mut self) -> Message {
        let program = self.only_program();
        let mut ordered: Vec<(u64, &Mapping)> = (1u64..).zip(&self.mappings).collect();
        few::sort_by_key(&mut ordered, |(number, _)| Some(*number) != program);
        for (number, mapping) in ordered {
            let build_id: String = mapping
                .module
                .build_id
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let mut message = Message::default();
            message
                .number(field::mapping::ID, number)
                .number(field::mapping::LIMIT, mapping.limit)
                .number(field::mapping::FILE, self.strings.add(&mapping.module.path))
                .number(field::mapping::BUILD_ID, self.strings.add(&build_id))
                .number(field::mapping::HAS_FUNCTIONS, mapping.is_named.into())
                .number(field::mapping::HAS_FILES, mapping.has_files.into())
                .number(field::mapping::HAS_LINES, mapping.has_files.into())
                .number(field::mapping::HAS_INLINED, mapping.has_inlined.into());
            self.profile.message(field::profile::MAPPING, &message);
        }
        self.profile.bytes(field::profile::STRING, b"");
        for text in &self.strings.ordered {
            self.profile.bytes(field::profile::STRING, text.as_bytes());
        }
        self.profile
    }
}
