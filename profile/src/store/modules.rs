//! The modules that frames lie in: how they are called, short and long.

use crate::ModuleId;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(crate) struct Module {
    pub(crate) name: Arc<str>,
    pub(crate) path: Arc<str>,
}

#[derive(Debug, Default)]
pub(crate) struct Modules {
    modules: HashMap<ModuleId, Module>,
    letters: usize,
}

/// What an entry costs beside its letters.
const BYTES_PER_MODULE: usize = 96;

/// Shown for a module that nobody described.
const UNKNOWN: &str = "[unknown]";

impl Modules {
    pub(crate) fn add(&mut self, id: ModuleId, name: &str, path: &str) {
        let module = Module {
            name: name.into(),
            path: path.into(),
        };
        self.letters += name.len() + path.len();
        if let Some(before) = self.modules.insert(id, module) {
            self.letters -= before.name.len() + before.path.len();
        }
    }

    pub(crate) fn contains(&self, id: ModuleId) -> bool {
        self.modules.contains_key(&id)
    }

    pub(crate) fn get(&self, id: ModuleId) -> Module {
        self.modules.get(&id).cloned().unwrap_or_else(|| Module {
            name: UNKNOWN.into(),
            path: UNKNOWN.into(),
        })
    }

    pub(crate) fn remove(&mut self, id: ModuleId) {
        if let Some(module) = self.modules.remove(&id) {
            self.letters -= module.name.len() + module.path.len();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.modules.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.modules.len() * BYTES_PER_MODULE + self.letters
    }
}
