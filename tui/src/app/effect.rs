use crate::desk::Question;
use crate::dialogs::write::{Content, WriteJob};
use engine::probes::ProbeOrder;
use engine::snapshot::Span;
use std::path::PathBuf;
use std::time::Duration;

/// What the app asks its surroundings for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Quit,
    /// Give the terminal back until the shell continues us.
    Suspend,
    /// Draw every cell again.
    Redraw,
    SetWindow(Span),
    /// Take this many samples per second of a busy CPU from now on.
    SetRate(u32),
    /// Fetch debug files from now on, or do not.
    Fetch(bool),
    /// Place a probe, or do something with those there are.
    Probe(ProbeOrder),
    SetTheme(crate::choices::Theme),
    /// Is answered with [`Event::Answer`](super::Event::Answer); a question that came before it need not be.
    Ask(Question),
    /// The same for what stands beside the view: neither gives up the other's.
    AskBeside(Question),
    /// Into the terminal's clipboard.
    Copy(String),
    CaptureMouse(bool),
    /// Is answered with [`Event::Written`](super::Event::Written) or [`Event::Repeated`](super::Event::Repeated).
    Write(WriteJob),
    /// How much room there is in a folder; to be answered with [`Event::Measured`](super::Event::Measured).
    Measure(PathBuf),
    /// How large the file would be; to be answered with [`Event::Weighed`](super::Event::Weighed), unless
    /// another one is asked about first.
    Weigh(Content),
    /// A file in the user's editor, at a line; to be answered with
    /// [`Event::Edited`](super::Event::Edited).
    Edit(PathBuf, u32),
}

/// What the frame before cost, for who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrawCost {
    /// Frames drawn since the screen was opened.
    pub frames: u64,
    pub drawn_in: Duration,
    pub bytes: usize,
    /// The terminal took so long for them.
    pub written_in: Duration,
}
