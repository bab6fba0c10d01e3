//! Function names of an ELF file, from its symbol tables.
//!
//! | module | holds |
//! |---|---|
//! | `tables` | the symbol tables, with or without section headers |
//! | `place` | where in the file one is |
//! | `dynamic` | the same from the dynamic segment |
//! | `candidates` | which symbols are functions at all |
//! | `alias` | which of several names for one function is shown |
//! | `code` | where a function's code is, and its bytes |
//! | `plt` | names for the stubs that call into other files |
//! | `each` | every symbol by its name |
//! | `lookup` | whether one symbol is offered to other files |
//! | `near` | which functions decide what is at a few addresses |
//! | `flatten` | functions, possibly nested, as ranges that are not |
//! | `needed` | the libraries that are mapped with the file |
//! | `strings` | string tables, read as far as names are asked for |

mod alias;
mod candidates;
mod code;
mod dynamic;
mod each;
mod flatten;
mod lookup;
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
pub use lookup::exports;
pub use needed::Needed;

use alias::{Aliases, Label};
use flatten::{Flattening, Range};
use strings::Names;

/// A function, as the symbol table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'s> {
    /// As the compiler wrote it: not demangled, not safe to display.
    pub name: &'s [u8],
    /// Where its code begins.
    pub start: LinkAddr,
    /// 0 where the table says nothing.
    pub size: u64,
    /// The table gives no size: the name is that of the nearest label.
    pub inexact: bool,
    /// How many other names the same code has (identical code folding, or
    /// deliberate aliases).
    pub aliases: u32,
}

/// Whether a file has code, or only tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
}

/// Which functions of a file are kept.
#[derive(Debug, Clone, Copy)]
enum Kept<'a> {
    All,
    /// Those that decide what is at these addresses.
    Near(&'a [LinkAddr]),
}

/// The functions of one file. What is kept are 24 bytes per function, and the
/// names that were asked for.
#[derive(Debug)]
pub struct ElfSymbols {
    id: FileId,
    segments: Segments,
    ranges: Vec<Range>,
    aliases: Aliases,
    names: Names,
    stripped: bool,
    /// Of a separate debug file's, once it was found.
    origin: Origin,
    /// Those of a debug file, which come first.
    separate: Option<Box<ElfSymbols>>,
    object: Arc<Object>,
    /// Read when code without a name is met.
    extents: OnceLock<Extents>,
    /// Read when somebody wants to replace return addresses.
    exceptions: OnceLock<bool>,
    /// Read when the first name is asked for.
    go: OnceLock<Option<GoSymbols>>,
}

impl ElfSymbols {
    /// Reads the symbol tables. The file stays open: names are read from it
    /// when they are asked for.
    pub fn read(file: &File) -> Result<ElfSymbols, OpenError> {
        ElfSymbols::from_object(Object::read(file)?)
    }

    /// The same for a file in memory, such as the vDSO.
    pub fn from_bytes(bytes: Box<[u8]>) -> Result<ElfSymbols, OpenError> {
        ElfSymbols::from_object(Object::from_source(Source::Memory(bytes))?)
    }

    /// Reads the symbol tables of a file that was opened before.
    pub fn from_object(object: Object) -> Result<ElfSymbols, OpenError> {
        let symbols = ElfSymbols::of(object, Whole::Yes, Kept::All)?;
        Ok(symbols.expect("all functions are kept"))
    }

    /// What tells of these places of a file with section headers, without a table of all its functions:
    /// [`ElfSymbols::find`], [`ElfSymbols::same_function`] and [`ElfSymbols::function_start`]
    /// of these places answer as those of the whole table. None if that takes the whole table.
    pub(crate) fn near(
        object: Object,
        files: Option<&DebugFiles>,
        places: &[FileOffset],
    ) -> Result<Option<ElfSymbols>, OpenError> {
        let addrs = links(object.segments(), places);
        let kept = Kept::Near(&addrs);
        let Some(symbols) = ElfSymbols::of(object, Whole::Yes, kept)? else {
            return Ok(None);
        };
        match files {
            Some(files) => symbols.find_separate(files, kept),
            None => Ok(Some(symbols)),
        }
    }

    /// The same for a stripped file whose symbols may be in a debug file, or
    /// inside of it, compressed. That they cannot be had is no failure.
    pub fn with_debug_files(object: Object, files: &DebugFiles) -> Result<ElfSymbols, OpenError> {
        let symbols = ElfSymbols::from_object(object)?;
        let symbols = symbols.find_separate(files, Kept::All)?;
        Ok(symbols.expect("all functions are kept"))
    }

    /// Takes the names of a debug file, if the file is stripped and there is one.
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

    /// Takes the names of a debug file first, if it has any; says whether it has.
    pub(crate) fn add_separate(&mut self, found: Object, origin: Origin) -> bool {
        self.add_separate_of(found, origin, Kept::All) == Some(true)
    }

    /// As [`ElfSymbols::add_separate`], of what [`ElfSymbols::near`] has kept for the same places; None
    /// if that takes the whole table.
    pub(crate) fn add_separate_near(
        &mut self,
        found: Object,
        origin: Origin,
        places: &[FileOffset],
    ) -> Option<bool> {
        let addrs = links(&self.segments, places);
        self.add_separate_of(found, origin, Kept::Near(&addrs))
    }

    /// As [`ElfSymbols::add_separate`]; None if what is kept does not suffice.
    fn add_separate_of(&mut self, found: Object, origin: Origin, kept: Kept<'_>) -> Option<bool> {
        let found = found.belonging_to(&self.object);
        let Ok(symbols) = ElfSymbols::of(found, Whole::No, kept) else {
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

    /// The debug file that has names, and of which kind it is; `None` if there is none.
    pub(crate) fn separate(&self) -> Option<(&Object, Origin)> {
        let separate = self.separate.as_ref()?;
        Some((&separate.object, self.origin))
    }

    /// None if what is kept does not suffice, which is never so of all.
    fn of(object: Object, whole: Whole, kept: Kept<'_>) -> Result<Option<ElfSymbols>, OpenError> {
        let id = object.file_id()?;
        let tables = tables::find(&object);
        let stripped = tables.full.is_none();
        let mut stubs = plt::Stubs::default();
        let loaded = tables::load(&object, &tables)?;

        // Names are touched while building, of what may be labels. They are read
        // again when asked for: most never are.
        let object = Arc::new(object);
        let mut names = Names::new(&object, &tables);
        let symbols = candidates::Symbols {
            object: &object,
            full: tables.full,
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
        functions.sort_by_key(candidates::Candidate::order);
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

    /// The function at `offset`, or why there is none.
    pub fn find(&self, offset: FileOffset) -> Result<Symbol<'_>, Reason> {
        let addr = self.segments.to_link(offset);
        self.find_link(addr.ok_or(Reason::NotCovered)?)
    }

    /// The same for an address as the linker wrote it.
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

    /// Returns the bytes of the file around `offset` of which [`ElfSymbols::find`] says the same
    /// as of `offset`, if it has a function there. None as well if the file's segments or the
    /// function are odd.
    pub fn same_function(&self, offset: FileOffset) -> Option<ops::Range<u64>> {
        let addr = self.segments.to_link(offset)?;
        let (is_named, around) = self.around(addr)?;
        if !is_named || !around.contains(&addr.0) {
            return None;
        }
        // Both ends lie in the segment of the address, or none is told.
        let start = offset.0.checked_sub(addr.0 - around.start)?;
        let last = offset.0.checked_add(around.end - 1 - addr.0)?;
        let is_at =
            |offset, addr| self.segments.to_link(FileOffset(offset)) == Some(LinkAddr(addr));
        let is_straight = is_at(start, around.start) && is_at(last, around.end - 1);
        is_straight.then(|| start..last + 1)
    }

    /// Returns the addresses around `addr` that belong to one function, or to none at all, and
    /// whether they belong to one.
    fn around(&self, addr: LinkAddr) -> Option<(bool, ops::Range<u64>)> {
        let own = flatten::around(&self.ranges, addr.0);
        let Some(separate) = &self.separate else {
            return Some(own);
        };
        let (is_named, around) = separate.around(addr)?;
        // What the debug file does not name is named by the file itself; a name that cannot be
        // read is not named.
        if is_named {
            return separate.find_link(addr).is_ok().then_some((true, around));
        }
        let both = own.1.start.max(around.start)..own.1.end.min(around.end);
        Some((own.0, both))
    }

    /// Where in the file the function starts that has no name at `offset`:
    /// unwind information tells, even in stripped files.
    pub fn function_start(&self, offset: FileOffset) -> Option<FileOffset> {
        let addr = self.segments.to_link(offset)?;
        let function = self.extents().find(addr)?;
        self.segments.to_file(LinkAddr(function.start))
    }

    /// What a Go program tells of its own functions, stripped or not: names,
    /// lines and inlined calls. It comes before symbol tables.
    pub fn go(&self) -> Option<&GoSymbols> {
        let read = || GoSymbols::read(&self.object);
        self.go.get_or_init(read).as_ref()
    }

    /// Every function once, by address, those of a debug file first. Reads all
    /// names.
    pub fn functions(&self) -> impl Iterator<Item = Symbol<'_>> {
        let layers = self.separate.as_deref().into_iter().chain([self]);
        layers.flat_map(|layer| {
            let first_parts = layer.ranges.iter().filter(|range| range.is_first());
            first_parts.filter_map(|range| layer.symbol(range).ok())
        })
    }

    /// Gives `take` every name of functions of which `word` is a part, and where they start:
    /// of functions with several names those, too, that [`ElfSymbols::functions`] leaves out.
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
            // Damaged tables were told when the file was opened.
            _ = each::for_each_symbol_with(&layer.object, word.as_bytes(), &mut look_at);
        }
    }

    /// Every stretch of code with a name: where it starts, and the function,
    /// which may start before, as others may lie in it. Reads all names.
    pub fn ranges(&self) -> impl Iterator<Item = (LinkAddr, Symbol<'_>)> {
        let separate = self.separate.as_deref();
        let first = separate.into_iter().flat_map(ElfSymbols::own_ranges);
        let is_hidden = move |addr| separate.is_some_and(|s| s.find_link(addr).is_ok());
        let own = self.own_ranges().filter(move |(at, _)| !is_hidden(*at));
        first.chain(own)
    }

    /// Where the first of them starts, named or not.
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

    /// What identifies the file.
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

    /// Whether the file lost its full symbol table, and none was found.
    pub fn is_stripped(&self) -> bool {
        self.stripped && self.separate.is_none()
    }

    /// Where most of the names come from.
    pub fn origin(&self) -> Origin {
        match self.go() {
            Some(_) => Origin::GoTable,
            None => self.origin,
        }
    }

    /// Drops the names that were read so far if they take more than that: they are read again
    /// when they are asked for.
    pub fn bound_names(&mut self, bytes_max: usize) {
        if self.names.read_bytes() > bytes_max {
            self.names.forget();
        }
        if let Some(separate) = &mut self.separate {
            separate.bound_names(bytes_max);
        }
    }

    /// Bytes of heap in use, the names read so far included.
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

/// What the symbol tables of a file take in it.
pub(crate) fn table_bytes(object: &Object) -> u64 {
    let tables = tables::find(object);
    let sizes = [tables.full, tables.dynamic].map(|table| table.map_or(0, |t| t.symbols.size));
    sizes[0].saturating_add(sizes[1])
}

/// The link addresses of places in a file, of those that have one.
fn links(segments: &Segments, places: &[FileOffset]) -> Vec<LinkAddr> {
    let links = places.iter().filter_map(|place| segments.to_link(*place));
    links.collect()
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<ElfSymbols>();
};
