//! Checks the layers: which module imports which, and whether imports form a circle or go to a
//! higher layer.
//!
//! Every crate that the block `layers` of ARCHITECTURE.md lists is read with its
//! module tree (test code is left out), and every path in it is followed to the
//! module that defines what it names, through re-exports and globs, as the
//! compiler would. An arrow from one module to another counts where the two
//! branch off: between the two children of their nearest common parent, each with
//! everything below it. A module and the modules inside it may know each other.
//! It refuses
//!
//! 1. a circle between the children of one module, be they folders or files;
//! 2. an arrow from a lower layer to a higher one, in the order of the list;
//! 3. an incomplete list: a crate of the workspace without a line, or a module
//!    without a layer beside others that have one.
//!
//! - [`list`]: the block in ARCHITECTURE.md
//! - [`tree`]: the modules of a crate, with the names and paths in each
//! - [`read`]: from files to that tree
//! - [`collect`]: one item's name, imports and paths
//! - [`item`], [`mod@cfg`]: names and attributes of items, and which are only for tests
//! - [`resolve`]: from a path to the modules that it leads through
//! - [`arrows`]: imports, counted between the children of one module
//! - [`circles`]: groups of modules that reach each other

mod arrows;
mod cfg;
mod circles;
mod collect;
mod item;
mod list;
mod read;
mod resolve;
#[cfg(test)]
mod tests;
mod tree;

use anyhow::{Context as _, Result, bail};
use arrows::Arrows;
use list::{Entry, List};
use read::Source;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tree::{Crate, Module};

/// Checks the workspace in `folder` and prints every violation; returns an error if there is any.
pub fn check(folder: &Path) -> Result<()> {
    let source = |path: &Path| std::fs::read_to_string(folder.join(path)).ok();
    let found = find(&source)?;
    if found.wrong.is_empty() {
        println!("{}", found.summary);
        return Ok(());
    }
    println!("{}", found.wrong.join("\n"));
    bail!("what is wrong with the layers: {}", found.wrong.len())
}

/// The result of checking a workspace.
struct Found {
    /// A line with the amount of code that was read.
    summary: String,
    /// A text for each violation.
    wrong: Vec<String>,
}

/// Checks the workspace whose files `source` returns.
fn find(source: Source) -> Result<Found> {
    let document = source(Path::new("ARCHITECTURE.md")).context("there is no ARCHITECTURE.md")?;
    let list = List::parse(&document)?;
    let mut wrong = missing_members(source, &list)?;
    let (mut crates, mut modules) = (0, 0);
    for (folder, entries) in list.crates() {
        if entries.iter().all(|entry| entry.is_unchecked) {
            continue;
        }
        let trees = read_crate(source, folder)?;
        crates += 1;
        modules += trees.iter().map(|tree| tree.modules.len()).sum::<usize>();
        wrong.extend(trees.iter().flat_map(|tree| faults(tree, entries)));
        wrong.extend(unknown(&trees, entries));
    }
    let summary = format!("layers: {modules} modules in {crates} crates");
    Ok(Found { summary, wrong })
}

/// Returns all violations in the modules of one crate.
fn faults(tree: &Crate, entries: &[Entry]) -> Vec<String> {
    let arrows = Arrows::of(tree);
    let mut wrong = Vec::new();
    for (parent, arrows) in arrows.by_parent() {
        let path = &tree.modules[parent].path;
        if !is_checked(path, entries) {
            continue;
        }
        wrong.extend(arrows.circles(tree));
        if let Some(entry) = entries.iter().find(|entry| entry.scope == *path) {
            wrong.extend(arrows.upward(tree, &entry.layers));
        }
    }
    for entry in entries {
        if let Some(parent) = tree.find(&entry.scope) {
            wrong.extend(unlisted(tree, parent, entry));
        }
    }
    wrong
}

/// Returns whether the children of the module `path` are checked: the nearest entry above decides.
fn is_checked(path: &[String], entries: &[Entry]) -> bool {
    let above = entries.iter().filter(|e| path.starts_with(&e.scope));
    let nearest = above.max_by_key(|e| e.scope.len());
    nearest.is_some_and(|entry| !entry.is_unchecked)
}

/// Returns the children of the module `parent` that are in no layer of `entry`, if it has layers.
fn unlisted(tree: &Crate, parent: usize, entry: &Entry) -> Option<String> {
    let listed: BTreeSet<&String> = entry.layers.iter().flatten().collect();
    let children = tree.modules[parent].children.keys();
    let missing: Vec<&str> = children
        .filter(|child| !listed.contains(child))
        .map(String::as_str)
        .collect();
    if listed.is_empty() || missing.is_empty() {
        return None;
    }
    let (entry, missing) = (&entry.name, missing.join(", "));
    Some(format!(
        "ARCHITECTURE.md gives no layer to {missing} in {entry}"
    ))
}

/// Returns entries and layers that name a module which no target of the crate has.
fn unknown<'a>(trees: &'a [Crate], entries: &[Entry]) -> Vec<String> {
    let mut wrong = Vec::new();
    for entry in entries {
        let module = |tree: &'a Crate| Some(&tree.modules[tree.find(&entry.scope)?]);
        let found: Vec<&Module> = trees.iter().filter_map(module).collect();
        let name = &entry.name;
        if found.is_empty() {
            wrong.push(format!("ARCHITECTURE.md lists {name}, which is no module"));
            continue;
        }
        let is_there = |layer: &String| found.iter().any(|it| it.children.contains_key(layer));
        for layer in entry.layers.iter().flatten().filter(|it| !is_there(it)) {
            wrong.push(format!(
                "ARCHITECTURE.md lists {layer}, which is no module of {name}"
            ));
        }
    }
    wrong
}

/// Returns members of the workspace that are missing in the list.
fn missing_members(source: Source, list: &List) -> Result<Vec<String>> {
    let manifest = manifest(source, Path::new(""))?;
    let members = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("members")?.as_array())
        .context("the workspace's Cargo.toml lists no members")?;
    let missing = members
        .iter()
        .filter_map(|member| member.as_str())
        .filter(|member| !list.has_crate(Path::new(member)));
    Ok(missing
        .map(|member| format!("ARCHITECTURE.md has no line for the crate {member} in its layers"))
        .collect())
}

/// Reads the module trees of a crate's library and binaries.
fn read_crate(source: Source, folder: &Path) -> Result<Vec<Crate>> {
    let read = |root: &PathBuf| {
        read::read(source, root)
            .with_context(|| format!("cannot read the modules of {}", root.display()))
    };
    roots(source, folder)?.iter().map(read).collect()
}

/// Returns the files in which the module trees of a crate begin: its library's and its binaries'.
fn roots(source: Source, folder: &Path) -> Result<Vec<PathBuf>> {
    let manifest = manifest(source, folder)?;
    let path_of = |target: &toml::Value| Some(folder.join(target.get("path")?.as_str()?));
    let mut roots: BTreeSet<PathBuf> = BTreeSet::new();
    roots.extend(manifest.get("lib").and_then(path_of));
    let binaries = manifest.get("bin").and_then(|bin| bin.as_array());
    roots.extend(binaries.into_iter().flatten().filter_map(path_of));
    for usual in ["src/lib.rs", "src/main.rs"] {
        let usual = folder.join(usual);
        if source(&usual).is_some() {
            roots.insert(usual);
        }
    }
    if roots.is_empty() {
        bail!("{} has neither a library nor a binary", folder.display());
    }
    Ok(roots.into_iter().collect())
}

fn manifest(source: Source, folder: &Path) -> Result<toml::Table> {
    let path = folder.join("Cargo.toml");
    let text = source(&path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse()
        .with_context(|| format!("cannot parse {}", path.display()))
}
