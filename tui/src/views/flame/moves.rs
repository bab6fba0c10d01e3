//! Moves the selection of the flame graph from one frame to another.

use super::layout::{Bar, Spot, Way};
use super::{Find, Flame, FunctionId};
use crate::lists::motion::Motion;
use profile::query::NodeKind;

impl Flame {
    /// Moves the selection up towards the root or down, one row each step, always within one stack.
    pub fn go(&mut self, motion: Motion) {
        let height = self.height();
        let page = |half| if half { height / 2 } else { height }.max(1);
        match motion {
            Motion::Top => self.select(Spot::default()),
            Motion::Up(steps) => self.go_up(steps),
            Motion::Down(steps) => self.go_down(steps),
            Motion::Page { down: false, half } => self.go_up(page(half)),
            Motion::Page { down: true, half } => self.go_down(page(half)),
            Motion::Bottom => self.go_down(usize::MAX),
        }
    }

    fn go_up(&mut self, steps: usize) {
        let mut spot = self.selected;
        for _ in 0..steps {
            match self.layout.parent(spot) {
                Some(above) => spot = above,
                None => break,
            }
        }
        self.select(spot);
    }

    /// Moves down along the trail, the way that was selected before, or else to the child with most
    /// samples.
    fn go_down(&mut self, steps: usize) {
        let trail = self.trail.strip_prefix(&self.zoom[..]).unwrap_or_default();
        let mut spot = self.selected;
        for _ in 0..steps {
            let next = self.layout.spots(spot.row + 1).find(|below| {
                let is_below = self.layout.parent(*below) == Some(spot);
                is_below && trail.starts_with(&self.layout.way(*below))
            });
            match next.or_else(|| self.layout.heaviest_child(spot)) {
                Some(below) => spot = below,
                None => break,
            }
        }
        self.select(spot);
    }

    /// Selects the next frame to the right or to the left in the same row. Merged bars are skipped.
    /// At the end of the row nothing changes.
    pub fn go_sideways(&mut self, right: bool) {
        let here = self.selected;
        let mut row = self.layout.spots(here.row);
        let next = if right {
            row.find(|spot| spot.bar > here.bar)
        } else {
            row.rfind(|spot| spot.bar < here.bar)
        };
        drop(row);
        if let Some(next) = next {
            self.select(next);
        }
    }

    /// Selects the bar that is drawn in a cell of the body. Nothing changes if there is no bar, or
    /// a merged one.
    pub fn select_cell(&mut self, column: u16, line: usize) {
        let Some(line) = line.checked_sub(self.has_path().into()) else {
            return;
        };
        let mut row = self.layout.spots(self.offset + line);
        let holds = |bar: &Bar| (bar.start..bar.end()).contains(&column);
        let spot = row.find(|spot| self.layout.bar(*spot).is_some_and(holds));
        drop(row);
        if let Some(spot) = spot {
            self.select(spot);
        }
    }

    /// Selects the widest frame of a function, the one that is selected in the table beside this
    /// graph. Does nothing if this function was already followed last time, so that the user can
    /// select another frame.
    pub fn follow(&mut self, function: Option<FunctionId>) {
        if self.followed == function || self.layout.rows.is_empty() {
            return;
        }
        self.followed = function;
        let is_it = |spot: &Spot| {
            let bar = self.layout.bar(*spot);
            bar.is_some_and(|bar| function.is_some_and(|id| has_function(bar, id)))
        };
        let samples = |spot: &Spot| self.layout.bar(*spot).map(|bar| bar.samples);
        // The first of several with equal samples.
        let all = self.layout.all_spots().rev().filter(is_it);
        let widest = all.max_by_key(samples).filter(|_| function.is_some());
        if let Some(spot) = widest {
            self.select(spot);
        }
    }

    /// Whether the search matches a bar, by its name or that of a frame folded into it. False for
    /// merged bars, and if there is no search.
    pub fn is_found(&self, bar: &Bar) -> bool {
        let is_in_run = |find: &Find| bar.run.iter().any(|frame| find.matches(&frame.name));
        let matches =
            |find: &Find| bar.node.is_some() && (find.matches(&bar.name) || is_in_run(find));
        self.find.as_ref().is_some_and(matches)
    }

    /// Returns how many bars match the search, and how many samples contain any of these frames. A
    /// match below another match adds no samples, because the upper one has counted them.
    pub fn found(&self) -> (usize, u64) {
        let mut found = (0, 0);
        // For each bar of the row above: whether the bar or a bar above it matches.
        let mut covered: Vec<bool> = Vec::new();
        for row in &self.layout.rows {
            covered = row
                .iter()
                .map(|bar| {
                    let is_found = self.is_found(bar);
                    let is_covered = covered.get(bar.parent).copied().unwrap_or(false);
                    found.0 += usize::from(is_found);
                    found.1 += if is_found && !is_covered {
                        bar.samples
                    } else {
                        0
                    };
                    is_covered || is_found
                })
                .collect();
        }
        found
    }

    /// Returns how many bars can be selected: all except merged ones, visible or not.
    pub fn bar_count(&self) -> usize {
        self.layout.all_spots().count()
    }

    /// Selects the next match after the selected bar, row by row and from the left, or the previous
    /// one if `down` is false, and goes on at the other end. Returns the position of the match
    /// among all matches, counted from 1, or `None` if there is none.
    pub fn select_found(&mut self, down: bool, including: bool) -> Option<usize> {
        let place = self.select_among(|flame, bar| flame.is_found(bar), down, including);
        if let Some(way) = self.found_in_run() {
            self.select_way(way);
        }
        place
    }

    /// Returns the way to the frame that matches the search, if it has no bar but is part of the
    /// run that the selected bar stands for.
    fn found_in_run(&self) -> Option<Way> {
        let (bar, find) = (self.selected()?, self.find.as_ref()?);
        if find.matches(&bar.name) {
            return None;
        }
        let frame = bar.run.iter().position(|frame| find.matches(&frame.name))?;
        let mut way = self.held.clone()?;
        way.truncate(way.len() - (bar.run.len() - frame));
        Some(way)
    }

    /// Selects the next bar of the selected function. Returns its position among the bars of the
    /// function, counted from 1, and their number. Returns `None` if no function is selected.
    pub fn select_same(&mut self) -> Option<(usize, usize)> {
        let id = function_id(self.selected()?)?;
        let is_it = |_: &Self, bar: &Bar| function_id(bar) == Some(id);
        let all = self
            .layout
            .all_spots()
            .filter(|spot| self.layout.bar(*spot).is_some_and(|bar| is_it(self, bar)));
        let count = all.count();
        Some((self.select_among(is_it, true, false)?, count))
    }

    fn select_among(
        &mut self,
        wanted: impl Fn(&Self, &Bar) -> bool,
        down: bool,
        including: bool,
    ) -> Option<usize> {
        let is_wanted = |spot: &Spot| self.layout.bar(*spot).is_some_and(|bar| wanted(self, bar));
        let found: Vec<Spot> = self.layout.all_spots().filter(is_wanted).collect();
        let order = |spot: &Spot| (spot.row, spot.bar);
        let here = order(&self.selected);
        let place = if down {
            found
                .iter()
                .position(|spot| order(spot) > here || (including && order(spot) == here))
                .or(Some(0))
        } else {
            found
                .iter()
                .rposition(|spot| order(spot) < here)
                .or(found.len().checked_sub(1))
        }?;
        self.select(*found.get(place)?);
        Some(place + 1)
    }
}

/// Whether the bar is a frame of this function, or one is folded into it.
fn has_function(bar: &Bar, function: FunctionId) -> bool {
    let is_it = |kind: &NodeKind| matches!(kind, NodeKind::Function { id, .. } if *id == function);
    function_id(bar) == Some(function) || bar.run.iter().any(|frame| is_it(&frame.kind))
}

fn function_id(bar: &Bar) -> Option<FunctionId> {
    bar.function.as_ref().map(|function| function.id)
}
