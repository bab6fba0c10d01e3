//! The *flame graph*: the call tree drawn as bars with the root on top. The width of a bar is its
//! share of the samples. The thread that answers questions builds the trees. The zoomed frame and
//! the selected one are stored as ways from the root, so that the same frames are found in the next
//! tree.

/// The colors of modules.
mod colors;
pub mod draw;
mod layout;
/// Moves the selection from one frame to another.
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

/// From this width on the names of the frames above the zoomed one have a line of their own.
const WIDTH_WITH_PATH: u16 = 160;
/// The body needs this many lines for the same.
const BODY_WITH_PATH: usize = 30;

/// The state of a flame graph: the tree, the zoomed and the selected frame, and the bars that
/// result from these.
#[derive(Debug, Default)]
pub struct Flame {
    desk: TreeDesk,
    /// The way to the zoomed frame. Empty if that is the root.
    zoom: Way,
    /// The states before each zoom that can be undone.
    outside: Vec<Outside>,
    /// Number of zooms so far, including those that were undone.
    zooms: u64,
    /// The frame that the user selected. `None` if nothing was selected yet.
    held: Option<Way>,
    /// The way to the deepest frame that was selected. Moving down follows it.
    trail: Way,
    layout: Layout,
    colors: Colors,
    selected: Spot,
    /// The held frame has no bar of its own: it is too narrow, outside of the zoom, or gone.
    is_hidden: bool,
    /// Every frame has a row of its own. Otherwise a run of frames with one child each shares a
    /// row.
    unfolds: bool,
    /// Number of the first row on the screen.
    offset: usize,
    width: u16,
    /// Number of lines of the body: for the bars, the legend below them, and the names above the
    /// zoom.
    body: usize,
    find: Option<Find>,
    /// The function that was last selected in the table beside this graph.
    followed: Option<FunctionId>,
}

/// The state before a zoom, restored when the zoom is undone.
#[derive(Debug, Clone)]
struct Outside {
    way: Way,
    /// The first row on the screen.
    offset: usize,
    /// The number of the zoom that left this state; zooms are counted from 1.
    zoom: u64,
}

/// A position in a flame graph. The history keeps it for steps back.
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
    /// Returns how often the user had zoomed when this position was left.
    pub fn zooms(&self) -> u64 {
        self.zooms
    }
}

impl Flame {
    /// Returns the present position.
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

    /// Goes back to a position. If it needs a tree of another direction or grouping, there are no
    /// bars until that tree arrives.
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

    /// Whether [`Flame::zoom_out`] would undo a zoom that came after the first `zooms` ones.
    pub fn has_zoomed_since(&self, zooms: u64) -> bool {
        self.outside.last().is_some_and(|last| last.zoom > zooms)
    }

    /// Returns the tree on the screen, or `None` before the first answer.
    pub fn tree(&self) -> Option<&CallTree> {
        self.desk.tree()
    }

    /// Returns whether callees are below their callers, or callers below their callees.
    pub fn direction(&self) -> Direction {
        self.desk.direction()
    }

    /// Returns the rows on the screen, each with its number. Row 0 is that of the zoomed frame.
    pub fn shown(&self) -> impl Iterator<Item = (usize, &Vec<Bar>)> {
        let rows = self.layout.rows.iter().enumerate();
        rows.skip(self.offset).take(self.height())
    }

    /// Returns the number of the first row on the screen.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of rows below the last one on the screen.
    pub fn rows_below(&self) -> usize {
        self.layout
            .rows
            .len()
            .saturating_sub(self.offset + self.height())
    }

    /// Returns the position of the selected bar. The bar on top is selected until the user selects
    /// another one.
    pub fn selected_spot(&self) -> Spot {
        self.selected
    }

    /// Returns the selected bar, or `None` if there are no bars.
    pub fn selected(&self) -> Option<&Bar> {
        self.layout.bar(self.selected)
    }

    /// Returns the bar above the selected one.
    pub fn parent(&self) -> Option<&Bar> {
        self.layout.bar(self.layout.parent(self.selected)?)
    }

    /// Returns the color of a bar's module. The bar may be drawn in another color, or in none: see
    /// [`tints::Tints::of`].
    pub fn tint(&self, bar: &Bar) -> Tint {
        self.colors.of(bar.function.as_deref())
    }

    /// Returns the modules that have a color of their own, with that color.
    pub fn legend(&self) -> impl Iterator<Item = (Tint, &str)> {
        self.colors.legend()
    }

    /// Returns the samples and seconds of both sides if two are compared.
    pub fn sides(&self) -> Option<&Sides> {
        self.desk.trees()?.sides()
    }

    /// Returns the stretch of time that the graph on the screen covers, if it is compared with the
    /// rest of the time that is kept, otherwise `None`.
    pub fn stretch(&self) -> Option<Stretch> {
        self.desk.shown()?.key.what.stretch
    }

    /// Asks for the graph of a stretch of time, compared with the rest of the time that is kept, or
    /// with `None` for the usual graph of the window.
    pub fn set_stretch(&mut self, stretch: Option<Stretch>) {
        if stretch.is_some() != self.desk.stretch.is_some() {
            self.desk.clear();
            self.start_anew();
        }
        self.desk.stretch = stretch;
    }

    /// Returns by how much a frame has grown: its amount now minus its amount before, in
    /// milliseconds of CPU per second, or in percentage points if times are not known. Returns 0 if
    /// nothing is compared.
    pub fn change(&self, bar: &Bar) -> f64 {
        let pair = self.sides().zip(bar.before);
        pair.map_or(0.0, |(sides, before)| sides.change(before, bar.samples))
    }

    /// Whether the change of a frame is statistically significant. `diff` judges a comparison with
    /// a baseline; a tree of a stretch of time has a test of its own. False if nothing is compared.
    pub fn is_sure(&self, bar: &Bar, diff: Option<&Diff>) -> bool {
        let Some(before) = bar.before else {
            return false;
        };
        match self.desk.trees().and_then(Trees::rest) {
            Some(rest) => rest.is_sure(bar.samples, before),
            None => diff.is_some_and(|diff| diff.is_sure(before, bar.samples)),
        }
    }

    /// Returns the frames below the zoomed one that exist only in the tree compared with, most
    /// samples first.
    pub fn gone(&self) -> &[Gone] {
        &self.layout.gone
    }

    /// Whether the graph starts at another frame than the root.
    pub fn is_zoomed(&self) -> bool {
        !self.zoom.is_empty()
    }

    /// Returns the names of the frames between the root and the zoomed frame, the outermost first.
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

    /// Returns how many samples are to the left of the zoomed frame in the whole graph, and how
    /// many the frame has itself. Returns `None` if it is not in the tree.
    pub fn zoomed_part(&self) -> Option<(u64, u64)> {
        let (begin, node) = self.tree()?.place(&self.zoom)?;
        Some((begin, node.samples))
    }

    /// Returns the name of the selected frame if it has no bar here, and whether it is still in the
    /// tree: then it is too narrow or outside of the zoom. Returns `None` if it has a bar.
    pub fn hidden(&self) -> Option<(Arc<str>, bool)> {
        let way = self.held.as_ref().filter(|_| self.is_hidden)?;
        let tree = self.tree()?;
        Some((tree.name(*way.last()?), tree.find(way).is_some()))
    }

    /// Returns the function that the user selected. Returns `None` if nothing, the root or a group
    /// was selected.
    pub fn held_function(&self) -> Option<FunctionId> {
        match self.held.as_ref()?.last()? {
            NodeKind::Function { id, .. } => Some(*id),
            NodeKind::Root | NodeKind::Group(_) => None,
        }
    }

    /// Returns the question for the tree that is wanted, or `None` if it was asked already.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<TreeQuestion> {
        self.desk.question(snapshot)
    }

    /// Takes an answer, and returns whether it is shown now. It is if `is_calm`, or if the screen
    /// waits for it; see [`TreeDesk::receive`].
    pub fn receive(&mut self, answer: Arc<TreeAnswer>, is_calm: bool) -> bool {
        self.desk.receive(answer, is_calm) && self.take_waiting()
    }

    /// Shows the answer that `receive` kept, with the same frames zoomed and selected. If a
    /// function was searched for, its widest frame is selected. Returns false if there was no
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

    /// Frees the tree and the bars when the view is left. Zoom and selection stay.
    pub fn release(&mut self) {
        self.desk.clear();
        self.layout = Layout::default();
    }

    /// Returns how many lines of the body are left for rows of bars.
    fn height(&self) -> usize {
        let others = 1 + usize::from(self.has_path());
        self.body.saturating_sub(others).max(1)
    }

    /// Whether the names of the frames above the zoomed one have a line of their own.
    pub fn has_path(&self) -> bool {
        let is_large = self.width >= WIDTH_WITH_PATH && self.body >= BODY_WITH_PATH;
        self.is_zoomed() && is_large
    }

    /// Sets the size of the body in cells. A new width moves all bars, a new height only scrolls.
    pub fn resize(&mut self, width: u16, body: usize) {
        let is_wider = self.width != width;
        (self.width, self.body) = (width, body);
        if is_wider {
            self.lay_out();
        } else {
            self.scroll();
        }
    }

    /// Builds the bars again from tree, zoom and width, and finds the selected frame among them.
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
    /// 1. If no frame is held, the bar on top is selected.
    /// 2. If the frame is not below the zoomed one, the bar on top is selected instead.
    /// 3. Otherwise its bar is selected or, if it has none, the lowest bar on the way to it.
    ///
    /// The frame counts as hidden in case 2, and in case 3 if it has no bar of its own.
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

    /// Scrolls no more than needed to make the selected bar visible.
    fn scroll(&mut self) {
        if self.layout.rows.is_empty() {
            // The rows of a tree that was asked for come later; the offset is kept until then.
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

    /// Selects the frame at the end of a way. If it has no bar here, zooms to where it has one.
    pub(super) fn select_way(&mut self, way: Way) {
        self.trail.clone_from(&way);
        self.held = Some(way.clone());
        // The run that contains the held frame is laid out with one row for each frame.
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

    /// Switches between one row for each run and one row for each frame. Returns true if each frame
    /// has a row now.
    pub fn toggle_runs(&mut self) -> bool {
        self.unfolds = !self.unfolds;
        self.lay_out();
        self.unfolds
    }

    /// Zooms out to a frame above the zoomed one. `number` is its distance from the root.
    pub fn zoom_to_ancestor(&mut self, number: usize) {
        if number < self.zoom.len() {
            self.zoom_to(self.zoom[..number].to_vec());
        }
    }

    /// Undoes the last zoom, and restores the scroll position. Returns false if there is none.
    pub fn zoom_out(&mut self) -> bool {
        let Some(outside) = self.outside.pop() else {
            return false;
        };
        (self.zoom, self.offset) = (outside.way, outside.offset);
        self.lay_out();
        true
    }

    /// Asks for the tree of the other direction. The selected function is searched for in it.
    pub fn invert(&mut self) {
        self.desk.wanted = match self.desk.wanted {
            Direction::TopDown => Direction::BottomUp,
            Direction::BottomUp => Direction::TopDown,
        };
        self.start_anew();
    }

    /// Asks for the tree with the next grouping: by process, by thread, or none. The selected
    /// function is searched for in it.
    pub fn group(&mut self) {
        self.desk.group_next();
        self.start_anew();
    }

    /// Returns what the tree on the screen has between the root and the functions.
    pub fn groups(&self) -> GroupBy {
        self.desk.groups()
    }

    /// Forgets zoom and selection, because ways of this tree do not exist in the next one. The
    /// selected function is searched for there.
    fn start_anew(&mut self) {
        self.desk.look_for = self.held_function();
        self.zoom.clear();
        self.outside.clear();
        self.trail.clear();
        self.held = None;
        self.offset = 0;
        self.lay_out();
    }

    /// Finds a function in the next tree and selects it.
    pub fn look_for(&mut self, function: FunctionId) {
        self.desk.look_for = Some(function);
    }

    /// Returns the pattern of the search, or `None` if there is no search.
    pub fn find(&self) -> Option<&Find> {
        self.find.as_ref()
    }

    /// Starts a search for a pattern, or ends it with `None`. The selection stays.
    pub fn set_find(&mut self, find: Option<Find>) {
        self.find = find;
    }
}
