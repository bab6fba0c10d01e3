//! Where each frame of the graph lies: rows of *bars*, made once for each tree,
//! zoom and width, and drawn many times.

use crate::views::tree::{self, Trees};
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
    /// `None` for merged ones.
    pub node: Option<Node>,
    /// Where in the row above it hangs.
    pub parent: usize,
    pub name: Arc<str>,
    pub function: Option<Arc<Function>>,
    /// Frames that lead to it and nowhere else: they have no rows.
    pub run: Vec<Folded>,
}

/// Which frames have rows.
#[derive(Debug, Clone, Copy)]
pub enum Folding<'a> {
    /// All of them.
    None,
    /// Of frames with one child each, the last one, and what is held: by its way from
    /// what is zoomed into.
    Runs { held: Option<&'a [NodeKind]> },
}

/// A frame without a row.
#[derive(Debug, Clone)]
pub struct Folded {
    pub kind: NodeKind,
    pub name: Arc<str>,
}

impl Bar {
    /// The outermost frame that it stands for.
    fn first(&self) -> Option<NodeKind> {
        let own = self.node.map(|node| node.kind);
        self.run.first().map(|frame| frame.kind).or(own)
    }

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
    pub fn new(trees: &Trees, zoom: &[NodeKind], width: u16, folding: Folding<'_>) -> Self {
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
            run: Vec::new(),
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
        if let Folding::Runs { held } = folding {
            layout.fold(trees, zoom, held);
        }
        layout
    }

    /// Makes one bar of each run of frames but the one in which `held` ends.
    fn fold(&mut self, trees: &Trees, zoom: &[NodeKind], held: Option<&[NodeKind]>) {
        let top = zoom.last().copied().unwrap_or(NodeKind::Root);
        let direction = trees.now.direction();
        let old = std::mem::take(&mut self.rows);
        // Which bars hang below each, row by row.
        let mut below: Vec<Vec<Vec<usize>>> =
            old.iter().map(|row| vec![Vec::new(); row.len()]).collect();
        for (row, bars) in old.iter().enumerate().skip(1) {
            for (at, bar) in bars.iter().enumerate() {
                below[row - 1][bar.parent].push(at);
            }
        }
        let Some(root) = old.first().and_then(|row| row.first()) else {
            return;
        };
        self.rows = vec![vec![root.clone()]];
        // Each with the bar above it, of the old rows and of the new ones; from the
        // left to the right, and down before that.
        let mut waiting: Vec<Waiting<'_>> = Vec::new();
        let push = |waiting: &mut Vec<_>, at: Spot, above: Spot, kind, held| {
            let children = below.get(at.row).and_then(|row| row.get(at.bar));
            for bar in children.into_iter().flatten().rev() {
                let row = at.row + 1;
                let at = Spot { row, bar: *bar };
                waiting.push(Waiting {
                    at,
                    above,
                    kind,
                    held,
                });
            }
        };
        push(&mut waiting, Spot::default(), Spot::default(), top, held);
        while let Some(next) = waiting.pop() {
            let Waiting {
                mut at,
                above,
                kind,
                held,
            } = next;
            let mut run = Vec::new();
            let can_begin = tree::runs::can_begin_below(kind, direction);
            let mut end = at;
            while can_begin && let Some(next) = only_way(&old, &below, end) {
                let bar = &old[end.row][end.bar];
                let kind = bar.node.map_or(NodeKind::Root, |node| node.kind);
                let name = Arc::clone(&bar.name);
                run.push(Folded { kind, name });
                end = next;
            }
            let holds = held.is_some_and(|held| ends_in(held, &run));
            match tree::runs::is_long(run.len()) && !holds {
                true => at = end,
                false => run.clear(),
            }
            let row = above.row + 1;
            if self.rows.len() <= row {
                self.rows.push(Vec::new());
            }
            let bar = Bar {
                parent: above.bar,
                run,
                ..old[at.row][at.bar].clone()
            };
            let kind = bar.node.map_or(NodeKind::Root, |node| node.kind);
            let held = held.and_then(|held| below_bar(held, &bar));
            self.rows[row].push(bar);
            let new = Spot {
                row,
                bar: self.rows[row].len() - 1,
            };
            push(&mut waiting, at, new, kind, held);
        }
        below.clear();
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

    /// The way from the zoomed node, which is left out, to a bar.
    pub fn way(&self, spot: Spot) -> Way {
        let mut way = Way::new();
        let mut at = spot;
        while let Some(above) = self.parent(at) {
            way.extend(self.bar(at).and_then(|bar| bar.node).map(|node| node.kind));
            let run = self.bar(at).map_or(&[][..], |bar| &bar.run);
            way.extend(run.iter().rev().map(|frame| frame.kind));
            at = above;
        }
        way.reverse();
        way
    }

    /// The bar at the end of a way from the zoomed node, or the last one on the
    /// way that has a bar of its own; and whether it is the end.
    pub fn find(&self, way: &[NodeKind]) -> (Spot, bool) {
        let mut at = Spot::default();
        let mut left = way;
        while let Some(kind) = left.first() {
            let next = self.spots(at.row + 1).find(|child| {
                let first = self.bar(*child).and_then(Bar::first);
                self.parent(*child) == Some(at) && first == Some(*kind)
            });
            let Some(next) = next else {
                return (at, false);
            };
            // The end may be a frame that has no row.
            let frames = self.bar(next).map_or(0, |bar| bar.run.len()) + 1;
            left = left.get(frames..).unwrap_or_default();
            at = next;
        }
        (at, true)
    }
}

/// A bar that is to be put into the new rows.
struct Waiting<'a> {
    /// Where it was.
    at: Spot,
    /// The bar above it, in the new rows, and what that is.
    above: Spot,
    kind: NodeKind,
    /// What is left of the way to the held frame, if that leads through here.
    held: Option<&'a [NodeKind]>,
}

/// Whether a way ends at one of the frames.
fn ends_in(way: &[NodeKind], run: &[Folded]) -> bool {
    let kinds = run.iter().map(|frame| frame.kind);
    (1..=run.len()).contains(&way.len()) && kinds.take(way.len()).eq(way.iter().copied())
}

/// What is left of a way below a bar.
fn below_bar<'a>(way: &'a [NodeKind], bar: &Bar) -> Option<&'a [NodeKind]> {
    let mut left = way;
    let own = bar.node.map(|node| node.kind);
    for kind in bar.run.iter().map(|frame| frame.kind).chain(own) {
        left = left.strip_prefix(&[kind])?;
    }
    Some(left)
}

/// The bar below one that has no samples of its own, if there is only one.
fn only_way(rows: &[Vec<Bar>], below: &[Vec<Vec<usize>>], at: Spot) -> Option<Spot> {
    let bar = rows.get(at.row)?.get(at.bar)?;
    let node = bar.node?;
    let [only] = below.get(at.row)?.get(at.bar)?[..] else {
        return None;
    };
    let spot = Spot {
        row: at.row + 1,
        bar: only,
    };
    let next = rows[spot.row][spot.bar].node?;
    let is_function = matches!(node.kind, NodeKind::Function { .. });
    (is_function && next.samples == node.samples).then_some(spot)
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
