//! The snapshots that the app receives, and its questions about them.

use super::freezing::Freezing;
use super::reports::Asking;
use engine::snapshot::{Snapshot, Span};
use std::sync::Arc;

/// What the shown snapshot is made from.
#[derive(Debug)]
pub struct Feed {
    /// The newest snapshot of the engine, or the frozen one.
    pub(super) base: Arc<Snapshot>,
    pub freezing: Freezing,
    pub(super) asking: Asking,
}

impl Feed {
    /// Starts without snapshots. `window` is the first window of the engine.
    pub fn new(window: Span) -> Self {
        Feed {
            base: Arc::default(),
            freezing: Freezing::default(),
            asking: Asking::new(window),
        }
    }
}
