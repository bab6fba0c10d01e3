//! The *flame graph*: the call tree with the width of a frame for its samples,
//! the root on top. Trees come from the thread that answers questions; what is
//! zoomed into and selected belongs to the screen, and is kept as ways from the
//! root, so that it is the same frame in the next tree.

/// Colors of modules.
mod colors;
pub mod draw;
mod layout;
/// Moving from one frame to another.
mod moves;
pub mod tints;
mod view;
pub mod words;

pub use layout::{Bar, Gone, Spot};

use super::tree::{Look, Stretch, TreeAnswer, TreeDesk, TreeQuestion, Trees};
use crate::lists::find::Find;
use crate::widgets::theme::Tint;
use colors::Colors;
use engine::snapshot::Snapshot;
use layout::{Folding, Layout, Way};
use profile::FunctionId;
use profile::diff::{Diff, Sides};
use profile::query::{CallTree, Direction, GroupBy, NodeKind};
use std::sync::Arc;

/// From this size on what is above the zoomed frame has a line of its own.
const WIDTH_WITH_PATH: u16 = 160;
const BODY_WITH_PATH: usize = 30;

#[derive(Debug, Default)]
pub struct Flame {
    desk: TreeDesk,
    zoom: Way,
    outside: Vec<Outside>,
    /// How often one has zoomed, whatever became of it.
    zooms: u64,
    /// What was selected on purpose, from the root.
    held: Option<Way>,
    /// The way to the deepest frame that was selected: going down follows it.
    trail: Way,
    layout: Layout,
    colors: Colors,
    selected: Spot,
    /// What is held has no bar of its own here.
    is_hidden: bool,
    /// Runs of frames with one child each have a row for every frame.
    unfolds: bool,
    /// The first row on the screen.
    offset: usize,
    width: u16,
    /// Lines for the frames, the legend below them, and what is above the zoom.
    body: usize,
    find: Option<Find>,
    /// Selected because it is so in the table that this one stands beside.
    followed: Option<FunctionId>,
}

/// Where one zoomed in from.
#[derive(Debug, Clone)]
struct Outside {
    way: Way,
    /// How far it was scrolled.
    offset: usize,
    /// Which zoom it was, of all there have been.
    zoom: u64,
}

/// The graph as it was left.
#[derive(Debug, Clone)]
pub struct Place {
    look: Look,
    zoom: Way,
    outside: Vec<Outside>,
    zooms: u64,
    held: Option<Way>,
    trail: Way,
    offset: usize,
}

impl Place {
    /// How often one had zoomed.
    pub fn zooms(&self) -> u64 {
        self.zooms
    }
}

impl Flame {
    pub fn place(&self) -> Place {
        Place {
            look: self.desk.look(),
            zoom: self.zoom.clone(),
            outside: self.outside.clone(),
            zooms: self.zooms,
            held: self.held.clone(),
            trail: self.trail.clone(),
            offset: self.offset,
        }
    }

    pub fn return_to(&mut self, place: Place) {
        self.zoom = place.zoom;
        self.outside = place.outside;
        self.held = place.held;
        self.trail = place.trail;
        self.offset = place.offset;
        match self.desk.return_to(place.look) {
            true => self.lay_out(),
            false => self.layout = Layout::default(),
        }
    }

    /// Whether one can go back out of a zoom that came after so many others.
    pub fn has_zoomed_since(&self, zooms: u64) -> bool {
        self.outside.last().is_some_and(|last| last.zoom > zooms)
    }

    pub fn tree(&self) -> Option<&CallTree> {
        self.desk.tree()
    }

    pub fn direction(&self) -> Direction {
        self.desk.direction()
    }

    /// The rows on the screen.
    pub fn shown(&self) -> impl Iterator<Item = (usize, &Vec<Bar>)> {
        let rows = self.layout.rows.iter().enumerate();
        rows.skip(self.offset).take(self.height())
    }

    pub fn offset(&self) -> usize {
        self.offset
    }

    pub fn rows_below(&self) -> usize {
        self.layout
            .rows
            .len()
            .saturating_sub(self.offset + self.height())
    }

    pub fn selected_spot(&self) -> Spot {
        self.selected
    }

    pub fn selected(&self) -> Option<&Bar> {
        self.layout.bar(self.selected)
    }

    /// The bar above the selected one.
    pub fn parent(&self) -> Option<&Bar> {
        self.layout.bar(self.layout.parent(self.selected)?)
    }

    pub fn tint(&self, bar: &Bar) -> Tint {
        self.colors.of(bar.function.as_deref())
    }

    pub fn legend(&self) -> impl Iterator<Item = (Tint, &str)> {
        self.colors.legend()
    }

    /// Both sides' sizes, while they are compared.
    pub fn sides(&self) -> Option<&Sides> {
        self.desk.trees()?.sides()
    }

    /// What it is of, if only of a stretch of time.
    pub fn stretch(&self) -> Option<Stretch> {
        self.desk.shown()?.key.what.stretch
    }

    /// Only of a stretch of time from now on, against the rest.
    pub fn set_stretch(&mut self, stretch: Option<Stretch>) {
        if stretch.is_some() != self.desk.stretch.is_some() {
            self.desk.clear();
            self.start_anew();
        }
        self.desk.stretch = stretch;
    }

    /// By how much a frame is more than before, in the unit of the two sides; 0
    /// where nothing is compared.
    pub fn change(&self, bar: &Bar) -> f64 {
        let pair = self.sides().zip(bar.before);
        pair.map_or(0.0, |(sides, before)| sides.change(before, bar.samples))
    }

    /// Whether the difference is larger than chance makes it, which `diff` tells of two
    /// windows.
    pub fn is_sure(&self, bar: &Bar, diff: Option<&Diff>) -> bool {
        let Some(before) = bar.before else {
            return false;
        };
        match self.desk.trees().and_then(Trees::rest) {
            Some(rest) => rest.is_sure(bar.samples, before),
            None => diff.is_some_and(|diff| diff.is_sure(before, bar.samples)),
        }
    }

    /// What was there before, below what is zoomed into, and is not any more.
    pub fn gone(&self) -> &[Gone] {
        &self.layout.gone
    }

    pub fn is_zoomed(&self) -> bool {
        !self.zoom.is_empty()
    }

    /// What is above the zoomed frame and below the root.
    pub fn ancestors(&self) -> Vec<Arc<str>> {
        let Some(tree) = self.tree() else {
            return Vec::new();
        };
        let above = self.zoom.len().saturating_sub(1);
        self.zoom[..above]
            .iter()
            .map(|kind| tree.name(*kind))
            .collect()
    }

    /// Samples to the left of the zoomed frame, and its own.
    pub fn zoomed_part(&self) -> Option<(u64, u64)> {
        let (begin, node) = self.tree()?.place(&self.zoom)?;
        Some((begin, node.samples))
    }

    /// What is held, if it cannot be seen here, and whether it is too narrow;
    /// else it is gone.
    pub fn hidden(&self) -> Option<(Arc<str>, bool)> {
        let way = self.held.as_ref().filter(|_| self.is_hidden)?;
        let tree = self.tree()?;
        Some((tree.name(*way.last()?), tree.find(way).is_some()))
    }

    pub fn held_function(&self) -> Option<FunctionId> {
        match self.held.as_ref()?.last()? {
            NodeKind::Function { id, .. } => Some(*id),
            NodeKind::Root | NodeKind::Group(_) => None,
        }
    }

    pub fn question(&mut self, snapshot: &Snapshot) -> Option<TreeQuestion> {
        self.desk.question(snapshot)
    }

    /// Takes an answer, as the call tree does.
    pub fn receive(&mut self, answer: Arc<TreeAnswer>, is_calm: bool) -> bool {
        self.desk.receive(answer, is_calm) && self.take_waiting()
    }

    pub fn take_waiting(&mut self) -> bool {
        let Some(answer) = self.desk.take_waiting() else {
            return false;
        };
        let current = |id| answer.view.function_of(id);
        self.zoom = layout::renamed(&self.zoom, current);
        self.trail = layout::renamed(&self.trail, current);
        self.held = self.held.as_ref().map(|way| layout::renamed(way, current));
        for outside in &mut self.outside {
            outside.way = layout::renamed(&outside.way, current);
        }
        self.lay_out();
        if let Some(found) = &answer.found {
            self.select_way(found.heaviest.clone());
        }
        true
    }

    /// The view was left: its tree would hold memory for nothing.
    pub fn release(&mut self) {
        self.desk.clear();
        self.layout = Layout::default();
    }

    /// Lines that are left for frames.
    fn height(&self) -> usize {
        let others = 1 + usize::from(self.has_path());
        self.body.saturating_sub(others).max(1)
    }

    /// Whether what is above the zoomed frame has a line of its own.
    pub fn has_path(&self) -> bool {
        let is_large = self.width >= WIDTH_WITH_PATH && self.body >= BODY_WITH_PATH;
        self.is_zoomed() && is_large
    }

    pub fn resize(&mut self, width: u16, body: usize) {
        let is_wider = self.width != width;
        (self.width, self.body) = (width, body);
        if is_wider {
            self.lay_out();
        } else {
            self.scroll();
        }
    }

    fn lay_out(&mut self) {
        let held = self.held.as_ref();
        let held = held.and_then(|way| way.strip_prefix(&self.zoom[..]));
        let folding = match self.unfolds {
            true => Folding::None,
            false => Folding::Runs { held },
        };
        self.layout = match self.desk.shown() {
            Some(shown) => Layout::new(&shown.trees, &self.zoom, self.width, folding),
            None => Layout::default(),
        };
        self.colors.follow(&self.layout);
        self.find_held();
        self.scroll();
    }

    fn find_held(&mut self) {
        let below = self
            .held
            .as_ref()
            .map(|way| way.strip_prefix(&self.zoom[..]));
        (self.selected, self.is_hidden) = match below {
            None => (Spot::default(), false),
            Some(None) => (Spot::default(), true),
            Some(Some(below)) => {
                let (spot, is_it) = self.layout.find(below);
                (spot, !is_it)
            }
        };
    }

    /// No more than needed to see the selected bar.
    fn scroll(&mut self) {
        if self.layout.rows.is_empty() {
            // Its rows are on their way.
            return;
        }
        let last = self.layout.rows.len().saturating_sub(self.height());
        let row = self.selected.row;
        let first = (row + 1).saturating_sub(self.height());
        self.offset = self.offset.min(last).clamp(first, row.max(first));
    }

    fn select(&mut self, spot: Spot) {
        if self.layout.bar(spot).is_none_or(|bar| bar.node.is_none()) {
            return;
        }
        let mut way = self.zoom.clone();
        way.extend(self.layout.way(spot));
        if !self.trail.starts_with(&way) {
            self.trail.clone_from(&way);
        }
        self.held = Some(way);
        (self.selected, self.is_hidden) = (spot, false);
        self.scroll();
    }

    /// Selects what is at the end of a way, zooming in if it could not be seen.
    pub(super) fn select_way(&mut self, way: Way) {
        self.trail.clone_from(&way);
        self.held = Some(way.clone());
        // It may be in a run that has no rows.
        self.lay_out();
        let zoom = self.is_hidden.then(|| {
            let tree = self.tree()?;
            tree.find(&way)?;
            Some(layout::zoom_for(tree, &way, self.width))
        });
        match zoom.flatten() {
            Some(zoom) if zoom != self.zoom => self.zoom_to(zoom),
            _ => self.scroll(),
        }
    }

    fn zoom_to(&mut self, zoom: Way) {
        self.zooms += 1;
        self.outside.push(Outside {
            way: std::mem::replace(&mut self.zoom, zoom),
            offset: self.offset,
            zoom: self.zooms,
        });
        self.offset = 0;
        self.lay_out();
    }

    /// Makes the selected frame as wide as the screen, or one that is too narrow
    /// to be seen wide enough.
    pub fn zoom_in(&mut self) {
        if self.is_hidden {
            if let Some(way) = self.held.clone() {
                self.select_way(way);
            }
            return;
        }
        if self.selected.row == 0 || self.selected().is_none() {
            return;
        }
        let mut zoom = self.zoom.clone();
        zoom.extend(self.layout.way(self.selected));
        self.held = Some(zoom.clone());
        self.zoom_to(zoom);
    }

    /// Runs as one row each, or every frame of them.
    pub fn toggle_runs(&mut self) -> bool {
        self.unfolds = !self.unfolds;
        self.lay_out();
        self.unfolds
    }

    /// Out to one of the frames above, counted from the root.
    pub fn zoom_to_ancestor(&mut self, number: usize) {
        if number < self.zoom.len() {
            self.zoom_to(self.zoom[..number].to_vec());
        }
    }

    /// Back to where one zoomed in from; false if nowhere.
    pub fn zoom_out(&mut self) -> bool {
        let Some(outside) = self.outside.pop() else {
            return false;
        };
        (self.zoom, self.offset) = (outside.way, outside.offset);
        self.lay_out();
        true
    }

    /// The other way round; what was selected is looked for there.
    pub fn invert(&mut self) {
        self.desk.wanted = match self.desk.wanted {
            Direction::TopDown => Direction::BottomUp,
            Direction::BottomUp => Direction::TopDown,
        };
        self.start_anew();
    }

    /// Another row between the root and the functions, or none.
    pub fn group(&mut self) {
        self.desk.group_next();
        self.start_anew();
    }

    /// What is between the root and the functions on the screen.
    pub fn groups(&self) -> GroupBy {
        self.desk.groups()
    }

    /// The next tree has other ways.
    fn start_anew(&mut self) {
        self.desk.look_for = self.held_function();
        self.zoom.clear();
        self.outside.clear();
        self.trail.clear();
        self.held = None;
        self.offset = 0;
        self.lay_out();
    }

    /// Finds a function in the next tree.
    pub fn look_for(&mut self, function: FunctionId) {
        self.desk.look_for = Some(function);
    }

    pub fn find(&self) -> Option<&Find> {
        self.find.as_ref()
    }

    pub fn set_find(&mut self, find: Option<Find>) {
        self.find = find;
    }
}
