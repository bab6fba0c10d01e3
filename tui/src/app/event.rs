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
    /// A click on a frame above the zoomed one, counted from the root.
    Ancestor(usize),
    /// A new size of the terminal.
    Resize(Size),
    Snapshot(Arc<Snapshot>),
    /// The answer to the question of [`Effect::Ask`](super::Effect::Ask) or
    /// [`Effect::AskBeside`](super::Effect::AskBeside).
    Answer(Answer),
    /// The result of [`Effect::Write`](super::Effect::Write).
    Written(Written),
    /// The result of writing a file that belongs to a series.
    Repeated(Written),
    /// The answer to [`Effect::Measure`](super::Effect::Measure): the free space of a folder.
    Measured(Room),
    /// The answer to [`Effect::Weigh`](super::Effect::Weigh): how many bytes the file will have.
    Weighed(Shape, u64),
    /// This many bytes of the file have been written.
    Progress(u64),
    /// The editor was closed. The error says why it could not be opened.
    Edited(Result<(), String>),
    /// An order that did not come from a key.
    Order(Order),
    /// A panic was caught. The text is a sentence without its full stop.
    Fault(String),
    /// Comes regularly, for everything that changes with time alone.
    Tick,
    /// The terminal took this long to read a frame. `None` once it keeps up again.
    Behind(Option<Duration>),
}

/// A column head, which the rows can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The position of the column among those that can be sorted by.
    pub column: usize,
    /// Whether the column is in the view beside the open one.
    pub in_pane: bool,
}
