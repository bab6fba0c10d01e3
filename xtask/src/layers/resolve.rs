//! Resolves a path in code to the modules that it leads through.

use super::tree::{Crate, PathInCode};
use std::collections::BTreeSet;

/// Returns every module from which a path in `module` takes something: the one that it names, or
/// that defines what it names, and those whose re-exports lead there. Empty for a path of another
/// crate.
pub fn modules_of(tree: &Crate, module: usize, path: &PathInCode) -> BTreeSet<usize> {
    let mut walk = Walk::new(tree);
    walk.follow(module, &path.names);
    walk.touched
}

struct Walk<'a> {
    tree: &'a Crate,
    touched: BTreeSet<usize>,
    /// The modules at which a path ended.
    ends: BTreeSet<usize>,
    /// Look-ups that were already done: re-exports may form a circle.
    asked: BTreeSet<(usize, Vec<String>)>,
    /// Imports that are being followed, by module and index in its list: in `use name::name` the
    /// first name is not the one that is imported.
    open: Vec<(usize, usize)>,
}

impl<'a> Walk<'a> {
    fn new(tree: &'a Crate) -> Self {
        Self {
            tree,
            touched: BTreeSet::new(),
            ends: BTreeSet::new(),
            asked: BTreeSet::new(),
            open: Vec::new(),
        }
    }

    /// Follows a path that is written in `module`.
    fn follow(&mut self, module: usize, names: &[String]) {
        let modules = &self.tree.modules;
        let (mut start, mut rest) = (module, names);
        let mut is_anchored = false;
        while let [first, after @ ..] = rest {
            start = match first.as_str() {
                "crate" => 0,
                "self" => start,
                "super" => modules[start].parent.unwrap_or(start),
                _ => break,
            };
            (rest, is_anchored) = (after, true);
        }
        let is_ours = |name: &String| has_name(self.tree, module, name, &mut BTreeSet::new());
        if is_anchored || rest.first().is_some_and(is_ours) {
            self.enter(start, rest);
        }
    }

    /// Looks up the rest of a path in `module`.
    fn enter(&mut self, module: usize, rest: &[String]) {
        let Some((name, after)) = rest.split_first() else {
            self.touched.insert(module);
            self.ends.insert(module);
            return;
        };
        if !self.asked.insert((module, rest.to_vec())) {
            return;
        }
        let here = &self.tree.modules[module];
        if let Some(child) = here.children.get(name) {
            self.enter(*child, after);
        } else {
            // Names made by macros are not seen; it can only be in this module.
            self.touched.insert(module);
        }
        let mut is_found = here.items.contains(name) || here.children.contains_key(name);
        for (at, import) in here.imports.iter().enumerate() {
            if import.name.as_ref() == Some(name) && !self.open.contains(&(module, at)) {
                self.open.push((module, at));
                let names = [&import.path.names[..], after].concat();
                self.follow(module, &names);
                self.open.pop();
                is_found = true;
            }
        }
        if !is_found {
            for source in globs(self.tree, module) {
                if has_name(self.tree, source, name, &mut BTreeSet::new()) {
                    self.enter(source, rest);
                }
            }
        }
    }
}

/// Returns whether `name` is a name of this crate, or imported, in `module`.
fn has_name(tree: &Crate, module: usize, name: &String, asked: &mut BTreeSet<usize>) -> bool {
    let here = &tree.modules[module];
    here.items.contains(name)
        || here.children.contains_key(name)
        || here.imports.iter().any(|i| i.name.as_ref() == Some(name))
        || asked.insert(module)
            && globs(tree, module)
                .into_iter()
                .any(|source| has_name(tree, source, name, asked))
}

/// Returns the modules of this crate of which `module` imports everything.
fn globs(tree: &Crate, module: usize) -> BTreeSet<usize> {
    let mut sources = BTreeSet::new();
    for import in &tree.modules[module].imports {
        if import.name.is_none() && names_this_crate(tree, module, &import.path.names) {
            let mut walk = Walk::new(tree);
            walk.follow(module, &import.path.names);
            sources.extend(walk.ends);
        }
    }
    sources
}

/// Returns whether a glob's path begins in this crate, without following other globs: those could
/// lead back to it.
fn names_this_crate(tree: &Crate, module: usize, names: &[String]) -> bool {
    let here = &tree.modules[module];
    names.first().is_some_and(|first| {
        matches!(first.as_str(), "crate" | "self" | "super")
            || here.children.contains_key(first)
            || here.imports.iter().any(|i| i.name.as_ref() == Some(first))
    })
}
