//! The front door for worker threads: files opened and parsed once, the
//! kernel's symbols read once. It starts no thread and has no global state.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::Cache;
use crate::debug_file::DebugFiles;
use crate::error::io_reason;
use crate::kernel::{BpfKernel, CurrentBpf, CurrentKernel, KernelFrame};
use crate::object::Object;
use crate::opener::FileSource;
use crate::parser::FileLines;
use crate::parser::names::{self, FileNames};
use crate::parser::opened::OpenedFile;
use crate::parser::opened_lines::OpenedLines;
use crate::revision::Revision;
use crate::table_cache::TableKey;
use crate::{ElfSymbols, FileOffset, Files, KernelSymbols, Lines, Reason, TableCache};

/// Debug information of one file that is held in memory, until its table is
/// made. Browsers have more: their lines can be resolved ahead of time.
const DEBUG_BYTES_MAX: u64 = 1 << 30;

/// What all files may take with names that they have told.
const KNOWN_NAMES_BYTES_MAX: usize = 3 << 20;

/// Opens files and keeps their symbols.
#[derive(Debug, Default)]
pub struct Symbolizer {
    way: Files,
    /// By the file itself, as it was: anybody can give another one the same build-id.
    files: Cache<Revision, Result<Arc<ElfSymbols>, Reason>>,
    /// The same of those that are understood in another process.
    opened: Cache<Revision, Arc<OpenedFile>>,
    lines: Cache<Revision, Result<Option<Arc<Lines>>, Reason>>,
    /// The same of those whose debug information another process reads.
    opened_lines: Cache<Revision, Option<Arc<OpenedLines>>>,
    tables: Option<TableCache>,
    debug_bytes_max: Option<u64>,
    kernel: CurrentKernel,
}

/// A file that is open: with its symbols, or without anything.
enum Found {
    Symbols(Arc<ElfSymbols>),
    Opened(Arc<OpenedFile>),
}

impl Found {
    /// Gives its headers to `work`; they are read for that if need be.
    fn with_object<T>(&self, work: impl FnOnce(&Object) -> T) -> Result<T, Reason> {
        match self {
            Found::Symbols(symbols) => Ok(work(symbols.object())),
            Found::Opened(opened) => {
                let object = Object::read(opened.file());
                object.map(|object| work(&object)).map_err(|e| e.reason())
            }
        }
    }
}

impl Symbolizer {
    /// Opens files by itself and keeps nothing on disk; the `with_` methods change that.
    pub fn new() -> Symbolizer {
        Symbolizer::default()
    }

    /// The way to files; without, local ones are opened in the calling thread.
    pub fn with_files(self, way: impl Into<Files>) -> Symbolizer {
        let way = way.into();
        Symbolizer { way, ..self }
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

    /// Keeps of the debug information of all files no more than this, but for that of the file
    /// that was asked for last.
    pub fn with_lines_bytes_max(self, bytes: usize) -> Symbolizer {
        Symbolizer {
            lines: Cache::with_bytes_max(bytes),
            opened_lines: Cache::with_bytes_max(bytes),
            ..self
        }
    }

    /// Whom to ask for the places in BPF programs.
    pub fn with_bpf(self, bpf: Box<dyn BpfKernel>) -> Symbolizer {
        let kernel = self.kernel.with_bpf(CurrentBpf::new(bpf));
        Symbolizer { kernel, ..self }
    }

    /// Whom to ask for the kernel's functions the first time that they are needed.
    pub fn with_kernel_symbols(self, first: fn() -> Arc<KernelSymbols>) -> Symbolizer {
        let kernel = self.kernel.with_first(first);
        Symbolizer { kernel, ..self }
    }

    /// The symbols of a file, from the cache or read now. A file of which it is told
    /// what it was when it was mapped is not looked for if they are in the cache.
    ///
    /// Of what failed only that is remembered which will fail again: a
    /// damaged file, but not one that this process could not open.
    pub fn open(&self, source: FileSource<'_>) -> Result<Arc<ElfSymbols>, Reason> {
        self.find(&source).map(|(_, symbols)| symbols)
    }

    fn find(&self, source: &FileSource<'_>) -> Result<(Revision, Arc<ElfSymbols>), Reason> {
        let mapped = source.identity.map(|identity| &identity.revision);
        if let Some((key, known)) = mapped.and_then(|key| Some((key, self.files.get(key)?))) {
            return known.map(|symbols| (key.clone(), symbols));
        }
        let (key, file) = self.open_file(source)?;
        let slot = self.files.slot(key.clone());
        let symbols = slot.get_or_init(|| {
            let files = DebugFiles::of(source, &self.way);
            let symbols =
                Object::read(&file).and_then(|object| ElfSymbols::with_debug_files(object, &files));
            symbols.map(Arc::new).map_err(|error| error.reason())
        });
        self.files
            .trim(|symbols| symbols.as_ref().map_or(0, |s| s.heap_bytes()));
        symbols.clone().map(|symbols| (key, symbols))
    }

    /// What a file tells of places in it, in their order. Where there are processes without
    /// rights, one of them reads its symbols.
    pub fn names(
        &self,
        source: &FileSource<'_>,
        offsets: &[FileOffset],
    ) -> Result<FileNames, Reason> {
        if self.way.has_parsers() {
            let (_, opened) = self.opened(source)?;
            let names = opened.names(source, &self.way, offsets);
            self.bound_known_names();
            return names;
        }
        let (_, symbols) = self.find(source)?;
        Ok(names::of(&symbols, offsets))
    }

    /// Forgets the names that the file with most of them has told, if all have too many.
    fn bound_known_names(&self) {
        if self.known_names_bytes() > KNOWN_NAMES_BYTES_MAX {
            let files = self.opened.values().into_iter();
            if let Some(largest) = files.max_by_key(|file| file.heap_bytes()) {
                largest.forget_names();
            }
        }
    }

    fn known_names_bytes(&self) -> usize {
        self.opened.bytes(|file| file.heap_bytes())
    }

    fn opened(&self, source: &FileSource<'_>) -> Result<(Revision, Arc<OpenedFile>), Reason> {
        let mapped = source.identity.map(|identity| &identity.revision);
        if let Some((key, known)) = mapped.and_then(|key| Some((key, self.opened.get(key)?))) {
            return Ok((key.clone(), known));
        }
        let (key, file) = self.open_file(source)?;
        let slot = self.opened.slot(key.clone());
        let opened = slot.get_or_init(|| Arc::new(OpenedFile::new(file)));
        self.opened.trim(|_| 0);
        Ok((key, Arc::clone(opened)))
    }

    /// Opens a file, and says what it is.
    fn open_file(&self, source: &FileSource<'_>) -> Result<(Revision, File), Reason> {
        let file = self.way.open(source)?;
        let key = match source.identity {
            Some(identity) => identity.revision.clone(),
            None => Revision::now(&file).map_err(|error| io_reason(&error))?,
        };
        Ok((key, file))
    }

    /// A file, and what it is.
    fn any(&self, source: &FileSource<'_>) -> Result<(Revision, Found), Reason> {
        Ok(if self.way.has_parsers() {
            let (key, opened) = self.opened(source)?;
            (key, Found::Opened(opened))
        } else {
            let (key, symbols) = self.find(source)?;
            (key, Found::Symbols(symbols))
        })
    }

    /// The lines of a file; `None` if it has no debug information. It is found
    /// anew for each file, and read when it is asked for.
    pub fn lines(&self, source: FileSource<'_>) -> Result<Option<Arc<Lines>>, Reason> {
        let (key, found) = self.any(&source)?;
        self.forget_damaged(&key);
        let slot = self.lines.slot(key);
        let lines = slot.get_or_init(|| {
            let files = DebugFiles::of(&source, &self.way);
            let tables = self.tables.as_ref();
            let bytes_max = self.debug_bytes_max.unwrap_or(DEBUG_BYTES_MAX);
            let open = |object: &Object| Lines::open(object, files, tables, bytes_max);
            let lines = found.with_object(open)?.map_err(|error| error.reason())?;
            Ok(lines.map(Arc::new))
        });
        self.lines.trim(lines_bytes);
        lines.clone()
    }

    /// The lines of a file; None if it has no debug information. Where there are processes without
    /// rights, one of them reads it.
    pub fn file_lines(&self, source: FileSource<'_>) -> Result<Option<FileLines>, Reason> {
        if !self.way.has_parsers() {
            let lines = self.lines(source)?;
            return Ok(lines.map(FileLines::Here));
        }
        let (revision, opened) = self.opened(&source)?;
        if let Some(Some(lines)) = self.opened_lines.get(&revision)
            && lines.is_damaged()
        {
            self.reject_table(lines.key());
            self.opened_lines.forget(&revision);
        }
        if let Some(lines) = self.opened_lines.get(&revision) {
            return Ok(lines.map(FileLines::Elsewhere));
        }
        let places = DebugFiles::of(&source, &self.way);
        let bytes_max = self.debug_bytes_max.unwrap_or(DEBUG_BYTES_MAX);
        // What fails may do so for another reason than the file, and is tried again.
        let lines = OpenedLines::open(opened, places, &self.way, self.tables.as_ref(), bytes_max)?;
        let slot = self.opened_lines.slot(revision);
        let lines = slot.get_or_init(|| lines.map(Arc::new)).clone();
        self.opened_lines.trim(opened_lines_bytes);
        Ok(lines.map(FileLines::Elsewhere))
    }

    /// Whether a debug file of this file's would be news.
    pub fn lacks_debug_file(&self, source: FileSource<'_>) -> bool {
        let Ok((_, found)) = self.any(&source) else {
            return false;
        };
        let files = DebugFiles::of(&source, &self.way);
        let lacks = |main: &Object| !main.has_debug_info() && files.separate(main).is_none();
        found.with_object(lacks).unwrap_or(false)
    }

    /// Reads a file again: its debug file has come. The file itself may be out of
    /// reach by now.
    pub fn reread(&self, source: &FileSource<'_>) -> Result<(), Reason> {
        if self.way.has_parsers() {
            let (key, opened) = self.opened(source)?;
            let again = opened.again().ok_or(Reason::FileGone)?;
            self.opened.forget(&key);
            self.lines.forget(&key);
            self.opened_lines.forget(&key);
            _ = self.opened.slot(key).set(Arc::new(again));
            return Ok(());
        }
        let (key, symbols) = self.find(source)?;
        let files = DebugFiles::of(source, &self.way);
        let read = symbols
            .object()
            .again()
            .and_then(|object| ElfSymbols::with_debug_files(object, &files))
            .map_err(|error| error.reason())?;
        self.files.forget(&key);
        self.lines.forget(&key);
        // Somebody else may have been faster: then it was read just now.
        _ = self.files.slot(key).set(Ok(Arc::new(read)));
        Ok(())
    }

    /// Drops what was read of debug information, can be read again from files that are open,
    /// and was not asked for so long. Says whether nothing is left to drop.
    pub fn forget_units(&self, unused_for: Duration) -> bool {
        let mut are_all = true;
        for lines in self.lines.values().into_iter().flatten().flatten() {
            are_all &= lines.forget_units(unused_for);
        }
        are_all
    }

    /// A damaged table answers nothing: the file's lines are found anew.
    fn forget_damaged(&self, key: &Revision) {
        let Some(Ok(Some(lines))) = self.lines.get(key) else {
            return;
        };
        if lines.is_damaged() {
            self.reject_table(lines.key());
            self.lines.forget(key);
        }
    }

    fn reject_table(&self, key: Option<&TableKey>) {
        if let Some((tables, key)) = self.tables.as_ref().zip(key) {
            tables.reject(key);
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

    /// Bytes of heap held by the symbols and the debug information that are kept.
    pub fn heap_bytes(&self) -> usize {
        let files = self
            .files
            .bytes(|symbols| symbols.as_ref().map_or(0, |s| s.heap_bytes()));
        let lines = self.lines.bytes(lines_bytes) + self.opened_lines.bytes(opened_lines_bytes);
        files + lines + self.known_names_bytes() + self.kernel.heap_bytes()
    }
}

fn lines_bytes(lines: &Result<Option<Arc<Lines>>, Reason>) -> usize {
    match lines {
        Ok(Some(lines)) => lines.heap_bytes(),
        _ => 0,
    }
}

fn opened_lines_bytes(lines: &Option<Arc<OpenedLines>>) -> usize {
    lines.as_ref().map_or(0, |lines| lines.heap_bytes())
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Symbolizer>();
};

#[cfg(test)]
mod tests;
