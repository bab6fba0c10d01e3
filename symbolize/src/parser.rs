//! Parses untrusted files in a process without privileges: a damaged or hostile file can harm only
//! that process.
//!
//! ```text
//! Symbolizer ── OpenedFile ── Order: open files, offsets ──► Parser (another process)
//!            ◄── FileNames ◄────── Reply: names, lines ◄────
//!            ── OpenedLines ─ Order: open files, offsets ──► debug information
//! code view  ── OpenedCode ── Order: open files, address ──► instructions and their lines
//! naming     ── OpenedJit ─── Order: maps, addresses ──────► maps of generated code
//! probes     ── FileSites ─── Order: an open file, a name ─► functions, instructions, types
//! doctor     ── facts_order ─ Order: an open file ─────────► what it offers
//! python     ── python_order  Order: an open file ─────────► interpreter, asyncio
//!            ── memory_order  Order: memory of a process ──► threads, functions and their lines
//! code view  ── archive_order Order: an open zip archive ──► source text
//! advice     ── packages_order Order: a root directory ─────► packages of files below it
//! unwinding  ── table_order ─ Order: an open file ─────────► a table, as a file in memory
//! mcp        ── recording_order Order: an open recording ──► a recording of ours, as a file in memory
//! ```
//!
//! Both ends are implemented here, except for unwind tables and recordings; the check of code objects
//! of Python is passed in. A
//! [`Proxy`](crate::files::Proxy) transports an [`Order`](crate::files::Order) from one end to the
//! other. A hostile file may have taken over the process that replies, so the reply is read with
//! limits, and its texts are sanitized.
//!
//! | module | holds |
//! |---|---|
//! | `first_looks` | questions about a large file before all of its functions are known |
//! | `names` | what is known about places in a file |
//! | `known` | the names of a file that were already found |
//! | `opened` | a file, on the asking side |
//! | `order` | encoding of questions about names in a file |
//! | `answer` | encoding of the answers |
//! | `chain` | encoding of the lines of a place |
//! | `lines_order` | encoding of questions about lines, and of their answers |
//! | `kept_lines` | the lines of files, in the process that reads debug information |
//! | `opened_lines` | the lines of a file, in the process that asks |
//! | `file_lines` | the lines of a file, read in this process or in another |
//! | `code_order` | encoding of questions about the code of functions |
//! | `code_answer` | encoding of the code of functions |
//! | `kept_code` | what was read of files for that, in the process that finds code |
//! | `opened_code` | the code of a file, in the process that asks |
//! | `file_code` | the code of a file, found in this process or in another |
//! | `run_time_order` | encoding of questions about code that was made at run time |
//! | `run_time_code` | such code, found in this process or in another |
//! | `kept_maps` | maps of generated code, in the process that reads them |
//! | `opened_jit` | the names of a process's generated code, in the process that asks |
//! | `jit_order` | encoding of questions about such names, and of their answers |
//! | `code_names` | such names, read in this process or in another |
//! | `any_answer` | checks of decoding, for random bytes |
//! | `file_facts` | what a file offers: names, and stacks that can be walked |
//! | `facts_order` | a question for that, and its answer |
//! | `archive_order` | a question for a member of a zip archive, and its answer |
//! | `packages_order` | a question for the packages of files, and its answer |
//! | `python_order` | a question about Python in a file, and its answer |
//! | `memory_order` | encoding of questions about the memory of a process that runs Python |
//! | `process_memory` | such memory, in the process that asks |
//! | `table_order` | encoding of a question for the unwind table of a file |
//! | `recording_order` | has a recording read |
//! | `sites_order` | encoding of questions about functions that may be probed |
//! | `sites_answer` | encoding of the answers |
//! | `types_order` | encoding of questions about types, and of their answers |
//! | `searched_file` | a file in which such functions are searched, in the process that reads it |
//! | `kept_sites` | such files, in that process |
//! | `file_sites` | the functions of a file that may be probed, in the process that asks |
//! | `file_types` | the types of a file, in the process that asks |

mod answer;
mod any_answer;
pub mod archive_order;
mod chain;
mod code_answer;
mod code_names;
mod code_order;
pub mod facts_order;
mod file_code;
mod file_facts;
mod file_lines;
mod file_sites;
mod file_types;
mod first_looks;
mod jit_order;
mod kept_code;
mod kept_lines;
mod kept_maps;
mod kept_sites;
mod known;
mod lines_order;
pub mod memory_order;
pub mod names;
pub(crate) mod opened;
pub(crate) mod opened_code;
mod opened_jit;
pub(crate) mod opened_lines;
mod order;
pub mod packages_order;
mod process_memory;
pub mod python_order;
pub mod recording_order;
mod run_time_code;
mod run_time_order;
mod searched_file;
mod sites_answer;
mod sites_order;
pub mod table_order;
mod types_order;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cache::Cache;
use crate::files::{Reply, Work};
use crate::object::Object;
use crate::source::Source;
use crate::{ElfSymbols, Files, Origin, Reason};

pub use any_answer::check_any_answer;
pub use code_answer::CodeAnswer;
pub use code_names::CodeNames;
use code_order::CodeOrder;
pub use file_code::FileCode;
pub use file_facts::{FileFacts, SymbolTable};
pub use file_lines::FileLines;
pub use file_sites::FileSites;
pub use file_types::FileTypes;
use first_looks::FirstLooks;
use jit_order::JitQuestion;
use kept_code::KeptCode;
use kept_lines::KeptLines;
use kept_maps::KeptMaps;
use kept_sites::KeptSites;
use lines_order::LinesQuestion;
pub use opened_jit::NewNames;
use order::{Beside, Question};
pub use process_memory::ProcessMemory;
pub use run_time_code::RunTimeCode;
pub use sites_answer::{Functions, LineFunctions, MarkerSites, SitesFacts};
use sites_order::SitesOrder;

/// Maximum memory of the functions of all files, without their names: those of a compiler with its
/// libraries take 8 MiB.
const BYTES_MAX: usize = 12 << 20;

/// Maximum memory of the names of one file that are cached until the next question.
const READ_NAMES_BYTES_MAX: usize = 128 << 10;

/// The data that a parser process has read; it does nothing but answer orders.
#[derive(Debug)]
pub struct Parser {
    symbols: Cache<u64, Result<Arc<Mutex<ElfSymbols>>, Reason>>,
    first_looks: FirstLooks,
    lines: KeptLines,
    maps: KeptMaps,
    code: KeptCode,
    sites: KeptSites,
}

impl Default for Parser {
    fn default() -> Parser {
        Parser {
            symbols: Cache::with_bytes_max(BYTES_MAX),
            first_looks: FirstLooks::default(),
            lines: KeptLines::default(),
            maps: KeptMaps::default(),
            code: KeptCode::default(),
            sites: KeptSites::default(),
        }
    }
}

impl Parser {
    /// Performs an order about the file with that number, using the files that were sent along.
    /// `way` opens debug files that it refers to.
    pub fn perform(
        &self,
        work: Work,
        number: u64,
        files: Vec<OwnedFd>,
        message: &[u8],
        way: &Files,
    ) -> Result<Reply, Reason> {
        match work {
            Work::Names => {
                let question = Question::read(message, files, way).ok_or(Reason::Refused)?;
                self.names(number, question)
            }
            Work::Lines => {
                let question = LinesQuestion::read(message, files, way).ok_or(Reason::Refused)?;
                self.lines.answer(number, question)
            }
            Work::JitNames => {
                let question = JitQuestion::read(message, files).ok_or(Reason::Refused)?;
                Ok(self.maps.answer(number, &question))
            }
            Work::Python => python_order::answer(message, files),
            Work::Facts => facts_order::answer(message, files, way),
            Work::Archives => archive_order::answer(message, files),
            Work::Packages => packages_order::answer(message, files, way),
            Work::Code => {
                let order = CodeOrder::read(message, files, way).ok_or(Reason::Refused)?;
                self.code.answer(number, order)
            }
            Work::Sites => {
                let order = SitesOrder::read(message, files, way).ok_or(Reason::Refused)?;
                self.sites.answer(number, order)
            }
            // Handled elsewhere: this crate knows neither the format of these tables nor the check of
            // code objects, which belong to the stack walk, nor the formats of recordings.
            Work::Tables | Work::WantedTables | Work::PythonMemory | Work::Recordings => {
                Err(Reason::Refused)
            }
        }
    }

    /// Drops functions and debug information of files, and what was read for code and probes of
    /// functions, that was not used for so long, and maps of generated code that were not used for ten times as long. Returns whether
    /// nothing is left to drop.
    pub fn forget_unused(&self, unused_for: Duration) -> bool {
        let are_symbols_gone = self.symbols.forget_unused(unused_for);
        let are_lines_gone = self.lines.forget_units(unused_for);
        let are_maps_gone = self.maps.forget_unused(10 * unused_for);
        let is_code_gone = self.code.forget_unused(unused_for);
        let are_sites_gone = self.sites.forget_unused(unused_for);
        are_symbols_gone && are_lines_gone && are_maps_gone && is_code_gone && are_sites_gone
    }

    fn names(&self, number: u64, question: Question) -> Result<Reply, Reason> {
        let Question {
            file,
            beside,
            offsets,
        } = question;
        let is_unknown = matches!(beside, Beside::Unknown(_));
        let answer = |symbols: &ElfSymbols| {
            let separate = symbols.separate().filter(|_| is_unknown);
            let names = names::of(symbols, &offsets);
            Reply {
                bytes: answer::write(&names, separate.map(|(_, origin)| origin)),
                file: separate.and_then(|(object, _)| object.source().descriptor()),
            }
        };
        let is_known = self.symbols.get(&number).is_some();
        if !is_known && let Some(near) = self.first_looks.take(number, &file, &beside, &offsets) {
            return Ok(answer(&near));
        }
        let slot = self.symbols.slot(number);
        let symbols = slot.get_or_init(|| read(&file, beside).map(|s| Arc::new(Mutex::new(s))));
        let symbols = symbols.clone()?;
        let mut symbols = symbols.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = answer(&symbols);
        // For each name that was looked up, 16 KiB around it are in memory; the process that asks
        // caches the name itself.
        symbols.bound_names(READ_NAMES_BYTES_MAX);
        drop(symbols);
        self.symbols.trim(|symbols| match symbols {
            Ok(symbols) => {
                let symbols = symbols.lock().unwrap_or_else(PoisonError::into_inner);
                symbols.heap_bytes()
            }
            Err(_) => 0,
        });
        Ok(reply)
    }
}

/// Reads the symbols of a file, and of its debug file.
fn read(file: &File, beside: Beside) -> Result<ElfSymbols, Reason> {
    let object = Object::read(file).map_err(|error| error.reason())?;
    let symbols = match beside {
        Beside::Unknown(files) => ElfSymbols::with_debug_files(object, &files),
        Beside::Nothing => ElfSymbols::from_object(object),
        Beside::Found(file, origin) => ElfSymbols::from_object(object).map(|mut symbols| {
            if let Some(found) = open_beside(&file, origin) {
                symbols.add_separate(found, origin);
            }
            symbols
        }),
    };
    symbols.map_err(|error| error.reason())
}

/// Opens a debug file that was found before. `None` if it cannot be read any more.
fn open_beside(file: &File, origin: Origin) -> Option<Object> {
    let source = match origin {
        Origin::MiniDebugInfo => Source::unpacked(file.try_clone().ok()?),
        _ => Source::file(file),
    };
    source.and_then(Object::from_source).ok()
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Parser>();
};
