//! Finds the module of a mapping: a file or something else, each with one number.

mod files;
mod held;
mod inode_key;
mod narrow_vdso;
mod roots;

use crate::ids::{ModuleId, ProcessId};
use crate::mappings::Backing;
use crate::proc_maps;
use crate::sample::{Module, ModuleKind, PythonNames};
use crate::shares::NOBODY;
use crate::sideband::record::{Identity, Map};
use files::Files;
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use inode_key::InodeKey;
use narrow_vdso::NarrowVdsos;
use roots::Roots;
use rustix::fs::{major, minor};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use symbolize::object::Summary;
use symbolize::python::{Asyncio, Interpreter, Trampoline};
use symbolize::{FileIdentity, FileSource, Files as Way, JitNames, Reason};

/// The user whose files, like the kernel, exist on every machine.
const ROOT: u32 = 0;

/// Maximum number of kinds of Python's trampolines that have a table. CPython has four, with and
/// without room between them; a malicious process could have hundreds.
const TRAMPOLINES_MAX: usize = 8;

/// Maximum number of files of one module that are tried when it is opened again: copies of a program
/// are one module.
const COPIES_MAX: usize = 4;

/// All modules of a run.
#[derive(Debug)]
pub struct Modules {
    files: Files,
    anonymous: HashMap<ProcessId, ModuleId>,
    unmapped: HashMap<ProcessId, ModuleId>,
    vdso: Option<ModuleId>,
    trampolines: HashMap<Trampoline, ModuleId>,
    narrow_vdsos: NarrowVdsos,
    vsyscall: Option<ModuleId>,
    roots: Roots,
    way: Way,
    next: u32,
    /// Modules that were not reported to the engine yet.
    fresh: Vec<Module>,
    /// Files that may be Python interpreters.
    of_python: HashSet<ModuleId>,
    /// Modules that no sample will have any more and that were not reported as such yet.
    gone: Vec<ModuleId>,
}

/// A mapping as the kernel reports it.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    /// The process that has the mapping.
    pub pid: u32,
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// The path as the kernel reports it, or a name such as `[vdso]`.
    pub path: &'a [u8],
    /// Device and inode of the file, or its build-id.
    pub identity: &'a Identity,
}

impl Modules {
    /// Starts with the kernel as the only module.
    pub fn new() -> Self {
        let kernel = Module {
            id: ModuleId::KERNEL,
            kind: ModuleKind::Kernel,
            user: ROOT,
        };
        Self {
            files: Files::default(),
            anonymous: HashMap::new(),
            unmapped: HashMap::new(),
            vdso: None,
            trampolines: HashMap::new(),
            narrow_vdsos: NarrowVdsos::default(),
            vsyscall: None,
            roots: Roots::new(),
            way: crate::files::for_sampler(),
            next: ModuleId::KERNEL.0 + 1,
            fresh: vec![kernel],
            of_python: HashSet::new(),
            gone: Vec::new(),
        }
    }

    /// Whether a file may be a part of Python that is read, judging by its content.
    pub fn may_be_of_python(&self, module: ModuleId) -> bool {
        self.of_python.contains(&module)
    }

    /// Returns the modules that are new since the last call.
    pub fn take_fresh(&mut self) -> Vec<Module> {
        std::mem::take(&mut self.fresh)
    }

    /// Begins a turn: files may have changed since they were last checked.
    pub fn begin_turn(&mut self) {
        self.files.begin_turn();
    }

    /// Checks the files of the mappings of a process that are passed to [`Modules::backing`] next;
    /// those that are known already are checked together.
    pub fn look_at(&mut self, pid: u32, maps: &[&Map]) {
        self.files.look_at(pid, maps, &self.way);
    }

    /// Returns what a mapping is backed by. An unknown file is opened if that is still allowed:
    /// `may_open` is how many more may be opened for this process. `None` if it is not allowed.
    pub fn backing(&mut self, seen: &Seen<'_>, may_open: &mut usize) -> Option<Backing> {
        Some(match seen.path {
            b"[vdso]" if narrow_vdso::is_narrow(seen) => Backing::Module(self.narrow_vdso(seen)),
            b"[vdso]" => Backing::Module(self.vdso()),
            b"[vsyscall]" => Backing::Module(self.vsyscall()),
            path if proc_maps::is_file(path) => Backing::Module(self.file(seen, may_open)?),
            _ => Backing::Anonymous,
        })
    }

    /// Returns the module for executable memory of a process that belongs to no file.
    pub fn anonymous(&mut self, process: ProcessId, pid: u32, user: u32) -> ModuleId {
        if let Some(id) = self.anonymous.get(&process) {
            return *id;
        }
        let directory = JitNames::hold(pid).ok().map(Arc::new);
        let id = self.add(ModuleKind::Anonymous { process, directory }, user);
        self.anonymous.insert(process, id);
        id
    }

    /// Returns the module for executable memory of a process without a file, if it has one already.
    pub fn anonymous_of(&self, process: ProcessId) -> Option<ModuleId> {
        self.anonymous.get(&process).copied()
    }

    /// Returns the number of the module for a kind of Python's trampolines, and whether it is new.
    /// The module is not announced to the engine, as no frame ever belongs to it. `None` for kinds
    /// beyond [`TRAMPOLINES_MAX`].
    pub fn trampolines(&mut self, kind: Trampoline) -> Option<(ModuleId, bool)> {
        if let Some(id) = self.trampolines.get(&kind) {
            return Some((*id, false));
        }
        if self.trampolines.len() >= TRAMPOLINES_MAX {
            return None;
        }
        let id = ModuleId(self.next);
        self.next += 1;
        self.trampolines.insert(kind, id);
        Some((id, true))
    }

    /// Returns the module for addresses of a process that are in no known mapping.
    pub fn unmapped(&mut self, process: ProcessId) -> ModuleId {
        if let Some(id) = self.unmapped.get(&process) {
            return *id;
        }
        let id = self.add(ModuleKind::Unmapped { process }, NOBODY);
        self.unmapped.insert(process, id);
        id
    }

    /// Returns the module for Python functions in a file; without a file, for those whose code
    /// could not be read.
    pub fn python(&mut self, file: Option<Arc<str>>, names: &Arc<PythonNames>) -> ModuleId {
        let names = names.clone();
        self.add(ModuleKind::Python { file, names }, NOBODY)
    }

    /// Returns the access to files of targets and to /proc.
    pub fn way(&self) -> &Way {
        &self.way
    }

    /// Removes what belongs to a process that has ended, such as the module of its anonymous
    /// memory.
    pub fn forget_process(&mut self, process: ProcessId) {
        self.gone.extend(self.anonymous.remove(&process));
        self.gone.extend(self.unmapped.remove(&process));
    }

    /// Forgets files that no process maps. One that is mapped again later is another module.
    pub fn forget_files(&mut self, files: Vec<ModuleId>) {
        let forgotten: HashSet<ModuleId> = files.into_iter().collect();
        self.files.forget(&forgotten);
        self.of_python.retain(|file| !forgotten.contains(file));
        self.gone.extend(forgotten);
    }

    /// Returns the modules that no sample will have any more, since the last call.
    pub fn take_gone(&mut self) -> Vec<ModuleId> {
        std::mem::take(&mut self.gone)
    }

    fn vdso(&mut self) -> ModuleId {
        if let Some(id) = self.vdso {
            return id;
        }
        *self.vdso.insert(Self::numbered(
            &mut self.next,
            &mut self.fresh,
            ModuleKind::Vdso,
            ROOT,
        ))
    }

    fn narrow_vdso(&mut self, seen: &Seen<'_>) -> ModuleId {
        self.narrow_vdsos.find(seen, &self.way, |image| {
            let kind = ModuleKind::NarrowVdso { image };
            Self::numbered(&mut self.next, &mut self.fresh, kind, NOBODY)
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
            ROOT,
        ))
    }

    fn file(&mut self, seen: &Seen<'_>, may_open: &mut usize) -> Option<ModuleId> {
        let key = InodeKey::of(seen);
        let known = self.files.find(&key, seen, &self.way);
        known.or_else(|| {
            *may_open = may_open.checked_sub(1)?;
            Some(self.add_file(key, seen))
        })
    }

    /// Opens the file now, while the process that maps it is most likely alive, so that its functions
    /// can be named after the process has ended.
    fn add_file(&mut self, key: InodeKey, seen: &Seen<'_>) -> ModuleId {
        let opened = self.open(seen);
        let (identity, build_id) = (opened.identity.clone(), opened.build_id());
        let known = opened.module_in(&self.files);
        let id = known.unwrap_or_else(|| {
            let may_be_of_python = opened.may_be_of_python();
            let user = opened.user();
            let kind = self.kind(opened, seen);
            let id = self.add(kind, user);
            if may_be_of_python {
                self.of_python.insert(id);
            }
            id
        });
        self.files.insert(key, identity, build_id.as_deref(), id);
        id
    }

    /// Opens the file of a known module again, which is mapped in this range of a process. `None`
    /// if it cannot be opened any more, or if it is another file by now.
    pub fn open_again(&mut self, module: ModuleId, pid: u32, range: (u64, u64)) -> Option<Module> {
        for key in self.files.keys_of(module, COPIES_MAX) {
            let seen = key.seen(pid, range);
            let opened = self.open(&seen);
            if opened.module_in(&self.files) == Some(module) {
                let user = opened.user();
                let kind = self.kind(opened, &seen);
                let id = module;
                return Some(Module { id, kind, user });
            }
        }
        None
    }

    /// Opens a file. The reader process that opens it also reads its headers: this thread may load
    /// BPF programs, and a hostile file that finds a mistake in our reading of headers would gain
    /// that right.
    fn open(&self, seen: &Seen<'_>) -> Opened {
        let path = PathBuf::from(std::ffi::OsString::from_vec(seen.path.to_vec()));
        let Identity { device, inode, .. } = *seen.identity;
        let source = FileSource {
            pid: Some(seen.pid),
            range: Some((seen.start, seen.end)),
            device,
            inode,
            ..FileSource::new(&path)
        };
        let (file, summary) = match self.way.open_summarized(&source) {
            Ok((file, summary)) => (Ok(file), summary.map(Arc::new)),
            Err(reason) => (Err(reason), Err(reason)),
        };
        let identity = file.as_ref().ok();
        let identity = identity.and_then(|file| FileIdentity::of(file).ok());
        Opened {
            path,
            file,
            summary,
            identity,
        }
    }

    /// Describes a file that was opened as it is mapped in a process.
    fn kind(&mut self, opened: Opened, seen: &Seen<'_>) -> ModuleKind {
        let number = opened.identity.as_ref().map(|identity| &identity.revision);
        let told = (seen.identity.device, seen.identity.inode);
        let (device, inode) = number.map_or(told, |number| {
            let (major, minor) = (major(number.device()), minor(number.device()));
            ((major, minor), number.inode())
        });
        let build_id = opened.build_id();
        let (file, unreadable) = match opened.file {
            Ok(file) => (Some(Arc::new(OwnedFd::from(file))), None),
            Err(reason) => (None, Some(reason)),
        };
        ModuleKind::File {
            path: opened.path,
            build_id,
            device,
            inode,
            identity: opened.identity,
            file,
            summary: opened.summary,
            root: self.roots.of(seen.pid, &self.way),
            unreadable,
        }
    }

    fn add(&mut self, kind: ModuleKind, user: u32) -> ModuleId {
        Self::numbered(&mut self.next, &mut self.fresh, kind, user)
    }

    fn numbered(next: &mut u32, fresh: &mut Vec<Module>, kind: ModuleKind, user: u32) -> ModuleId {
        let id = ModuleId(*next);
        *next += 1;
        fresh.push(Module { id, kind, user });
        id
    }
}

/// A file of a mapping, after an attempt to open it.
struct Opened {
    path: PathBuf,
    file: Result<File, Reason>,
    summary: Result<Arc<Summary>, Reason>,
    /// `None` if it could not be opened.
    identity: Option<FileIdentity>,
}

impl Opened {
    fn build_id(&self) -> Option<Vec<u8>> {
        self.summary.as_deref().ok()?.build_id.clone()
    }

    /// Returns the existing module that the file belongs to, if there is one.
    fn module_in(&self, files: &Files) -> Option<ModuleId> {
        files.join(self.identity.as_ref()?, self.build_id().as_deref())
    }

    /// The user who controls the content of the file.
    fn user(&self) -> u32 {
        let identity = self.identity.as_ref();
        let writer = identity.and_then(|file| file.writers.only());
        writer.unwrap_or(NOBODY)
    }

    fn may_be_of_python(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        let summary = self.summary.as_deref();
        summary.is_ok_and(|summary| is_of_python(summary, name))
    }
}

fn is_of_python(summary: &Summary, file_name: &[u8]) -> bool {
    Interpreter::may_be(summary, file_name) || Asyncio::may_be(summary, file_name)
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

    fn backing(modules: &mut Modules, seen: &Seen<'_>) -> Backing {
        modules.backing(seen, &mut 1).unwrap()
    }

    #[test]
    fn no_more_files_are_opened_than_are_allowed() {
        let mut modules = Modules::new();
        let identity = |inode| Identity {
            device: (0, 0),
            inode,
            generation: 1,
        };
        let mut may_open = 1;
        let mut backing =
            |inode| modules.backing(&seen(b"/nowhere/a", &identity(inode)), &mut may_open);
        let first = backing(1);
        assert!(first.is_some());
        assert_eq!(backing(2), None);
        assert_eq!(backing(1), first, "it is known");
    }

    #[test]
    fn a_file_is_one_module_until_another_has_its_number() {
        let mut modules = Modules::new();
        let identity = Identity {
            device: (0, 0),
            inode: 7,
            generation: 1,
        };
        let first = backing(&mut modules, &seen(b"/nowhere/a", &identity));
        assert_eq!(
            first,
            backing(&mut modules, &seen(b"/nowhere/a", &identity))
        );
        assert_eq!(modules.take_fresh().len(), 2, "the kernel and the file");
        let replaced = Identity {
            generation: 2,
            ..identity
        };
        assert_ne!(
            first,
            backing(&mut modules, &seen(b"/nowhere/a", &replaced))
        );
        assert_eq!(modules.take_fresh().len(), 1);
    }

    /// Returns the module that a file is assigned to, as if its process had ended: it is opened by
    /// its path.
    fn module_of(modules: &mut Modules, path: &std::path::Path) -> ModuleId {
        use std::os::unix::ffi::OsStrExt as _;
        use std::os::unix::fs::MetadataExt as _;
        let file = std::fs::metadata(path).unwrap();
        let identity = Identity {
            device: (major(file.dev()), minor(file.dev())),
            inode: file.ino(),
            generation: 0,
        };
        let seen = seen(path.as_os_str().as_bytes(), &identity);
        match backing(modules, &seen) {
            Backing::Module(module) => module,
            _ => unreachable!("it is a file"),
        }
    }

    /// Makes copies of a program that has a build-id; `None` if this machine has none.
    fn copies<const N: usize>(names: [&str; N]) -> Option<(tempfile::TempDir, [PathBuf; N])> {
        let program = std::fs::canonicalize("/bin/sh").unwrap();
        let summary = Summary::read(&std::fs::File::open(&program).unwrap()).unwrap();
        if summary.build_id.is_none() {
            test_support::skip(format_args!("{} has no build-id", program.display()));
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let copies = names.map(|name| directory.path().join(name));
        for copy in &copies {
            std::fs::copy(&program, copy).unwrap();
        }
        Some((directory, copies))
    }

    #[test]
    fn a_file_of_another_length_is_another_module() {
        use std::io::Write as _;
        // Stripping a copy shortens it like this.
        let Some((_directory, [whole, shorter])) = copies(["whole", "shorter"]) else {
            return;
        };
        let mut file = std::fs::File::options().append(true).open(&whole).unwrap();
        file.write_all(b"names").unwrap();
        drop(file);
        let mut modules = Modules::new();
        let first = module_of(&mut modules, &whole);
        assert_ne!(module_of(&mut modules, &shorter), first);
    }

    #[test]
    fn a_forgotten_file_is_another_module() {
        let Some((_directory, [file])) = copies(["file"]) else {
            return;
        };
        let mut modules = Modules::new();
        let first = module_of(&mut modules, &file);
        assert_eq!(module_of(&mut modules, &file), first);
        modules.forget_files(vec![first]);
        assert_eq!(modules.take_gone(), [first]);
        assert_ne!(module_of(&mut modules, &file), first);
        assert_eq!(modules.take_gone(), []);
    }

    #[test]
    fn a_file_is_opened_again_as_long_as_it_is_the_same() {
        let Some((_directory, [file, other])) = copies(["file", "other"]) else {
            return;
        };
        let mut modules = Modules::new();
        let module = module_of(&mut modules, &file);
        let again = modules.open_again(module, std::process::id(), (0x1000, 0x2000));
        let again = again.expect("it is there");
        assert_eq!(again.id, module);
        assert!(matches!(again.kind, ModuleKind::File { file: Some(_), .. }));
        assert!(
            modules.take_fresh().iter().all(|fresh| fresh.id <= module),
            "the engine was told of it before"
        );
        std::fs::write(&other, b"another program").unwrap();
        std::fs::rename(&other, &file).unwrap();
        let again = modules.open_again(module, std::process::id(), (0x1000, 0x2000));
        assert!(again.is_none());
    }

    #[test]
    fn a_build_id_joins_the_files_of_one_user() {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        let Some((_directory, [ours, same, shared, theirs])) =
            copies(["ours", "same", "shared", "theirs"])
        else {
            return;
        };
        let for_all = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&shared, for_all).unwrap();
        let is_given = chown(&theirs, Some(60_001), None).is_ok();
        for is_first in [true, false] {
            let mut modules = Modules::new();
            let mut others = Vec::new();
            if is_first {
                others.push(module_of(&mut modules, &shared));
                others.push(module_of(&mut modules, &theirs));
            }
            let first = module_of(&mut modules, &ours);
            assert_eq!(module_of(&mut modules, &same), first);
            if !is_first {
                others.push(module_of(&mut modules, &shared));
                others.push(module_of(&mut modules, &theirs));
            }
            assert_ne!(others[0], first, "anybody can have written it");
            if is_given {
                assert_ne!(others[1], first, "somebody else wrote it");
            }
        }
    }

    #[test]
    fn a_file_is_itself_by_any_path_until_it_is_written_to() {
        use std::io::Write as _;
        let Some((directory, [file])) = copies(["file"]) else {
            return;
        };
        let link = directory.path().join("link");
        std::fs::hard_link(&file, &link).unwrap();
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&file, everybody).unwrap();
        let mut modules = Modules::new();
        let first = module_of(&mut modules, &file);
        assert_eq!(module_of(&mut modules, &link), first);
        let mut written = std::fs::File::options().append(true).open(&file).unwrap();
        written.write_all(b"more").unwrap();
        // A path that was not checked before.
        let third = directory.path().join("third");
        std::fs::hard_link(&file, &third).unwrap();
        assert_ne!(module_of(&mut modules, &third), first);
    }

    /// Answers how files were last written, by their index in the request: the process that is said
    /// to map them does not map any.
    #[derive(Debug)]
    struct Looks {
        revisions: Vec<symbolize::revision::Revision>,
        asked: std::sync::atomic::AtomicUsize,
    }

    impl symbolize::files::Proxy for Looks {
        fn perform(
            &self,
            request: &symbolize::files::Request<'_>,
            remote: symbolize::RemoteFiles,
        ) -> Result<symbolize::files::Reply, symbolize::Reason> {
            let symbolize::files::Request::MappedRevisions { ranges, .. } = request else {
                return Way::from(remote).perform(request);
            };
            self.asked
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(ranges.len(), self.revisions.len());
            let words = self.revisions.iter().flat_map(|revision| {
                let words = std::iter::once(1).chain(revision.to_words());
                words.flat_map(u64::to_le_bytes)
            });
            Ok(symbolize::files::Reply {
                bytes: words.collect(),
                ..Default::default()
            })
        }
    }

    #[test]
    fn known_files_of_a_process_are_looked_at_together() {
        use std::os::unix::ffi::OsStrExt as _;
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let Some((_directory, paths)) = copies(["same", "written"]) else {
            return;
        };
        for path in &paths {
            // For a file that anybody can write to, only the revision counts.
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let mut modules = Modules::new();
        modules.way = Way::default();
        let before: Vec<_> = paths
            .iter()
            .map(|path| module_of(&mut modules, path))
            .collect();
        std::fs::OpenOptions::new()
            .append(true)
            .open(&paths[1])
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"more"))
            .unwrap();
        let revision = |path| {
            let file = std::fs::File::open(path).unwrap();
            FileIdentity::of(&file).unwrap().revision
        };
        let looks = Arc::new(Looks {
            revisions: paths.iter().map(revision).collect(),
            asked: 0.into(),
        });
        modules.way = Way::by(looks.clone());
        modules.begin_turn();
        let map = |(index, path): (usize, &PathBuf)| {
            let file = std::fs::metadata(path).unwrap();
            Map {
                pid: std::process::id(),
                start: 0x1000 * (index as u64 + 1),
                length: 0x1000,
                file_offset: 0,
                path: path.as_os_str().as_bytes().to_vec(),
                identity: Identity {
                    device: (major(file.dev()), minor(file.dev())),
                    inode: file.ino(),
                    generation: 0,
                },
            }
        };
        let maps: Vec<Map> = paths.iter().enumerate().map(map).collect();
        modules.look_at(std::process::id(), &maps.iter().collect::<Vec<_>>());
        let after: Vec<_> = paths
            .iter()
            .map(|path| module_of(&mut modules, path))
            .collect();
        assert_eq!(after[0], before[0]);
        assert_ne!(after[1], before[1], "it was written to");
        assert_eq!(looks.asked.load(std::sync::atomic::Ordering::Relaxed), 1);
    }

    /// Counts how often it is asked how files were last written.
    #[derive(Debug, Default)]
    struct Counting {
        asked: std::sync::atomic::AtomicUsize,
    }

    impl symbolize::files::Proxy for Counting {
        fn perform(
            &self,
            request: &symbolize::files::Request<'_>,
            remote: symbolize::RemoteFiles,
        ) -> Result<symbolize::files::Reply, symbolize::Reason> {
            if let symbolize::files::Request::MappedRevisions { .. } = request {
                self.asked
                    .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            Way::from(remote).perform(request)
        }
    }

    #[test]
    fn a_file_that_is_mapped_again_and_again_is_held_and_still_checked() {
        use std::os::unix::fs::MetadataExt as _;
        let Some((directory, [file])) = copies(["file"]) else {
            return;
        };
        let device = |path: &std::path::Path| std::fs::metadata(path).unwrap().dev();
        if device(directory.path()) != device(std::path::Path::new("/")) {
            test_support::skip(format_args!("temporary files are on another file system"));
            return;
        }
        let mut modules = Modules::new();
        let counting = Arc::new(Counting::default());
        modules.way = Way::by(counting.clone());
        let first = module_of(&mut modules, &file);
        for turn in 1..6 {
            modules.begin_turn();
            assert_eq!(module_of(&mut modules, &file), first);
            let asked = counting.asked.load(std::sync::atomic::Ordering::Relaxed);
            assert_eq!(asked, turn.min(2), "in turn {turn}");
        }
        std::fs::OpenOptions::new()
            .append(true)
            .open(&file)
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"more"))
            .unwrap();
        modules.begin_turn();
        assert_ne!(module_of(&mut modules, &file), first, "it was written to");
    }

    #[test]
    fn anonymous_memory_belongs_to_its_process() {
        let mut modules = Modules::new();
        let (one, two) = (ProcessId(1), ProcessId(2));
        let own = std::process::id();
        assert_ne!(
            modules.anonymous(one, own, 7),
            modules.anonymous(two, own, 7)
        );
        assert_eq!(
            modules.anonymous(one, own, 7),
            modules.anonymous(one, own, 7)
        );
        let held = |module: &Module| match &module.kind {
            ModuleKind::Anonymous { directory, .. } => directory.is_some(),
            _ => false,
        };
        assert_eq!(modules.take_fresh().iter().filter(|m| held(m)).count(), 2);
    }
}
