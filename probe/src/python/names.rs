//! Numbers for functions and lines of Python, the same for all processes, so that the workers of
//! one server share their functions.

use crate::ids::ModuleId;
use crate::modules::Modules;
use crate::sample::{Frame, PythonName, PythonNames};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use symbolize::Reason;

/// Maximum number of Python files; functions of further ones are in the module without a file.
const FILES_MAX: usize = 1 << 16;

/// Maximum number of names of tasks; tasks with further names are treated as unnamed, as programs
/// may give each its own.
const TASK_NAMES_MAX: usize = 1024;

/// Maximum number of remembered frames of tasks.
const TASKS_MAX: usize = 1 << 16;

/// What distinguishes the frame of one task from that of another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Task {
    /// A frame of its coroutine.
    coroutine: Option<Frame>,
    said: Said,
    /// The name that the program has given it.
    name: Option<Arc<str>>,
}

/// What the frame of a task shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Said {
    Runs,
    Awaits,
}

/// Assigns the numbers.
#[derive(Debug, Default)]
pub struct Registry {
    names: Arc<PythonNames>,
    known: HashMap<PythonName, Frame>,
    files: HashMap<Arc<str>, ModuleId>,
    /// Frames whose code could not be read, by the reason.
    nameless: HashMap<Reason, Frame>,
    no_file: Option<ModuleId>,
    /// The frames of tasks.
    tasks: HashMap<Task, Frame>,
    /// The names that programs have given to their tasks.
    task_names: HashSet<Arc<str>>,
}

impl Registry {
    /// Returns the frame of a line.
    pub fn frame(&mut self, name: PythonName, modules: &mut Modules) -> Frame {
        if let Some(frame) = self.known.get(&name) {
            return *frame;
        }
        let module = self.module(&name.file, modules);
        let Some(address) = self.names.add(Ok(name.clone())) else {
            return self.nameless(Reason::Refused, modules);
        };
        let frame = Frame { module, address };
        self.known.insert(name, frame);
        frame
    }

    /// Returns the frame of code that could not be read.
    pub fn nameless(&mut self, reason: Reason, modules: &mut Modules) -> Frame {
        if let Some(frame) = self.nameless.get(&reason) {
            return *frame;
        }
        let module = self.no_file(modules);
        let address = self.names.add(Err(reason)).unwrap_or(u64::MAX);
        let frame = Frame { module, address };
        self.nameless.insert(reason, frame);
        frame
    }

    /// Returns the frame of a task whose coroutine has this frame. It has the name that the program
    /// has given to the task, or else that of the coroutine. `None` if that could not be read.
    pub fn task(
        &mut self,
        coroutine: Frame,
        name: Option<&Arc<str>>,
        modules: &mut Modules,
    ) -> Option<Frame> {
        let key = Task {
            coroutine: Some(coroutine),
            said: Said::Runs,
            name: self.known_name(name),
        };
        if let Some(frame) = self.tasks.get(&key) {
            return Some(*frame);
        }
        let PythonName { function, file, .. } = self.names.get(coroutine.address).ok()?;
        let called = key.name.as_ref().unwrap_or(&function);
        let function = format!("task ‹{called}›");
        Some(self.add_task(key, function, file, 0, modules))
    }

    /// Returns the frame of a task that awaits another one. It has the name that the program has
    /// given to the task, or else that of its coroutine, which is `at` where the task continues.
    pub fn awaiting(
        &mut self,
        at: Option<Frame>,
        name: Option<&Arc<str>>,
        modules: &mut Modules,
    ) -> Frame {
        let key = Task {
            coroutine: at,
            said: Said::Awaits,
            name: self.known_name(name),
        };
        if let Some(frame) = self.tasks.get(&key) {
            return *frame;
        }
        let place = at.and_then(|at| self.names.get(at.address).ok());
        let called = key
            .name
            .as_ref()
            .or(place.as_ref().map(|place| &place.function));
        let function = match called {
            Some(called) => format!("task ‹{called}› awaits"),
            None => "a task awaits".into(),
        };
        let (file, line) = place.map_or(("".into(), 0), |place| (place.file, place.line));
        self.add_task(key, function, file, line, modules)
    }

    /// Returns the frame of several tasks that await one; `count` is 0 if their number is unknown.
    pub fn several(&mut self, count: u64, modules: &mut Modules) -> Frame {
        // Approximate words: the exact number changes too often to be useful.
        let function = match count {
            0 => "more tasks await".into(),
            1..=9 => format!("{count} tasks await"),
            10..=99 => "10 tasks or more await".into(),
            _ => "100 tasks or more await".into(),
        };
        let name = PythonName {
            function: function.into(),
            file: "".into(),
            line: 0,
        };
        self.frame(name, modules)
    }

    fn add_task(
        &mut self,
        key: Task,
        function: String,
        file: Arc<str>,
        line: u32,
        modules: &mut Modules,
    ) -> Frame {
        let name = PythonName {
            function: function.into(),
            file,
            line,
        };
        let frame = self.frame(name, modules);
        if self.tasks.len() >= TASKS_MAX {
            self.tasks.clear();
        }
        self.tasks.insert(key, frame);
        frame
    }

    /// Returns a name of a task, unless there are too many.
    fn known_name(&mut self, name: Option<&Arc<str>>) -> Option<Arc<str>> {
        let name = name?;
        let has_room = self.task_names.len() < TASK_NAMES_MAX;
        if !self.task_names.contains(name) {
            if !has_room {
                return None;
            }
            self.task_names.insert(name.clone());
        }
        Some(name.clone())
    }

    fn module(&mut self, file: &Arc<str>, modules: &mut Modules) -> ModuleId {
        if file.is_empty() {
            return self.no_file(modules);
        }
        if let Some(id) = self.files.get(file) {
            return *id;
        }
        if self.files.len() >= FILES_MAX {
            return self.no_file(modules);
        }
        let id = modules.python(Some(file.clone()), &self.names);
        self.files.insert(file.clone(), id);
        id
    }

    fn no_file(&mut self, modules: &mut Modules) -> ModuleId {
        let names = &self.names;
        *self
            .no_file
            .get_or_insert_with(|| modules.python(None, names))
    }
}
