//! The *flame graph*: the call tree drawn as bars, each as wide as its share of the samples,
//! the root on top. Trees come from the thread that answers questions. What is zoomed into and
//! selected is kept here as ways from the root, so that it is the same frame in the next tree.

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

/// From this size on the names of the frames above the zoomed one have a line of their own.
const WIDTH_WITH_PATH: u16 = 160;
const BODY_WITH_PATH: usize = 30;

/// The state of a flame graph: the tree, what of it is zoomed into and selected, and the bars
/// that follow from these.
#[derive(Debug, Default)]
pub struct Flame {
    desk: TreeDesk,
    zoom: Way,
    outside: Vec<Outside>,
    /// Counts all zooms, also those that were left again.
    zooms: u64,
    /// The frame that the user selected; None while nothing was selected.
    held: Option<Way>,
    /// The way to the deepest frame that was selected: going down follows it.
    trail: Way,
    layout: Layout,
    colors: Colors,
    selected: Spot,
    /// The held frame has no bar of its own: it is too narrow, outside of the zoom, or gone.
    is_hidden: bool,
    /// Runs of frames with one child each have a row for every frame.
    unfolds: bool,
    /// The first row on the screen.
    offset: usize,
    width: u16,
    /// Lines of the body: for the bars, the legend below them, and the names above the zoom.
    body: usize,
    find: Option<Find>,
    /// The function that was selected last in the table that this graph stands beside.
    followed: Option<FunctionId>,
}

/// The state before a zoom, to be restored when the zoom is left.
#[derive(Debug, Clone)]
struct Outside {
    way: Way,
    /// How far it was scrolled.
    offset: usize,
    /// The number of the zoom that left it, counted from 1 over all zooms there were.
    zoom: u64,
}

/// A graph as it was left: what has to be kept to come back to it.
#[derive(Debug, Clone)]
pub struct FlamePosition {
    look: Look,
    zoom: Way,
    outside: Vec<Outside>,
    zooms: u64,
    held: Option<Way>,
    trail: Way,
    offset: usize,
}

impl FlamePosition {
    /// How often the user had zoomed when the graph was left.
    pub fn zooms(&self) -> u64 {
        self.zooms
    }
}

impl Flame {
    /// Returns what has to be kept to come back to what is shown now.
    pub fn place(&self) -> FlamePosition {
        FlamePosition {
            look: self.desk.look(),
            zoom: self.zoom.clone(),
            outside: self.outside.clone(),
            zooms: self.zooms,
            held: self.held.clone(),
            trail: self.trail.clone(),
            offset: self.offset,
        }
    }

    /// Goes back to a place. If that needs a tree of another direction or grouping, there are
    /// no bars until it comes.
    pub fn return_to(&mut self, place: FlamePosition) {
        self.zoom = place.zoom;
        self.outside = place.outside;
        self.held = place.held;
        self.trail = place.trail;
        self.offset = place.offset;
        if self.desk.return_to(place.look) {
            self.lay_out()
        } else {
            self.layout = Layout::default()
        }
    }

    /// Whether [`Flame::zoom_out`] would leave a zoom that came after the first `zooms` ones.
    pub fn has_zoomed_since(&self, zooms: u64) -> bool {
        self.outside.last().is_some_and(|last| last.zoom > zooms)
    }

    /// Returns the tree on the screen; None before the first answer.
    pub fn tree(&self) -> Option<&CallTree> {
        self.desk.tree()
    }

    /// Returns whether callees stand below their callers, or callers below their callees.
    pub fn direction(&self) -> Direction {
        self.desk.direction()
    }

    /// The rows on the screen, each with its number; 0 is the row of the zoomed frame.
    pub fn shown(&self) -> impl Iterator<Item = (usize, &Vec<Bar>)> {
        let rows = self.layout.rows.iter().enumerate();
        rows.skip(self.offset).take(self.height())
    }

    /// Returns the number of the first row on the screen.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns how many rows there are below the last one on the screen.
    pub fn rows_below(&self) -> usize {
        self.layout
            .rows
            .len()
            .saturating_sub(self.offset + self.height())
    }

    /// Returns where the selected bar is. The bar on top is selected until the user selects
    /// another.
    pub fn selected_spot(&self) -> Spot {
        self.selected
    }

    /// Returns the selected bar; None while there are no bars.
    pub fn selected(&self) -> Option<&Bar> {
        self.layout.bar(self.selected)
    }

    /// The bar above the selected one.
    pub fn parent(&self) -> Option<&Bar> {
        self.layout.bar(self.layout.parent(self.selected)?)
    }

    /// Returns the color of a bar's module. What is drawn may be another color, or none: see
    /// [`tints::Tints::of`].
    pub fn tint(&self, bar: &Bar) -> Tint {
        self.colors.of(bar.function.as_deref())
    }

    /// Returns the modules that have a color of their own, with that color.
    pub fn legend(&self) -> impl Iterator<Item = (Tint, &str)> {
        self.colors.legend()
    }

    /// How many samples and seconds both sides have, while two are compared.
    pub fn sides(&self) -> Option<&Sides> {
        self.desk.trees()?.sides()
    }

    /// The stretch of time that the graph on the screen is of, if it is compared with the rest
    /// of the time that is kept; else None.
    pub fn stretch(&self) -> Option<Stretch> {
        self.desk.shown()?.key.what.stretch
    }

    /// Makes the next graph one of a stretch of time, compared with the rest of the time that
    /// is kept; with None, the usual graph of the window.
    pub fn set_stretch(&mut self, stretch: Option<Stretch>) {
        if stretch.is_some() != self.desk.stretch.is_some() {
            self.desk.clear();
            self.start_anew();
        }
        self.desk.stretch = stretch;
    }

    /// By how much a frame has become more: its amount now less its amount before, in
    /// milliseconds of CPU per second, or in percentage points if time is not known. 0 if
    /// nothing is compared.
    pub fn change(&self, bar: &Bar) -> f64 {
        let pair = self.sides().zip(bar.before);
        pair.map_or(0.0, |(sides, before)| sides.change(before, bar.samples))
    }

    /// Whether the change of a frame is larger than chance makes it. `diff` judges a comparison
    /// with a baseline; the tree has a test of its own if it is of a stretch of time. False if
    /// nothing is compared.
    pub fn is_sure(&self, bar: &Bar, diff: Option<&Diff>) -> bool {
        let Some(before) = bar.before else {
            return false;
        };
        match self.desk.trees().and_then(Trees::rest) {
            Some(rest) => rest.is_sure(bar.samples, before),
            None => diff.is_some_and(|diff| diff.is_sure(before, bar.samples)),
        }
    }

    /// The frames below the zoomed one that only the tree compared with has, most samples
    /// first.
    pub fn gone(&self) -> &[Gone] {
        &self.layout.gone
    }

    /// Returns whether the graph begins at another frame than the root.
    pub fn is_zoomed(&self) -> bool {
        !self.zoom.is_empty()
    }

    /// The names of the frames between the root and the zoomed frame, the outermost first.
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

    /// How many samples lie to the left of the zoomed frame in the graph of the root, and how
    /// many it has itself; None if it is not in the tree.
    pub fn zoomed_part(&self) -> Option<(u64, u64)> {
        let (begin, node) = self.tree()?.place(&self.zoom)?;
        Some((begin, node.samples))
    }

    /// The name of the selected frame if it has no bar here, and whether it is still in the
    /// tree: too narrow or outside of the zoom. None if it has a bar.
    pub fn hidden(&self) -> Option<(Arc<str>, bool)> {
        let way = self.held.as_ref().filter(|_| self.is_hidden)?;
        let tree = self.tree()?;
        Some((tree.name(*way.last()?), tree.find(way).is_some()))
    }

    /// Returns the function that the user selected; None if nothing was selected, or the root
    /// or a group.
    pub fn held_function(&self) -> Option<FunctionId> {
        match self.held.as_ref()?.last()? {
            NodeKind::Function { id, .. } => Some(*id),
            NodeKind::Root | NodeKind::Group(_) => None,
        }
    }

    /// Returns the question for the tree that is wanted; None if it is asked or answered
    /// already.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<TreeQuestion> {
        self.desk.question(snapshot)
    }

    /// Takes an answer. It is shown at once if `is_calm`, or if the screen waits for it; see
    /// [`TreeDesk::receive`]. Returns whether it is shown.
    pub fn receive(&mut self, answer: Arc<TreeAnswer>, is_calm: bool) -> bool {
        self.desk.receive(answer, is_calm) && self.take_waiting()
    }

    /// Shows the answer that `receive` kept, with the same frames zoomed into and selected. If
    /// a function was looked for, its widest frame is selected. Returns false if there was no
    /// answer.
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

    /// Frees the tree and the bars, because the view was left; zoom and selection stay.
    pub fn release(&mut self) {
        self.desk.clear();
        self.layout = Layout::default();
    }

    /// How many lines of the body are left for rows of bars.
    fn height(&self) -> usize {
        let others = 1 + usize::from(self.has_path());
        self.body.saturating_sub(others).max(1)
    }

    /// Whether the names of the frames above the zoomed one have a line of their own.
    pub fn has_path(&self) -> bool {
        let is_large = self.width >= WIDTH_WITH_PATH && self.body >= BODY_WITH_PATH;
        self.is_zoomed() && is_large
    }

    /// Sets the size of the body in cells. A new width moves all bars, a new height only
    /// scrolls.
    pub fn resize(&mut self, width: u16, body: usize) {
        let is_wider = self.width != width;
        (self.width, self.body) = (width, body);
        if is_wider {
            self.lay_out();
        } else {
            self.scroll();
        }
    }

    /// Makes the bars anew, from tree, zoom and width, and finds the selected frame among them.
    fn lay_out(&mut self) {
        let held = self
            .held
            .as_ref()
            .and_then(|way| way.strip_prefix(&self.zoom[..]));
        let folding = if self.unfolds {
            Folding::None
        } else {
            Folding::Runs { held }
        };
        self.layout = match self.desk.shown() {
            Some(shown) => Layout::new(&shown.trees, &self.zoom, self.width, folding),
            None => Layout::default(),
        };
        self.colors.follow(&self.layout);
        self.find_held();
        self.scroll();
    }

    /// Finds the bar of the held frame:
    /// 1. If nothing is held, the bar on top is selected.
    /// 2. If the frame is not below the zoomed one, the bar on top is selected instead of it.
    /// 3. Else its bar is selected, or the lowest bar on the way to it if it has none.
    ///
    /// In 2, and in 3 without a bar of its own, it counts as hidden.
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

    /// Scrolls no more than needed to see the selected bar.
    fn scroll(&mut self) {
        if self.layout.rows.is_empty() {
            // The rows of a tree that was asked for come later: until then the offset is kept.
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

    /// Selects the frame at the end of a way, and zooms to where it has a bar if it has none
    /// here.
    pub(super) fn select_way(&mut self, way: Way) {
        self.trail.clone_from(&way);
        self.held = Some(way.clone());
        // Laying out shows the frames of the run one by one that the held frame is in.
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

    /// Makes the selected frame as wide as the screen. If it has no bar here, zooms only so far
    /// that it gets one.
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

    /// Switches between one row for each run and a row for every frame. Returns whether every
    /// frame has a row now.
    pub fn toggle_runs(&mut self) -> bool {
        self.unfolds = !self.unfolds;
        self.lay_out();
        self.unfolds
    }

    /// Zooms out to a frame above the zoomed one, the one that is `number` steps below the
    /// root.
    pub fn zoom_to_ancestor(&mut self, number: usize) {
        if number < self.zoom.len() {
            self.zoom_to(self.zoom[..number].to_vec());
        }
    }

    /// Undoes the last zoom, with its scroll position. Returns false if there is none.
    pub fn zoom_out(&mut self) -> bool {
        let Some(outside) = self.outside.pop() else {
            return false;
        };
        (self.zoom, self.offset) = (outside.way, outside.offset);
        self.lay_out();
        true
    }

    /// Asks for the tree of the other direction; the selected function is looked for in it.
    pub fn invert(&mut self) {
        self.desk.wanted = match self.desk.wanted {
            Direction::TopDown => Direction::BottomUp,
            Direction::BottomUp => Direction::TopDown,
        };
        self.start_anew();
    }

    /// Asks for the tree by the next grouping: by process, by thread, or none. The selected
    /// function is looked for in it.
    pub fn group(&mut self) {
        self.desk.group_next();
        self.start_anew();
    }

    /// What the tree on the screen has between the root and the functions.
    pub fn groups(&self) -> GroupBy {
        self.desk.groups()
    }

    /// Forgets zoom and selection, as ways of this tree do not lead anywhere in the next one.
    /// The selected function is looked for there.
    fn start_anew(&mut self) {
        self.desk.look_for = self.held_function();
        self.zoom.clear();
        self.outside.clear();
        self.trail.clear();
        self.held = None;
        self.offset = 0;
        self.lay_out();
    }

    /// Has a function found and selected in the next tree.
    pub fn look_for(&mut self, function: FunctionId) {
        self.desk.look_for = Some(function);
    }

    /// Returns the pattern that is searched for; None if there is no search.
    pub fn find(&self) -> Option<&Find> {
        self.find.as_ref()
    }

    /// Starts a search for a pattern, or ends it with None. It selects nothing.
    pub fn set_find(&mut self, find: Option<Find>) {
        self.find = find;
    }
}
