//! The modules of one crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules of one library or binary.
#[derive(Default)]
pub struct Crate {
    /// The modules; the first is the root, and every module comes after its parent.
    pub modules: Vec<Module>,
    /// For each macro that is defined by `macro_rules!`, the modules that define it: its scope is
    /// larger than the module.
    pub macros: BTreeMap<String, BTreeSet<usize>>,
}

/// One module, in a file of its own or inside of a file.
#[derive(Default)]
pub struct Module {
    /// Names from the root; empty for the root itself.
    pub path: Vec<String>,
    pub file: PathBuf,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// Names of functions, types, constants ... that are defined here.
    pub items: BTreeSet<String>,
    pub imports: Vec<Import>,
    /// Every path that is not an import.
    pub paths: Vec<PathInCode>,
    /// Names of macros that are called without a path.
    pub macro_calls: Vec<PathInCode>,
}

/// One name that a `use` brings into a module.
pub struct Import {
    /// Its name in the module. None for everything, by `*`.
    pub name: Option<String>,
    pub path: PathInCode,
}

/// A path as it is written: `crate`, `super`, `self` and names.
#[derive(Clone)]
pub struct PathInCode {
    pub names: Vec<String>,
    pub line: usize,
}

impl Crate {
    /// Returns the module with this path from the root.
    pub fn find(&self, path: &[String]) -> Option<usize> {
        path.iter().try_fold(0, |module, name| {
            self.modules[module].children.get(name).copied()
        })
    }

    /// Adds a new module inside of `parent`, and returns its number.
    pub fn add(&mut self, parent: Option<usize>, name: &str, file: &Path) -> usize {
        let new = self.modules.len();
        let mut path = Vec::new();
        if let Some(parent) = parent {
            path.clone_from(&self.modules[parent].path);
            path.push(name.into());
            self.modules[parent].children.insert(name.into(), new);
        }
        self.modules.push(Module {
            path,
            file: file.into(),
            parent,
            ..Module::default()
        });
        new
    }
}
