//! Functions and lines of Python with a number each, the same for all processes: so that
//! the workers of one server are one function.

use crate::ids::ModuleId;
use crate::modules::Modules;
use crate::sample::{Frame, PythonName, PythonNames};
use std::collections::HashMap;
use std::sync::Arc;
use symbolize::Reason;

/// Files of Python; functions of further ones are in the module without a file.
const FILES_MAX: usize = 1 << 16;

/// Gives out the numbers.
#[derive(Debug, Default)]
pub struct Registry {
    names: Arc<PythonNames>,
    known: HashMap<PythonName, Frame>,
    files: HashMap<Arc<str>, ModuleId>,
    /// Frames whose code could not be read, by the reason.
    nameless: HashMap<Reason, Frame>,
    no_file: Option<ModuleId>,
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
