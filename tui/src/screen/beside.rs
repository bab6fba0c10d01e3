//! What stands *beside* the open view where the screen has room for it: a second
//! view that follows what is selected in the first, and lines at the bottom on
//! the machine. How wide each is follows from the size of the terminal alone.

use super::geometry::{Part, Size, WIDTH_WIDE};
use super::page::Page;
use super::table::Table;
use super::tree::Tree;
use super::{View, Views};
use profile::ThreadRow;

/// A second view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// The page of the selected function.
    Page,
    /// The threads of the selected process.
    Threads,
    /// The call tree the other way round.
    Tree,
}

impl Beside {
    /// The view that it is one of: its keys work there.
    pub fn view(self) -> View {
        match self {
            Beside::Page => View::Page,
            Beside::Threads => View::Threads,
            Beside::Tree => View::Tree,
        }
    }

    fn fits(self, size: Size) -> bool {
        match self {
            Beside::Page | Beside::Threads => size.width >= WIDTH_WIDE,
            // Both have names that are indented.
            Beside::Tree => size.width >= WIDTH_WITH_TREES,
        }
    }

    fn width(self, size: Size) -> u16 {
        match self {
            Beside::Page | Beside::Threads => size.width * 3 / 8,
            Beside::Tree => size.width * 7 / 15,
        }
    }
}

/// From this width on two trees have room for names.
const WIDTH_WITH_TREES: u16 = 150;

/// Lines below the view, about the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strip {
    /// How busy each CPU is.
    Cpus,
}

/// From this size on there is room for them.
const SIZE_WITH_STRIP: Size = Size {
    width: 160,
    height: 40,
};

/// A line that keeps it apart, and its own.
const STRIP_LINES: u16 = 2;

/// Who has what of the screen between the tabs and the detail line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    pub view: Part,
    pub pane: Option<(Beside, Part)>,
    pub strip: Option<(Strip, Part)>,
}

impl Parts {
    /// Shares out the whole; what does not fit into a terminal of that size is
    /// left out.
    pub fn new(whole: Part, size: Size, beside: Option<Beside>, strip: Option<Strip>) -> Self {
        let mut view = whole;
        let pane = beside.filter(|beside| beside.fits(size));
        let pane = pane.map(|beside| (beside, view.split_right(beside.width(size))));
        let has_room =
            size.width >= SIZE_WITH_STRIP.width && size.height >= SIZE_WITH_STRIP.height;
        let strip = strip.filter(|_| has_room);
        let strip = strip.map(|strip| (strip, view.split_below(STRIP_LINES)));
        Parts { view, pane, strip }
    }
}

/// Which of two of a kind: that of the pane, or the one with a tab.
impl Views {
    pub fn page_in(&self, pane: Option<Beside>) -> &Page {
        match pane {
            Some(Beside::Page) => &self.beside,
            _ => &self.page,
        }
    }

    pub fn page_in_mut(&mut self, pane: Option<Beside>) -> &mut Page {
        match pane {
            Some(Beside::Page) => &mut self.beside,
            _ => &mut self.page,
        }
    }

    pub fn tree_in(&self, pane: Option<Beside>) -> &Tree {
        match pane {
            Some(Beside::Tree) => &self.other_tree,
            _ => &self.tree,
        }
    }

    pub fn tree_in_mut(&mut self, pane: Option<Beside>) -> &mut Tree {
        match pane {
            Some(Beside::Tree) => &mut self.other_tree,
            _ => &mut self.tree,
        }
    }

    pub fn threads_in(&self, pane: Option<Beside>) -> &Table<ThreadRow> {
        match pane {
            Some(Beside::Threads) => &self.own_threads,
            _ => &self.threads,
        }
    }

    pub fn threads_in_mut(&mut self, pane: Option<Beside>) -> &mut Table<ThreadRow> {
        match pane {
            Some(Beside::Threads) => &mut self.own_threads,
            _ => &mut self.threads,
        }
    }
}
