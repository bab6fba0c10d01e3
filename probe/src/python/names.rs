//! Functions and lines of Python with a number each, the same for all processes: so that
//! the workers of one server are one function.

use crate::ids::ModuleId;
use crate::modules::Modules;
use crate::sample::{Frame, PythonName, PythonNames};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use symbolize::Reason;

/// Files of Python; functions of further ones are in the module without a file.
const FILES_MAX: usize = 1 << 16;

/// Names of tasks; further ones are called as those without a name: programs may give each its
/// own.
const TASK_NAMES_MAX: usize = 1024;

/// Frames of tasks that are remembered.
const TASKS_MAX: usize = 1 << 16;

/// Gives out the numbers.
#[derive(Debug, Default)]
pub struct Registry {
    names: Arc<PythonNames>,
    known: HashMap<PythonName, Frame>,
    files: HashMap<Arc<str>, ModuleId>,
    /// Frames whose code could not be read, by the reason.
    nameless: HashMap<Reason, Frame>,
    no_file: Option<ModuleId>,
    /// Tasks, by a frame of their coroutine and what their program calls them.
    tasks: HashMap<(Frame, Option<Arc<str>>), Frame>,
    /// What programs call their tasks.
    task_names: HashSet<Arc<str>>,
}

impl Registry {
    /// The frame of a line.
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

    /// The frame of code that could not be read.
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

    /// The frame of a task whose coroutine has this frame: called as its program calls it, or else
    /// as the coroutine. `None` if that could not be read.
    pub fn task(
        &mut self,
        coroutine: Frame,
        name: Option<&Arc<str>>,
        modules: &mut Modules,
    ) -> Option<Frame> {
        let is_known = |name: &&Arc<str>| {
            self.task_names.contains(*name) || self.task_names.len() < TASK_NAMES_MAX
        };
        let name = name.filter(is_known).cloned();
        let key = (coroutine, name);
        if let Some(frame) = self.tasks.get(&key) {
            return Some(*frame);
        }
        self.task_names.extend(key.1.clone());
        let PythonName { function, file, .. } = self.names.get(coroutine.address).ok()?;
        let name = key.1.as_ref().unwrap_or(&function);
        let task = PythonName {
            function: format!("task ‹{name}›").into(),
            file,
            line: 0,
        };
        let frame = self.frame(task, modules);
        if self.tasks.len() >= TASKS_MAX {
            self.tasks.clear();
        }
        self.tasks.insert(key, frame);
        Some(frame)
    }

    fn module(&mut self, file: &Arc<str>, modules: &mut Modules) -> ModuleId {
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
        *{ &mut self.no_file }.get_or_insert_with(|| modules.python(None, names))
    }
}
