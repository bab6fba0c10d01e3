//! The words that say why a frame has no name, as files may have them. They are
//! a fixed set, so that they can be counted; what a newer version adds is
//! `other` here.

const KNOWN: [&str; 19] = [
    "no stack",
    "empty name",
    "stripped",
    "not_covered",
    "file_gone",
    "changed_on_disk",
    "refused",
    "damaged",
    "no_permission",
    "jit",
    "jit_not_covered",
    "jit_map_refused",
    "unmapped",
    "kernel_hidden",
    "unsupported",
    "remote",
    "not_told",
    "gone",
    "left_out",
];

/// The word that is equal to `word`.
pub(crate) fn known(word: &str) -> &'static str {
    let found = KNOWN.into_iter().find(|known| *known == word);
    found.unwrap_or("other")
}
