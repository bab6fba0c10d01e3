//! The modules that frames are in, as used by the store and by the naming workers.

use crate::naming::NamedModule;
use crate::snapshot::NamesFrom;
use foldhash::HashMap;
use probe::ModuleKind;
use profile::{FrameKind, ModuleId, Store};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of files held open for the naming workers. Others are opened again by path.
const FILES_OPEN_MAX: usize = 256;

/// A module, described for the store and for the naming workers.
pub struct Described {
    /// The data for looking up names.
    pub named: Arc<NamedModule>,
    /// The kind of all frames in the module.
    pub kind: FrameKind,
    /// Short name, safe to print.
    pub name: String,
    /// Path or long name, safe to print.
    pub path: String,
    /// Build-id; empty if it has none.
    pub build_id: Arc<[u8]>,
    /// Whether the source location of any of its frames is known.
    pub has_lines: bool,
}

impl Described {
    fn new(module: &probe::Module) -> Self {
        let (name, path, kind) = describe(&module.kind);
        let build_id = match &module.kind {
            ModuleKind::File { build_id, .. } => build_id.as_deref().unwrap_or_default().into(),
            _ => Arc::default(),
        };
        Self {
            named: Arc::new(NamedModule::new(module)),
            kind,
            name,
            path,
            build_id,
            has_lines: false,
        }
    }

    /// Adds the module to the store, which drops modules that have no frame left.
    pub fn add_to(&self, id: ModuleId, store: &mut Store) {
        store.add_module(id, &self.name, &self.path);
        store.set_build_id(id, &self.build_id);
    }
}

/// How long a module is kept after the last sample that can have it: samples of several sources
/// may come in another order.
const LEAVES_AFTER: Duration = Duration::from_secs(10);

/// Every module of this run that a sample may have.
#[derive(Default)]
pub struct Modules {
    known: HashMap<ModuleId, Described>,
    /// Modules that no further sample will have, and since when.
    leaving: Vec<(ModuleId, Instant)>,
    /// Modules whose file is held open, the oldest first; at most [`FILES_OPEN_MAX`].
    open_files: VecDeque<Arc<NamedModule>>,
}

impl Modules {
    /// Adds a module that the source has reported.
    pub fn add(&mut self, module: &probe::Module) -> &Described {
        let described = Described::new(module);
        let is_open = match &module.kind {
            ModuleKind::File { file, .. } => file.is_some(),
            ModuleKind::Anonymous { directory, .. } => directory.is_some(),
            _ => false,
        };
        if is_open {
            self.keep_open(described.named.clone());
        }
        let id = ModuleId(module.id.0);
        self.known.entry(id).insert_entry(described).into_mut()
    }

    /// Records modules that no further sample will have. They leave when none of their samples is
    /// kept any more.
    pub fn note_gone(&mut self, modules: &[probe::ModuleId], now: Instant) {
        let ids = modules.iter().map(|module| (ModuleId(module.0), now));
        self.leaving.extend(ids);
    }

    /// Removes the modules that may leave. Is called for each snapshot.
    pub fn sweep(&mut self, store: &mut Store, now: Instant) {
        self.leaving.retain(|(id, since)| {
            let is_due = now.saturating_duration_since(*since) >= LEAVES_AFTER;
            let leaves = is_due && store.drop_unused_module(*id);
            if leaves {
                self.known.remove(id);
            }
            !leaves
        });
    }

    /// Remembers a module with an open descriptor; if there are too many, the oldest one is closed.
    fn keep_open(&mut self, module: Arc<NamedModule>) {
        self.open_files.push_back(module);
        if self.open_files.len() > FILES_OPEN_MAX
            && let Some(oldest) = self.open_files.pop_front()
        {
            oldest.close_file();
        }
    }

    /// Returns a module of this run; `None` if it was never reported.
    pub fn get(&self, id: ModuleId) -> Option<&Described> {
        self.known.get(&id)
    }

    /// Records that the source location of a frame of the module is known.
    pub fn found_lines(&mut self, id: ModuleId) {
        if let Some(described) = self.known.get_mut(&id) {
            described.has_lines = true;
        }
    }

    /// Name of a module; `-` if it is unknown.
    pub fn name(&self, id: ModuleId) -> Arc<str> {
        self.get(id).map_or("-", |described| &described.name).into()
    }

    /// Where the names of each module come from.
    pub fn names_from(&self) -> NamesFrom {
        let mut all = NamesFrom::default();
        for described in self.known.values() {
            if let Some(origin) = described.named.origin() {
                all.note(&described.name, origin, described.has_lines);
            }
        }
        all
    }
}

/// Returns short name, long name, and the kind of code of a module.
fn describe(kind: &ModuleKind) -> (String, String, FrameKind) {
    let same = |name: &str, kind| (name.to_string(), name.to_string(), kind);
    match kind {
        ModuleKind::Kernel => same("[kernel]", FrameKind::Kernel),
        ModuleKind::Vdso => same("[vdso]", FrameKind::User),
        ModuleKind::NarrowVdso { .. } => same("[vdso32]", FrameKind::User),
        ModuleKind::Vsyscall => same("[vsyscall]", FrameKind::User),
        ModuleKind::Anonymous { .. } => same("[anon]", FrameKind::Jit),
        ModuleKind::Python { file: None, .. } => same("[python]", FrameKind::Python),
        ModuleKind::Python {
            file: Some(file), ..
        } => {
            let name = file.rsplit('/').next().unwrap_or(file);
            (name.to_string(), file.to_string(), FrameKind::Python)
        }
        ModuleKind::Unmapped { .. } => same("[unmapped]", FrameKind::User),
        ModuleKind::File { path, .. } => {
            use std::os::unix::ffi::OsStrExt as _;
            let clean = |bytes: &[u8]| symbolize::sanitize(bytes).into_owned();
            let name = path.file_name().unwrap_or(path.as_os_str());
            (
                clean(name.as_bytes()),
                clean(path.as_os_str().as_bytes()),
                FrameKind::User,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Ending, Frame, Limits, NewSample, ProcessId};

    #[test]
    fn a_module_leaves_when_it_has_no_sample_and_will_have_none() {
        let mut store = Store::new(Limits::default());
        let mut modules = Modules::default();
        let ids = [1, 2].map(probe::ModuleId);
        for id in ids {
            let kind = ModuleKind::Unmapped {
                process: probe::ProcessId(1),
            };
            let user = 0;
            let described = modules.add(&probe::Module { id, kind, user });
            described.add_to(ModuleId(id.0), &mut store);
        }
        store.add_sample(NewSample {
            time_ns: 0,
            cpu: 0,
            process: ProcessId(1),
            tid: 1,
            comm: "program",
            frames: &[Frame {
                module: ModuleId(1),
                address: 16,
                kind: FrameKind::User,
            }],
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 1,
        });
        let now = Instant::now();
        modules.note_gone(&ids, now);
        modules.sweep(&mut store, now);
        assert!(modules.get(ModuleId(2)).is_some(), "a sample may be late");
        modules.sweep(&mut store, now + LEAVES_AFTER);
        assert!(modules.get(ModuleId(2)).is_none() && !store.has_module(ModuleId(2)));
        assert!(modules.get(ModuleId(1)).is_some() && store.has_module(ModuleId(1)));
    }
}
