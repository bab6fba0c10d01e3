//! The tables of one thread. Each table is a set of columns; rows are referred to by their number.
//!
//! A sample refers to its description through four tables, in which each row is written once:
//!
//! ```text
//! sample → stackTable (prefix, frame) → frameTable (address, line, func)
//!                     └─ the caller's row        └→ funcTable (name, file, resource)
//!                                                           → resourceTable → libs
//! ```

use super::Libs;
use crate::formats::FormatError;
use crate::formats::json::Text;
use crate::query::{Timed, Trace, TraceFrame};
use crate::{
    FrameId, FrameKind, Function, FunctionId, ModuleId, NameState, Role, RowName, Selection, View,
};
use foldhash::{HashMap, HashMapExt as _};
use std::fmt::{self, Display, Write as _};
use std::io;

/// Number of the category `Other`.
const OTHER: u32 = 0;

/// A table of columns, all equally long, each with its name.
#[derive(Debug)]
pub(super) struct Columns {
    /// Number of rows.
    length: u32,
    /// The names of the columns, in the order of `columns`.
    names: &'static [&'static str],
    /// The values of each column as JSON, separated by commas. With a `String` for each value an
    /// export took two thirds more CPU time.
    columns: Vec<String>,
    /// The columns with the same value in each row, with that value.
    constant: &'static [(&'static str, &'static str)],
}

impl Columns {
    fn new(
        names: &'static [&'static str],
        constant: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            length: 0,
            names,
            columns: vec![String::new(); names.len()],
            constant,
        }
    }

    /// Adds a row with a value for each column that is not constant, and returns its number.
    fn push(&mut self, row: &[&dyn Display]) -> u32 {
        for (column, value) in self.columns.iter_mut().zip(row) {
            let comma = if self.length > 0 { "," } else { "" };
            let _ = write!(column, "{comma}{value}");
        }
        self.length += 1;
        self.length - 1
    }

    /// Writes the table as the inside of a JSON object, without braces, so that the caller can add
    /// fields.
    pub(super) fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        write!(out, "\"length\":{}", self.length)?;
        for (name, column) in self.names.iter().zip(&self.columns) {
            write!(out, ",\"{name}\":[{column}]")?;
        }
        for (name, value) in self.constant {
            let rows = vec![*value; self.length as usize];
            write!(out, ",\"{name}\":[{}]", rows.join(","))?;
        }
        Ok(())
    }
}

/// A number, or the text that stands for None.
struct Or<T>(Option<T>, &'static str);

impl<T: Display> Display for Or<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str(self.1),
        }
    }
}

/// The tables of one thread.
/// Filled by [`Tables::add_samples`], written by [`Tables::write`].
pub(super) struct Tables<'a> {
    view: &'a View,
    /// The file of each function for which some line does not name one.
    files: &'a HashMap<FunctionId, &'a str>,
    libs: &'a mut Libs,
    /// Number of each text in `ordered`, which holds the texts as JSON.
    strings: HashMap<String, u32>,
    ordered: Vec<String>,
    resources: Columns,
    resource_of: HashMap<ModuleId, u32>,
    funcs: Columns,
    /// Row of each function, by name, resource (-1 for none) and file.
    func_of: HashMap<(u32, i64, Option<u32>), u32>,
    frames: Columns,
    /// The frames that stand for each place, outermost first.
    places: HashMap<TraceFrame, Vec<u32>>,
    stacks: Columns,
    stack_of: HashMap<(Option<u32>, u32), u32>,
    /// Row of each whole stack, by the store's number and the way its walk ended.
    known: HashMap<(u32, u8), Option<u32>>,
    /// The category of each frame; the rows of the stack table repeat it.
    categories: Vec<u32>,
}

/// One function at a place: the function that contains the code, or one that is inlined there.
struct Shown<'a> {
    id: FunctionId,
    name: &'a str,
    file: &'a str,
    /// Line in the source file; 0 if unknown.
    line: u32,
    /// Address of the frame; `None` for functions shown as a whole, which have no single address.
    address: Option<u64>,
    /// Module of the frame; `None` for what stands for a missing part of a stack.
    module: Option<ModuleId>,
    category: u32,
}

impl<'a> Tables<'a> {
    /// Empty tables for one thread.
    pub(super) fn new(
        view: &'a View,
        files: &'a HashMap<FunctionId, &'a str>,
        libs: &'a mut Libs,
    ) -> Self {
        Self {
            view,
            files,
            libs,
            strings: HashMap::new(),
            ordered: Vec::new(),
            // Type 1 stands for a library.
            resources: Columns::new(&["lib", "name"], &[("host", "null"), ("type", "1")]),
            resource_of: HashMap::new(),
            funcs: Columns::new(
                &["name", "resource", "fileName"],
                &[
                    ("lineNumber", "null"),
                    ("columnNumber", "null"),
                    ("isJS", "false"),
                    ("relevantForJS", "false"),
                ],
            ),
            func_of: HashMap::new(),
            frames: Columns::new(
                &["address", "inlineDepth", "category", "func", "line"],
                &[
                    ("subcategory", "0"),
                    ("column", "null"),
                    ("nativeSymbol", "null"),
                    ("innerWindowID", "0"),
                    ("implementation", "null"),
                ],
            ),
            places: HashMap::new(),
            stacks: Columns::new(&["prefix", "frame", "category"], &[("subcategory", "0")]),
            stack_of: HashMap::new(),
            known: HashMap::new(),
            categories: Vec::new(),
        }
    }

    /// Returns the table of samples, and adds the stacks, frames and texts to which they refer.
    /// Times are in ms since `begin_ns`, weights are our counts times `scale`.
    pub(super) fn add_samples(
        &mut self,
        selection: &Selection,
        samples: &[Timed],
        begin_ns: u64,
        scale: f64,
    ) -> Columns {
        let mut columns = Columns::new(&["stack", "time", "weight"], &[]);
        for sample in samples {
            let stack = Or(self.stack(selection, &sample.trace), "null");
            // Rounded to the precision of the sample clock.
            let time = sample.time_ns.saturating_sub(begin_ns) as f64 / 1e6;
            let weight = sample.trace.samples as f64 * scale;
            columns.push(&[&stack, &time, &weight]);
        }
        columns
    }

    /// Returns the row of a whole stack; `None` if the selection hides all of it. Rows are created
    /// from the root on, so that stacks share the rows of their common callers.
    fn stack(&mut self, selection: &Selection, trace: &Trace) -> Option<u32> {
        let key = (trace.stack.0, trace.ending as u8);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let mut at = None;
        for place in selection.places(trace).into_iter().rev() {
            for frame in self.place(place) {
                at = Some(self.step(at, frame));
            }
        }
        self.known.insert(key, at);
        at
    }

    /// Returns the row of `frame` called from the row `prefix`.
    fn step(&mut self, prefix: Option<u32>, frame: u32) -> u32 {
        if let Some(known) = self.stack_of.get(&(prefix, frame)) {
            return *known;
        }
        let parent = Or(prefix, "null");
        let category = self.categories[frame as usize];
        let number = self.stacks.push(&[&parent, &frame, &category]);
        self.stack_of.insert((prefix, frame), number);
        number
    }

    /// Returns the frames of a place, outermost first: the function that contains the code, then
    /// what is inlined in it.
    fn place(&mut self, place: TraceFrame) -> Vec<u32> {
        if let Some(known) = self.places.get(&place) {
            return known.clone();
        }
        let frames = match place {
            TraceFrame::Function(id) => {
                let function = self.view.function(id);
                let module = self.view.frame(id).map(|frame| frame.module);
                let is_function = function.role == Role::Function;
                let has_name = !is_function || function.name_state == RowName::Named;
                let name = if has_name {
                    function.name.to_string()
                } else {
                    unnamed(function.address)
                };
                let shown = Shown {
                    id,
                    name: &name,
                    file: function.file.as_deref().unwrap_or_default(),
                    line: 0,
                    address: (!has_name).then_some(function.address),
                    module: module.filter(|_| is_function),
                    category: category(&function),
                };
                vec![self.frame(&shown, 0)]
            }
            TraceFrame::Frame(id) => self.sampled(id),
        };
        self.places.insert(place, frames.clone());
        frames
    }

    /// Returns the frames of a sampled frame and of what is inlined in it.
    fn sampled(&mut self, id: FrameId) -> Vec<u32> {
        let tables = &*self.view.tables;
        let frame = tables.frames.at(id);
        let category = category(&self.view.function(id));
        let name = match tables.names.state(id) {
            NameState::Named(name) => name,
            _ => unnamed(frame.address).into(),
        };
        let file = |link| tables.sources.file(link).map_or("", |file| file);
        let shown = |id, name, file, line| Shown {
            id,
            name,
            file,
            line,
            address: Some(frame.address),
            module: Some(frame.module),
            category,
        };
        let own = tables.sources.chain(id).last();
        let function = self.view.function_of(id);
        let own = match own {
            Some(link) => shown(function, &name, file(*link), link.line),
            None => shown(function, &name, "", 0),
        };
        let mut frames = vec![self.frame(&own, 0)];
        let inlined = tables.sources.inlined_in(id).iter().rev();
        for (depth, link) in (1..).zip(inlined) {
            let name = tables.names.name(link.function).map_or("", |name| name);
            frames.push(self.frame(&shown(link.function, name, file(*link), link.line), depth));
        }
        frames
    }

    /// Adds a frame, and its function if that is new. `depth` is 0 for the function that contains
    /// the code, and rises by one with each function inlined in the one before.
    fn frame(&mut self, shown: &Shown<'_>, depth: u32) -> u32 {
        let resource = shown.module.map_or(-1, |id| i64::from(self.resource(id)));
        let name = self.string(shown.name);
        let file = if shown.file.is_empty() {
            // A function with and without a file would be shown as two functions by the viewer.
            self.files.get(&shown.id).copied().unwrap_or_default()
        } else {
            shown.file
        };
        let file = (!file.is_empty()).then(|| self.string(file));
        let key = (name, resource, file);
        let func = match self.func_of.get(&key) {
            Some(known) => *known,
            None => {
                let file = Or(file, "null");
                let number = self.funcs.push(&[&name, &resource, &file]);
                self.func_of.insert(key, number);
                number
            }
        };
        let address = Or(shown.address, "-1");
        let line = Or((shown.line != 0).then_some(shown.line), "null");
        self.categories.push(shown.category);
        self.frames
            .push(&[&address, &depth, &shown.category, &func, &line])
    }

    /// Returns the resource of a module, and adds the module to the libraries of all threads.
    fn resource(&mut self, id: ModuleId) -> u32 {
        if let Some(known) = self.resource_of.get(&id) {
            return *known;
        }
        let module = self.view.tables.modules.get(id);
        let lib = self.libs.add(id, &module);
        let name = self.string(&module.name);
        let number = self.resources.push(&[&lib, &name]);
        self.resource_of.insert(id, number);
        number
    }

    /// Returns the number of a text, which is added if it is new.
    pub(super) fn string(&mut self, text: &str) -> u32 {
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        let number = self.ordered.len() as u32;
        self.ordered.push(Text(text).to_string());
        self.strings.insert(text.to_string(), number);
        number
    }

    /// Writes all tables except the samples, as fields of the thread, each followed by a comma.
    pub(super) fn write(&self, out: &mut impl io::Write) -> Result<(), FormatError> {
        for (name, columns) in [
            ("stackTable", &self.stacks),
            ("frameTable", &self.frames),
            ("funcTable", &self.funcs),
            ("resourceTable", &self.resources),
        ] {
            write!(out, ",\n\"{name}\":{{")?;
            columns.write(out)?;
            write!(out, "}}")?;
        }
        write!(out, ",\n\"stringArray\":[{}]", self.ordered.join(","))?;
        Ok(())
    }
}

/// The viewer's name for a function that it may still look up: its address.
fn unnamed(address: u64) -> String {
    format!("{address:#x}")
}

/// Returns the index of a function's category in `CATEGORIES` of the writer.
fn category(function: &Function) -> u32 {
    match function.kind {
        _ if function.role != Role::Function => OTHER,
        FrameKind::User => 1,
        FrameKind::Kernel => 2,
        FrameKind::Jit => 3,
        FrameKind::Python => 4,
    }
}
