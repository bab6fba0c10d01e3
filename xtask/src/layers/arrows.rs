//! Imports as arrows, counted between the children of one module.

use super::circles::{self, Graph};
use super::resolve;
use super::tree::{Crate, PathInCode};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// All imports of a crate, by the nearest common parent of the two modules.
#[derive(Default)]
pub struct Arrows {
    by_parent: BTreeMap<usize, Siblings>,
}

/// The arrows between the children of one module and what is below them.
pub struct Siblings {
    parent: usize,
    arrows: Vec<Arrow>,
}

/// One path in the code of one module that leads to another.
struct Arrow {
    from: usize,
    to: usize,
    /// The two children of the common parent that the modules are, or that contain them.
    between: (String, String),
    path: PathInCode,
}

impl Arrows {
    pub fn of(tree: &Crate) -> Self {
        let mut arrows = Self::default();
        for (from, module) in tree.modules.iter().enumerate() {
            let imported: BTreeSet<_> = module.imports.iter().map(|i| i.name.as_ref()).collect();
            let imports = module.imports.iter().map(|import| &import.path);
            // A single name that was imported by a `use` was counted there.
            let paths = module
                .paths
                .iter()
                .filter(|path| path.names.len() > 1 || !imported.contains(&path.names.first()));
            for path in imports.chain(paths) {
                for to in resolve::modules_of(tree, from, path) {
                    arrows.add(tree, from, to, path);
                }
            }
            for call in &module.macro_calls {
                for to in tree.macros.get(&call.names[0]).into_iter().flatten() {
                    arrows.add(tree, from, *to, call);
                }
            }
        }
        arrows
    }

    /// Iterates over the arrows below each module, by the number of the module.
    pub fn by_parent(&self) -> impl Iterator<Item = (usize, &Siblings)> {
        self.by_parent
            .iter()
            .map(|(parent, arrows)| (*parent, arrows))
    }

    fn add(&mut self, tree: &Crate, from: usize, to: usize, path: &PathInCode) {
        let (a, b) = (&tree.modules[from].path, &tree.modules[to].path);
        let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        // Imports between a module and those inside of it do not count.
        let (Some(a), Some(b)) = (a.get(shared), b.get(shared)) else {
            return;
        };
        let parent = tree.modules[from].path[..shared].to_vec();
        let Some(parent) = tree.find(&parent) else {
            return;
        };
        let arrow = Arrow {
            from,
            to,
            between: (a.clone(), b.clone()),
            path: path.clone(),
        };
        let siblings = self.by_parent.entry(parent).or_insert_with(|| Siblings {
            parent,
            arrows: Vec::new(),
        });
        siblings.arrows.push(arrow);
    }
}

impl Siblings {
    /// Returns a text for each circle: its members, and the imports that form it.
    pub fn circles(&self, tree: &Crate) -> Vec<String> {
        let mut graph = Graph::new();
        for Arrow {
            between: (from, to),
            ..
        } in &self.arrows
        {
            graph.entry(from).or_default().insert(to);
        }
        let describe = |circle: BTreeSet<&str>| {
            let is_in = |arrow: &&Arrow| {
                let (from, to) = &arrow.between;
                circle.contains(from.as_str()) && circle.contains(to.as_str())
            };
            let names: Vec<&str> = circle.iter().copied().collect();
            let (names, place) = (names.join(", "), place(tree, self.parent));
            let imports = imports(tree, self.arrows.iter().filter(is_in));
            format!("circle between {names} in {place}:{imports}")
        };
        circles::circles(&graph).into_iter().map(describe).collect()
    }

    /// Returns a text for each pair of children of which one imports another of a higher layer.
    pub fn upward(&self, tree: &Crate, layers: &[Vec<String>]) -> Vec<String> {
        let layer_of = |name: &String| layers.iter().position(|layer| layer.contains(name));
        let mut upward: BTreeMap<&(String, String), Vec<&Arrow>> = BTreeMap::new();
        for arrow in &self.arrows {
            let (from, to) = &arrow.between;
            if let (Some(from), Some(to)) = (layer_of(from), layer_of(to))
                && from > to
            {
                upward.entry(&arrow.between).or_default().push(arrow);
            }
        }
        let describe = |((from, to), arrows): (&(String, String), Vec<&Arrow>)| {
            let (place, imports) = (place(tree, self.parent), imports(tree, arrows.into_iter()));
            format!("{from} imports {to}, of a layer above it, in {place}:{imports}")
        };
        upward.into_iter().map(describe).collect()
    }
}

/// Returns the module's file, without its ending if it is a crate's root.
fn place(tree: &Crate, module: usize) -> String {
    tree.modules[module].file.display().to_string()
}

/// Returns a line for each pair of files, with what is imported and in which lines.
fn imports<'a>(tree: &Crate, arrows: impl Iterator<Item = &'a Arrow>) -> String {
    let mut by_files: BTreeMap<_, BTreeMap<String, usize>> = BTreeMap::new();
    for arrow in arrows {
        let files = (&tree.modules[arrow.from].file, &tree.modules[arrow.to].file);
        let line = by_files
            .entry(files)
            .or_default()
            .entry(arrow.path.names.join("::"))
            .or_insert(arrow.path.line);
        *line = (*line).min(arrow.path.line);
    }
    let mut text = String::new();
    for ((from, to), paths) in by_files {
        let paths: Vec<String> = paths
            .iter()
            .map(|(path, line)| format!("{path} (line {line})"))
            .collect();
        let (from, to, paths) = (from.display(), to.display(), paths.join(", "));
        let _ = write!(text, "\n    {from} -> {to}: {paths}");
    }
    text
}
