//! The modules that frames lie in, with their short and long names.

use crate::ModuleId;
use crate::few;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

/// The description of a file, or of the kernel, that contains code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    /// Short name, as rows show it: `libc.so.6`, `[kernel]`.
    pub(crate) name: Arc<str>,
    /// Path of the file, as its process saw it.
    pub(crate) path: Arc<str>,
    /// Build-id; empty if there is none, or if unknown.
    pub(crate) build_id: Arc<[u8]>,
}

impl Module {
    /// The module without a name, of frames that are not places in programs.
    pub(crate) fn none() -> Self {
        Self {
            name: Arc::default(),
            path: Arc::default(),
            build_id: Arc::default(),
        }
    }
}

/// The part that is shared with views.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModuleTable(Arc<HashMap<ModuleId, Module>>);

impl ModuleTable {
    /// Returns the description of a module; a placeholder if there is none.
    pub(crate) fn get(&self, id: ModuleId) -> Module {
        self.0.get(&id).cloned().unwrap_or_else(|| Module {
            name: UNKNOWN.into(),
            path: UNKNOWN.into(),
            build_id: Arc::default(),
        })
    }

    pub(crate) fn contains(&self, id: ModuleId) -> bool {
        self.0.contains_key(&id)
    }

    /// Returns the modules without build-ids, so that builds of a file cannot be told apart.
    pub(crate) fn without_build_ids(&self) -> Self {
        let bare = self.0.iter().map(|(id, module)| {
            let build_id = Arc::default();
            (
                *id,
                Module {
                    build_id,
                    ..module.clone()
                },
            )
        });
        Self(Arc::new(bare.collect()))
    }

    /// Returns the modules with their paths replaced by `path`.
    pub(crate) fn moved(&self, mut path: impl FnMut(&Arc<str>) -> Arc<str>) -> Self {
        // Sorted, so that the order is the same each time.
        let mut all: Vec<(&ModuleId, &Module)> = self.0.iter().collect();
        few::sort_by_key(&mut all, |(id, _)| **id);
        let moved = all.into_iter().map(|(id, module)| {
            let module = Module {
                path: path(&module.path),
                ..module.clone()
            };
            (*id, module)
        });
        Self(Arc::new(moved.collect()))
    }
}

/// Path and build-id of a file, which identify it on several machines.
type FileKey = (Arc<str>, Arc<[u8]>);

/// The part that only the store has; it decides when a description may be dropped.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    table: ModuleTable,
    /// Number of frames in the table of frames, by module, described or not.
    frames: HashMap<ModuleId, u32>,
    /// The first module with each path and build-id; `None` if equal modules are not joined.
    firsts: Option<HashMap<FileKey, ModuleId>>,
    /// For each joined module the module whose functions it shares; the first one is in it, too. An
    /// entry stays when its module is dropped: frames of it may occur again.
    joined: HashMap<ModuleId, ModuleId>,
    letters: usize,
}

/// Memory of an entry in addition to its text.
const BYTES_PER_MODULE: usize = 128;

/// The name shown for a module without a description.
const UNKNOWN: &str = "[unknown]";

impl Modules {
    /// Describes a module, or changes its description; its build-id stays.
    pub(crate) fn add(&mut self, id: ModuleId, name: &str, path: &str) {
        self.letters += name.len() + path.len();
        let modules = Arc::make_mut(&mut self.table.0);
        let build_id = modules.get(&id).map(|module| module.build_id.clone());
        let module = Module {
            name: name.into(),
            path: path.into(),
            build_id: build_id.unwrap_or_default(),
        };
        if let Some(before) = modules.insert(id, module) {
            self.letters -= before.name.len() + before.path.len();
        }
    }

    /// Sets the build-id of a module that was described.
    pub(crate) fn set_build_id(&mut self, id: ModuleId, build_id: &[u8]) {
        if let Some(module) = Arc::make_mut(&mut self.table.0).get_mut(&id) {
            module.build_id = build_id.into();
            self.join(id);
        }
    }

    /// From now on the functions of modules with equal path and build-id are counted together.
    pub(crate) fn join_equal(&mut self) {
        self.firsts.get_or_insert_default();
    }

    /// Returns the module whose functions this module shares: itself, unless it was joined.
    pub(crate) fn whole(&self, id: ModuleId) -> ModuleId {
        self.joined.get(&id).copied().unwrap_or(id)
    }

    /// Whether the functions of this module may belong to other modules, too.
    pub(crate) fn is_joined(&self, id: ModuleId) -> bool {
        self.joined.contains_key(&id)
    }

    /// Joins a module with the first one of its path and build-id.
    fn join(&mut self, id: ModuleId) {
        let Some(firsts) = &mut self.firsts else {
            return;
        };
        let Some(module) = self.table.0.get(&id) else {
            return;
        };
        let key = (Arc::clone(&module.path), Arc::clone(&module.build_id));
        let first = *firsts.entry(key).or_insert(id);
        if first != id {
            self.joined.insert(id, first);
            self.joined.insert(first, first);
        }
    }

    /// Counts a new frame of a module.
    pub(crate) fn add_frame(&mut self, id: ModuleId) {
        *self.frames.entry(id).or_default() += 1;
    }

    /// Counts a released frame. With a module's last frame its description is dropped; a module
    /// that never had a frame stays, as its samples may still arrive.
    pub(crate) fn drop_frame(&mut self, id: ModuleId) {
        let Some(frames) = self.frames.get_mut(&id) else {
            return;
        };
        *frames -= 1;
        if *frames > 0 {
            return;
        }
        self.frames.remove(&id);
        self.remove(id);
    }

    /// Drops the description of a module whose samples can arrive no more, if it has no frame.
    /// Returns whether it has none.
    pub(crate) fn drop_unused(&mut self, id: ModuleId) -> bool {
        let is_unused = !self.frames.contains_key(&id);
        if is_unused && self.contains(id) {
            self.remove(id);
        }
        is_unused
    }

    fn remove(&mut self, id: ModuleId) {
        if let Some(module) = Arc::make_mut(&mut self.table.0).remove(&id) {
            self.letters -= module.name.len() + module.path.len();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.table.0.len()
    }

    pub(crate) fn table(&self) -> &ModuleTable {
        &self.table
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let counts = self.frames.len() * size_of::<(ModuleId, u32)>() * 2
            + self.joined.len() * size_of::<(ModuleId, ModuleId)>() * 2;
        self.table.0.len() * BYTES_PER_MODULE + counts + self.letters
    }
}

impl Deref for Modules {
    type Target = ModuleTable;

    fn deref(&self) -> &ModuleTable {
        &self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBC: ModuleId = ModuleId(1);

    #[test]
    fn a_description_leaves_with_the_last_frame() {
        let mut modules = Modules::default();
        modules.add_frame(LIBC);
        modules.add(LIBC, "libc.so.6", "/lib/libc.so.6");
        modules.add_frame(LIBC);
        modules.drop_frame(LIBC);
        assert_eq!(&*modules.get(LIBC).name, "libc.so.6");
        modules.drop_frame(LIBC);
        modules.drop_frame(LIBC);
        assert_eq!(&*modules.get(LIBC).name, UNKNOWN);
        assert_eq!(modules.memory_bytes(), 0);
    }

    #[test]
    fn the_latest_description_counts() {
        let mut modules = Modules::default();
        modules.add(LIBC, "libc-2.36.so", "/lib/libc-2.36.so");
        modules.add(LIBC, "libc.so.6", "/lib/libc.so.6");
        assert_eq!(&*modules.get(LIBC).path, "/lib/libc.so.6");
        assert_eq!((modules.count(), modules.letters), (1, 9 + 14));
    }
}
