//! A file in which functions are searched for probes, in the process that reads it.

use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use regex::Regex;

use super::READ_NAMES_BYTES_MAX;
use super::sites_answer::{self as answer, SitesFacts};
use super::sites_order::SitesQuestion;
use crate::debug_file::DebugFiles;
use crate::dwarf::DebugTypes;
use crate::elf::Needed;
use crate::object::Object;
use crate::sites::{self, Inlined, Wanted, spelling};
use crate::table::Table;
use crate::{ElfSymbols, Lines, Reason, lines};

/// Maximum size of one unit of debug information that is read for lines or types.
const DEBUG_BYTES_MAX: u64 = 256 << 20;

/// Parser processes start no threads.
const THREADS: usize = 1;

/// What was read of one file, each part when it is first needed.
#[derive(Debug)]
pub struct SearchedFile {
    file: File,
    symbols: OnceLock<Result<Mutex<ElfSymbols>, Reason>>,
    lines: OnceLock<Option<Arc<Table>>>,
    types: OnceLock<Option<DebugTypes>>,
}

impl SearchedFile {
    /// Reads nothing yet.
    pub fn new(file: File) -> SearchedFile {
        SearchedFile {
            file,
            symbols: OnceLock::new(),
            lines: OnceLock::new(),
            types: OnceLock::new(),
        }
    }

    /// Answers a question. Debug files are searched in `places`.
    pub fn answer(&self, question: &SitesQuestion, places: DebugFiles) -> Result<Vec<u8>, Reason> {
        if let SitesQuestion::Types(question) = question {
            return Ok(question.answer(self.types(places)));
        }
        let mut symbols = self.symbols(&places)?;
        let answer = self.answer_from(&symbols, question, places);
        symbols.bound_names(READ_NAMES_BYTES_MAX);
        answer
    }

    fn answer_from(
        &self,
        symbols: &ElfSymbols,
        question: &SitesQuestion,
        places: DebugFiles,
    ) -> Result<Vec<u8>, Reason> {
        let object = symbols.object();
        Ok(match question {
            SitesQuestion::Facts => answer::write_facts(&SitesFacts {
                build_id: object.build_id().unwrap_or_default(),
                segments: symbols.segments().clone(),
                class: object.class(),
                machine: object.machine(),
            }),
            SitesQuestion::HasExceptions => vec![symbols.has_exceptions().into()],
            SitesQuestion::Needed => answer::write_needed(&Needed::of(object)),
            SitesQuestion::Named(name) => {
                answer::write_fitting(sites::fitting(symbols, name).as_ref())
            }
            SitesQuestion::Matching(pattern) => {
                let pattern = Regex::new(pattern).map_err(|_| Reason::Refused)?;
                let fits = |name: &str| pattern.is_match(name);
                let found = sites::functions(symbols, Wanted::Matching(&fits));
                answer::write_functions(&found.unwrap_or_default())
            }
            SitesQuestion::At(offset) => {
                let addr = symbols.segments().to_link(*offset);
                let found = addr.ok_or(sites::Refusal::NoCode).and_then(|addr| {
                    let found = sites::functions(symbols, Wanted::At(addr))?;
                    found.into_iter().next().ok_or(sites::Refusal::NoCode)
                });
                answer::write_at(&found)
            }
            SitesQuestion::Line(file, line) => {
                let table = self.lines(object, places);
                let found = table.map(|table| sites::of_line(symbols, table, file, *line));
                answer::write_line(found.as_ref())
            }
            SitesQuestion::Inlined(name) => {
                let table = self.lines(object, places);
                let found = table.and_then(|table| Inlined::find(symbols, table, name));
                answer::write_inlined(found.as_ref())
            }
            SitesQuestion::Place(functions) => {
                let placed = functions
                    .iter()
                    .map(|(function, wish)| sites::place(symbols, function, *wish));
                answer::write_placed(placed)
            }
            SitesQuestion::Markers => answer::write_markers(&sites::markers(symbols)),
            SitesQuestion::PlaceMarkers(addrs) => {
                let sites = addrs.iter().map(|addr| sites::place_marker(symbols, *addr));
                answer::write_marker_sites(sites)
            }
            SitesQuestion::Containing(part) => {
                answer::write_names(&spelling::containing(part, spelling::names(symbols)))
            }
            SitesQuestion::Meant(word) => {
                answer::write_meant(&spelling::meant(word, spelling::names(symbols)))
            }
            SitesQuestion::Types(_) => return Err(Reason::Refused),
        })
    }

    fn symbols(&self, places: &DebugFiles) -> Result<MutexGuard<'_, ElfSymbols>, Reason> {
        let symbols = self.symbols.get_or_init(|| {
            let object = Object::read(&self.file);
            let symbols = object.and_then(|object| ElfSymbols::with_debug_files(object, places));
            symbols.map(Mutex::new).map_err(|error| error.reason())
        });
        let symbols = symbols.as_ref().map_err(|reason| *reason)?;
        // No code leaves symbols in an inconsistent state.
        Ok(symbols.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The lines of the whole file; `None` if there are none, or too many.
    fn lines(&self, main: &Object, places: DebugFiles) -> Option<&Table> {
        let read = || {
            let separate = lines::separate(main, &places);
            let lines = Lines::with_separate(main, separate, places, None, DEBUG_BYTES_MAX);
            lines.ok()??.whole(THREADS).ok()?
        };
        self.lines.get_or_init(read).as_deref()
    }

    /// The types that the file or its debug file describes; `None` if there are none, or too many.
    fn types(&self, places: DebugFiles) -> Option<&DebugTypes> {
        let read = || {
            let object = Object::read(&self.file).ok()?;
            DebugTypes::of_file(&object, places, DEBUG_BYTES_MAX).ok()?
        };
        self.types.get_or_init(read).as_ref()
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        let symbols = self.symbols.get().and_then(|symbols| symbols.as_ref().ok());
        let symbols = symbols.map_or(0, |symbols| {
            let symbols = symbols.lock().unwrap_or_else(PoisonError::into_inner);
            symbols.heap_bytes()
        });
        let lines = self.lines.get().and_then(Option::as_ref);
        let types = self.types.get().and_then(Option::as_ref);
        symbols
            + lines.map_or(0, |table| table.heap_bytes())
            + types.map_or(0, DebugTypes::heap_bytes)
    }
}
