//! Reads the module tree of a crate from its files.

use super::cfg::is_only_for_tests;
use super::collect;
use super::item::plain;
use super::tree::Crate;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

/// Returns the text of a file by its path from the workspace's folder. Returns None if there is no
/// such file.
pub type Source<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// Reads the module tree that begins in the file `root`.
pub fn read(source: Source, root: &Path) -> Result<Crate> {
    let mut tree = Crate::default();
    let place = ModuleFiles {
        file: root.into(),
        folder: root.parent().unwrap_or(Path::new("")).into(),
    };
    let module = tree.add(None, "", root);
    read_file(&mut tree, source, module, &place)?;
    Ok(tree)
}

/// The files of a module.
struct ModuleFiles {
    file: PathBuf,
    /// The folder with the files of its children.
    folder: PathBuf,
}

impl ModuleFiles {
    /// Returns where the child `name` has its code if it has its own file.
    fn of_child(&self, source: Source, name: &str) -> Self {
        let flat = self.folder.join(format!("{name}.rs"));
        let folder = self.folder.join(name);
        let file = if source(&flat).is_some() {
            flat
        } else {
            folder.join("mod.rs")
        };
        Self { file, folder }
    }

    /// Returns where a child has its code whose file is given by `#[path]`.
    fn named(&self, path: &str) -> Self {
        let file = self.file.parent().unwrap_or(Path::new("")).join(path);
        let folder = file.parent().unwrap_or(Path::new("")).into();
        Self { file, folder }
    }
}

fn read_file(tree: &mut Crate, source: Source, module: usize, place: &ModuleFiles) -> Result<()> {
    let path = &place.file;
    let text = source(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file =
        syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
    read_items(tree, source, module, place, &file.items)
}

fn read_items(
    tree: &mut Crate,
    source: Source,
    module: usize,
    place: &ModuleFiles,
    items: &[Item],
) -> Result<()> {
    for item in items {
        match item {
            Item::Mod(child) if is_only_for_tests(&child.attrs) => {}
            Item::Mod(child) => read_child(tree, source, module, place, child)?,
            _ => collect::add(tree, module, item),
        }
    }
    Ok(())
}

fn read_child(
    tree: &mut Crate,
    source: Source,
    parent: usize,
    place: &ModuleFiles,
    child: &ItemMod,
) -> Result<()> {
    let name = plain(&child.ident);
    if let Some((_, items)) = &child.content {
        let place = ModuleFiles {
            file: place.file.clone(),
            folder: place.folder.join(&name),
        };
        let module = tree.add(Some(parent), &name, &place.file);
        return read_items(tree, source, module, &place, items);
    }
    let place = match named_file(&child.attrs) {
        Some(path) => place.named(&path),
        None => place.of_child(source, &name),
    };
    let module = tree.add(Some(parent), &name, &place.file);
    read_file(tree, source, module, &place)
}

/// Returns the file of `#[path = "..."]`.
fn named_file(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let Meta::NameValue(meta) = &attribute.meta else {
            return None;
        };
        let Expr::Lit(ExprLit {
            lit: Lit::Str(path),
            ..
        }) = &meta.value
        else {
            return None;
        };
        meta.path.is_ident("path").then(|| path.value())
    })
}
