//! What stands *beside* the open view where the screen has room for it: a second
//! view that follows what is selected in the first, and lines at the bottom on
//! the machine. How wide each is follows from the size of the terminal alone.

use crate::geometry::{Size, ViewArea, WIDTH_WIDE};
use crate::views::PaneId;
use crate::views::time::FOOT_LINES;

/// Where a pane stands beside the open view.
trait Beside {
    fn fits(self, size: Size) -> bool;
    fn split(self, view: &mut ViewArea, size: Size) -> ViewArea;
}

impl Beside for PaneId {
    fn fits(self, size: Size) -> bool {
        match self {
            PaneId::PageBeside | PaneId::OwnThreads => size.width >= WIDTH_WIDE,
            // Their names are indented, and need room on both sides.
            PaneId::OtherTree | PaneId::DifferenceFlame | PaneId::Assembly => {
                size.width >= WIDTH_WITH_TREES
            }
            PaneId::StretchFlame => size.width >= WIDTH_WIDE && size.height >= HEIGHT_WITH_STRETCH,
            _ => false,
        }
    }

    /// Cuts the pane's part off the part of the view, and returns it.
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

/// How many processes are shown above the functions. More would take their room, and there
/// is a view of all processes.
const BUSIEST_MAX: u16 = 4;

/// The lines of a strip: a rule above it, and itself.
const STRIP_LINES: u16 = 2;

/// How the screen between the tabs and the detail line is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    pub view: ViewArea,
    /// The busiest processes, above the view.
    pub busiest: Option<ViewArea>,
    pub pane: Option<(PaneId, ViewArea)>,
    pub strip: Option<(Strip, ViewArea)>,
}

impl Parts {
    /// Returns the parts in a terminal that is too small: the view has one line, so that
    /// its state stays valid.
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

    /// Divides the whole among the view and what is around it. What does not fit into a
    /// terminal of this size is left out.
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
