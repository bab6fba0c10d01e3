//! Makes the names readable that compilers mangle.
//!
//! | starts with | is |
//! |---|---|
//! | `_R` | Rust, v0 |
//! | `_ZN` and ends with a hash | Rust, legacy |
//! | `_Z` | C++ (Itanium ABI) |
//!
//! All other names stay as they are. Suffixes of compilers (`.cold`, `.part.0`) are removed before
//! demangling and appended again after it.

mod apart;
mod capped;
mod cpp;
mod rust;
mod suffix;

use std::borrow::Cow;

use crate::sanitize::sanitize;

pub use suffix::has_clone_suffix;

/// Longer names are shown unchanged: demangling them is not worth the time, and a hostile name of
/// this length is slow enough.
const MANGLED_BYTES_MAX: usize = 8 << 10;

/// How a name was mangled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// As Rust's compiler does, the legacy or the v0 way.
    Rust,
    /// As the Itanium C++ ABI says.
    Cpp,
    /// Not mangled, or by an unknown scheme.
    Raw,
}

/// A readable name, in two lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demangled<'n> {
    scheme: Scheme,
    name: &'n [u8],
    /// What is demangled: `name` without suffixes.
    mangled: &'n str,
    suffix: &'n [u8],
}

/// Recognises how `name` is mangled. [`Demangled::short`] and [`Demangled::full`] do the work at
/// each call.
pub fn demangle(name: &[u8]) -> Demangled<'_> {
    let (stem, suffix) = suffix::split(name);
    let (scheme, mangled) = match std::str::from_utf8(stem) {
        Ok(stem) if stem.len() <= MANGLED_BYTES_MAX => (scheme_of(stem), stem),
        _ => (Scheme::Raw, ""),
    };
    Demangled {
        scheme,
        name,
        mangled,
        suffix,
    }
}

/// Whether names that were made to take long have used up what this process has for deep names: such
/// names stay mangled then. A thread may still be busy with one.
pub fn is_worn() -> bool {
    cpp::is_worn()
}

/// Returns a symbol's readable name, safe to print.
pub fn shown(symbol: &[u8]) -> String {
    sanitize(demangle(symbol).short().as_bytes()).into_owned()
}

impl<'n> Demangled<'n> {
    /// How the name was mangled.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the name without parameters, return type and hashes.
    pub fn short(&self) -> Cow<'n, str> {
        let suffix = suffix::without_hashes(self.suffix);
        match self.scheme {
            Scheme::Rust => self.finish(rust::demangle(self.mangled), &suffix),
            Scheme::Cpp => self.finish(cpp::short(self.mangled), &suffix),
            Scheme::Raw => sanitize(self.name),
        }
    }

    /// Returns the whole name, except Rust's hashes.
    pub fn full(&self) -> Cow<'n, str> {
        match self.scheme {
            Scheme::Rust => self.finish(rust::demangle(self.mangled), self.suffix),
            Scheme::Cpp => self.finish(cpp::full(self.mangled), self.suffix),
            Scheme::Raw => sanitize(self.name),
        }
    }

    fn finish(&self, demangled: Option<String>, suffix: &[u8]) -> Cow<'n, str> {
        match demangled.filter(|demangled| !demangled.is_empty()) {
            Some(mut demangled) => {
                demangled.push_str(&sanitize(suffix));
                Cow::Owned(demangled)
            }
            None => sanitize(self.name),
        }
    }
}

fn scheme_of(stem: &str) -> Scheme {
    if stem.starts_with("_R") || rust::is_legacy(stem) {
        Scheme::Rust
    } else if stem.starts_with("_Z") || stem.starts_with("_GLOBAL__") {
        Scheme::Cpp
    } else {
        Scheme::Raw
    }
}

#[cfg(test)]
mod tests;
