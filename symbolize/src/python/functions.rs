//! The functions of code objects, as they are shown: name, file and lines.
//!
//! A process without rights reads them, and sends them to the one that asked. The memory may have
//! taken over that process, so nothing that it sends is trusted: texts are sanitized.

use std::sync::Arc;

use super::code::{Found, IDENTITY_WORDS, read_codes};
use super::layout::Layout;
use super::lines::Lines;
use super::memory::{Lack, Memory};
use super::module_name::module_of;
use crate::wire::{Taken, put_bytes};
use crate::{Reason, sanitize};

/// Returns a hash of the first line and the identity of a code object, by which the one that was
/// sampled is recognized.
pub type Check = fn(u32, &[u64; IDENTITY_WORDS]) -> u32;

/// A code object that is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedCode {
    /// Its address.
    pub address: u64,
    /// The result of [`Check`] for it.
    pub check: u32,
}

/// The function of a code object. Its texts are safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name with that of the module: `server.Server.run`.
    pub name: Arc<str>,
    /// Path of the file, as it was given to the compiler.
    pub file: Arc<str>,
    /// The line of each instruction.
    pub lines: Lines,
}

/// The function of a code object, or why it could not be read; `None` if the code is the
/// interpreter's own.
pub type FoundFunction = Result<Option<Function>, Reason>;

/// Maximum length of a name or path in an answer. Of each at most 4,096 characters are read from
/// memory, and one that is not safe to print takes up to ten bytes.
const TEXT_BYTES_MAX: usize = 3 * 4096 * 10;

const FUNCTION: u8 = 0;
const NO_FUNCTION: u8 = 1;
const UNREAD: u8 = 2;

impl Function {
    /// Returns the memory that it takes.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Function>() + self.name.len() + self.file.len() + self.lines.heap_bytes()
    }

    /// Reads the functions of code objects. That has to be done soon after the code was seen, as it
    /// may be freed. `again` is the same memory, of which nothing has been read yet.
    pub fn read_all(
        wanted: &[WantedCode],
        layout: &Layout,
        check: Check,
        memory: &impl Memory,
        again: &impl Memory,
    ) -> Vec<FoundFunction> {
        let at = |code: &WantedCode| {
            let own = code.check;
            let is_wanted = move |first_line, identity: &_| check(first_line, identity) == own;
            (code.address, is_wanted)
        };
        let codes: Vec<_> = wanted.iter().map(at).collect();
        let found = read_codes(memory, again, &codes, layout);
        found.into_iter().map(function).collect()
    }
}

/// Returns the function of a code object; `None` if it is the interpreter's own.
fn function(found: Result<Found, Lack>) -> FoundFunction {
    match found {
        Ok(Found::Code(code)) => {
            let name = format!("{}.{}", module_of(&code.file), code.name);
            Ok(Some(Function {
                name: sanitize(name.as_bytes()).into(),
                file: sanitize(code.file.as_bytes()).into(),
                lines: code.lines,
            }))
        }
        Err(Lack::Unreadable(reason @ (Reason::NoPermission | Reason::Remote))) => Err(reason),
        Ok(Found::Trampoline) => Ok(None),
        Ok(Found::Gone) | Err(_) => Err(Reason::CodeGone),
    }
}

/// Encodes a function for another process.
pub(crate) fn write_function(found: &FoundFunction, out: &mut Vec<u8>) {
    match found {
        Ok(Some(function)) => {
            out.push(FUNCTION);
            put_bytes(out, function.name.as_bytes());
            put_bytes(out, function.file.as_bytes());
            function.lines.write(out);
        }
        Ok(None) => out.push(NO_FUNCTION),
        Err(reason) => out.extend([UNREAD, *reason as u8]),
    }
}

/// Decodes the result of [`write_function`]; `None` if it is malformed.
pub(crate) fn take_function(bytes: &mut Taken<'_>) -> Option<FoundFunction> {
    let text = |bytes: &mut Taken<'_>| {
        let text = bytes.bytes().filter(|text| text.len() <= TEXT_BYTES_MAX)?;
        Some(sanitize(text).into())
    };
    Some(match bytes.u8()? {
        FUNCTION => Ok(Some(Function {
            name: text(bytes)?,
            file: text(bytes)?,
            lines: Lines::take(bytes)?,
        })),
        NO_FUNCTION => Ok(None),
        UNREAD => Err(*Reason::ALL.get(usize::from(bytes.u8()?))?),
        _ => return None,
    })
}
