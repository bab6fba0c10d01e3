//! Finds the code of a function: its bounds, its instructions, the line of each, and what they call.

use std::ops::Range;
use std::sync::Arc;

use super::assembly::{self, BodyLine, Decoded, Instruction, Mode, Texts};
use super::lines::{CodeLines, Frame};
use crate::demangle::shown;
use crate::{ElfSymbols, FileOffset, LinkAddr};

/// Asks for the code of the function at an address.
#[derive(Debug, Clone, Copy)]
pub struct CodeQuestion<'a> {
    /// The name of the function whose code is wanted, as in the profile.
    pub function: &'a str,
    /// The name of the file in the profile, with which targets without a name are written.
    pub module: &'a str,
    /// An offset in the file.
    pub address: FileOffset,
    /// Whether the wanted function was inlined into the one at the address: then only those
    /// instructions are returned that come from it.
    pub is_inlined: bool,
    /// Maximum number of bytes of code.
    pub bytes_max: u64,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeFound {
    /// The function at the address.
    Function(FunctionCode),
    /// Nothing says where the function begins and ends, or its bytes cannot be read.
    Unknown,
    /// Code for a processor without a decoder here, given by the `e_machine` of the file.
    Machine(u16),
}

/// The code of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCode {
    /// Its range of offsets in the file.
    pub range: Range<u64>,
    /// Number of bytes at its end that are left out.
    pub cut: u64,
    /// Its instructions, in the order of their offsets.
    pub instructions: Vec<Instruction>,
    /// The source files of all lines, by number.
    pub files: Vec<Arc<str>>,
}

impl FunctionCode {
    /// Returns the number of a source file, which is added to the list if it is new.
    fn file_number(&mut self, file: &str) -> u32 {
        let known = self.files.iter().position(|known| **known == *file);
        let number = known.unwrap_or_else(|| {
            self.files.push(file.into());
            self.files.len() - 1
        });
        number as u32
    }
}

/// Finds the function at an address, as instructions with their lines and targets.
///
/// There are two kinds of addresses here: the question and lines have offsets in the file, symbols
/// and targets of jumps have link-time addresses.
pub fn find(symbols: &ElfSymbols, lines: &CodeLines, question: &CodeQuestion<'_>) -> CodeFound {
    let machine = symbols.object().machine();
    match Mode::of_machine(machine) {
        Some(mode) => {
            function(mode, symbols, lines, question).map_or(CodeFound::Unknown, CodeFound::Function)
        }
        None => CodeFound::Machine(machine),
    }
}

fn function(
    mode: Mode,
    symbols: &ElfSymbols,
    lines: &CodeLines,
    question: &CodeQuestion<'_>,
) -> Option<FunctionCode> {
    let segments = symbols.segments();
    let addr = segments.to_link(question.address)?;
    let Range { start, end } = symbols.extent(addr)?;
    let FileOffset(offset) = segments.to_file(start)?;
    let len = (end.0 - start.0).min(question.bytes_max);
    let bytes = symbols.read_code(start, len).ok()?;
    let mut code = FunctionCode {
        range: offset..offset.checked_add(len)?,
        cut: end.0 - start.0 - len,
        instructions: Vec::new(),
        files: Vec::new(),
    };
    let mut texts = Texts::default();
    for mut decoded in assembly::decode(mode, &bytes, offset, start.0) {
        // The functions at this instruction, innermost first. `at` is the wanted one: those before
        // it were inlined into it, those behind it contain it.
        let mut chain = lines.find(symbols, FileOffset(decoded.offset));
        let at = if question.is_inlined {
            chain.iter().position(|f| f.function == question.function)
        } else {
            chain.len().checked_sub(1)
        };
        // In the code of another function, only instructions of the wanted one are kept.
        if at.is_none() && question.is_inlined {
            continue;
        }
        decoded.target = target(question.module, symbols, start..end, &decoded);
        let mut instruction = decoded.write(&mut texts);
        if let Some(at) = at {
            let own = &chain[at];
            instruction.place = (own.line > 0).then(|| BodyLine {
                file: code.file_number(&own.file),
                line: own.line,
            });
            chain.truncate(at);
            instruction.inlined = (!chain.is_empty()).then(|| texts.share(&inlined(&chain)));
        }
        code.instructions.push(instruction);
    }
    Some(code)
}

/// Returns inlined functions as text, such as `add (math.h:12), in sum (math.h:30)`.
fn inlined(chain: &[Frame]) -> String {
    let frame = |frame: &Frame| {
        let file = frame.file.rsplit('/').next().unwrap_or(&frame.file);
        match frame.line {
            0 => frame.function.clone(),
            line => format!("{} ({file}:{line})", frame.function),
        }
    };
    chain.iter().map(frame).collect::<Vec<_>>().join(", in ")
}

/// Returns the name of the target of a call or jump. A target inside of the function is written as
/// the distance from its start.
fn target(
    module: &str,
    symbols: &ElfSymbols,
    function: Range<LinkAddr>,
    decoded: &Decoded,
) -> Option<Arc<str>> {
    let target = LinkAddr(decoded.branch()?);
    if function.contains(&target) && !decoded.is_call() {
        return Some(format!("+{:#x}", target.0 - function.start.0).into());
    }
    name_at(module, symbols, target)
}

/// Returns the name for an address, in the form that the profile uses.
fn name_at(module: &str, symbols: &ElfSymbols, addr: LinkAddr) -> Option<Arc<str>> {
    let named = symbols
        .find_link(addr)
        .ok()
        .map(|symbol| (shown(symbol.name), symbol.start.0))
        // Stripped Go programs still have the names in the tables of the Go runtime.
        .or_else(|| {
            let go = symbols.go()?;
            let name = go.name_at(addr)?;
            Some((shown(&name), go.extent(addr)?.start))
        });
    let Some((name, start)) = named else {
        let FileOffset(offset) = symbols.segments().to_file(addr)?;
        return Some(format!("{module}+{offset:#x}").into());
    };
    Some(match addr.0 - start {
        0 => name.into(),
        within => format!("{name}+{within:#x}").into(),
    })
}
