//! Processes and their mappings, as the records describe them.
//!
//! Records have to be added in the order of time, so that a sample sees the mappings of that
//! moment. With them an address becomes a place in a file, which can be named later:
//!
//! ```text
//! user:    address − start of the mapping + its offset in the file
//! kernel:  address − `_text`
//! module:  address − where the module was loaded
//! ```

use super::KERNEL;
use super::cursor::Cursor;
use super::header::zero_ended;
use super::record::{COMM_EXEC, Head, KERNEL_MODE, MAP_HAS_BUILD_ID, MMAP2};
use crate::formats::FormatError;
use crate::formats::import::{Import, Link, kind_of};
use crate::{Frame, FrameKind, ModuleId, NoName};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Maximum number of processes and mappings, all processes together.
const MAPS_MAX: usize = 8 << 20;
const PROCESSES_MAX: usize = 1 << 20;

/// The state of all processes. The reader adds all records except samples, and looks up the frames
/// of samples.
#[derive(Debug, Default)]
pub(super) struct Machine {
    processes: HashMap<u32, Process>,
    /// Names of threads, by tid.
    comms: HashMap<u32, Arc<str>>,
    /// Number of mappings and processes so far, limited by `MAPS_MAX`; mappings of ended processes
    /// are subtracted.
    maps: usize,
    /// Mappings of the kernel's modules.
    kernel: Space,
    /// Address of the kernel's `_text`.
    text: Option<u64>,
    /// Code of BPF programs: by start, the end and the name.
    bpf: BTreeMap<u64, (u64, Arc<str>)>,
    /// Build-ids from mapping records. They are more reliable than those of the header, as the
    /// kernel read them when the file was mapped.
    build_ids: Vec<(ModuleId, Vec<u8>)>,
}

/// A process in its current state. A fork shares the address space until parent or child maps
/// something.
#[derive(Debug, Clone, Default)]
struct Process {
    comm: Arc<str>,
    space: Arc<Space>,
}

/// The mappings of an address space by their start; they never overlap.
#[derive(Debug, Clone, Default)]
struct Space(BTreeMap<u64, Map>);

#[derive(Debug, Clone, Copy)]
struct Map {
    end: u64,
    /// Offset in the file at the start of the mapping.
    offset: u64,
    module: ModuleId,
    kind: FrameKind,
}

impl Space {
    /// Inserts a mapping over what was there: as with `mmap`, older mappings lose the covered part
    /// and may be cut at either end, or in two.
    ///
    /// ```text
    /// before:  ├──── a ────┼──── b ────┤
    /// new:           ├──── c ────┤
    /// after:   ├─ a ─┼──── c ────┼─ b ─┤
    /// ```
    fn insert(&mut self, start: u64, map: Map) {
        let mut under: Vec<(u64, Map)> = Vec::new();
        for (at, old) in self.0.range(..map.end).rev() {
            if old.end <= start {
                break;
            }
            under.push((*at, *old));
        }
        for (at, old) in under {
            self.0.remove(&at);
            if at < start {
                self.0.insert(at, Map { end: start, ..old });
            }
            if old.end > map.end {
                let offset = old.offset.wrapping_add(map.end - at);
                self.0.insert(map.end, Map { offset, ..old });
            }
        }
        self.0.insert(start, map);
    }

    /// Returns the mapping that contains an address, and its start.
    fn find(&self, address: u64) -> Option<(u64, &Map)> {
        let (start, map) = self.0.range(..=address).next_back()?;
        (address < map.end).then_some((*start, map))
    }
}

impl Machine {
    /// Adds a mapping (`MMAP`, `MMAP2`) of a process or of the kernel. Records of processes have
    /// file paths or names in brackets, which become modules.
    pub(super) fn map(
        &mut self,
        head: Head,
        body: &[u8],
        import: &mut Import,
    ) -> Result<(), FormatError> {
        let mut cursor = Cursor(body);
        let (pid, _tid) = (cursor.u32()?, cursor.u32()?);
        let (start, len, offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let mut build_id: &[u8] = &[];
        // 24 bytes identify the file: device and inode or, if the bit is set, one byte of length,
        // three unused ones, and the build-id. Then protection and flags follow, 4 bytes each.
        if head.kind == MMAP2 {
            let file = cursor.take(24)?;
            cursor.skip(8)?;
            // Some kernels set the bit although the record has the inode.
            if head.misc & MAP_HAS_BUILD_ID != 0 && file[0] <= 20 {
                build_id = &file[4..][..usize::from(file[0])];
            }
        }
        let path = zero_ended(cursor.0);
        if head.misc & 7 == KERNEL_MODE || pid == u32::MAX {
            return self.map_kernel(&path, start, len, offset, import);
        }
        let kind = kind_of(&path);
        let is_code_of_jit = path == "//anon" || path.starts_with("anon_inode:");
        let name = match &*path {
            _ if is_code_of_jit => "[anon]",
            path => path,
        };
        let module = import.module(name, &[])?;
        if !build_id.is_empty() {
            self.build_ids.push((module, build_id.to_vec()));
        }
        let map = Map {
            end: start.saturating_add(len),
            offset,
            module,
            kind,
        };
        self.count()?;
        let process = self.processes.entry(pid).or_default();
        Arc::make_mut(&mut process.space).insert(start, map);
        Ok(())
    }

    /// Counts a mapping or a process, and returns an error if there are too many.
    fn count(&mut self) -> Result<(), FormatError> {
        self.maps += 1;
        if self.maps > MAPS_MAX || self.processes.len() > PROCESSES_MAX {
            Err(FormatError::TooLarge("its mappings"))
        } else {
            Ok(())
        }
    }

    /// Adds a mapping of the kernel. perf creates one for the kernel's code, called
    /// `[kernel.kallsyms]_text`, whose offset is the address of that symbol; the others are
    /// modules.
    fn map_kernel(
        &mut self,
        path: &str,
        start: u64,
        len: u64,
        offset: u64,
        import: &mut Import,
    ) -> Result<(), FormatError> {
        if let Some(symbol) = path.strip_prefix(KERNEL) {
            // `_stext` lies after `_text`, at an unknown distance.
            if symbol == "_text" && offset != 0 {
                self.text = Some(offset);
            }
            return Ok(());
        }
        self.count()?;
        let module = import.module(path, &[])?;
        let map = Map {
            end: start.saturating_add(len),
            offset: 0,
            module,
            kind: FrameKind::Kernel,
        };
        self.kernel.insert(start, map);
        Ok(())
    }

    /// Renames a thread. The main thread's name is the process's name, too. If the name came with
    /// exec, all mappings are dropped.
    pub(super) fn comm(
        &mut self,
        head: Head,
        body: &[u8],
        import: &mut Import,
    ) -> Result<(), FormatError> {
        let mut cursor = Cursor(body);
        let (pid, tid) = (cursor.u32()?, cursor.u32()?);
        let comm = import.comm(&zero_ended(cursor.take(cursor.0.len().min(16))?))?;
        self.count()?;
        let process = self.processes.entry(pid).or_default();
        if pid == tid {
            process.comm = Arc::clone(&comm);
            if head.misc & COMM_EXEC != 0 {
                process.space = Arc::default();
            }
        }
        self.comms.insert(tid, comm);
        Ok(())
    }

    /// Adds a thread or a process, with the name and the mappings of its parent.
    pub(super) fn fork(&mut self, body: &[u8]) -> Result<(), FormatError> {
        let mut cursor = Cursor(body);
        let (pid, parent) = (cursor.u32()?, cursor.u32()?);
        let (tid, parent_tid) = (cursor.u32()?, cursor.u32()?);
        if let Some(comm) = self.comms.get(&parent_tid).cloned() {
            self.comms.insert(tid, comm);
        }
        self.count()?;
        if pid != parent
            && let Some(process) = self.processes.get(&parent).cloned()
        {
            self.maps += process.space.0.len();
            self.count()?;
            self.processes.insert(pid, process);
        }
        Ok(())
    }

    /// Handles the end of a thread; if it is the main thread, the mappings of the process are
    /// dropped. Names are kept for samples that come late.
    pub(super) fn exit(&mut self, body: &[u8]) -> Result<(), FormatError> {
        let mut cursor = Cursor(body);
        let (pid, _) = (cursor.u32()?, cursor.u32()?);
        if pid == cursor.u32()?
            && let Some(process) = self.processes.get_mut(&pid)
        {
            self.maps -= process.space.0.len().min(self.maps);
            process.space = Arc::default();
        }
        Ok(())
    }

    /// Handles a symbol that the kernel made at run time, such as a BPF program.
    pub(super) fn symbol(&mut self, body: &[u8], import: &mut Import) -> Result<(), FormatError> {
        let mut cursor = Cursor(body);
        let (start, len) = (cursor.u64()?, cursor.u32()?);
        let (_kind, flags) = (cursor.u16()?, cursor.u16()?);
        let name = import.text(&zero_ended(cursor.0))?;
        self.count()?;
        match flags & 1 {
            0 => self
                .bpf
                .insert(start, (start.saturating_add(len.into()), name)),
            _ => self.bpf.remove(&start),
        };
        Ok(())
    }

    /// Returns the names of a process and of its thread.
    pub(super) fn names(&self, pid: u32, tid: u32) -> (Arc<str>, Arc<str>) {
        if pid == 0 {
            return ("swapper".into(), "swapper".into());
        }
        let process = self.processes.get(&pid).map(|process| &process.comm);
        let comm = self.comms.get(&tid).or(process);
        let comm = comm
            .filter(|comm| !comm.is_empty())
            .cloned()
            .unwrap_or_else(|| format!(":{tid}").into());
        let process = process.filter(|comm| !comm.is_empty()).unwrap_or(&comm);
        (Arc::clone(process), comm)
    }

    /// Returns the frame of an address in a process. An address outside of all mappings belongs to
    /// the module `[unknown]`.
    pub(super) fn user_frame(
        &self,
        pid: u32,
        address: u64,
        import: &mut Import,
    ) -> Result<Frame, FormatError> {
        let found = self
            .processes
            .get(&pid)
            .and_then(|process| process.space.find(address));
        let Some((start, map)) = found else {
            let module = import.module("[unknown]", &[])?;
            let frame = import.frame(module, Some(address), FrameKind::User, None)?;
            import.tell_unnamed(frame, NoName::Unmapped);
            return Ok(frame);
        };
        // Code made at run time is identified by its address, as it is in no file.
        if map.kind == FrameKind::Jit {
            let frame = import.frame(map.module, Some(address), map.kind, None)?;
            import.tell_unnamed(frame, NoName::NotTold);
            return Ok(frame);
        }
        let place = (address - start).wrapping_add(map.offset);
        import.frame(map.module, Some(place), map.kind, None)
    }

    /// Returns the frame of an address in the kernel, decided in this order:
    ///
    /// 1. a BPF program, which also has its name from here
    /// 2. a module
    /// 3. the kernel itself, if `_text` is known
    /// 4. a bare address without a name: `kptr_restrict` hid the kernel's address
    pub(super) fn kernel_frame(
        &self,
        address: u64,
        import: &mut Import,
    ) -> Result<Frame, FormatError> {
        let kind = FrameKind::Kernel;
        if let Some((start, (end, name))) = self.bpf.range(..=address).next_back()
            && address < *end
        {
            let module = import.module("[bpf]", &[])?;
            let frame = import.frame(module, Some(address - start), kind, Some(name))?;
            let link = Link {
                function: Arc::clone(name),
                file: Arc::default(),
                line: 0,
            };
            import.set_chain(frame, vec![link]);
            return Ok(frame);
        }
        if let Some((start, map)) = self.kernel.find(address) {
            let frame = import.frame(map.module, Some(address - start), kind, None)?;
            import.tell_unnamed(frame, NoName::NotTold);
            return Ok(frame);
        }
        let module = import.module(KERNEL, &[])?;
        match self.text.and_then(|text| address.checked_sub(text)) {
            Some(place) => import.frame(module, Some(place), kind, None),
            None => {
                let frame = import.frame(module, Some(address), kind, None)?;
                import.tell_unnamed(frame, NoName::KernelHidden);
                Ok(frame)
            }
        }
    }

    /// Adds the build-ids of modules to the store.
    pub(super) fn tell_build_ids(
        &self,
        told: &[super::header::BuildId],
        import: &mut Import,
    ) -> Result<(), FormatError> {
        // Build-ids of the header first, as the last one that is set counts.
        for build_id in told {
            let path = if build_id.is_kernel && build_id.path.starts_with(KERNEL) {
                KERNEL
            } else {
                &build_id.path
            };
            let module = import.module(path, &[])?;
            import.store.set_build_id(module, &build_id.build_id);
        }
        for (module, build_id) in &self.build_ids {
            import.store.set_build_id(*module, build_id);
        }
        Ok(())
    }
}
