//! Suffixes that compilers and linkers append to the name of a function that they cloned, split or
//! moved.

use std::borrow::Cow;

/// Suffixes that may be followed by a number, or by several.
const CLONES: [&[u8]; 12] = [
    b"cold",
    b"part",
    b"isra",
    b"constprop",
    b"lto_priv",
    b"localalias",
    b"clone",
    b"llvm",
    b"__uniq",
    b"warm",
    b"resolver",
    b"ipa",
];

/// Whether the name belongs to a clone, or to a part of a function, that a compiler made.
pub fn has_clone_suffix(name: &[u8]) -> bool {
    let (_, suffix) = split(name);
    suffix.starts_with(b".")
}

/// Splits a name into the name proper and all its suffixes, including `@plt`.
pub(super) fn split(name: &[u8]) -> (&[u8], &[u8]) {
    let stem = name.strip_suffix(b"@plt").unwrap_or(name);
    let mut end = stem.len();
    while let Some(start) = last_suffix(&stem[..end]) {
        end = start;
    }
    name.split_at(end)
}

/// Returns where the last suffix starts: `.word`, `.word.1`, `.word.1.2`.
fn last_suffix(stem: &[u8]) -> Option<usize> {
    let mut end = stem.len();
    loop {
        let start = memchr::memrchr(b'.', &stem[..end]).filter(|&dot| dot > 0)?;
        let word = &stem[start + 1..end];
        if CLONES.contains(&word) {
            return Some(start);
        }
        // Rust numbers promoted constants: with digits, in LLVM also in base 16.
        let numeric = !word.is_empty() && word.iter().all(u8::is_ascii_alphanumeric);
        if !numeric || !word[0].is_ascii_digit() {
            return None;
        }
        end = start;
    }
}

/// Removes `.llvm.123…`, which only distinguishes functions of one name that LLVM made visible to
/// other units.
pub(super) fn without_hashes(suffix: &[u8]) -> Cow<'_, [u8]> {
    const LLVM: &[u8] = b".llvm.";
    let Some(start) = memchr::memmem::find(suffix, LLVM) else {
        return Cow::Borrowed(suffix);
    };
    let behind = &suffix[start + LLVM.len()..];
    let end = behind.iter().position(|&byte| byte == b'.' || byte == b'@');
    let rest = &behind[end.unwrap_or(behind.len())..];
    Cow::Owned([&suffix[..start], rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits() {
        let cases: [(&str, &str, &str); 11] = [
            ("main", "main", ""),
            ("main.cold", "main", ".cold"),
            ("f.part.0.cold", "f", ".part.0.cold"),
            ("f.isra.0.constprop.12", "f", ".isra.0.constprop.12"),
            ("_ZN1a1bE.llvm.15480", "_ZN1a1bE", ".llvm.15480"),
            ("memcpy@plt", "memcpy", "@plt"),
            ("f.cold@plt", "f", ".cold@plt"),
            ("main.main", "main.main", ""),
            ("go.1.2", "go.1.2", ""),
            (".cold", ".cold", ""),
            ("", "", ""),
        ];
        for (name, stem, suffix) in cases {
            let expected = (stem.as_bytes(), suffix.as_bytes());
            assert_eq!(split(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn hashes_go() {
        assert_eq!(&*without_hashes(b".cold"), b".cold");
        assert_eq!(&*without_hashes(b".llvm.123"), b"");
        assert_eq!(
            &*without_hashes(b".part.1.llvm.9.cold@plt"),
            b".part.1.cold@plt"
        );
    }
}
