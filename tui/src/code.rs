//! The *code* of a function as it is on disk: its instructions and its source text, with
//! the line that each instruction comes from. It does not change while samples come in. For
//! what cannot be found there is a reason.

/// Machine code as instructions.
pub mod assembly;
/// Files that contain code.
mod files;
/// Code that a process made at run time.
mod jit;
/// The code of the kernel that runs, and of BPF programs.
mod kernel;
/// Finds instructions and source text of a function.
pub mod library;
/// Which functions an address stands for.
mod lines;
/// The stretches of code that are a function's.
mod pieces;
/// Other folders in which source text is looked for.
pub mod source_map;
/// Source text from disk.
pub mod text;

pub use assembly::{Instruction, Syntax};
pub use library::{FileLibrary, Library};
pub use source_map::SourceMap;
pub use text::SourceText;

use profile::FrameKind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Which function's code is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The function, as the profile calls it.
    pub function: Arc<str>,
    pub module: Arc<str>,
    pub module_path: Arc<str>,
    /// Empty if it is not known.
    pub build_id: Arc<[u8]>,
    pub kind: FrameKind,
    /// Whether the samples are from a recording: its pids are not processes of now.
    pub is_recorded: bool,
    pub pids: Vec<u32>,
    /// Where samples hit, as the profile knows those places.
    pub hits: Vec<Hit>,
    /// Changes when code is opened again, so that files are read again.
    pub visit: u64,
}

/// An address in a module, and what the profile knows of its place.
#[derive(Debug, Clone)]
pub struct Hit {
    pub address: u64,
    pub samples: u64,
    /// The function whose code it is, if this one was inlined there.
    pub host: Option<Arc<str>>,
    pub file: Option<Arc<str>>,
    pub line: u32,
}

/// What was found of the code of a function.
#[derive(Debug, Default)]
pub struct Body {
    /// The stretches of code, in the order of addresses: those of the function, and those
    /// of other functions that it was inlined into.
    pub pieces: Vec<Piece>,
    /// Why there are no instructions.
    pub no_assembly: Option<String>,
    /// The file that most of it is from.
    pub file: Option<Arc<str>>,
    pub text: Option<SourceText>,
    /// Why there is no text.
    pub no_text: Option<String>,
    /// What a user has to know to judge whether this is right, such as a source file that
    /// is newer than the program.
    pub notes: Vec<String>,
    /// All files that lines are of, by number.
    pub files: Vec<Arc<str>>,
    /// Addresses for which no code was found, so that it is not looked for again.
    pub unknown: BTreeSet<u64>,
    /// Where the functions start that some of them are in.
    pub starts: BTreeMap<u64, u64>,
}

/// A stretch of code.
#[derive(Debug, Default)]
pub struct Piece {
    /// The function whose code it is, if it is another one.
    pub host: Option<Arc<str>>,
    /// Where it is in the file; of code that is in no file, in memory.
    pub range: Range<u64>,
    /// Where the function starts that it belongs to; offsets are counted from there.
    pub start: u64,
    pub instructions: Vec<Instruction>,
    /// Bytes at its end that are left out.
    pub cut: u64,
}

/// A line of one of the files of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BodyLine {
    pub file: u32,
    pub line: u32,
}

impl Body {
    /// Returns the piece and the instruction that contain an address, as indexes. None if
    /// none does.
    pub fn find(&self, address: u64) -> Option<(usize, usize)> {
        let piece = self
            .pieces
            .iter()
            .position(|p| p.range.contains(&address))?;
        let instructions = &self.pieces[piece].instructions;
        let behind = instructions.partition_point(|i| i.offset <= address);
        let at = behind.checked_sub(1)?;
        instructions[at].contains(address).then_some((piece, at))
    }

    /// Returns an instruction by the indexes that [`Self::find`] returns.
    pub fn instruction(&self, (piece, at): (usize, usize)) -> Option<&Instruction> {
        self.pieces.get(piece)?.instructions.get(at)
    }

    /// Returns how many instructions there are in all pieces.
    pub fn instructions(&self) -> usize {
        self.pieces
            .iter()
            .map(|piece| piece.instructions.len())
            .sum()
    }

    /// Whether this has all that can be found for an address.
    pub fn covers(&self, address: u64) -> bool {
        self.pieces.iter().any(|p| p.range.contains(&address)) || self.unknown.contains(&address)
    }

    /// Returns the number of a file, and adds it to the list if it is new.
    pub fn file_number(&mut self, file: &str) -> u32 {
        let known = self.files.iter().position(|known| **known == *file);
        let number = known.unwrap_or_else(|| {
            self.files.push(file.into());
            self.files.len() - 1
        });
        number as u32
    }

    /// Returns the number of the file whose text is shown. None if there is none.
    pub fn main_file(&self) -> Option<u32> {
        let file = self.file.as_ref()?;
        let at = self.files.iter().position(|known| known == file)?;
        Some(at as u32)
    }
}
