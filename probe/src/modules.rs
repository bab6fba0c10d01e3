//! Which file, or what else, a mapping is of: modules, each numbered once.

mod narrow_vdso;
mod roots;

use crate::ids::{ModuleId, ProcessId};
use crate::mappings::Backing;
use crate::sample::{Module, ModuleKind};
use crate::sideband::record::Identity;
use narrow_vdso::NarrowVdsos;
use roots::Roots;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use symbolize::object::Object;
use symbolize::{FileSource, JitNames, RemoteFiles, opener};

/// All modules of a run.
#[derive(Debug)]
pub struct Modules {
    by_build_id: HashMap<Vec<u8>, ModuleId>,
    by_inode: HashMap<InodeKey, ModuleId>,
    anonymous: HashMap<ProcessId, ModuleId>,
    unmapped: HashMap<ProcessId, ModuleId>,
    vdso: Option<ModuleId>,
    narrow_vdsos: NarrowVdsos,
    vsyscall: Option<ModuleId>,
    roots: Roots,
    next: u32,
    /// Not told yet.
    fresh: Vec<Module>,
}

/// A file as a mapping names it. The path is part of it because an inode
/// number is used again after an upgrade, and /proc tells no generation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct InodeKey {
    identity: Identity,
    path: Vec<u8>,
}

/// A mapping as the kernel tells of it.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    pub pid: u32,
    pub start: u64,
    pub end: u64,
    pub path: &'a [u8],
    pub identity: &'a Identity,
}

impl Modules {
    pub fn new() -> Self {
        let kernel = Module {
            id: ModuleId::KERNEL,
            kind: ModuleKind::Kernel,
        };
        Self {
            by_build_id: HashMap::new(),
            by_inode: HashMap::new(),
            anonymous: HashMap::new(),
            unmapped: HashMap::new(),
            vdso: None,
            narrow_vdsos: NarrowVdsos::default(),
            vsyscall: None,
            roots: Roots::new(),
            next: ModuleId::KERNEL.0 + 1,
            fresh: vec![kernel],
        }
    }

    /// The modules that are new since the last call.
    pub fn take_fresh(&mut self) -> Vec<Module> {
        std::mem::take(&mut self.fresh)
    }

    /// What a mapping is of.
    pub fn backing(&mut self, seen: &Seen<'_>) -> Backing {
        match seen.path {
            b"[vdso]" if narrow_vdso::is_narrow(seen) => Backing::Module(self.narrow_vdso(seen)),
            b"[vdso]" => Backing::Module(self.vdso()),
            b"[vsyscall]" => Backing::Module(self.vsyscall()),
            path if is_file(path) => Backing::Module(self.file(seen)),
            _ => Backing::Anonymous,
        }
    }

    /// Executable memory of a process that is of no file.
    pub fn anonymous(&mut self, process: ProcessId, pid: u32) -> ModuleId {
        if let Some(id) = self.anonymous.get(&process) {
            return *id;
        }
        let directory = JitNames::hold(pid).ok().map(Arc::new);
        let id = self.add(ModuleKind::Anonymous { process, directory });
        self.anonymous.insert(process, id);
        id
    }

    /// Addresses of a process that no known mapping holds.
    pub fn unmapped(&mut self, process: ProcessId) -> ModuleId {
        if let Some(id) = self.unmapped.get(&process) {
            return *id;
        }
        let id = self.add(ModuleKind::Unmapped { process });
        self.unmapped.insert(process, id);
        id
    }

    /// A process is gone; so is the memory that only it had.
    pub fn forget_process(&mut self, process: ProcessId) {
        self.anonymous.remove(&process);
        self.unmapped.remove(&process);
    }

    fn vdso(&mut self) -> ModuleId {
        if let Some(id) = self.vdso {
            return id;
        }
        *self.vdso.insert(Self::numbered(
            &mut self.next,
            &mut self.fresh,
            ModuleKind::Vdso,
        ))
    }

    fn narrow_vdso(&mut self, seen: &Seen<'_>) -> ModuleId {
        self.narrow_vdsos.find(seen, |image| {
            let kind = ModuleKind::NarrowVdso { image };
            Self::numbered(&mut self.next, &mut self.fresh, kind)
        })
    }

    fn vsyscall(&mut self) -> ModuleId {
        if let Some(id) = self.vsyscall {
            return id;
        }
        *self.vsyscall.insert(Self::numbered(
            &mut self.next,
            &mut self.fresh,
            ModuleKind::Vsyscall,
        ))
    }

    fn file(&mut self, seen: &Seen<'_>) -> ModuleId {
        let key = InodeKey {
            identity: *seen.identity,
            path: seen.path.to_vec(),
        };
        if let Some(id) = self.by_inode.get(&key) {
            return *id;
        }
        let id = self.add_file(seen);
        self.by_inode.insert(key, id);
        id
    }

    /// Opens the file now, while the process that maps it is most likely alive,
    /// so that it can be named when the process is gone.
    fn add_file(&mut self, seen: &Seen<'_>) -> ModuleId {
        let path = PathBuf::from(std::ffi::OsString::from_vec(seen.path.to_vec()));
        let Identity { device, inode, .. } = *seen.identity;
        let source = FileSource {
            pid: Some(seen.pid),
            range: Some((seen.start, seen.end)),
            device,
            inode,
            ..FileSource::new(&path)
        };
        let (file, unreadable) = match opener::open(&source, RemoteFiles::Skip) {
            Ok(file) => (Some(file), None),
            Err(reason) => (None, Some(reason)),
        };
        let object = file.as_ref().and_then(|file| Object::read(file).ok());
        let build_id = object.and_then(|object| object.build_id());
        // The same file may be known by another path or inode.
        if let Some(known) = build_id.as_ref().and_then(|id| self.by_build_id.get(id)) {
            return *known;
        }
        let status = file.as_ref().and_then(|file| rustix::fs::fstat(file).ok());
        let (device, inode) = status.map_or((device, inode), |status| {
            let (major, minor) = (
                rustix::fs::major(status.st_dev),
                rustix::fs::minor(status.st_dev),
            );
            ((major, minor), status.st_ino)
        });
        let root = self.roots.of(seen.pid);
        let id = self.add(ModuleKind::File {
            path,
            build_id: build_id.clone(),
            device,
            inode,
            file: file.map(|file| Arc::new(OwnedFd::from(file))),
            root,
            unreadable,
        });
        if let Some(build_id) = build_id {
            self.by_build_id.insert(build_id, id);
        }
        id
    }

    fn add(&mut self, kind: ModuleKind) -> ModuleId {
        Self::numbered(&mut self.next, &mut self.fresh, kind)
    }

    fn numbered(next: &mut u32, fresh: &mut Vec<Module>, kind: ModuleKind) -> ModuleId {
        let id = ModuleId(*next);
        *next += 1;
        fresh.push(Module { id, kind });
        id
    }
}

/// Whether a mapping's path is that of a file. Shared memory and descriptors
/// without a name hold code that was made at run time.
fn is_file(path: &[u8]) -> bool {
    const NO_FILES: [&[u8]; 4] = [b"//anon", b"/dev/zero", b"/SYSV", b"/memfd:"];
    path.starts_with(b"/") && !NO_FILES.iter().any(|prefix| path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen<'a>(path: &'a [u8], identity: &'a Identity) -> Seen<'a> {
        Seen {
            pid: std::process::id(),
            start: 0x1000,
            end: 0x2000,
            path,
            identity,
        }
    }

    #[test]
    fn what_is_a_file() {
        for (path, expected) in [
            (&b"/usr/bin/x"[..], true),
            (b"//anon", false),
            (b"/memfd:jit (deleted)", false),
            (b"/dev/zero (deleted)", false),
            (b"[heap]", false),
            (b"", false),
            (b"anon_inode:[perf]", false),
        ] {
            assert_eq!(is_file(path), expected, "{}", String::from_utf8_lossy(path));
        }
    }

    #[test]
    fn a_file_is_one_module_until_another_has_its_number() {
        let mut modules = Modules::new();
        let identity = Identity {
            device: (0, 0),
            inode: 7,
            generation: 1,
        };
        let first = modules.backing(&seen(b"/nowhere/a", &identity));
        assert_eq!(first, modules.backing(&seen(b"/nowhere/a", &identity)));
        assert_eq!(modules.take_fresh().len(), 2, "the kernel and the file");
        let replaced = Identity {
            generation: 2,
            ..identity
        };
        assert_ne!(first, modules.backing(&seen(b"/nowhere/a", &replaced)));
        assert_eq!(modules.take_fresh().len(), 1);
    }

    #[test]
    fn anonymous_memory_belongs_to_its_process() {
        let mut modules = Modules::new();
        let (one, two) = (ProcessId(1), ProcessId(2));
        let own = std::process::id();
        assert_ne!(modules.anonymous(one, own), modules.anonymous(two, own));
        assert_eq!(modules.anonymous(one, own), modules.anonymous(one, own));
        let held = |module: &Module| match &module.kind {
            ModuleKind::Anonymous { directory, .. } => directory.is_some(),
            _ => false,
        };
        assert_eq!(modules.take_fresh().iter().filter(|m| held(m)).count(), 2);
    }
}
