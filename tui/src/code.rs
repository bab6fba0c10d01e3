//! The *code* of a function, as it lies on disk: its instructions and its source
//! text, with the line that each instruction is from. It does not change while
//! samples come in; what of it cannot be had says why.

/// Machine code as instructions.
pub mod assembly;
/// The files that code is in.
mod files;
/// The code of the kernel that runs.
mod kernel;
/// Finds both for a function.
pub mod library;
/// Which functions an address stands for.
mod lines;
/// The stretches of code that are a function's.
mod pieces;
/// Where source text is looked for instead.
pub mod source_map;
/// Source text from disk.
pub mod text;

pub use assembly::{Instruction, Syntax};
pub use library::{FileLibrary, Library};
pub use source_map::SourceMap;
pub use text::SourceText;

use profile::FrameKind;
use std::collections::BTreeSet;
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
    /// The samples were taken elsewhere, or long ago: processes of now are not
    /// those of then.
    pub is_recorded: bool,
    pub pids: Vec<u32>,
    /// Where samples hit, as the profile knows those places.
    pub hits: Vec<Hit>,
    /// Counts how often code was opened: what was found is looked for anew.
    pub visit: u64,
}

/// An address in a module, and what the profile knows of its place.
#[derive(Debug, Clone)]
pub struct Hit {
    pub address: u64,
    pub samples: u64,
    /// The function whose code it is, if it is another one.
    pub host: Option<Arc<str>>,
    pub file: Option<Arc<str>>,
    pub line: u32,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Body {
    /// By address; the function's code, or the stretches of other functions'
    /// code that it was inlined into.
    pub pieces: Vec<Piece>,
    /// Why there are no instructions.
    pub no_assembly: Option<String>,
    /// The file that most of it is from.
    pub file: Option<Arc<str>>,
    pub text: Option<SourceText>,
    /// Why there is no text.
    pub no_text: Option<String>,
    /// What else has to be known to trust it.
    pub notes: Vec<String>,
    /// All files that lines are of, by number.
    pub files: Vec<Arc<str>>,
    /// Addresses of which no code was found, so as not to look again.
    pub unknown: BTreeSet<u64>,
}

/// A stretch of code.
#[derive(Debug, Default)]
pub struct Piece {
    /// The function whose code it is, if it is another one.
    pub host: Option<Arc<str>>,
    /// Where it is in the file.
    pub range: Range<u64>,
    /// Where the function starts that it is of: offsets count from there.
    pub start: u64,
    pub instructions: Vec<Instruction>,
    /// Bytes at its end that are left out.
    pub cut: u64,
}

/// A line of one of the files of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    pub file: u32,
    pub line: u32,
}

impl Body {
    /// The instruction that an address is in, and its piece.
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

    pub fn instruction(&self, (piece, at): (usize, usize)) -> Option<&Instruction> {
        self.pieces.get(piece)?.instructions.get(at)
    }

    pub fn instructions(&self) -> usize {
        self.pieces
            .iter()
            .map(|piece| piece.instructions.len())
            .sum()
    }

    /// Whether all that can be found for an address is in it.
    pub fn covers(&self, address: u64) -> bool {
        self.pieces.iter().any(|p| p.range.contains(&address)) || self.unknown.contains(&address)
    }

    /// The number of a file, which is a new one if it is new.
    pub fn file_number(&mut self, file: &str) -> u32 {
        let known = self.files.iter().position(|known| **known == *file);
        let number = known.unwrap_or_else(|| {
            self.files.push(file.into());
            self.files.len() - 1
        });
        number as u32
    }

    /// That of the file whose text is shown.
    pub fn main_file(&self) -> Option<u32> {
        let file = self.file.as_ref()?;
        let at = self.files.iter().position(|known| known == file)?;
        Some(at as u32)
    }
}
