//! Answers everything about an address of one file, for callers that ask about a file and not about
//! a running process: from the file and its debug files, or from a table made of them earlier.

mod kept;
mod kept_file;
mod late_file;
mod late_info;
mod late_symbols;

use std::io::Write;
use std::sync::Arc;

pub use kept::KeptTables;
use kept_file::KeptFile;
use late_file::LateFile;
use late_info::LateInfo;
use late_symbols::LateSymbols;

use crate::debug_file::DebugFiles;
use crate::foreign::ForeignSymbols;
use crate::object::Object;
use crate::table::pool::KnownTexts;
use crate::table::{Extras, SymbolEntry, Symbols, Table};
use crate::table_cache::TableKey;
use crate::{ElfSymbols, GoFrame, LinkAddr, OpenError, Reason, Segments};

/// One file, ready for look-ups.
#[derive(Debug)]
pub struct Resolver(Source);

#[derive(Debug)]
enum Source {
    File {
        symbols: Box<LateSymbols>,
        info: Box<LateInfo>,
        /// The key of the table that may be kept of it; `None` if none is to be kept.
        key: Option<Box<TableKey>>,
    },
    Table(Arc<Table>),
    Kept(Box<KeptFile>),
    /// A file of another system, which has functions only.
    Foreign(Box<ForeignSymbols>),
}

/// What is known about an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The name in the symbol table: of the function that contains the code, whatever was inlined
    /// there.
    pub symbol: Result<Vec<u8>, Reason>,
    /// The functions by debug information, or by the table of a Go program, innermost first; empty
    /// if there is neither.
    pub frames: Vec<ResolvedFrame>,
}

/// One function of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFrame {
    /// Name as the compiler wrote it; empty if unknown.
    pub function: Vec<u8>,
    /// Path of the source file; empty if unknown.
    pub path: Vec<u8>,
    /// Line, counted from 1; 0 if unknown.
    pub line: u32,
    /// Column, counted from 1; 0 if unknown.
    pub column: u32,
}

impl Resolver {
    /// Reads a file. Units of its debug information are read on demand. If it is a Go program, its
    /// sections are too: most addresses are answered from Go's own table, and to inflate them takes
    /// several times as long as everything else.
    pub fn of_file(
        main: Object,
        files: impl Fn() -> DebugFiles,
        bytes_max: u64,
    ) -> Result<Resolver, OpenError> {
        Resolver::of_file_or_kept(main, files, bytes_max, None)
    }

    /// Does the same, but uses the table that earlier runs have kept of the file, if there is one.
    pub fn of_file_or_kept(
        main: Object,
        files: impl Fn() -> DebugFiles,
        bytes_max: u64,
        kept: Option<&KeptTables>,
    ) -> Result<Resolver, OpenError> {
        let separate = if main.has_debug_info() {
            None
        } else {
            files().separate(&main)
        };
        // The key is made before anything is read: it says what the file was until then.
        let key = kept.and_then(|_| TableKey::new(&main, separate.as_ref().unwrap_or(&main)));
        let table = kept.zip(key.as_ref());
        let table = table.and_then(|(kept, key)| kept.find(key));
        let file = LateFile {
            main,
            separate,
            files: [files(), files()],
            bytes_max,
        };
        match table.zip(key.clone()) {
            Some((table, key)) => Ok(Resolver(Source::Kept(KeptFile::new(file, table, key)?))),
            None => file.read(key),
        }
    }

    /// Uses a table that [`Resolver::to_table`] wrote.
    pub fn of_table(table: Table) -> Resolver {
        Resolver(Source::Table(Arc::new(table)))
    }

    /// Uses a file of another system.
    pub fn of_foreign(symbols: ForeignSymbols) -> Resolver {
        Resolver(Source::Foreign(Box::new(symbols)))
    }

    /// The identity of the file.
    pub fn id(&self) -> String {
        match &self.0 {
            Source::File { symbols, .. } => symbols.id().to_string(),
            Source::Table(table) => String::from_utf8_lossy(table.key()).into_owned(),
            Source::Kept(kept) => kept.id().to_owned(),
            Source::Foreign(symbols) => symbols.id().to_owned(),
        }
    }

    /// The parts of the file that processes map.
    pub fn segments(&self) -> &Segments {
        match &self.0 {
            Source::File { symbols, .. } => symbols.object().segments(),
            Source::Table(table) => table.segments(),
            Source::Kept(kept) => kept.table().segments(),
            Source::Foreign(symbols) => symbols.segments(),
        }
    }

    /// Whether the file has debug information that can be read, and so lines.
    pub fn has_lines(&self) -> bool {
        match &self.0 {
            Source::File { symbols, info, .. } => info.get(symbols.object()).is_some(),
            Source::Table(table) => table.ranges() > 1,
            Source::Kept(kept) => kept.table().ranges() > 1,
            Source::Foreign(_) => false,
        }
    }

    /// What an address needed and could not be read, and why; `None` if all was read, or not needed.
    pub fn failure(&self) -> Option<(&'static str, &OpenError)> {
        match &self.0 {
            Source::File { symbols, info, .. } => {
                let of_symbols = symbols.failure().map(|error| ("symbols", error));
                let of_info = info.failure().map(|error| ("debug information", error));
                of_symbols.or(of_info)
            }
            Source::Kept(kept) => kept.file_if_damaged()?.failure(),
            Source::Table(_) | Source::Foreign(_) => None,
        }
    }

    /// Returns what is at an address: its function, and the functions that were inlined there.
    pub fn resolve(&self, addr: LinkAddr) -> Resolved {
        match &self.0 {
            Source::File { symbols, info, .. } => {
                let symbol = symbols.name(addr);
                let frames = file_frames(symbols, info, addr);
                let own = frames.last().map(|own| own.function.clone());
                let own = own.filter(|own| !own.is_empty());
                Resolved {
                    symbol: symbol.or_else(|reason| own.ok_or(reason)),
                    frames,
                }
            }
            Source::Table(table) => by_table(table, addr),
            Source::Kept(kept) => {
                let resolved = by_table(kept.table(), addr);
                // Only now is it known whether the blocks that it was read from are as written.
                match kept.file_if_damaged() {
                    Some(file) => file.resolve(addr),
                    None => resolved,
                }
            }
            Source::Foreign(symbols) => Resolved {
                symbol: symbols.find(addr).map(|symbol| symbol.name.to_vec()),
                frames: Vec::new(),
            },
        }
    }

    /// Reads what is at these addresses, all of which are going to be looked up: nothing is made
    /// ready about other addresses of a unit of debug information, nor, if they are few, about other
    /// symbols. To look up others later takes the time of reading the whole of it. Of a Go program
    /// most addresses need no debug information, and none is read here.
    pub fn prepare(&self, addrs: &[LinkAddr]) {
        let Source::File { symbols, info, .. } = &self.0 else {
            return;
        };
        symbols.prepare(addrs);
        if symbols.go().is_none()
            && let Some(info) = info.get(symbols.object())
        {
            info.prepare(addrs);
        }
    }

    /// All functions of the symbol table, with start and name.
    pub fn functions(&self) -> Box<dyn Iterator<Item = (LinkAddr, &[u8])> + '_> {
        match &self.0 {
            Source::File { symbols, .. } => {
                let functions = symbols.whole().into_iter().flat_map(ElfSymbols::functions);
                Box::new(functions.map(|f| (f.start, f.name)))
            }
            Source::Table(table) => Box::new(table.symbols()),
            Source::Kept(kept) => match kept.file_if_damaged() {
                Some(file) => file.functions(),
                None => Box::new(kept.table().symbols()),
            },
            Source::Foreign(symbols) => Box::new(symbols.functions().map(|f| (f.start, f.name))),
        }
    }

    /// Converts all answers to a table, which can be used without the file.
    pub fn to_table(&self, threads: usize) -> Result<Vec<u8>, OpenError> {
        let mut bytes = Vec::new();
        self.write_table(threads, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes the table of [`Resolver::to_table`] to `sink` while it is made.
    pub fn write_table(&self, threads: usize, sink: &mut dyn Write) -> Result<(), OpenError> {
        self.write_table_of(self.id().as_bytes(), threads, sink)
    }

    /// Notes what was read of the file, now that all addresses of this run are answered. Returns
    /// whether [`Resolver::keep`] pays: see [`KeptTables`]. Removes a kept table that was damaged.
    pub fn note(&self, kept: &KeptTables) -> bool {
        match &self.0 {
            Source::Kept(file) => {
                file.reject_if_damaged(kept);
                false
            }
            Source::File { symbols, info, key } => {
                let read = info.needed().filter(|info| !info.needs_other_files());
                let noted = read.zip(key.as_ref());
                let pays = noted.is_some_and(|(info, key)| {
                    kept.note(key, info.bytes_read(), info.bytes() as u64)
                });
                pays && symbols.are_all_there()
            }
            Source::Table(_) | Source::Foreign(_) => false,
        }
    }

    /// Makes a table of the file, and keeps it for later runs. Whether that succeeds changes no
    /// answer.
    pub fn keep(&self, kept: &KeptTables, threads: usize) {
        if let Source::File { key: Some(key), .. } = &self.0 {
            kept.keep(key, |sink| {
                self.write_table_of(key.as_bytes(), threads, sink)
            });
        }
    }

    /// Writes the table with a key.
    fn write_table_of(
        &self,
        key: &[u8],
        threads: usize,
        sink: &mut dyn Write,
    ) -> Result<(), OpenError> {
        let (symbols, info) = match &self.0 {
            Source::File { symbols, info, .. } => {
                let info = info.read(symbols.object())?;
                (symbols.whole()? as &dyn Symbols, info)
            }
            Source::Foreign(symbols) => (&**symbols as &dyn Symbols, None),
            Source::Table(_) | Source::Kept(_) => {
                return Err(OpenError::Refused("it is a table already"));
            }
        };
        let extras = Extras {
            key,
            segments: Some(self.segments()),
            symbols: Some(symbols),
            columns: true,
            ..Extras::default()
        };
        match info {
            Some(info) => info.build_to(&extras, threads, sink),
            None => crate::table::write_to(Vec::new(), &KnownTexts::default(), &extras, sink),
        }
    }
}

fn by_table(table: &Table, addr: LinkAddr) -> Resolved {
    let symbol = table.symbol(addr).map(|symbol| symbol.name.to_vec());
    Resolved {
        symbol: symbol.ok_or(Reason::NotCovered),
        frames: frames(table, addr),
    }
}

fn frames(table: &Table, addr: LinkAddr) -> Vec<ResolvedFrame> {
    let frame = |frame: crate::table::SourceFrame<'_>| ResolvedFrame {
        function: frame.function.unwrap_or_default().to_vec(),
        path: frame.path(),
        line: frame.line,
        column: frame.column,
    };
    table.find(addr).map(frame).collect()
}

/// Returns the frames at an address of a file: from a Go program's own table if that lacks nothing,
/// or else from debug information, or from what the table has.
fn file_frames(symbols: &LateSymbols, info: &LateInfo, addr: LinkAddr) -> Vec<ResolvedFrame> {
    let complete = symbols.go().and_then(|go| go.find_complete(addr));
    if let Some(complete) = complete {
        let frame = |frame: GoFrame| go_frame(frame.name, frame.file, frame.line);
        return complete.into_iter().map(frame).collect();
    }
    let info = info.get(symbols.object());
    let table = info.and_then(|info| info.part_at(addr));
    let by_info = table.map_or_else(Vec::new, |table| frames(&table, addr));
    if by_info.is_empty() {
        go_frames(symbols, addr)
    } else {
        by_info
    }
}

/// Returns the frames from a Go program's own table, which stripped programs have, too.
fn go_frames(symbols: &LateSymbols, addr: LinkAddr) -> Vec<ResolvedFrame> {
    let frames = symbols.go().map_or_else(Vec::new, |go| go.find(addr));
    let frame = |frame: GoFrame| go_frame(frame.short_name().into_owned(), frame.file, frame.line);
    frames.into_iter().map(frame).collect()
}

fn go_frame(function: Vec<u8>, path: Vec<u8>, line: u32) -> ResolvedFrame {
    ResolvedFrame {
        function,
        path,
        line,
        column: 0,
    }
}

impl Symbols for ForeignSymbols {
    fn first(&self) -> Option<u64> {
        self.functions().map(|symbol| symbol.start.0).min()
    }

    fn entries(&self) -> Vec<SymbolEntry<'_>> {
        let entries = self.functions().map(|symbol| SymbolEntry {
            start: symbol.start.0,
            within: 0,
            size: symbol.size.try_into().unwrap_or(u32::MAX),
            name: symbol.name,
        });
        entries.collect()
    }
}

impl Symbols for ElfSymbols {
    fn first(&self) -> Option<u64> {
        self.first_start().map(|start| start.0)
    }

    fn entries(&self) -> Vec<SymbolEntry<'_>> {
        let entries = self.ranges().map(|(start, symbol)| SymbolEntry {
            start: start.0,
            within: (start.0 - symbol.start.0).try_into().unwrap_or(u32::MAX),
            size: symbol.size.try_into().unwrap_or(u32::MAX),
            name: symbol.name,
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_unstable_by_key(|entry| entry.start);
        entries
    }
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Resolver>();
};
