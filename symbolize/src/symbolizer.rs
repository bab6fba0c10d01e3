//! The front door for worker threads: files opened and parsed once, the
//! kernel's symbols read once. It starts no thread and has no global state.

mod cache;

use std::fs::File;
use std::sync::Arc;

use rustix::fs::fstat;

use crate::debug_file::DebugFiles;
use crate::error::io_reason;
use crate::kernel::{BpfKernel, CurrentBpf, CurrentKernel, KernelFrame};
use crate::object::Object;
use crate::opener::{self, FileSource, RemoteFiles};
use crate::{BuildId, ElfSymbols, FileId, Lines, Reason, TableCache};

use cache::Cache;

/// Debug information of one file that is held in memory, until its table is
/// made. Browsers have more: their lines can be resolved ahead of time.
const DEBUG_BYTES_MAX: u64 = 1 << 30;

/// What identifies a file to the cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    BuildId(BuildId),
    /// Without a build-id: this version of this file.
    File {
        device: u64,
        inode: u64,
        size: i64,
        modified: (i64, i64),
    },
}

/// Opens files and keeps their symbols.
#[derive(Debug, Default)]
pub struct Symbolizer {
    remote: RemoteFiles,
    files: Cache<Key, Result<Arc<ElfSymbols>, Reason>>,
    lines: Cache<FileId, Result<Option<Arc<Lines>>, Reason>>,
    tables: Option<TableCache>,
    debug_bytes_max: Option<u64>,
    kernel: CurrentKernel,
}

impl Symbolizer {
    pub fn new() -> Symbolizer {
        Symbolizer::default()
    }

    /// Whether to open files on network and FUSE filesystems too.
    pub fn with_remote_files(self, remote: RemoteFiles) -> Symbolizer {
        Symbolizer { remote, ..self }
    }

    /// Where the range tables of files are found, and kept, on disk.
    pub fn with_tables(self, tables: TableCache) -> Symbolizer {
        let tables = Some(tables);
        Symbolizer { tables, ..self }
    }

    /// Holds of a file's debug information no more than this at once, if it has no range
    /// table yet: larger units are left alone, and so are files that have sixteen times
    /// that.
    pub fn with_debug_bytes_max(self, bytes: u64) -> Symbolizer {
        let debug_bytes_max = Some(bytes);
        Symbolizer {
            debug_bytes_max,
            ..self
        }
    }

    /// Whom to ask for the places in BPF programs.
    pub fn with_bpf(self, bpf: Box<dyn BpfKernel>) -> Symbolizer {
        let kernel = self.kernel.with_bpf(CurrentBpf::new(bpf));
        Symbolizer { kernel, ..self }
    }

    /// The symbols of a file, from the cache or read now.
    ///
    /// Of what failed only that is remembered which will fail again: a
    /// damaged file, but not one that this process could not open.
    pub fn open(&self, source: FileSource<'_>) -> Result<Arc<ElfSymbols>, Reason> {
        let by_id = source.build_id.map(BuildId::new).map(Key::BuildId);
        if let Some(known) = by_id.as_ref().and_then(|key| self.files.get(key)) {
            return known;
        }
        let file = opener::open(&source, self.remote)?;
        let key = by_id.map_or_else(|| key_of(&file), Ok)?;
        let slot = self.files.slot(key);
        let symbols = slot.get_or_init(|| {
            let files = DebugFiles::of(&source, self.remote);
            let symbols =
                Object::read(&file).and_then(|object| ElfSymbols::with_debug_files(object, &files));
            symbols.map(Arc::new).map_err(|error| error.reason())
        });
        self.files
            .trim(|symbols| symbols.as_ref().map_or(0, |s| s.heap_bytes()));
        symbols.clone()
    }

    /// The lines of a file; `None` if it has no debug information. It is found
    /// anew for each file, and read when it is asked for.
    pub fn lines(&self, source: FileSource<'_>) -> Result<Option<Arc<Lines>>, Reason> {
        let symbols = self.open(source)?;
        self.forget_damaged(symbols.id());
        let slot = self.lines.slot(symbols.id().clone());
        let lines = slot.get_or_init(|| {
            let files = DebugFiles::of(&source, self.remote);
            let tables = self.tables.as_ref();
            let bytes_max = self.debug_bytes_max.unwrap_or(DEBUG_BYTES_MAX);
            let lines = Lines::open(symbols.object(), files, tables, bytes_max);
            let lines = lines.map_err(|error| error.reason())?;
            Ok(lines.map(Arc::new))
        });
        let size = |lines: &Result<Option<Arc<Lines>>, Reason>| match lines {
            Ok(Some(lines)) => lines.heap_bytes(),
            _ => 0,
        };
        self.lines.trim(size);
        lines.clone()
    }

    /// Whether a debug file of this file's would be news.
    pub fn lacks_debug_file(&self, source: FileSource<'_>) -> bool {
        let Ok(symbols) = self.open(source) else {
            return false;
        };
        let files = DebugFiles::of(&source, self.remote);
        let main = symbols.object();
        !main.has_debug_info() && files.separate(main).is_none()
    }

    /// Reads a file again of which the build-id is known: its debug file has
    /// come. The file itself may be out of reach by now.
    pub fn reread(&self, source: &FileSource<'_>) -> Result<(), Reason> {
        let symbols = self.open(*source)?;
        let Some(id) = source.build_id.map(BuildId::new) else {
            return Ok(());
        };
        let files = DebugFiles::of(source, self.remote);
        let read = symbols
            .object()
            .again()
            .and_then(|object| ElfSymbols::with_debug_files(object, &files));
        let read = read.map_err(|error| error.reason())?;
        let key = Key::BuildId(id);
        self.files.forget(&key);
        // Somebody else may have been faster: then it was read just now.
        _ = self.files.slot(key).set(Ok(Arc::new(read)));
        self.lines.forget(symbols.id());
        Ok(())
    }

    /// A damaged table answers nothing: the file's lines are found anew.
    fn forget_damaged(&self, id: &FileId) {
        let Some(Ok(Some(lines))) = self.lines.get(id) else {
            return;
        };
        if lines.is_damaged() {
            if let Some((tables, key)) = self.tables.as_ref().zip(lines.key()) {
                tables.reject(key);
            }
            self.lines.forget(id);
        }
    }

    /// The range tables on disk.
    pub fn tables(&self) -> Option<&TableCache> {
        self.tables.as_ref()
    }

    /// What is at these addresses of the kernel. Its symbols are read at the
    /// first call, and again for addresses that it did not have.
    pub fn kernel(&self, addrs: &[u64]) -> Vec<Result<KernelFrame, Reason>> {
        self.kernel.frames(addrs)
    }

    /// Bytes of heap held by the symbols that are kept.
    pub fn heap_bytes(&self) -> usize {
        let files = self
            .files
            .bytes(|symbols| symbols.as_ref().map_or(0, |s| s.heap_bytes()));
        files + self.kernel.heap_bytes()
    }
}

fn key_of(file: &File) -> Result<Key, Reason> {
    let stat = fstat(file).map_err(|error| io_reason(&error.into()))?;
    Ok(Key::File {
        device: stat.st_dev,
        inode: stat.st_ino,
        size: stat.st_size,
        modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
    })
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Symbolizer>();
};

#[cfg(test)]
mod tests;
