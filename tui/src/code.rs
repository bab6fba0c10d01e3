//! The *code* of a function as it is on disk: its instructions and its source text, with the line
//! of each instruction. It does not change while samples arrive. Each missing part has a reason.

/// Finds the files that contain code.
mod files;
/// Code that a process made at run time.
mod jit;
/// The code of the running kernel, and of BPF programs.
mod kernel;
/// Finds instructions and source text of a function.
pub mod library;
/// The pieces of code that belong to a function.
mod pieces;
/// Folders of source text that replace those in debug information.
pub mod source_map;
/// The ways of writing instructions.
mod syntax;
/// Reads source text from disk.
pub mod text;

pub use library::{FileLibrary, Library};
pub use source_map::SourceMap;
pub use symbolize::code::{BodyLine, Instruction};
pub use syntax::Syntax;
pub use text::SourceText;

use profile::FrameKind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The function whose code is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The name of the function in the profile.
    pub function: Arc<str>,
    pub module: Arc<str>,
    pub module_path: Arc<str>,
    /// Empty if it is not known.
    pub build_id: Arc<[u8]>,
    pub kind: FrameKind,
    /// Whether the samples are from a recording: then its pids may belong to other processes now.
    pub is_recorded: bool,
    pub pids: Vec<u32>,
    /// The addresses of samples, with what the profile knows about them.
    pub hits: Vec<Hit>,
    /// Changes when the user opens code again, so that files are read again.
    pub visit: u64,
}

/// An address in a module, and what the profile knows about it.
#[derive(Debug, Clone)]
pub struct Hit {
    pub address: u64,
    pub samples: u64,
    /// The function that contains the address, if the wanted one was inlined there.
    pub host: Option<Arc<str>>,
    pub file: Option<Arc<str>>,
    pub line: u32,
}

/// The code of a function, as far as it was found.
#[derive(Debug, Default)]
pub struct Body {
    /// The pieces of code, in the order of addresses: those of the function, and those of other
    /// functions into which it was inlined.
    pub pieces: Vec<Piece>,
    /// Why there are no instructions.
    pub no_assembly: Option<String>,
    /// The source file of most of the code.
    pub file: Option<Arc<str>>,
    pub text: Option<SourceText>,
    /// Why there is no text.
    pub no_text: Option<String>,
    /// Warnings, such as that a source file is newer than the program.
    pub notes: Vec<String>,
    /// The source files of all lines, by number.
    pub files: Vec<Arc<str>>,
    /// Addresses without code, so that they are not looked up again.
    pub unknown: BTreeSet<u64>,
    /// The starts of the functions that contain the addresses, by address.
    pub starts: BTreeMap<u64, u64>,
}

/// A piece of code.
#[derive(Debug, Default)]
pub struct Piece {
    /// The function that contains the piece, if it is not the wanted one.
    pub host: Option<Arc<str>>,
    /// Its range of offsets in the file. For code that is in no file, the range of addresses in
    /// memory.
    pub range: Range<u64>,
    /// The start of the function that contains it, from which offsets are counted.
    pub start: u64,
    pub instructions: Vec<Instruction>,
    /// Number of bytes at its end that are left out.
    pub cut: u64,
}

impl Body {
    /// Returns the indexes of the piece and the instruction that contain an address. None if none
    /// does.
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

    /// Returns the number of instructions in all pieces.
    pub fn instructions(&self) -> usize {
        self.pieces
            .iter()
            .map(|piece| piece.instructions.len())
            .sum()
    }

    /// Whether an address has been looked up, with or without success.
    pub fn covers(&self, address: u64) -> bool {
        self.pieces.iter().any(|p| p.range.contains(&address)) || self.unknown.contains(&address)
    }

    /// Returns the number of a file, which is added to the list if it is new.
    pub fn file_number(&mut self, file: &str) -> u32 {
        let known = self.files.iter().position(|known| **known == *file);
        let number = known.unwrap_or_else(|| {
            self.files.push(file.into());
            self.files.len() - 1
        });
        number as u32
    }

    /// Returns the number of the file whose text is shown. None if there is no such file.
    pub fn main_file(&self) -> Option<u32> {
        let file = self.file.as_ref()?;
        let at = self.files.iter().position(|known| known == file)?;
        Some(at as u32)
    }
}
