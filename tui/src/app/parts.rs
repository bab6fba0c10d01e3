//! What stands *beside* the open view where the screen has room for it: a second
//! view that follows what is selected in the first, and lines at the bottom on
//! the machine. How wide each is follows from the size of the terminal alone.

use crate::geometry::{Part, Size, WIDTH_WIDE};
use crate::lists::table::Table;
use crate::view_id::ViewId;
use crate::views::Views;
use crate::views::code::Code;
use crate::views::flame::Flame;
use crate::views::page::Page;
use crate::views::time::FOOT_LINES;
use crate::views::tree::Tree;
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
    /// Below the map of time: the flame graph of what is marked there.
    Stretch,
    /// Beside what differs, function by function: the flame graph of it.
    Difference,
    /// Beside the source text of a function: its instructions.
    Assembly,
}

impl Beside {
    /// The view that it is one of: its keys work there.
    pub fn view(self) -> ViewId {
        match self {
            Beside::Page => ViewId::Page,
            Beside::Threads => ViewId::Threads,
            Beside::Tree => ViewId::Tree,
            Beside::Stretch | Beside::Difference => ViewId::Flame,
            Beside::Assembly => ViewId::Code,
        }
    }

    fn fits(self, size: Size) -> bool {
        match self {
            Beside::Page | Beside::Threads => size.width >= WIDTH_WIDE,
            // Both have names that are indented.
            Beside::Tree | Beside::Difference | Beside::Assembly => size.width >= WIDTH_WITH_TREES,
            Beside::Stretch => size.width >= WIDTH_WIDE && size.height >= HEIGHT_WITH_STRETCH,
        }
    }

    /// Takes its part of the view's.
    fn split(self, view: &mut Part, size: Size) -> Part {
        match self {
            Beside::Page | Beside::Threads => view.split_right(size.width * 3 / 8),
            Beside::Tree => view.split_right(size.width * 7 / 15),
            Beside::Difference | Beside::Assembly => view.split_right(size.width / 2),
            Beside::Stretch => {
                let map = match size.height >= HEIGHT_WITH_WHOLE_MAP {
                    true => MAP_LINES,
                    false => MAP_LINES_SMALL,
                };
                view.split_below(view.height.saturating_sub(map))
            }
        }
    }
}

/// From this width on two trees have room for names.
const WIDTH_WITH_TREES: u16 = 150;

/// From this height on there is room for a flame graph below the map of time, and
/// from that on also for a map as fine as it can be.
const HEIGHT_WITH_STRETCH: u16 = 36;
const HEIGHT_WITH_WHOLE_MAP: u16 = 56;

/// Lines of the map with what stands below it: of 50 ms each, or of 100.
const MAP_LINES: u16 = 20 + FOOT_LINES as u16;
const MAP_LINES_SMALL: u16 = 10 + FOOT_LINES as u16;

/// Lines below the view, about the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strip {
    /// How busy each CPU is.
    Cpus,
    /// How many CPUs were busy, second by second.
    Seconds,
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
    /// Where there is no room for a screen: views keep a line.
    pub fn tiny(size: Size) -> Self {
        let view = Part {
            x: 0,
            heads: 0,
            width: size.width,
            height: 1,
        };
        Parts {
            view,
            pane: None,
            strip: None,
        }
    }

    /// Shares out the whole; what does not fit into a terminal of that size is
    /// left out.
    pub fn new(whole: Part, size: Size, beside: Option<Beside>, strip: Option<Strip>) -> Self {
        let mut view = whole;
        let pane = beside.filter(|beside| beside.fits(size));
        let pane = pane.map(|beside| (beside, beside.split(&mut view, size)));
        let has_room = size.width >= SIZE_WITH_STRIP.width && size.height >= SIZE_WITH_STRIP.height;
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

    pub fn flame_in(&self, pane: Option<Beside>) -> &Flame {
        match pane {
            Some(Beside::Stretch) => &self.stretch_flame,
            Some(Beside::Difference) => &self.difference_flame,
            _ => &self.flame,
        }
    }

    pub fn flame_in_mut(&mut self, pane: Option<Beside>) -> &mut Flame {
        match pane {
            Some(Beside::Stretch) => &mut self.stretch_flame,
            Some(Beside::Difference) => &mut self.difference_flame,
            _ => &mut self.flame,
        }
    }

    pub fn code_in(&self, pane: Option<Beside>) -> &Code {
        match pane {
            Some(Beside::Assembly) => &self.other_code,
            _ => &self.code,
        }
    }

    pub fn code_in_mut(&mut self, pane: Option<Beside>) -> &mut Code {
        match pane {
            Some(Beside::Assembly) => &mut self.other_code,
            _ => &mut self.code,
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
