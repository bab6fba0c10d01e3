//! A function that may get a probe.

use crate::LinkAddr;

/// In which language a function is written, as far as it decides how it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// C, or whatever keeps to its calling convention and leaves names alone.
    C,
    /// C++, by its mangled name.
    Cpp,
    /// Rust, by its mangled name.
    Rust,
    /// Go, which passes arguments in registers of its own.
    Go,
}

impl Language {
    /// The word that scripts see.
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
    /// As it is shown: demangled, safe to print. Empty if it has none.
    pub name: String,
    /// As the compiler wrote it.
    pub raw: Vec<u8>,
    /// Where its code begins.
    pub start: LinkAddr,
    /// Bytes of its code.
    pub len: u64,
    /// The language that it is written in.
    pub language: Language,
    /// An instruction of it that was asked for, instead of its calls.
    pub inside: Option<LinkAddr>,
}
