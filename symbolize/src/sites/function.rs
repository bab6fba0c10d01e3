//! A function that may be probed.

use crate::LinkAddr;

/// The language of a function, as far as it determines the calling convention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// C, or any language with C's calling convention and unmangled names.
    C,
    /// C++, recognized by its mangled name.
    Cpp,
    /// Rust, recognized by its mangled name.
    Rust,
    /// Go, which has its own registers for arguments.
    Go,
}

impl Language {
    /// Every language, in the order of the enum.
    pub const ALL: [Language; 4] = [Language::C, Language::Cpp, Language::Rust, Language::Go];

    /// The identifier for scripts.
    pub fn label(self) -> &'static str {
        match self {
            Language::C => "c",
            Language::Cpp => "c++",
            Language::Rust => "rust",
            Language::Go => "go",
        }
    }
}

/// A function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Displayed name: demangled, safe to print. Empty if it has none.
    pub name: String,
    /// Name as the compiler wrote it.
    pub raw: Vec<u8>,
    /// Where its code begins.
    pub start: LinkAddr,
    /// Length of its code in bytes.
    pub len: u64,
    /// The language that it is written in.
    pub language: Language,
    /// An instruction of it that is to be probed, instead of its calls.
    pub inside: Option<LinkAddr>,
}
