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
    /// A click on a step of the way to what is looked at.
    Crumb(Crumb),
    /// A click on a frame above the one that is zoomed into, counted from the root.
    Ancestor(usize),
    Resize(Size),
    Snapshot(Arc<Snapshot>),
    /// Answers the question of [`Effect::Ask`](super::Effect::Ask).
    Answer(Answer),
    /// What became of a [`Effect::Write`](super::Effect::Write).
    Written(Written),
    /// The same, of a file that others are to follow.
    Repeated(Written),
    /// Answers [`Effect::Measure`](super::Effect::Measure): the room in a folder.
    Measured(Room),
    /// Answers [`Effect::Weigh`](super::Effect::Weigh): how many bytes the file will have.
    Weighed(Shape, u64),
    /// This many bytes of the file have been written.
    Progress(u64),
    /// An editor was closed, or why none was opened.
    Edited(Result<(), String>),
    /// What was asked for without a key.
    Order(Order),
    /// A mistake of our own was caught: a sentence without its end.
    Fault(String),
    /// Time went by.
    Tick,
    /// The terminal took so long for a frame; nothing: it keeps up again.
    Behind(Option<Duration>),
}

/// Which column to sort by, of those that can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub column: usize,
    /// The place is in what stands beside the view.
    pub in_pane: bool,
}
