//! The entry point for worker threads: files are opened and parsed once, the kernel's symbols are
//! read once. It starts no thread and has no global state.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::Cache;
use crate::code::CodeLines;
use crate::debug_file::DebugFiles;
use crate::error::io_reason;
use crate::kernel::{BpfKernel, CurrentBpf, CurrentKernel, KernelFrame};
use crate::object::Object;
use crate::opener::FileSource;
use crate::parser::names::{self, FileNames};
use crate::parser::opened::OpenedFile;
use crate::parser::opened_code::OpenedCode;
use crate::parser::opened_lines::OpenedLines;
use crate::parser::{FileCode, FileLines, FileSites};
use crate::revision::Revision;
use crate::table_cache::TableKey;
use crate::{ElfSymbols, FileOffset, Files, KernelSymbols, Lines, Reason, TableCache, lines};

/// Default limit for the debug information of one file in memory, until its table is made. Browsers
/// have more: their lines can be resolved ahead of time.
const DEBUG_BYTES_MAX: u64 = 1 << 30;

/// Maximum memory of the names that were found, over all files.
const KNOWN_NAMES_BYTES_MAX: usize = 3 << 20;

/// Maximum room on disks that deleted files take because they are held open for names that may be
/// asked for later. A machine that builds and tests programs deletes some gigabytes of them an hour.
const DELETED_BYTES_MAX: usize = 512 << 20;

/// The table of one file's lines may have this fraction (1/n) of the memory for lines; then it is
/// opened again, without what was read of it.
const TABLE_PART: usize = 4;

/// Opens files and caches their symbols.
#[derive(Debug)]
pub struct Symbolizer {
    way: Files,
    /// Symbols by the revision of the file: a build-id can be forged.
    files: Cache<Revision, Result<Arc<ElfSymbols>, Reason>>,
    /// Files that another process parses, by revision.
    opened: Cache<Revision, Arc<OpenedFile>>,
    lines: Cache<Revision, Result<Option<Arc<Lines>>, Reason>>,
    /// Files whose debug information another process reads, by revision.
    opened_lines: Cache<Revision, Option<Arc<OpenedLines>>>,
    /// Files whose code another process writes out, by revision.
    opened_code: Cache<Revision, Arc<OpenedCode>>,
    /// Files in which functions to probe are searched, by revision.
    sites: Cache<Revision, Arc<FileSites>>,
    tables: Option<Arc<TableCache>>,
    debug_bytes_max: Option<u64>,
    kernel: CurrentKernel,
}

/// An open file, with its symbols or without.
enum Found {
    Symbols(Arc<ElfSymbols>),
    Opened(Arc<OpenedFile>),
}

impl Found {
    /// Calls `work` with the file's headers, which are read first if needed.
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

impl Default for Symbolizer {
    fn default() -> Symbolizer {
        Symbolizer {
            way: Files::default(),
            files: Cache::default(),
            opened: Cache::with_bytes_max(DELETED_BYTES_MAX),
            lines: Cache::default(),
            opened_lines: Cache::default(),
            opened_code: Cache::default(),
            sites: Cache::default(),
            tables: None,
            debug_bytes_max: None,
            kernel: CurrentKernel::default(),
        }
    }
}

impl Symbolizer {
    /// Opens files in this process and stores nothing on disk; the `with_` methods change that.
    pub fn new() -> Symbolizer {
        Symbolizer::default()
    }

    /// Sets how files are opened; by default only local ones, in the calling thread.
    pub fn with_files(self, way: impl Into<Files>) -> Symbolizer {
        let way = way.into();
        Symbolizer { way, ..self }
    }

    /// Sets the directory in which the range tables of files are stored.
    pub fn with_tables(self, tables: TableCache) -> Symbolizer {
        let tables = Some(Arc::new(tables));
        Symbolizer { tables, ..self }
    }

    /// Limits the debug information of a file in memory while it has no range table: larger units
    /// are left out, and so are files with more than sixteen times that.
    pub fn with_debug_bytes_max(self, bytes: u64) -> Symbolizer {
        let debug_bytes_max = Some(bytes);
        Symbolizer {
            debug_bytes_max,
            ..self
        }
    }

    /// Limits the debug information of all files in memory, except that of the file that was used
    /// last. Tables of files that other processes read have a quarter of it.
    pub fn with_lines_bytes_max(self, bytes: usize) -> Symbolizer {
        Symbolizer {
            lines: Cache::with_bytes_max(bytes),
            // What was dropped of a table is read again from the disk in microseconds.
            opened_lines: Cache::with_bytes_max(bytes / 4),
            ..self
        }
    }

    /// Sets how BPF programs are queried.
    pub fn with_bpf(self, bpf: Box<dyn BpfKernel>) -> Symbolizer {
        let kernel = self.kernel.with_bpf(CurrentBpf::new(bpf));
        Symbolizer { kernel, ..self }
    }

    /// Sets where the kernel's functions are taken from when they are first needed.
    pub fn with_kernel_symbols(self, first: fn() -> Arc<KernelSymbols>) -> Symbolizer {
        let kernel = self.kernel.with_first(first);
        Symbolizer { kernel, ..self }
    }

    /// Returns the symbols of a file, from the cache or read now. If the identity of the mapped
    /// file is known and its symbols are cached, the file is not opened.
    ///
    /// Only permanent failures are cached: that a file is damaged, but not that this process could
    /// not open it.
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

    /// Looks up names at places of a file, in their order. If there are parser processes, one of
    /// them reads the symbols.
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

    /// Looks up names at places of an ELF image that was read from a process's memory, in their order.
    /// If there are parser processes, one of them reads it. Nothing of it is kept.
    pub fn image_names(&self, image: &[u8], offsets: &[FileOffset]) -> Result<FileNames, Reason> {
        if self.way.has_parsers() {
            let opened = OpenedFile::of_image(image).map_err(|error| io_reason(&error))?;
            return opened.names(&FileSource::new(Path::new("")), &self.way, offsets);
        }
        let symbols = ElfSymbols::from_bytes(image.into()).map_err(|error| error.reason())?;
        Ok(names::of(&symbols, offsets))
    }

    /// If the names of all files take too much memory, drops those of the file with most of them.
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
        for dropped in self.opened.trim(|file| file.deleted_bytes()) {
            // They hold it open as well.
            self.opened_lines.forget(&dropped);
            self.opened_code.forget(&dropped);
            self.sites.forget(&dropped);
        }
        Ok((key, Arc::clone(opened)))
    }

    /// Opens a file and returns it with its revision.
    fn open_file(&self, source: &FileSource<'_>) -> Result<(Revision, File), Reason> {
        let file = self.way.open(source)?;
        let key = match source.identity {
            Some(identity) => identity.revision.clone(),
            None => Revision::now(&file).map_err(|error| io_reason(&error))?,
        };
        Ok((key, file))
    }

    /// Returns an open file with its revision, from a cache if possible.
    fn any(&self, source: &FileSource<'_>) -> Result<(Revision, Found), Reason> {
        Ok(if self.way.has_parsers() {
            let (key, opened) = self.opened(source)?;
            (key, Found::Opened(opened))
        } else {
            let (key, symbols) = self.find(source)?;
            (key, Found::Symbols(symbols))
        })
    }

    /// Returns the lines of a file; `None` if it has no debug information. It is searched anew at
    /// each call, and read on demand.
    pub fn lines(&self, source: FileSource<'_>) -> Result<Option<Arc<Lines>>, Reason> {
        let (key, found) = self.any(&source)?;
        self.forget_damaged(&key);
        let slot = self.lines.slot(key);
        let lines = slot.get_or_init(|| {
            let files = DebugFiles::of(&source, &self.way);
            let tables = self.tables.as_deref();
            let bytes_max = self.debug_bytes_max.unwrap_or(DEBUG_BYTES_MAX);
            let open = |object: &Object| Lines::open(object, files, tables, bytes_max);
            let lines = found.with_object(open)?.map_err(|error| error.reason())?;
            Ok(lines.map(Arc::new))
        });
        self.lines.trim(lines_bytes);
        lines.clone()
    }

    /// Returns the lines of a file; `None` if it has no debug information. If there are parser
    /// processes, one of them reads it.
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
            let lines = lines.map(|lines| self.with_little_in_memory(&revision, lines));
            return Ok(lines.map(FileLines::Elsewhere));
        }
        let places = DebugFiles::of(&source, &self.way);
        let bytes_max = self.debug_bytes_max.unwrap_or(DEBUG_BYTES_MAX);
        // A failure may have another cause than the file, so it is not cached.
        let lines =
            OpenedLines::open(opened, places, &self.way, self.tables.as_deref(), bytes_max)?;
        let slot = self.opened_lines.slot(revision);
        let lines = slot.get_or_init(|| lines.map(Arc::new)).clone();
        self.opened_lines.trim(opened_lines_bytes);
        Ok(lines.map(FileLines::Elsewhere))
    }

    /// Returns the lines of a file, opened again if many blocks of their table are in memory: they
    /// are read on demand, and the table does not forget any.
    fn with_little_in_memory(
        &self,
        revision: &Revision,
        lines: Arc<OpenedLines>,
    ) -> Arc<OpenedLines> {
        let is_little = lines.heap_bytes() <= self.opened_lines.bytes_max() / TABLE_PART;
        let Some(afresh) = (!is_little).then(|| lines.afresh()).flatten() else {
            return lines;
        };
        let afresh = Arc::new(afresh);
        self.opened_lines.forget(revision);
        let slot = self.opened_lines.slot(revision.clone());
        let afresh = slot.get_or_init(|| Some(afresh)).clone();
        // `None` only if another thread found no debug information now, though there was some.
        afresh.unwrap_or(lines)
    }

    /// Returns the code of a file. If there are parser processes, one of them reads the file.
    pub fn file_code(&self, source: FileSource<'_>) -> Result<FileCode, Reason> {
        if !self.way.has_parsers() {
            let symbols = self.open(source)?;
            let lines = CodeLines::new(&symbols, || self.lines(source));
            return Ok(FileCode::Here(symbols, lines));
        }
        let (revision, opened) = self.opened(&source)?;
        if let Some(code) = self.opened_code.get(&revision) {
            if !code.is_damaged() {
                return Ok(FileCode::Elsewhere(code));
            }
            self.reject_table(code.key());
            self.opened_code.forget(&revision);
            // The parser has the damaged table, and knows it by the number of the file.
            self.opened.forget(&revision);
            return self.file_code(source);
        }
        let places = DebugFiles::of(&source, &self.way);
        let bytes_max = self.debug_bytes_max.unwrap_or(DEBUG_BYTES_MAX);
        let code = OpenedCode::new(opened, places, &self.way, self.tables.as_ref(), bytes_max);
        let slot = self.opened_code.slot(revision);
        let code = Arc::clone(slot.get_or_init(|| Arc::new(code)));
        self.opened_code.trim(|_| 0);
        Ok(FileCode::Elsewhere(code))
    }

    /// Returns the functions of a file that may be probed. If there are parser processes, one of
    /// them reads the file.
    pub fn file_sites(&self, source: FileSource<'_>) -> Result<Arc<FileSites>, Reason> {
        let (revision, opened) = self.opened(&source)?;
        if let Some(sites) = self.sites.get(&revision) {
            return Ok(sites);
        }
        let places = DebugFiles::of(&source, &self.way);
        // A failure may have another cause than the file, so it is not cached.
        let sites = FileSites::open(opened, places, &self.way)?;
        let slot = self.sites.slot(revision);
        let sites = Arc::clone(slot.get_or_init(|| Arc::new(sites)));
        self.sites.trim(|sites| sites.heap_bytes());
        Ok(sites)
    }

    /// Whether a separate debug file for this file would add something. If there are parser
    /// processes, one of them reads the file.
    pub fn lacks_debug_file(&self, source: FileSource<'_>) -> bool {
        let lacks = if self.way.has_parsers() {
            self.opened(&source).and_then(|(_, opened)| {
                let places = DebugFiles::of(&source, &self.way);
                OpenedLines::lacks_debug_file(opened, places, &self.way)
            })
        } else {
            self.find(&source).map(|(_, symbols)| {
                let places = DebugFiles::of(&source, &self.way);
                lines::lacks_debug_file(symbols.object(), &places)
            })
        };
        lacks.unwrap_or(false)
    }

    /// Reads a file again after its debug file was installed. The file itself may be inaccessible
    /// by now.
    pub fn reread(&self, source: &FileSource<'_>) -> Result<(), Reason> {
        if self.way.has_parsers() {
            let (key, opened) = self.opened(source)?;
            let again = opened.again().ok_or(Reason::FileGone)?;
            self.opened.forget(&key);
            self.lines.forget(&key);
            self.opened_lines.forget(&key);
            self.opened_code.forget(&key);
            self.sites.forget(&key);
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
        self.sites.forget(&key);
        // Another thread may have been faster; then the file was read just now.
        _ = self.files.slot(key).set(Ok(Arc::new(read)));
        Ok(())
    }

    /// Drops debug information that can be read again from open files and was not used for so long.
    /// Returns whether nothing is left to drop.
    pub fn forget_units(&self, unused_for: Duration) -> bool {
        let mut are_all = true;
        for lines in self.lines.values().into_iter().flatten().flatten() {
            are_all &= lines.forget_units(unused_for);
        }
        are_all
    }

    /// Drops a damaged table: the file's lines are searched anew.
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

    /// The range tables on disk, if any.
    pub fn tables(&self) -> Option<&TableCache> {
        self.tables.as_deref()
    }

    /// Returns what is at these kernel addresses. The symbols are read at the first call, and again
    /// for addresses that they do not cover.
    pub fn kernel(&self, addrs: &[u64]) -> Vec<Result<KernelFrame, Reason>> {
        self.kernel.frames(addrs)
    }

    /// Bytes of heap used by the cached symbols and debug information.
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
