//! How the selection goes from one frame to another.

use super::layout::{Bar, Spot};
use super::{Find, Flame, FunctionId};
use crate::lists::motion::Motion;

impl Flame {
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

    /// Where one was before, else to what has most samples.
    fn go_down(&mut self, steps: usize) {
        let trail = self.trail.strip_prefix(&self.zoom[..]).unwrap_or_default();
        let mut spot = self.selected;
        for _ in 0..steps {
            let on_trail = (trail.len() > spot.row && trail.starts_with(&self.layout.way(spot)))
                .then(|| self.layout.find(&trail[..=spot.row]))
                .filter(|(_, is_it)| *is_it);
            let next = on_trail.map(|(spot, _)| spot);
            match next.or_else(|| self.layout.heaviest_child(spot)) {
                Some(below) => spot = below,
                None => break,
            }
        }
        self.select(spot);
    }

    /// To the next frame of the same row.
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

    /// Selects the widest frame of what another view has selected, once.
    pub fn follow(&mut self, function: Option<FunctionId>) {
        if self.followed == function || self.layout.rows.is_empty() {
            return;
        }
        self.followed = function;
        let is_it = |spot: &Spot| self.layout.bar(*spot).and_then(function_id) == function;
        let samples = |spot: &Spot| self.layout.bar(*spot).map(|bar| bar.samples);
        // The first of equals.
        let all = self.layout.all_spots().rev().filter(is_it);
        let widest = all.max_by_key(samples).filter(|_| function.is_some());
        if let Some(spot) = widest {
            self.select(spot);
        }
    }

    pub fn is_found(&self, bar: &Bar) -> bool {
        let matches = |find: &Find| bar.node.is_some() && find.matches(&bar.name);
        self.find.as_ref().is_some_and(matches)
    }

    /// Frames that match, of those that can be seen, and samples with any of
    /// them.
    pub fn found(&self) -> (usize, u64) {
        let mut found = (0, 0);
        // By row: whether a bar is below one that counts already.
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

    pub fn bar_count(&self) -> usize {
        self.layout.all_spots().count()
    }

    /// As in the tables, row by row.
    pub fn select_found(&mut self, down: bool, including: bool) -> Option<usize> {
        self.select_among(|flame, bar| flame.is_found(bar), down, including)
    }

    /// The next frame of the selected function; which one it is, and of how
    /// many.
    pub fn select_same(&mut self) -> Option<(usize, usize)> {
        let id = function_id(self.selected()?)?;
        let is_it = |_: &Self, bar: &Bar| function_id(bar) == Some(id);
        let all = self.layout.all_spots();
        let all = all.filter(|spot| self.layout.bar(*spot).is_some_and(|bar| is_it(self, bar)));
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

fn function_id(bar: &Bar) -> Option<FunctionId> {
    bar.function.as_ref().map(|function| function.id)
}
