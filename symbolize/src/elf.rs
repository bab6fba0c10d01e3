//! Function names of an ELF file, from its symbol tables.
//!
//! | module | holds |
//! |---|---|
//! | `tables` | the symbol tables, with or without section headers |
//! | `place` | where in the file a symbol table is |
//! | `dynamic` | finds the symbol table through the dynamic segment |
//! | `candidates` | which symbols are functions |
//! | `alias` | which of several names of one function is shown |
//! | `code` | where a function's code is, and its bytes |
//! | `plt` | names for the stubs that call into other files |
//! | `each` | iterates over all symbols by name |
//! | `near` | finds only the functions near a few addresses |
//! | `flatten` | converts functions, possibly nested, to ranges that are not |
//! | `needed` | the libraries that are mapped with the file |
//! | `strings` | string tables, of which only the needed names are read |

mod alias;
mod candidates;
mod code;
mod dynamic;
mod each;
mod flatten;
mod near;
mod needed;
mod place;
mod plt;
mod strings;
mod tables;

use std::fs::File;
use std::ops;
use std::sync::{Arc, OnceLock};

use crate::address::Segments;
use crate::debug_file::{self, DebugFiles};
use crate::file_id::FileId;
use crate::go::GoSymbols;
use crate::object::Object;
use crate::source::Source;
use crate::unwind::Extents;
use crate::{FileOffset, LinkAddr, OpenError, Origin, Reason};

pub use each::for_each_symbol;
pub use needed::Needed;

use alias::{Aliases, Label};
use flatten::{Flattening, Range};
use strings::Names;

/// A function of the symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'s> {
    /// Name as the compiler wrote it: not demangled, not safe to display.
    pub name: &'s [u8],
    /// Address of its first byte.
    pub start: LinkAddr,
    /// Size of its code in bytes; 0 if the table has none.
    pub size: u64,
    /// Whether the table gives no size, so that the name is that of the nearest label.
    pub inexact: bool,
    /// Number of other names of the same code (identical code folding, or deliberate aliases).
    pub aliases: u32,
}

/// Whether a file has code, or only describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
}

/// Which functions of a file are kept in memory.
#[derive(Debug, Clone, Copy)]
enum Kept<'a> {
    All,
    /// Only the functions that decide which function is at these addresses.
    Near(&'a [LinkAddr]),
}

/// The functions of one file. Kept in memory are 24 bytes per function, and the names that were
/// looked up.
#[derive(Debug)]
pub struct ElfSymbols {
    id: FileId,
    segments: Segments,
    ranges: Vec<Range>,
    aliases: Aliases,
    names: Names,
    stripped: bool,
    /// Where the names of a separate debug file are from, once it was found.
    origin: Origin,
    /// The symbols of the debug file, which are searched first.
    separate: Option<Box<ElfSymbols>>,
    object: Arc<Object>,
    /// Read when code without a name is looked up.
    extents: OnceLock<Extents>,
    /// Read when a caller wants to replace return addresses.
    exceptions: OnceLock<bool>,
    /// Read when the first name is looked up.
    go: OnceLock<Option<GoSymbols>>,
}

impl ElfSymbols {
    /// Reads the symbol tables. The file stays open: names are read from it on demand.
    pub fn read(file: &File) -> Result<ElfSymbols, OpenError> {
        ElfSymbols::from_object(Object::read(file)?)
    }

    /// Reads the symbol tables of a file in memory, such as the vDSO.
    pub fn from_bytes(bytes: Box<[u8]>) -> Result<ElfSymbols, OpenError> {
        ElfSymbols::from_object(Object::from_source(Source::Memory(bytes))?)
    }

    /// Reads the symbol tables of a file that is already open.
    pub fn from_object(object: impl Into<Arc<Object>>) -> Result<ElfSymbols, OpenError> {
        let symbols = ElfSymbols::of(object.into(), Whole::Yes, Kept::All)?;
        Ok(symbols.expect("all functions are kept"))
    }

    /// Reads only the symbols around these places of a file with section headers, without building
    /// the table of all functions. [`ElfSymbols::find`], [`ElfSymbols::same_function`] and
    /// [`ElfSymbols::function_start`] give the same answers for these places as with the whole
    /// table. `None` if the whole table is needed.
    pub(crate) fn near(
        object: Object,
        files: Option<&DebugFiles>,
        places: &[FileOffset],
    ) -> Result<Option<ElfSymbols>, OpenError> {
        let addrs = links(object.segments(), places);
        ElfSymbols::near_links(object, files, &addrs)
    }

    /// Does the same for link addresses, for which [`ElfSymbols::find_link`] gives the same answers.
    pub(crate) fn near_links(
        object: impl Into<Arc<Object>>,
        files: Option<&DebugFiles>,
        addrs: &[LinkAddr],
    ) -> Result<Option<ElfSymbols>, OpenError> {
        let kept = Kept::Near(addrs);
        let Some(symbols) = ElfSymbols::of(object.into(), Whole::Yes, kept)? else {
            return Ok(None);
        };
        match files {
            Some(files) => symbols.find_separate(files, kept),
            None => Ok(Some(symbols)),
        }
    }

    /// Reads the symbols of a file that may be stripped, so that they are in a debug file or,
    /// compressed, in the file itself. If these cannot be read, that is not an error.
    pub fn with_debug_files(
        object: impl Into<Arc<Object>>,
        files: &DebugFiles,
    ) -> Result<ElfSymbols, OpenError> {
        let symbols = ElfSymbols::from_object(object)?;
        let symbols = symbols.find_separate(files, Kept::All)?;
        Ok(symbols.expect("all functions are kept"))
    }

    /// Adds the names of a debug file, if the file is stripped and there is one.
    fn find_separate(
        mut self,
        files: &DebugFiles,
        kept: Kept<'_>,
    ) -> Result<Option<ElfSymbols>, OpenError> {
        if !self.stripped {
            return Ok(Some(self));
        }
        let main = Arc::clone(&self.object);
        if let Some(found) = files.separate(&main) {
            match self.add_separate_of(found, Origin::DebugFile, kept) {
                None => return Ok(None),
                Some(true) => return Ok(Some(self)),
                Some(false) => {}
            }
        }
        if let Ok(Some(inside)) = debug_file::mini(&main, files.files())
            && self
                .add_separate_of(inside, Origin::MiniDebugInfo, kept)
                .is_none()
        {
            return Ok(None);
        }
        Ok(Some(self))
    }

    /// Adds the names of a debug file, which are searched first; returns whether it has any.
    pub(crate) fn add_separate(&mut self, found: Object, origin: Origin) -> bool {
        self.add_separate_of(found, origin, Kept::All) == Some(true)
    }

    /// Adds the names of a debug file to the result of [`ElfSymbols::near`] for the same places;
    /// `None` if the whole table is needed.
    pub(crate) fn add_separate_near(
        &mut self,
        found: Object,
        origin: Origin,
        places: &[FileOffset],
    ) -> Option<bool> {
        let addrs = links(&self.segments, places);
        self.add_separate_of(found, origin, Kept::Near(&addrs))
    }

    /// Implements [`ElfSymbols::add_separate`]; `None` if what is kept does not suffice.
    fn add_separate_of(&mut self, found: Object, origin: Origin, kept: Kept<'_>) -> Option<bool> {
        let found = found.belonging_to(&self.object);
        let Ok(symbols) = ElfSymbols::of(Arc::new(found), Whole::No, kept) else {
            return Some(false);
        };
        let symbols = symbols?;
        if symbols.stripped {
            return Some(false);
        }
        self.separate = Some(Box::new(symbols));
        self.origin = origin;
        Some(true)
    }

    /// The debug file with the names, and its kind; `None` if there is none.
    pub(crate) fn separate(&self) -> Option<(&Object, Origin)> {
        let separate = self.separate.as_ref()?;
        Some((&separate.object, self.origin))
    }

    /// Reads the symbols. `None` if what is kept does not suffice, which never happens if all are
    /// kept.
    fn of(
        object: Arc<Object>,
        whole: Whole,
        kept: Kept<'_>,
    ) -> Result<Option<ElfSymbols>, OpenError> {
        let id = object.file_id()?;
        let tables = tables::find(&object);
        let stripped = tables.full.is_none();
        let mut stubs = plt::Stubs::default();
        // To find a few functions, the symbols are read twice, and none is needed later.
        let (loaded, dynamic) = match kept {
            Kept::All => (tables::load(&object, &tables, tables.dynamic)?, None),
            Kept::Near(_) => (tables::load(&object, &tables, None)?, tables.dynamic),
        };

        // While building, the names of possible labels are read. They are read again when they are
        // looked up, which most never are.
        let mut names = Names::new(&object, &tables);
        let symbols = candidates::Symbols {
            object: &object,
            full: tables.full,
            dynamic,
            loaded: &loaded,
            names: &names,
        };
        let mut functions = match kept {
            Kept::All => symbols.functions()?,
            Kept::Near(addrs) => match near::functions(&symbols, addrs)? {
                Some(functions) => functions,
                None => return Ok(None),
            },
        };
        functions.sort_unstable_by_key(candidates::Candidate::order);
        if whole == Whole::Yes && matches!(kept, Kept::All) {
            stubs.find(&object, &loaded, &names, &functions)?;
        }
        names.set_stubs(stubs.take_names());
        functions.extend(stubs.into_candidates());
        functions.sort_unstable_by_key(candidates::Candidate::order);
        let mut flattening = Flattening::default();
        let aliases = alias::choose(&object, &functions, stripped, |function| {
            flattening.add(function);
        });
        let ranges = flattening.finish();
        names.forget();

        Ok(Some(ElfSymbols {
            id,
            segments: object.segments().clone(),
            ranges,
            aliases,
            names,
            stripped,
            origin: if stripped {
                Origin::Exports
            } else {
                Origin::SymbolTable
            },
            separate: None,
            object,
            extents: OnceLock::new(),
            exceptions: OnceLock::new(),
            go: OnceLock::new(),
        }))
    }

    /// Finds the function at `offset`, or the reason why there is none.
    pub fn find(&self, offset: FileOffset) -> Result<Symbol<'_>, Reason> {
        let addr = self.segments.to_link(offset);
        self.find_link(addr.ok_or(Reason::NotCovered)?)
    }

    /// Finds the function at a link address.
    pub fn find_link(&self, addr: LinkAddr) -> Result<Symbol<'_>, Reason> {
        let separate = self.separate.as_ref().map(|s| s.find_link(addr));
        if let Some(Ok(symbol)) = separate {
            return Ok(symbol);
        }
        let none = if self.is_stripped() {
            Reason::Stripped
        } else {
            Reason::NotCovered
        };
        let behind = self.ranges.partition_point(|range| range.start <= addr.0);
        let range = behind.checked_sub(1).map(|index| &self.ranges[index]);
        let range = range.filter(|range| addr.0 < range.end()).ok_or(none)?;
        self.symbol(range)
    }

    /// Returns the range of file offsets around `offset` for which [`ElfSymbols::find`] returns the
    /// same function. `None` if it has no function there, or if the file's segments or the function
    /// are inconsistent.
    pub fn same_function(&self, offset: FileOffset) -> Option<ops::Range<u64>> {
        let addr = self.segments.to_link(offset)?;
        let (is_named, around) = self.around(addr)?;
        if !is_named || !around.contains(&addr.0) {
            return None;
        }
        // If one end lies outside of the address's segment, there is no range.
        let start = offset.0.checked_sub(addr.0 - around.start)?;
        let last = offset.0.checked_add(around.end - 1 - addr.0)?;
        let is_at =
            |offset, addr| self.segments.to_link(FileOffset(offset)) == Some(LinkAddr(addr));
        let is_straight = is_at(start, around.start) && is_at(last, around.end - 1);
        is_straight.then(|| start..last + 1)
    }

    /// Returns the range of addresses around `addr` that belong to one function, or to none, and
    /// whether they belong to one.
    fn around(&self, addr: LinkAddr) -> Option<(bool, ops::Range<u64>)> {
        let own = flatten::around(&self.ranges, addr.0);
        let Some(separate) = &self.separate else {
            return Some(own);
        };
        let (is_named, around) = separate.around(addr)?;
        // The file itself names what the debug file does not. A name that cannot be read counts as
        // no name.
        if is_named {
            return separate.find_link(addr).is_ok().then_some((true, around));
        }
        let both = own.1.start.max(around.start)..own.1.end.min(around.end);
        Some((own.0, both))
    }

    /// Returns the offset at which the function without a name at `offset` starts, from unwind
    /// information, which stripped files have, too.
    pub fn function_start(&self, offset: FileOffset) -> Option<FileOffset> {
        let addr = self.segments.to_link(offset)?;
        let function = self.extents().find(&self.object, addr)?;
        self.segments.to_file(LinkAddr(function.start))
    }

    /// The names, lines and inlined calls that a Go program, stripped or not, has for its own
    /// functions. They take precedence over symbol tables; `None` if it is not a Go program.
    pub fn go(&self) -> Option<&GoSymbols> {
        let read = || GoSymbols::read(&self.object);
        self.go.get_or_init(read).as_ref()
    }

    /// All functions, each once, by address; those of a debug file first. Reads all names.
    pub fn functions(&self) -> impl Iterator<Item = Symbol<'_>> {
        let layers = self.separate.as_deref().into_iter().chain([self]);
        layers.flat_map(|layer| {
            let first_parts = layer.ranges.iter().filter(|range| range.is_first());
            first_parts.filter_map(|range| layer.symbol(range).ok())
        })
    }

    /// Calls `take` with every function name that contains `word`, and the function's start.
    /// Includes all names of functions that have several, which [`ElfSymbols::functions`] does not.
    /// What cannot be read is left out.
    pub fn for_each_name(&self, word: &str, take: &mut dyn FnMut(&[u8], LinkAddr)) {
        let finder = memchr::memmem::Finder::new(word.as_bytes());
        for layer in self.separate.as_deref().into_iter().chain([self]) {
            let mut look_at = |name: &[u8], start: LinkAddr, _| {
                let is_start = || {
                    self.extent(start)
                        .is_some_and(|extent| extent.start == start)
                };
                if finder.find(name).is_some() && is_start() {
                    take(name, start);
                }
            };
            // Damaged tables were already reported when the file was opened.
            _ = each::for_each_symbol_with(&layer.object, word.as_bytes(), &mut look_at);
        }
    }

    /// All ranges of code with a name: their start, and the function, which may start earlier, as
    /// others can lie inside of it. Reads all names.
    pub fn ranges(&self) -> impl Iterator<Item = (LinkAddr, Symbol<'_>)> {
        let separate = self.separate.as_deref();
        let first = separate.into_iter().flat_map(ElfSymbols::own_ranges);
        let is_hidden = move |addr| separate.is_some_and(|s| s.find_link(addr).is_ok());
        let own = self.own_ranges().filter(move |(at, _)| !is_hidden(*at));
        first.chain(own)
    }

    /// Start of the first function, named or not.
    pub fn first_start(&self) -> Option<LinkAddr> {
        let own = self.ranges.first().map(|range| LinkAddr(range.start));
        let separate = self.separate.as_ref();
        let separate = separate.and_then(|separate| separate.first_start());
        own.into_iter().chain(separate).min()
    }

    fn own_ranges(&self) -> impl Iterator<Item = (LinkAddr, Symbol<'_>)> {
        let named = |range: &Range| Some((LinkAddr(range.start), self.symbol(range).ok()?));
        self.ranges.iter().filter_map(named)
    }

    /// The identity of the file's contents.
    pub fn id(&self) -> &FileId {
        &self.id
    }

    /// The parts of the file that processes map.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The file itself.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Whether the file has no full symbol table, and none was found elsewhere.
    pub fn is_stripped(&self) -> bool {
        self.stripped && self.separate.is_none()
    }

    /// Where most of the names are from.
    pub fn origin(&self) -> Origin {
        match self.go() {
            Some(_) => Origin::GoTable,
            None => self.origin,
        }
    }

    /// Drops the cached names if they take more than `bytes_max`: they are read again on demand.
    pub fn bound_names(&mut self, bytes_max: usize) {
        if self.names.read_bytes() > bytes_max {
            self.names.forget();
        }
        if let Some(separate) = &mut self.separate {
            separate.bound_names(bytes_max);
        }
    }

    /// Bytes of heap in use, including the cached names.
    pub fn heap_bytes(&self) -> usize {
        let extents = self.extents.get().map_or(0, Extents::heap_bytes);
        let go = self.go.get().and_then(Option::as_ref);
        self.ranges.capacity() * size_of::<Range>()
            + self.aliases.heap_bytes()
            + self.names.heap_bytes()
            + extents
            + go.map_or(0, GoSymbols::heap_bytes)
            + self.separate.as_ref().map_or(0, |s| s.heap_bytes())
    }

    fn symbol(&self, range: &Range) -> Result<Symbol<'_>, Reason> {
        let (name, aliases) = match range.label() {
            Label::Only(name) => (name, 0),
            Label::Several(group) => {
                let chosen = self
                    .aliases
                    .choose(group, &self.names)
                    .map_err(|e| e.reason())?;
                (chosen.name, chosen.aliases)
            }
        };
        let name = self.names.get(name).map_err(|e| e.reason())?;
        if name.is_empty() {
            return Err(Reason::NotCovered);
        }
        Ok(Symbol {
            name,
            start: LinkAddr(range.function_start()),
            size: range.size(),
            inexact: range.inexact(),
            aliases,
        })
    }
}

/// Size of a file's symbol tables.
pub(crate) fn table_bytes(object: &Object) -> u64 {
    let tables = tables::find(object);
    let sizes = [tables.full, tables.dynamic].map(|table| table.map_or(0, |t| t.symbols.size));
    sizes[0].saturating_add(sizes[1])
}

/// Checks that the symbol tables of a file are not too large, and that the file has all of them.
pub(crate) fn check_tables(object: &Object) -> Result<(), OpenError> {
    let found = tables::find(object);
    for table in [found.full, found.dynamic].into_iter().flatten() {
        tables::check(object, table.symbols)?;
    }
    Ok(())
}

/// Returns the link addresses of those file offsets that have one.
fn links(segments: &Segments, places: &[FileOffset]) -> Vec<LinkAddr> {
    let links = places.iter().filter_map(|place| segments.to_link(*place));
    links.collect()
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<ElfSymbols>();
};
