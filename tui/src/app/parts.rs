//! Divides the screen among the open view and what is shown *beside* it if there is room: a second
//! view that follows the selection of the first, and lines about the machine at the bottom. All
//! sizes depend only on the size of the terminal.

use crate::geometry::{Size, ViewArea, WIDTH_WIDE};
use crate::views::PaneId;
use crate::views::time::FOOT_LINES;

/// The place of a pane beside the open view.
trait Beside {
    /// Whether a terminal of this size has room for the pane.
    fn fits(self, size: Size) -> bool;
    /// Cuts the pane's part off the part of the view, and returns it.
    fn split(self, view: &mut ViewArea, size: Size) -> ViewArea;
}

impl Beside for PaneId {
    fn fits(self, size: Size) -> bool {
        match self {
            PaneId::PageBeside | PaneId::OwnThreads => size.width >= WIDTH_WIDE,
            // The names in these panes are indented, and need room on both sides.
            PaneId::OtherTree | PaneId::DifferenceFlame | PaneId::Assembly => {
                size.width >= WIDTH_WITH_TREES
            }
            PaneId::StretchFlame => size.width >= WIDTH_WIDE && size.height >= HEIGHT_WITH_STRETCH,
            _ => false,
        }
    }

    fn split(self, view: &mut ViewArea, size: Size) -> ViewArea {
        match self {
            PaneId::PageBeside | PaneId::OwnThreads => view.split_right(size.width * 3 / 8),
            PaneId::OtherTree => view.split_right(size.width * 7 / 15),
            PaneId::StretchFlame => {
                let map = if size.height >= HEIGHT_WITH_WHOLE_MAP {
                    MAP_LINES
                } else {
                    MAP_LINES_SMALL
                };
                view.split_below(view.height.saturating_sub(map))
            }
            _ => view.split_right(size.width / 2),
        }
    }
}

/// From this width on two trees beside each other have room for names.
const WIDTH_WITH_TREES: u16 = 150;

/// From this height on there is room for a flame graph below the map of time.
const HEIGHT_WITH_STRETCH: u16 = 36;
/// From this height on there is also room for the finest map.
const HEIGHT_WITH_WHOLE_MAP: u16 = 56;

/// Number of lines of the finest map, with rows of 50 ms, and of the lines below it.
const MAP_LINES: u16 = 20 + FOOT_LINES as u16;
/// The same with rows of 100 ms.
const MAP_LINES_SMALL: u16 = 10 + FOOT_LINES as u16;

/// Lines below the view, about the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strip {
    /// How busy each CPU is.
    Cpus,
    /// How many CPUs were busy, second by second.
    Seconds,
}

/// From this size on a strip is shown.
const SIZE_WITH_STRIP: Size = Size {
    width: 160,
    height: 40,
};

/// Maximum number of processes above the functions. More would take their room, and there is a view
/// of all processes.
const BUSIEST_MAX: u16 = 4;

/// Number of lines of a strip: a rule above it, and the strip itself.
const STRIP_LINES: u16 = 2;

/// How the screen between the tabs and the detail line is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The open view.
    pub view: ViewArea,
    /// The busiest processes, above the view.
    pub busiest: Option<ViewArea>,
    /// The second view, beside the open one.
    pub pane: Option<(PaneId, ViewArea)>,
    /// The lines about the machine.
    pub strip: Option<(Strip, ViewArea)>,
}

impl Parts {
    /// Returns the parts for a terminal that is too small: the view has one line, so that its state
    /// stays valid.
    pub fn tiny(size: Size) -> Self {
        let view = ViewArea {
            x: 0,
            heads: 0,
            width: size.width,
            height: 1,
        };
        Parts {
            view,
            busiest: None,
            pane: None,
            strip: None,
        }
    }

    /// Divides the body among the view and what is around it. Parts that do not fit into a terminal
    /// of this size are left out.
    pub fn new(
        whole: ViewArea,
        size: Size,
        beside: Option<PaneId>,
        has_busiest: bool,
        strip: Option<Strip>,
    ) -> Self {
        let mut view = whole;
        let processes = match view.height {
            0..7 => 0,
            7..12 => 2,
            _ => BUSIEST_MAX,
        };
        let busiest = (has_busiest && processes > 0).then(|| view.split_above(processes + 1));
        let pane = beside
            .filter(|beside| beside.fits(size))
            .map(|beside| (beside, beside.split(&mut view, size)));
        let has_room = size.width >= SIZE_WITH_STRIP.width && size.height >= SIZE_WITH_STRIP.height;
        let strip = strip.filter(|_| has_room);
        let strip = strip.map(|strip| (strip, view.split_below(STRIP_LINES)));
        Parts {
            view,
            busiest,
            pane,
            strip,
        }
    }
}
