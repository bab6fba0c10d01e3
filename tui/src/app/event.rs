use super::{Crumb, Written};
use crate::desk::Answer;
use crate::dialogs::write::{Room, Shape};
use crate::geometry::Size;
use crate::order::Order;
use crossterm::event::{KeyEvent, MouseEvent};
use engine::snapshot::Snapshot;
use std::sync::Arc;
use std::time::Duration;

/// Everything that can happen.
#[derive(Debug, Clone)]
pub enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// A click on the head of a column.
    Head(Head),
    /// A click on a step of the path in the header.
    Crumb(Crumb),
    /// A click on a frame above the one that is zoomed into, counted from the root.
    Ancestor(usize),
    Resize(Size),
    Snapshot(Arc<Snapshot>),
    /// Answers the question of [`Effect::Ask`](super::Effect::Ask).
    Answer(Answer),
    /// The result of a [`Effect::Write`](super::Effect::Write).
    Written(Written),
    /// The result of writing a file that belongs to a series.
    Repeated(Written),
    /// Answers [`Effect::Measure`](super::Effect::Measure): the room in a folder.
    Measured(Room),
    /// Answers [`Effect::Weigh`](super::Effect::Weigh): how many bytes the file will have.
    Weighed(Shape, u64),
    /// This many bytes of the file have been written.
    Progress(u64),
    /// The editor was closed; the error says why it could not be opened.
    Edited(Result<(), String>),
    /// An order that does not come from a key.
    Order(Order),
    /// A panic was caught: a sentence without its full stop.
    Fault(String),
    /// Comes regularly, for what changes with time alone.
    Tick,
    /// The terminal took this long for a frame. None: it keeps up again.
    Behind(Option<Duration>),
}

/// Which column to sort by, of those that can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub column: usize,
    /// Whether the column is in the view beside the open one.
    pub in_pane: bool,
}
