//! Pieces of a window as a request of OpenTelemetry's profiles: `ExportProfilesServiceRequest` of
//! `opentelemetry-proto` 1.10.0, `v1development`. This version is pinned: its fields have other numbers
//! in versions before, and a server of another version takes a request and loses its values without a
//! word. docs/fleet.md says how to see that.
//!
//! Everything that occurs more than once is in a dictionary: texts, functions, mappings, locations,
//! stacks and attributes. The first entry of each table is empty, and stands for none.

use super::Piece;
use super::pprof::Strings;
use super::wire::Message;
use crate::config::Labels;
use crate::window::{Frame, Kind, Window, ids};
use foldhash::{HashMap, HashMapExt as _};

/// Fields of `ProfilesDictionary`.
mod dictionary {
    pub const MAPPING: u32 = 1;
    pub const LOCATION: u32 = 2;
    pub const FUNCTION: u32 = 3;
    pub const LINK: u32 = 4;
    pub const STRING: u32 = 5;
    pub const ATTRIBUTE: u32 = 6;
    pub const STACK: u32 = 7;
}

/// The attribute with the kind of a frame's code (semantic conventions, `profile.frame.type`).
const FRAME_TYPE: &str = "profile.frame.type";

/// The attribute of a mapping that has the GNU build-id in hexadecimal digits.
const BUILD_ID: &str = "process.executable.build_id.gnu";

/// Encodes the whole request, without compression.
pub fn write(window: &Window, pieces: &[Piece], labels: &Labels) -> Vec<u8> {
    let build_ids = build_ids(window);
    let mut writer = Writer::new(window, &build_ids);
    let mut request = Message::default();
    for piece in pieces {
        let resource = writer.resource(*piece, labels);
        request.message(1, &resource);
    }
    request.message(2, &writer.dictionary());
    request.0
}

/// Returns the build-id of each frame as text; empty if it has none.
fn build_ids(window: &Window) -> Vec<String> {
    let frames = window.frames.iter();
    frames.map(|frame| ids::hex(&frame.build_id)).collect()
}

/// One table of the dictionary: its distinct entries.
struct Table {
    number_of: HashMap<Vec<u8>, u64>,
    entries: Vec<Vec<u8>>,
}

impl Table {
    /// Starts with an empty message at index 0.
    fn new() -> Self {
        Self {
            number_of: HashMap::from_iter([(Vec::new(), 0)]),
            entries: vec![Vec::new()],
        }
    }

    fn add(&mut self, message: Message) -> u64 {
        if let Some(known) = self.number_of.get(&message.0) {
            return *known;
        }
        let number = self.entries.len() as u64;
        self.entries.push(message.0.clone());
        self.number_of.insert(message.0, number);
        number
    }

    fn write(&self, field: u32, out: &mut Message) {
        for entry in &self.entries {
            out.message(field, &Message(entry.clone()));
        }
    }
}

/// Builds one request.
struct Writer<'a> {
    window: &'a Window,
    build_ids: &'a [String],
    strings: Strings<'a>,
    mappings: Table,
    locations: Table,
    functions: Table,
    attributes: Table,
    stacks: Table,
    location_of: HashMap<u32, u64>,
    stack_of: HashMap<u32, u64>,
}

impl<'a> Writer<'a> {
    fn new(window: &'a Window, build_ids: &'a [String]) -> Self {
        Self {
            window,
            build_ids,
            strings: Strings::new(),
            mappings: Table::new(),
            locations: Table::new(),
            functions: Table::new(),
            attributes: Table::new(),
            stacks: Table::new(),
            location_of: HashMap::new(),
            stack_of: HashMap::new(),
        }
    }

    /// Makes a `ResourceProfiles`: one service of this host, with one profile.
    fn resource(&mut self, piece: Piece, labels: &Labels) -> Message {
        let service = &self.window.services[piece.service];
        let mut resource = Message::default();
        for (key, value) in [
            ("service.name", &service.name),
            ("service.namespace", &labels.namespace),
            ("service.version", &service.version),
            ("host.name", &self.window.host.name),
            ("container.id", &service.container),
            ("cluster", &labels.cluster),
        ] {
            if !value.is_empty() {
                let mut attribute = Message::default();
                attribute
                    .bytes(1, key.as_bytes())
                    .message(2, &text_value(value));
                resource.message(1, &attribute);
            }
        }
        let mut scope = Message::default();
        scope
            .bytes(1, b"proftop-fleet")
            .bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
        let mut scope_profiles = Message::default();
        scope_profiles
            .message(1, &scope)
            .message(2, &self.profile(piece));
        let mut all = Message::default();
        all.message(1, &resource).message(2, &scope_profiles);
        all
    }

    fn profile(&mut self, piece: Piece) -> Message {
        let window = self.window;
        let is_ticks = window.event == "cpu" && window.unit == "samples";
        let mut profile = Message::default();
        let (kind, unit) = if is_ticks {
            ("samples", "count")
        } else {
            (&*window.event, &*window.unit)
        };
        profile.message(1, &self.value_type(kind, unit));
        for (stack, value) in piece.samples(window) {
            // Ticks that a schedule has left out are in the period.
            let value = if is_ticks {
                *value
            } else {
                window.weight.times(*value)
            };
            let mut sample = Message::default();
            sample
                .number(1, self.stack(*stack))
                .numbers(4, &[value.min(i64::MAX as u64)]);
            profile.message(2, &sample);
        }
        let begin_ns = window.begin_ms.max(0) as u64 * 1_000_000;
        profile
            .fixed64(3, begin_ns)
            .number(4, window.duration_ms * 1_000_000);
        if is_ticks && window.period_ns > 0 {
            profile
                .message(5, &self.value_type("cpu", "nanoseconds"))
                .number(6, window.weight.times(window.period_ns));
        }
        profile.bytes(7, &piece.uuid(window));
        profile
    }

    fn value_type(&mut self, kind: &'a str, unit: &'a str) -> Message {
        let mut message = Message::default();
        message
            .number(1, self.strings.add(kind))
            .number(2, self.strings.add(unit));
        message
    }

    fn stack(&mut self, number: u32) -> u64 {
        if let Some(known) = self.stack_of.get(&number) {
            return *known;
        }
        let frames = &self.window.stacks[number as usize].frames;
        let locations: Vec<u64> = frames.iter().map(|frame| self.location(*frame)).collect();
        let mut message = Message::default();
        message.numbers(1, &locations);
        let index = self.stacks.add(message);
        self.stack_of.insert(number, index);
        index
    }

    fn location(&mut self, number: u32) -> u64 {
        if let Some(known) = self.location_of.get(&number) {
            return *known;
        }
        let frame = &self.window.frames[number as usize];
        let mapping = self.mapping(frame, number);
        let mut message = Message::default();
        message.number(1, mapping);
        if mapping != 0 {
            message.number(2, frame.address);
        }
        for function in &*frame.functions {
            let name = self.strings.add(&function.name);
            let mut described = Message::default();
            described
                .number(1, name)
                .number(2, name)
                .number(3, self.strings.add(&function.file));
            let mut line = Message::default();
            line.number(1, self.functions.add(described))
                .number(2, function.line.into());
            message.message(3, &line);
        }
        let kind = match frame.kind {
            Kind::Native => "native",
            Kind::Kernel => "kernel",
            Kind::Python => "cpython",
            Kind::Jit | Kind::Note => "",
        };
        if !kind.is_empty() {
            let attribute = self.attribute(FRAME_TYPE, kind);
            message.numbers(4, &[attribute]);
        }
        let index = self.locations.add(message);
        self.location_of.insert(number, index);
        index
    }

    /// Returns the index of a frame's mapping; 0 if it is in no file.
    fn mapping(&mut self, frame: &'a Frame, number: u32) -> u64 {
        if frame.kind == Kind::Note {
            return 0;
        }
        let path = if frame.path.is_empty() {
            &frame.module
        } else {
            &frame.path
        };
        let mut message = Message::default();
        message.number(4, self.strings.add(path));
        let build_ids = self.build_ids;
        let build_id = &build_ids[number as usize];
        if !build_id.is_empty() {
            let attribute = self.attribute(BUILD_ID, build_id);
            message.numbers(5, &[attribute]);
        }
        self.mappings.add(message)
    }

    /// Returns the index of a `KeyValueAndUnit`.
    fn attribute(&mut self, key: &'a str, value: &str) -> u64 {
        let mut message = Message::default();
        message
            .number(1, self.strings.add(key))
            .message(2, &text_value(value));
        self.attributes.add(message)
    }

    fn dictionary(&self) -> Message {
        let mut out = Message::default();
        self.mappings.write(dictionary::MAPPING, &mut out);
        self.locations.write(dictionary::LOCATION, &mut out);
        self.functions.write(dictionary::FUNCTION, &mut out);
        out.message(dictionary::LINK, &Message::default());
        for text in &self.strings.texts {
            out.text(dictionary::STRING, text);
        }
        self.attributes.write(dictionary::ATTRIBUTE, &mut out);
        self.stacks.write(dictionary::STACK, &mut out);
        out
    }
}

/// Makes an `AnyValue` with a text.
fn text_value(text: &str) -> Message {
    let mut message = Message::default();
    message.text(1, text);
    message
}
