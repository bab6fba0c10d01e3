//! Names that rustc mangled, in either of its ways.

use std::fmt::Write;

use super::capped::Capped;

/// `_ZN…17h<16 hexadecimal digits>E`: C++'s scheme with a hash as the last
/// part of the path.
pub(super) fn is_legacy(stem: &str) -> bool {
    const HASH: usize = 16;
    let is_hash = |rest: &str| {
        let split = rest.len().checked_sub(HASH);
        let (path, hash) = match split.and_then(|at| rest.split_at_checked(at)) {
            Some(parts) => parts,
            None => return false,
        };
        path.ends_with("17h") && hash.bytes().all(|b| b.is_ascii_hexdigit())
    };
    stem.starts_with("_ZN") && stem.strip_suffix('E').is_some_and(is_hash)
}

/// Without hashes. rustc_demangle limits its own recursion.
pub(super) fn demangle(stem: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(stem).ok()?;
    let mut out = Capped::default();
    write!(out, "{demangled:#}").ok()?;
    Some(out.into_string())
}
