//! Checks that docs/dependencies.md names every crate of others that the workspace uses.

use crate::fingerprint;
use std::fs;

/// Fails if a crate was added to Cargo.toml and the page does not say what it is for.
#[test]
fn every_crate_that_is_taken_is_named() {
    let root = fingerprint::workspace();
    let told = fs::read_to_string(root.join("docs/dependencies.md")).unwrap();
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let taken = manifest["workspace"]["dependencies"].as_table().unwrap();
    let is_ours = |entry: &toml::Value| entry.get("path").is_some();
    let others = taken.iter().filter(|(_, entry)| !is_ours(entry));
    let missing: Vec<&String> = others
        .map(|(name, _)| name)
        .filter(|name| !told.contains(&format!("`{name}`")))
        .collect();
    assert!(!taken.is_empty() && missing.is_empty(), "{missing:?}");
}
