//! The place of each frame in the graph: rows of *bars*, built once for each tree, zoom and width,
//! and drawn many times.
//!
//! ```text
//! row 0  [main                                  ]   the zoomed frame, all cells
//! row 1  [parse                 ][run    ]          siblings by name; the rest is
//! row 2  [lex    ][merged][tree ][step   ]          the own time of main
//! ```
//!
//! A frame of `s` samples that starts after `b` samples, in a graph of `n` samples and `w` cells,
//! has the cells from `b * w / n` to `(b + s) * w / n`, rounded down. Siblings with fewer than
//! [`NARROWEST`] cells are merged with their neighbours into one bar.

use crate::views::tree::{self, Trees};
use profile::few;
use profile::query::{CallTree, Node, NodeKind, Pair};
use profile::{Function, FunctionId};
use std::collections::HashMap;
use std::sync::Arc;

/// The *way* to a frame: the nodes from below the root down to the frame. It leads to the same
/// frame in the next tree.
pub type Way = Vec<NodeKind>;

/// Frames with fewer cells are merged with their neighbours: a bar of one cell would show nothing,
/// and cost a slow terminal as much as ten cells.
const NARROWEST: u32 = 3;

/// One frame, or several merged neighbours of one parent that are too narrow for bars of their own.
#[derive(Debug, Clone)]
pub struct Bar {
    /// The first cell of the bar.
    pub start: u16,
    pub width: u16,
    pub samples: u64,
    /// Its samples in the tree compared with. `None` if nothing is compared, and for merged frames.
    pub before: Option<u64>,
    /// The node in the tree. `None` for merged frames.
    pub node: Option<Node>,
    /// The position of its parent's bar in the row above.
    pub parent: usize,
    /// The name of the frame.
    pub name: Arc<str>,
    pub function: Option<Arc<Function>>,
    /// The frames above it that are folded into this bar, the outermost first. Each has only the
    /// next one below it.
    pub run: Vec<Folded>,
}

/// Which frames have rows of their own.
#[derive(Debug, Clone, Copy)]
pub enum Folding<'a> {
    /// All frames.
    None,
    /// Of a run of frames with one child each, only the last one has a row. The run that contains
    /// the frame `held`, given as a way from the zoomed frame, is shown frame by frame.
    Runs { held: Option<&'a [NodeKind]> },
}

/// A frame that has no row because its run is folded.
#[derive(Debug, Clone)]
pub struct Folded {
    pub kind: NodeKind,
    pub name: Arc<str>,
}

impl Bar {
    /// Returns the outermost frame that the bar stands for, or `None` for merged frames.
    fn first(&self) -> Option<NodeKind> {
        let own = self.node.map(|node| node.kind);
        self.run.first().map(|frame| frame.kind).or(own)
    }

    /// Returns the first cell after the bar.
    pub fn end(&self) -> u16 {
        self.start + self.width
    }
}

/// The position of a bar: its row, and its number in the row from the left, both counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spot {
    pub row: usize,
    pub bar: usize,
}

/// A frame that exists only in the tree compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    pub name: Arc<str>,
    pub samples: u64,
}

/// The bars of a graph, row by row from the zoomed frame downwards, in each row from the left.
#[derive(Debug, Default)]
pub struct Layout {
    pub rows: Vec<Vec<Bar>>,
    /// Frames that exist only in the tree compared with, most samples first. The frames below such
    /// a frame are counted in it and have no entries of their own.
    pub gone: Vec<Gone>,
}

impl Layout {
    /// Lays out the frame at the end of `zoom` and the frames below it, in `width` cells. There are
    /// no rows if that frame is not in the tree.
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
        // Below the last frames there may be a row without bars.
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

    /// Makes one bar of each run of frames, except of the run in which `held` ends. The old rows
    /// are walked from the top, each subtree from the left, and copied to new rows:
    /// 1. Starting at a bar, the run goes down as long as each frame has one child with the same
    ///    number of samples.
    /// 2. If the run is long enough, and `held` does not end at one of the frames to be folded, its
    ///    last bar is copied in place of the first, with the others as its `run`.
    /// 3. Otherwise the first bar is copied alone, and a run may start at the next one.
    /// 4. The copy becomes a child of the copy of its parent; the bars below it come next.
    fn fold(&mut self, trees: &Trees, zoom: &[NodeKind], held: Option<&[NodeKind]>) {
        let top = zoom.last().copied().unwrap_or(NodeKind::Root);
        let direction = trees.now.direction();
        let old = std::mem::take(&mut self.rows);
        // For each old bar: the positions of the bars below it in the next row.
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
        // A stack of old bars, each with the new bar that becomes its parent. Children are pushed
        // from the right, so that each new row is filled from the left.
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
            if tree::runs::is_long(run.len()) && !holds {
                at = end
            } else {
                run.clear()
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

    /// Finds for each bar how many samples the same frame has in the tree compared with. A row is
    /// matched by the children of the row above it:
    /// 1. The pair of places (now, before) of a bar is looked up among its parent's children.
    /// 2. The bar's `before` is the number of samples of the place before; `None` for merged bars.
    /// 3. Children that exist only in the tree compared with have no bar, and go to `gone`.
    fn compare(&mut self, trees: &Trees, zoom: &[NodeKind]) {
        let mut gone: Vec<Gone> = Vec::new();
        let mut places = vec![trees.find(zoom)];
        // For each bar of the row above, the places below it.
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
        few::sort_by(&mut gone, |a, b| {
            (b.samples, &a.name).cmp(&(a.samples, &b.name))
        });
        self.gone = gone;
    }

    /// Returns the bar at a position, or `None` if there is none.
    pub fn bar(&self, spot: Spot) -> Option<&Bar> {
        self.rows.get(spot.row)?.get(spot.bar)
    }

    /// Returns the positions of the bars of a row that can be selected, from the left: all except
    /// merged bars.
    pub fn spots(&self, row: usize) -> impl DoubleEndedIterator<Item = Spot> {
        let bars = self.rows.get(row).map_or(&[][..], Vec::as_slice);
        let single = bars
            .iter()
            .enumerate()
            .filter(|(_, bar)| bar.node.is_some());
        single.map(move |(bar, _)| Spot { row, bar })
    }

    /// Returns the positions of all bars that can be selected, row by row from the top.
    pub fn all_spots(&self) -> impl DoubleEndedIterator<Item = Spot> {
        (0..self.rows.len()).flat_map(|row| self.spots(row))
    }

    /// Returns the position of the bar above, or `None` for the top row.
    pub fn parent(&self, spot: Spot) -> Option<Spot> {
        Some(Spot {
            row: spot.row.checked_sub(1)?,
            bar: self.bar(spot)?.parent,
        })
    }

    /// Returns the bar with most samples among those directly below a bar, or `None` if there is
    /// none.
    pub fn heaviest_child(&self, spot: Spot) -> Option<Spot> {
        let below = self
            .spots(spot.row + 1)
            .filter(|child| self.parent(*child) == Some(spot));
        // The first of several with equal samples.
        below
            .rev()
            .max_by_key(|child| self.bar(*child).map(|bar| bar.samples))
    }

    /// Returns the way from the zoomed node to a bar, without the zoomed node.
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

    /// Returns the bar at the end of a way from the zoomed node, or else the last bar on that way,
    /// and whether it is the end.
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
            // The end of the way may be a frame that has no row.
            let frames = self.bar(next).map_or(0, |bar| bar.run.len()) + 1;
            left = left.get(frames..).unwrap_or_default();
            at = next;
        }
        (at, true)
    }
}

/// An old bar that is still to be copied to the new rows.
struct Waiting<'a> {
    /// Its position in the old rows.
    at: Spot,
    /// The new bar that becomes its parent.
    above: Spot,
    /// The kind of the parent's node.
    kind: NodeKind,
    /// The rest of the way to the held frame, from the parent on. `None` if that way does not lead
    /// through the parent.
    held: Option<&'a [NodeKind]>,
}

/// Whether a way that starts with the frames of a run ends at one of them.
fn ends_in(way: &[NodeKind], run: &[Folded]) -> bool {
    let kinds = run.iter().map(|frame| frame.kind);
    (1..=run.len()).contains(&way.len()) && kinds.take(way.len()).eq(way.iter().copied())
}

/// Returns the rest of a way below a bar, or `None` if the way does not lead through the bar.
fn below_bar<'a>(way: &'a [NodeKind], bar: &Bar) -> Option<&'a [NodeKind]> {
    let mut left = way;
    let own = bar.node.map(|node| node.kind);
    for kind in bar.run.iter().map(|frame| frame.kind).chain(own) {
        left = left.strip_prefix(&[kind])?;
    }
    Some(left)
}

/// Returns the next bar of a run: the only one below a function, with all of its samples. Returns
/// `None` if the run ends here.
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

/// Returns the places below a place that are in the present tree, by the kind of their nodes. Those
/// that exist only in the tree compared with are added to `gone`.
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

/// Returns the way with the present id of each function. The id of a function changes when its name
/// arrives and shows that it is the same as a known function.
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

/// Returns the zoom nearest to the root at which the frame at the end of `way` has a bar, so that
/// as much of the graph as possible stays visible. At a zoom with `z` samples a frame of `s`
/// samples has `s * width / z` cells, minus up to one by rounding. It needs [`NARROWEST`] cells, so
/// the condition is `s * width >= z * (NARROWEST + 1)`.
pub fn zoom_for(tree: &CallTree, way: &[NodeKind], width: u16) -> Way {
    let samples = |len: usize| tree.find(&way[..len]).map_or(0, |node| node.samples);
    let wanted = u128::from(samples(way.len())) * u128::from(width);
    let is_wide = |len: &usize| wanted >= u128::from(samples(*len)) * u128::from(NARROWEST + 1);
    let len = (0..way.len()).find(is_wide).unwrap_or(way.len());
    way[..len].to_vec()
}
