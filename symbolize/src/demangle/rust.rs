//! Demangles names of rustc, by either of its schemes.

use std::fmt::Write;

use super::capped::Capped;

/// Whether a name is mangled by the legacy scheme, `_ZN…17h<16 hexadecimal digits>E`: that of C++
/// with a hash as the last part of the path.
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

/// Demangles a name, without hashes. rustc_demangle limits its own recursion.
pub(super) fn demangle(stem: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(stem).ok()?;
    let mut out = Capped::default();
    write!(out, "{demangled:#}").ok()?;
    Some(out.into_string())
}
