//! Converts a .pft to a window.

use super::service::{Belonging, belonging};
use super::{Frame, Function, Host, Kind, Service, Stack, Window, ids};
use crate::config::{Labels, Version};
use crate::spool::Entry;
use foldhash::{HashMap, HashMapExt as _};
use profile::formats::pft;
use profile::query::{StackFrame, StackProcess};
use profile::{Cancel, FrameKind, Info, Limits, NameState, Query, Store, View};
use std::collections::hash_map;
use std::io;
use std::sync::Arc;

/// Maximum number of characters of a process's name (`TASK_COMM_LEN` in Linux).
const COMM_MAX: usize = 15;

/// Number of hexadecimal digits of a build-id in a version.
const VERSION_DIGITS: usize = 12;

/// Why a window cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// The agent has removed it, to make room.
    Gone,
    /// The file cannot be opened, which may be temporary: for example, the right to read it is
    /// missing.
    Closed(String),
    /// The file is damaged; the text says how.
    Damaged(String),
}

/// Reads a window from the spool.
pub fn read(entry: &Entry, labels: &Labels) -> Result<Window, Unreadable> {
    let file = std::fs::File::open(&entry.path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Unreadable::Gone,
        _ => Unreadable::Closed(error.to_string()),
    })?;
    let read = pft::read(io::BufReader::new(file), Limits::default());
    let (store, _) = read.map_err(|error| Unreadable::Damaged(error.to_string()))?;
    let mut window = of_store(&store, labels);
    window.spool.clone_from(&entry.id);
    window.number = entry.number;
    Ok(window)
}

/// Converts the content of a store to a window, without its place in a spool.
fn of_store(store: &Store, labels: &Labels) -> Window {
    let view = &store.view();
    let selection = view
        .select(&Query::default(), &Cancel::new())
        .expect("nobody cancels it");
    let info = selection.info();
    let (processes, stacks) = selection.process_stacks();
    let mut tables = Tables::new(view);
    let owners: Vec<Belonging> = processes.iter().map(of_process).collect();
    let mut programs: Vec<Option<String>> = vec![None; processes.len()];
    let mut values: HashMap<(Belonging, String), HashMap<u32, u64>> = HashMap::new();
    let mut numbered = Vec::with_capacity(stacks.len());
    for stack in &stacks {
        let number = tables.stack(&stack.frames);
        if labels.version == Version::BuildId && programs[stack.process].is_none() {
            let comm = &processes[stack.process].comm;
            programs[stack.process] = tables.build_id_of(number, comm);
        }
        numbered.push(number);
    }
    for (stack, number) in stacks.iter().zip(numbered) {
        let version = match &labels.version {
            Version::Text(text) => text.clone(),
            Version::BuildId => programs[stack.process].clone().unwrap_or_default(),
        };
        let of_service = values
            .entry((owners[stack.process].clone(), version))
            .or_default();
        *of_service.entry(number).or_default() += stack.samples;
    }
    let begin_ns = store.begin_ns().unwrap_or(0);
    let end_ns = store.told_end_ns().or(view.end_ns()).unwrap_or(begin_ns);
    Window {
        host: Host {
            name: info.host.name.clone(),
            kernel: info.host.kernel.clone(),
            arch: info.host.arch.clone(),
            cpus: info.host.cpus_sampled(),
        },
        begin_ms: info
            .epoch_unix_ms
            .saturating_add((begin_ns / 1_000_000) as i64),
        duration_ms: end_ns.saturating_sub(begin_ns).div_ceil(1_000_000),
        lost_samples: info.lost,
        period_ns: period_ns(&info),
        rate_hz: info.rates.last(),
        event: info.metric.name,
        unit: info.metric.unit,
        frames: tables.frames,
        stacks: tables.stacks,
        services: services(values),
        ..Window::default()
    }
}

fn of_process(process: &StackProcess) -> Belonging {
    belonging(&process.comm, process.cgroup.as_deref())
}

/// Returns the services sorted by name, each with its stacks in their order: so the same bytes are
/// sent of a window each time.
fn services(values: HashMap<(Belonging, String), HashMap<u32, u64>>) -> Vec<Service> {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(|a, b| a.0.cmp(&b.0));
    let service = |((of, version), samples): ((Belonging, String), HashMap<u32, u64>)| {
        let mut samples: Vec<(u32, u64)> = samples.into_iter().collect();
        samples.sort_unstable();
        Service {
            name: of.service,
            version,
            container: of.container,
            samples,
        }
    };
    values.into_iter().map(service).collect()
}

/// Returns the nanoseconds that a value of 1 stands for; 0 if values are not times.
fn period_ns(info: &Info) -> u64 {
    let hz = u64::from(info.rates.first_hz);
    match (&*info.metric.name, &*info.metric.unit) {
        ("cpu", "samples") if hz > 0 => 1_000_000_000 / hz,
        (_, "nanoseconds") => 1,
        _ => 0,
    }
}

/// The distinct frames and stacks.
struct Tables<'a> {
    view: &'a View,
    frames: Vec<Frame>,
    number_of: HashMap<StackFrame, u32>,
    /// The indices of the frames with an id: several if only their lines differ.
    frames_of: HashMap<u64, Vec<u32>>,
    /// The names and files of source locations, each once.
    texts: HashMap<&'a str, Arc<str>>,
    stacks: Vec<Stack>,
    stack_of: HashMap<u64, u32>,
}

impl<'a> Tables<'a> {
    fn new(view: &'a View) -> Self {
        Self {
            view,
            frames: Vec::new(),
            number_of: HashMap::new(),
            frames_of: HashMap::new(),
            texts: HashMap::new(),
            stacks: Vec::new(),
            stack_of: HashMap::new(),
        }
    }

    /// Returns the index of a stack. Two stacks with the same id are one, as functions of the
    /// kernel are identified by name.
    fn stack(&mut self, frames: &[StackFrame]) -> u32 {
        let frames: Vec<u32> = frames.iter().map(|frame| self.frame(*frame)).collect();
        let id = ids::stack(frames.iter().map(|frame| self.frames[*frame as usize].id));
        match self.stack_of.entry(id) {
            hash_map::Entry::Occupied(known) => *known.get(),
            hash_map::Entry::Vacant(new) => {
                let number = self.stacks.len() as u32;
                self.stacks.push(Stack { id, frames });
                *new.insert(number)
            }
        }
    }

    /// Returns the index of a frame. Places with the same id and the same functions are one frame.
    fn frame(&mut self, frame: StackFrame) -> u32 {
        if let Some(number) = self.number_of.get(&frame) {
            return *number;
        }
        let mut described = self.describe(frame);
        described.id = ids::frame(&described);
        let alike = self.frames_of.entry(described.id).or_default();
        let known = alike
            .iter()
            .copied()
            .find(|it| self.frames[*it as usize].functions == described.functions);
        let number = known.unwrap_or_else(|| {
            let number = self.frames.len() as u32;
            alike.push(number);
            self.frames.push(described);
            number
        });
        self.number_of.insert(frame, number);
        number
    }

    fn describe(&mut self, frame: StackFrame) -> Frame {
        let (view, function) = (self.view, |name: Arc<str>| Function {
            name,
            file: Arc::default(),
            line: 0,
        });
        let note = |name: Arc<str>| Frame {
            id: 0,
            kind: Kind::Note,
            module: Arc::default(),
            path: Arc::default(),
            build_id: Arc::default(),
            address: 0,
            functions: [function(name)].into(),
        };
        let id = match frame {
            StackFrame::Frame(id) => id,
            StackFrame::Note(function) => return note(view.function(function).name),
        };
        let Some(place) = view.frame(id) else {
            return note("unknown".into());
        };
        let module = view.frame_module(&place);
        let sources = view.frame_sources(id);
        let functions = match view.frame_name(id) {
            NameState::Named(name) if sources.is_empty() => [function(name)].into(),
            NameState::Named(_) => {
                let of_link = |it: &profile::SourceFrame<'a>| Function {
                    name: self.text(it.function),
                    file: self.text(it.file),
                    line: it.line,
                };
                // An inlined function may have a source location, but no name.
                let named = sources.iter().filter(|it| !it.function.is_empty());
                named.map(of_link).collect()
            }
            _ => Arc::default(),
        };
        Frame {
            id: 0,
            kind: match place.kind {
                FrameKind::User => Kind::Native,
                FrameKind::Kernel => Kind::Kernel,
                FrameKind::Jit => Kind::Jit,
                FrameKind::Python => Kind::Python,
            },
            module: module.name,
            path: module.path,
            build_id: module.build_id,
            address: place.address,
            functions,
        }
    }

    /// Returns a text that frames share.
    fn text(&mut self, text: &'a str) -> Arc<str> {
        let known = self.texts.entry(text).or_insert_with(|| text.into());
        Arc::clone(known)
    }

    /// Returns the build-id of a program's own file, if a stack goes through it: that is the file
    /// with the name of the process.
    fn build_id_of(&self, stack: u32, comm: &str) -> Option<String> {
        let frames = self.stacks[stack as usize].frames.iter();
        let mut frames = frames.map(|frame| &self.frames[*frame as usize]);
        let own = frames.find(|frame| {
            let starts = frame.module.get(..COMM_MAX).unwrap_or(&frame.module);
            frame.kind == Kind::Native && starts == comm && !frame.build_id.is_empty()
        });
        let mut version = ids::hex(&own?.build_id);
        version.truncate(VERSION_DIGITS);
        Some(version)
    }
}

#[cfg(test)]
mod tests;
