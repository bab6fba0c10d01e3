//! The list of layers in ARCHITECTURE.md.
//!
//! ````text
//! ```layers
//! profile
//!     formats
//!     store view      # two modules of one layer
//!     time
//! profile::query
//! tui unchecked
//! ```
//! ````
//!
//! A line that is not indented names a crate by its folder, or a module in it. The indented lines
//! below it are its layers, highest first: the modules of a line may import those of their own line
//! and of the lines below. Without layers only circles are refused; with `unchecked`, nothing is.

use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The whole list, by the folder of the crate.
pub struct List {
    crates: BTreeMap<PathBuf, Vec<Entry>>,
}

/// The entry for a crate or for one module of it.
pub struct Entry {
    /// The name as written, for messages.
    pub name: String,
    /// The module's path from the crate's root, which itself is the empty path.
    pub scope: Vec<String>,
    pub is_unchecked: bool,
    /// Names of the module's children, highest layer first.
    pub layers: Vec<Vec<String>>,
}

impl List {
    /// Reads the one block of the document that is marked `layers`.
    pub fn parse(document: &str) -> Result<Self> {
        let block = block(document).context("ARCHITECTURE.md has no block marked `layers`")?;
        let mut crates: BTreeMap<PathBuf, Vec<Entry>> = BTreeMap::new();
        let mut open: Option<(PathBuf, Entry)> = None;
        for line in block.lines() {
            let line = line.split('#').next().unwrap_or(line);
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            if line.starts_with(char::is_whitespace) {
                let (_, entry) = open
                    .as_mut()
                    .with_context(|| format!("the layers begin with `{}`", line.trim()))?;
                entry.add_layer(&words)?;
                continue;
            }
            close(open.replace(Entry::begin(&words)?), &mut crates)?;
        }
        close(open, &mut crates)?;
        Ok(Self { crates })
    }

    /// Iterates over the folders of crates, with their entries.
    pub fn crates(&self) -> impl Iterator<Item = (&Path, &[Entry])> {
        self.crates
            .iter()
            .map(|(folder, entries)| (folder.as_path(), entries.as_slice()))
    }

    pub fn has_crate(&self, folder: &Path) -> bool {
        self.crates.contains_key(folder)
    }
}

impl Entry {
    fn begin(words: &[&str]) -> Result<(PathBuf, Self)> {
        let is_unchecked = match words {
            [_] => false,
            [_, "unchecked"] => true,
            _ => bail!("`{}` is neither a crate nor a module", words.join(" ")),
        };
        let mut parts = words[0].split("::");
        let folder = parts.next().unwrap_or_default().into();
        let entry = Self {
            name: words[0].into(),
            scope: parts.map(String::from).collect(),
            is_unchecked,
            layers: Vec::new(),
        };
        Ok((folder, entry))
    }

    fn add_layer(&mut self, words: &[&str]) -> Result<()> {
        for (at, word) in words.iter().enumerate() {
            let mut above = self.layers.iter().flatten();
            if above.any(|listed| listed == word) || words[..at].contains(word) {
                bail!("{} lists {word} twice", self.name);
            }
        }
        self.layers
            .push(words.iter().map(|word| (*word).into()).collect());
        Ok(())
    }
}

fn close(
    finished: Option<(PathBuf, Entry)>,
    crates: &mut BTreeMap<PathBuf, Vec<Entry>>,
) -> Result<()> {
    let Some((folder, entry)) = finished else {
        return Ok(());
    };
    let entries = crates.entry(folder).or_default();
    if entries.iter().any(|other| other.scope == entry.scope) {
        bail!("the layers list {} twice", entry.name);
    }
    entries.push(entry);
    Ok(())
}

fn block(document: &str) -> Option<&str> {
    let (_, rest) = document.split_once("\n```layers\n")?;
    rest.split_once("\n```").map(|(block, _)| block)
}
