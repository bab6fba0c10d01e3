//! A *path* identifies a row in this tree and in later ones: it is the list of functions from the
//! root to the row. Each path has a number, so that a cursor and a set of open rows can store it.

use profile::FunctionId;
use profile::query::NodeKind;
use std::collections::HashMap;

/// The number of a path, valid only in the [`Paths`] that assigned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PathId(u32);

/// One step away from the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A node of the shown tree.
    Node(NodeKind),
    /// A node that exists only in the baseline, with the ids that functions have there.
    Gone(NodeKind),
    /// The row that sums up the small children of a node.
    Rest,
}

/// All paths that have a number. They form a tree: a path is defined by its parent and one step.
#[derive(Debug, Clone)]
pub struct Paths {
    /// By number: the path that is one step shorter, and the step. A path comes after its parents.
    links: Vec<(PathId, Step)>,
    /// The number of each path, by its parent and last step.
    known: HashMap<(PathId, Step), PathId>,
}

impl Default for Paths {
    fn default() -> Self {
        Paths {
            links: vec![(Self::ROOT, Step::Node(NodeKind::Root))],
            known: HashMap::new(),
        }
    }
}

impl Paths {
    /// The path of the root.
    pub const ROOT: PathId = PathId(0);

    /// Returns the path that is one step longer. A new path gets the next number.
    pub fn child(&mut self, parent: PathId, step: Step) -> PathId {
        let next = PathId(self.links.len() as u32);
        let id = *self.known.entry((parent, step)).or_insert(next);
        if id == next {
            self.links.push((parent, step));
        }
        id
    }

    /// Returns the path that is one step longer, or `None` if it has no number yet.
    pub fn find_child(&self, parent: PathId, step: Step) -> Option<PathId> {
        self.known.get(&(parent, step)).copied()
    }

    /// Returns the path that is one step shorter, or `None` for the root.
    pub fn parent(&self, id: PathId) -> Option<PathId> {
        (id != Self::ROOT).then(|| self.links[id.0 as usize].0)
    }

    /// Returns the path itself and all its parents, the root last.
    pub fn upwards(&self, id: PathId) -> impl Iterator<Item = PathId> {
        std::iter::successors(Some(id), |id| self.parent(*id))
    }

    /// Returns the function at the end of a path, or `None` for the root, groups, and places
    /// without samples now.
    pub fn function(&self, id: PathId) -> Option<FunctionId> {
        match self.links[id.0 as usize].1 {
            Step::Node(NodeKind::Function { id, .. }) => Some(id),
            _ => None,
        }
    }

    /// Returns the paths in `keep` and their parents, with the present ids of their functions, and
    /// the new path of each old one. Two paths become one if their functions turn out to be the
    /// same. All other paths are dropped.
    pub fn renamed(
        &self,
        keep: impl Iterator<Item = PathId>,
        current: impl Fn(FunctionId) -> FunctionId,
    ) -> (Paths, HashMap<PathId, PathId>) {
        let mut kept = vec![false; self.links.len()];
        kept[0] = true;
        for id in keep {
            for id in self.upwards(id) {
                if std::mem::replace(&mut kept[id.0 as usize], true) {
                    break;
                }
            }
        }
        let mut paths = Paths::default();
        let mut became = HashMap::from([(Self::ROOT, Self::ROOT)]);
        // A parent has a smaller number than its children, so its new path is already known.
        for (at, (parent, step)) in self.links.iter().enumerate().skip(1) {
            if !kept[at] {
                continue;
            }
            let step = match *step {
                Step::Node(NodeKind::Function { id, inlined }) => {
                    let id = current(id);
                    Step::Node(NodeKind::Function { id, inlined })
                }
                step => step,
            };
            let id = paths.child(became[parent], step);
            became.insert(PathId(at as u32), id);
        }
        (paths, became)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::FrameId;

    fn function(id: u32) -> Step {
        Step::Node(NodeKind::Function {
            id: FrameId(id),
            inlined: false,
        })
    }

    #[test]
    fn late_names_join_paths_and_others_are_forgotten() {
        let mut paths = Paths::default();
        let main = paths.child(Paths::ROOT, function(100));
        let early = paths.child(main, function(101));
        let late = paths.child(main, function(102));
        let below = paths.child(late, Step::Rest);
        paths.child(main, function(103));
        assert_eq!(paths.child(main, function(102)), late);
        let current = |id: FrameId| if id.0 == 102 { FrameId(101) } else { id };
        let (renamed, became) = paths.renamed([early, below].into_iter(), current);
        assert_eq!(became[&early], became[&late]);
        assert_eq!(renamed.parent(became[&below]), Some(became[&early]));
        assert_eq!(renamed.links.len(), 4, "root, main, one function, its rest");
        assert_eq!(renamed.function(became[&late]), Some(FrameId(101)));
    }
}
