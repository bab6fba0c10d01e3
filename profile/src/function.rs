//! A *function* of a profile: a group of frames with the same module and name.

use crate::intern::{NO_STACK, RESERVED, stopped};
use crate::{Ending, FrameId, FrameKind, NoName};
use std::sync::Arc;

/// A function in this profile: every frame with the same module and name, or one frame that has no
/// name. It is identified by one of its frames.
///
/// When a name arrives, frames join a function, and its number may change; the caller finds the
/// function of a frame again with [`Report::find_function`](crate::Report::find_function).
pub type FunctionId = FrameId;

/// The description of a function, without its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its current number in this profile.
    pub id: FunctionId,
    /// Its name, or `module+0xoffset` while it has none.
    pub name: Arc<str>,
    /// The short name of its module: the file's last path component, `[kernel]`, `[vdso]`.
    pub module: Arc<str>,
    /// The whole path of its module, if it has one.
    pub module_path: Arc<str>,
    /// The build-id of its module; empty if there is none, or if it is unknown.
    pub build_id: Arc<[u8]>,
    /// On which side of the kernel boundary its code is.
    pub kind: FrameKind,
    /// One of its sampled addresses, relative to the module.
    pub address: u64,
    /// Whether `name` is final.
    pub name_state: RowName,
    /// The source file of that address, if known.
    pub file: Option<Arc<str>>,
    /// The line of that address; 0 if unknown.
    pub line: u32,
    /// Whether it is a function of a program, or stands for something that is missing.
    pub role: Role,
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A function of a program.
    Function,
    /// Samples without any frame.
    NoStack,
    /// Samples of which a filter hides every frame.
    Hidden,
    /// What is missing of a stack whose walk did not reach the root, and why.
    Stopped(Ending),
}

/// Whether a row's name is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowName {
    /// It has its name.
    Named,
    /// Its name is still being looked up.
    Pending,
    /// There is no name, for this reason.
    Unnamed(NoName),
}

impl Role {
    /// Returns what the function with this number stands for.
    pub fn of(id: FunctionId) -> Self {
        if id.0 >= RESERVED {
            return Role::Function;
        }
        let is_it = |ending: &Ending| stopped(*ending) == id;
        match Ending::ALL.into_iter().find(is_it) {
            Some(ending) => Role::Stopped(ending),
            None if id == NO_STACK => Role::NoStack,
            None => Role::Hidden,
        }
    }
}

/// Returns a module's name as displayed: a library without its version, `libpython3.11` for
/// `libpython3.11.so.1.0`, and without the hash that Rust's build adds, `librustc_driver` for
/// `librustc_driver-6108105cd7e839cf.so`.
pub fn short_module(name: &str) -> &str {
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let is_library = |version: &str| match version {
        "" => name.starts_with("lib"),
        // As in `libLLVM.so.22.1-rust-1.95.0-stable`: the suffix names the builder.
        _ if name.starts_with("lib") => {
            let (numbers, builder) = version.split_once('-').unwrap_or((version, ""));
            let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
            numbers.len() > 1 && is_digits(numbers) && builder.bytes().all(is_word)
        }
        _ => is_digits(version),
    };
    let end = match name.find(".cpython-") {
        Some(end) if name.ends_with(".so") => end,
        _ => match name.find(".so") {
            Some(end) if is_library(&name[end + ".so".len()..]) => end,
            _ => return name,
        },
    };
    match end {
        0 => name,
        _ => without_hash(&name[..end]),
    }
}

/// Returns a library's name without a hash such as `-6108105cd7e839cf`.
fn without_hash(name: &str) -> &str {
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    match name.rsplit_once('-') {
        Some((before, hash)) if is_hash(hash) && before.len() > "lib".len() => before,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_lose_their_version() {
        let names = [
            ("libpython3.11.so.1.0", "libpython3.11"),
            ("libc.so.6", "libc"),
            ("ld-linux-x86-64.so.2", "ld-linux-x86-64"),
            ("_json.cpython-311-x86_64-linux-gnu.so", "_json"),
            ("libLLVM.so.22.1-rust-1.95.0-stable", "libLLVM"),
            ("librustc_driver-6108105cd7e839cf.so", "librustc_driver"),
            ("libstd-0123456789abcdef.so", "libstd"),
            ("lib-0123456789abcdef.so", "lib-0123456789abcdef"),
            ("libx.so-old", "libx.so-old"),
            ("[kernel]", "[kernel]"),
            ("python3.11", "python3.11"),
            ("a.sort", "a.sort"),
            (".so", ".so"),
            ("extension.so", "extension.so"),
            ("libx.so (deleted)", "libx.so (deleted)"),
        ];
        for (name, expected) in names {
            assert_eq!(short_module(name), expected);
        }
    }
}
