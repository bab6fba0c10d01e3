//! A *flame graph* laid out in cells. Boxes narrower than a cell are not computed.

use super::tree::{CallTree, Node, NodeKind};
use crate::few;
use std::sync::Arc;

/// Maximum number of rows of a layout.
const ROWS_MAX: usize = 4096;

/// The layout of a tree below one node; the first row is that node.
#[derive(Debug, Clone, Default)]
pub struct Flame {
    /// The boxes of each level below the node, from left to right.
    pub rows: Vec<Vec<FlameBox>>,
}

/// One box of a row.
#[derive(Debug, Clone)]
pub struct FlameBox {
    /// Left edge in cells.
    pub start: u32,
    /// Width in cells; at least 1.
    pub width: u32,
    /// Samples of its node, or of all nodes that were merged into it.
    pub samples: u64,
    /// Its node; `None` for narrow siblings that were merged into one box.
    pub node: Option<Node>,
    /// Index of the parent's box in the row above.
    pub parent: usize,
    /// Name of its node; empty for merged siblings.
    pub name: Arc<str>,
}

impl CallTree {
    /// Lays out the tree below `node` in `width` cells. Boxes narrower than `narrowest` cells are
    /// merged with their neighbours. Siblings are sorted by name, so their order is the same in
    /// every layout.
    pub fn flame(&self, node: &Node, width: u32, narrowest: u32, rows_max: usize) -> Flame {
        let mut flame = Flame::default();
        if node.samples == 0 || width == 0 {
            return flame;
        }
        let scale = Scale {
            samples: node.samples,
            width,
        };
        // Nodes of the row with their left edge in samples.
        let mut row = vec![(
            0,
            FlameBox {
                start: 0,
                width,
                samples: node.samples,
                node: Some(*node),
                parent: 0,
                name: self.name(node.kind),
            },
        )];
        while !row.is_empty() && flame.rows.len() < rows_max.min(ROWS_MAX) {
            let mut next = Vec::new();
            for (at, (begin, parent)) in row.iter().enumerate() {
                if let Some(node) = &parent.node {
                    self.lay_out(node, *begin, at, scale, narrowest.max(1), &mut next);
                }
            }
            flame.rows.push(row.into_iter().map(|(_, b)| b).collect());
            row = next;
        }
        flame
    }

    /// Returns the node at the end of a path from the root, and the number of samples to the left
    /// of it in the layout of the root.
    pub fn place(&self, path: &[NodeKind]) -> Option<(u64, Node)> {
        path.iter()
            .try_fold((0, self.root()), |(begin, node), kind| {
                let children = self.children_by_name(&node);
                let at = children.iter().position(|(_, child)| child.kind == *kind)?;
                let before: u64 = children[..at].iter().map(|(_, child)| child.samples).sum();
                Some((begin + before, children[at].1))
            })
    }

    /// The children of a node with their names, sorted by name.
    fn children_by_name(&self, node: &Node) -> Vec<(Arc<str>, Node)> {
        let children = self.children_unsorted(node).into_iter();
        let mut children: Vec<(Arc<str>, Node)> = children
            .map(|child| (self.name(child.kind), child))
            .collect();
        few::sort_by(&mut children, |a, b| a.0.cmp(&b.0));
        children
    }

    /// Appends the boxes of a node's children to the row below. Edges are rounded from sums of
    /// samples, not from widths, so that there are no gaps and no box exceeds its parent.
    fn lay_out(
        &self,
        node: &Node,
        mut begin: u64,
        parent: usize,
        scale: Scale,
        narrowest: u32,
        row: &mut Vec<(u64, FlameBox)>,
    ) {
        let children = self.children_by_name(node);
        // Neighbours that are too narrow to be seen: their left edge, and their samples.
        let mut narrow: Option<(u64, u64)> = None;
        for (name, child) in children {
            let (from, to) = (scale.cell(begin), scale.cell(begin + child.samples));
            if to - from < narrowest {
                let (_, samples) = narrow.get_or_insert((begin, 0));
                *samples += child.samples;
            } else {
                if let Some((from, samples)) = narrow.take() {
                    merge(from, samples, parent, scale, row);
                }
                let shown = FlameBox {
                    start: from,
                    width: to - from,
                    samples: child.samples,
                    node: Some(child),
                    parent,
                    name,
                };
                row.push((begin, shown));
            }
            begin += child.samples;
        }
        if let Some((from, samples)) = narrow {
            merge(from, samples, parent, scale, row);
        }
    }
}

/// Appends one box for neighbours that are too narrow, if together they fill a cell.
fn merge(begin: u64, samples: u64, parent: usize, scale: Scale, row: &mut Vec<(u64, FlameBox)>) {
    let (from, to) = (scale.cell(begin), scale.cell(begin + samples));
    if to > from {
        let merged = FlameBox {
            start: from,
            width: to - from,
            samples,
            node: None,
            parent,
            name: Arc::default(),
        };
        row.push((begin, merged));
    }
}

/// The conversion from samples to cells: `samples` of them fill `width`.
#[derive(Clone, Copy)]
struct Scale {
    samples: u64,
    width: u32,
}

impl Scale {
    /// The cell in which the sample of that number lies.
    fn cell(self, sample: u64) -> u32 {
        let cell = u128::from(sample) * u128::from(self.width) / u128::from(self.samples);
        cell as u32
    }
}
