//! Where each frame of the graph lies: rows of *bars*, made once for each tree,
//! zoom and width, and drawn many times.

use crate::views::tree::Trees;
use profile::query::{CallTree, Node, NodeKind, Pair};
use profile::{Function, FunctionId};
use std::collections::HashMap;
use std::sync::Arc;

/// The nodes from the root, which is left out, to one that is meant. It stays
/// the same from one tree to the next.
pub type Way = Vec<NodeKind>;

/// Narrower frames are merged with their neighbours: one cell each would say
/// nothing, and cost a slow terminal as much as ten.
const NARROWEST: u32 = 3;

/// One frame, or several that are too narrow.
#[derive(Debug, Clone)]
pub struct Bar {
    pub start: u16,
    pub width: u16,
    pub samples: u64,
    /// Those it had before, where that is asked; of merged ones it is not known.
    pub before: Option<u64>,
    /// Nothing for merged ones.
    pub node: Option<Node>,
    /// Where in the row above it hangs.
    pub parent: usize,
    pub name: Arc<str>,
    pub function: Option<Arc<Function>>,
}

impl Bar {
    /// The cell after it.
    pub fn end(&self) -> u16 {
        self.start + self.width
    }
}

/// Where a bar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spot {
    pub row: usize,
    pub bar: usize,
}

/// What was there before and has no frame any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    pub name: Arc<str>,
    pub samples: u64,
}

#[derive(Debug, Default)]
pub struct Layout {
    pub rows: Vec<Vec<Bar>>,
    /// Most samples first. What is below one that is gone is part of it.
    pub gone: Vec<Gone>,
}

impl Layout {
    /// What is below the end of `zoom`; nothing if that is not in the tree.
    pub fn new(trees: &Trees, zoom: &[NodeKind], width: u16) -> Self {
        let tree = &trees.now;
        let Some(node) = tree.find(zoom) else {
            return Layout::default();
        };
        let flame = tree.flame(&node, width.into(), NARROWEST, usize::MAX);
        let bar = |found: profile::query::FlameBox| Bar {
            start: found.start as u16,
            width: found.width as u16,
            samples: found.samples,
            before: None,
            function: found.node.and_then(|node| match node.kind {
                NodeKind::Function { id, .. } => Some(Arc::new(tree.function(id))),
                NodeKind::Root | NodeKind::Group(_) => None,
            }),
            node: found.node,
            parent: found.parent,
            name: found.name,
        };
        let rows = flame.rows.into_iter();
        let mut rows: Vec<Vec<Bar>> = rows.map(|row| row.into_iter().map(bar).collect()).collect();
        // Below the last frames there may be a row of merged ones only, or none.
        while rows.last().is_some_and(|row| row.is_empty()) {
            rows.pop();
        }
        let mut layout = Layout {
            rows,
            gone: Vec::new(),
        };
        if trees.sides().is_some() {
            layout.compare(trees, zoom);
        }
        layout
    }

    /// Tells of every bar what it had before.
    fn compare(&mut self, trees: &Trees, zoom: &[NodeKind]) {
        let mut gone: Vec<Gone> = Vec::new();
        let mut places = vec![trees.find(zoom)];
        // By bar of the row above, what is below it.
        let mut below: Vec<HashMap<NodeKind, Pair>> = Vec::new();
        for (depth, row) in self.rows.iter_mut().enumerate() {
            if depth > 0 {
                let place = |bar: &Bar| below.get(bar.parent)?.get(&bar.node?.kind).copied();
                places = row.iter().map(place).collect();
            }
            for (bar, place) in row.iter_mut().zip(&places) {
                bar.before = place.map(|place| trees.was(&place));
            }
            let children = places
                .iter()
                .map(|place| children(trees, place.as_ref(), &mut gone));
            below = children.collect();
        }
        gone.sort_by(|a, b| (b.samples, &a.name).cmp(&(a.samples, &b.name)));
        self.gone = gone;
    }

    pub fn bar(&self, spot: Spot) -> Option<&Bar> {
        self.rows.get(spot.row)?.get(spot.bar)
    }

    /// The spots of a row that can be selected.
    pub fn spots(&self, row: usize) -> impl DoubleEndedIterator<Item = Spot> {
        let bars = self.rows.get(row).map_or(&[][..], Vec::as_slice);
        let single = bars
            .iter()
            .enumerate()
            .filter(|(_, bar)| bar.node.is_some());
        single.map(move |(bar, _)| Spot { row, bar })
    }

    /// All of them, row by row.
    pub fn all_spots(&self) -> impl DoubleEndedIterator<Item = Spot> {
        (0..self.rows.len()).flat_map(|row| self.spots(row))
    }

    pub fn parent(&self, spot: Spot) -> Option<Spot> {
        Some(Spot {
            row: spot.row.checked_sub(1)?,
            bar: self.bar(spot)?.parent,
        })
    }

    /// The one with most samples of those below a bar.
    pub fn heaviest_child(&self, spot: Spot) -> Option<Spot> {
        let below = self.spots(spot.row + 1);
        let below = below.filter(|child| self.parent(*child) == Some(spot));
        // The first of equals.
        below
            .rev()
            .max_by_key(|child| self.bar(*child).map(|bar| bar.samples))
    }

    /// From the zoomed node, which is left out, to a bar.
    pub fn way(&self, spot: Spot) -> Way {
        let mut way = Way::new();
        let mut at = spot;
        while let Some(above) = self.parent(at) {
            way.extend(self.bar(at).and_then(|bar| bar.node).map(|node| node.kind));
            at = above;
        }
        way.reverse();
        way
    }

    /// The bar at the end of a way from the zoomed node, or the last one on the
    /// way that has a bar of its own; and whether it is the end.
    pub fn find(&self, way: &[NodeKind]) -> (Spot, bool) {
        let mut at = Spot::default();
        for kind in way {
            let next = self.spots(at.row + 1).find(|child| {
                let is_it = |node: &Node| node.kind == *kind;
                let node = self.bar(*child).and_then(|bar| bar.node);
                self.parent(*child) == Some(at) && node.as_ref().is_some_and(is_it)
            });
            match next {
                Some(next) => at = next,
                None => return (at, false),
            }
        }
        (at, true)
    }
}

/// What is below a place now, by its kind; what is not there any more is told.
fn children(trees: &Trees, place: Option<&Pair>, gone: &mut Vec<Gone>) -> HashMap<NodeKind, Pair> {
    let mut now = HashMap::new();
    for child in place.map_or_else(Vec::new, |place| trees.children(place)) {
        match (child.now, child.before) {
            (Some(node), _) => {
                now.insert(node.kind, child);
            }
            (None, Some(node)) => gone.push(Gone {
                name: trees.name(&child),
                samples: node.samples,
            }),
            (None, None) => {}
        }
    }
    now
}

/// The same way by the names that functions go by now.
pub fn renamed(way: &[NodeKind], current: impl Fn(FunctionId) -> FunctionId) -> Way {
    let rename = |kind: &NodeKind| match *kind {
        NodeKind::Function { id, inlined } => NodeKind::Function {
            id: current(id),
            inlined,
        },
        kind => kind,
    };
    way.iter().map(rename).collect()
}

/// The zoom nearest to the root at which the end of `way` is wide enough to be
/// seen: as much of the picture as possible stays in sight.
pub fn zoom_for(tree: &CallTree, way: &[NodeKind], width: u16) -> Way {
    let samples = |len: usize| tree.find(&way[..len]).map_or(0, |node| node.samples);
    let wanted = u128::from(samples(way.len())) * u128::from(width);
    let is_wide = |len: &usize| wanted >= u128::from(samples(*len)) * u128::from(NARROWEST + 1);
    let len = (0..way.len()).find(is_wide).unwrap_or(way.len());
    way[..len].to_vec()
}
