//! Finds the code of a function that a process made at run time.

use std::ops::Range;
use std::sync::Arc;

use super::assembly::{self, Decoded, Mode, Texts};
use super::find::FunctionCode;
use crate::demangle::shown;
use crate::jit::maps::CodeMaps;

/// Asks for the code of the function that is at an address of a process.
#[derive(Debug, Clone, Copy)]
pub struct RunTimeQuestion<'a> {
    /// The name of the function whose code is wanted, as in the profile.
    pub function: &'a str,
    /// An address in the process.
    pub address: u64,
    /// The instruction set of the process.
    pub mode: Mode,
    /// Maximum number of bytes of code.
    pub bytes_max: u64,
    /// The memory of the process from an address on, which an earlier answer has asked for.
    pub memory: Option<(u64, &'a [u8])>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunTimeFound {
    /// The function at the address. Its offsets are addresses.
    Function(FunctionCode),
    /// The function is there, and its code is in the memory of the process.
    InMemory {
        /// Address of its first byte.
        start: u64,
        /// Number of bytes that are needed.
        len: u64,
    },
    /// Other code is at the address by now.
    Replaced,
    /// Nothing says what is at the address.
    Unknown,
}

/// Finds the function at an address, as instructions with their targets.
pub(crate) fn find(maps: &mut CodeMaps, question: &RunTimeQuestion<'_>) -> RunTimeFound {
    let Some(code) = maps.code(question.address) else {
        return RunTimeFound::Unknown;
    };
    if shown(&code.name) != question.function {
        return RunTimeFound::Replaced;
    }
    let start = code.start;
    let wanted = code.len.min(question.bytes_max);
    let in_memory = question.memory.filter(|(from, _)| *from == start);
    let mut bytes = match (code.bytes, in_memory) {
        (Some(bytes), _) => bytes,
        (None, Some((_, bytes))) => bytes.to_vec(),
        (None, None) => {
            return RunTimeFound::InMemory { start, len: wanted };
        }
    };
    bytes.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
    let Some(end) = start.checked_add(bytes.len() as u64) else {
        return RunTimeFound::Replaced;
    };
    let mut texts = Texts::default();
    let write = |mut decoded: Decoded| {
        decoded.target = target(maps, &decoded, &(start..end));
        decoded.write(&mut texts)
    };
    let decoded = assembly::decode(question.mode, &bytes, start, start);
    RunTimeFound::Function(FunctionCode {
        range: start..end,
        cut: code.len.saturating_sub(bytes.len() as u64),
        instructions: decoded.into_iter().map(write).collect(),
        files: Vec::new(),
    })
}

/// Returns the name of the target of a call or jump. `None` if the process does not name it.
fn target(maps: &mut CodeMaps, decoded: &Decoded, function: &Range<u64>) -> Option<Arc<str>> {
    let target = decoded.branch()?;
    if function.contains(&target) && !decoded.is_call() {
        return Some(format!("+{:#x}", target - function.start).into());
    }
    let code = maps.code(target)?;
    let name = shown(&code.name);
    Some(match target.wrapping_sub(code.start) {
        0 => name.into(),
        offset => format!("{name}+{offset:#x}").into(),
    })
}
