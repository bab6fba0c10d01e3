use crate::desk::Question;
use crate::dialogs::write::{Content, WriteJob};
use engine::probes::ProbeOrder;
use engine::snapshot::Span;
use std::path::PathBuf;
use std::time::Duration;

/// What the app wants to be done outside of it: by the loop of the screen, or the session
/// of the plain dialog.
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
    /// Count waits as well from now on.
    CountWaits,
    /// Fetch debug files from now on, or do not.
    Fetch(bool),
    /// Place a probe, or do something with those there are.
    Probe(ProbeOrder),
    SetTheme(crate::choices::Theme),
    /// Is answered with [`Event::Answer`](super::Event::Answer); a question that came before it need not be.
    Ask(Question),
    /// Asks a question for the view beside the open one. It does not cancel the open view's
    /// question, nor the other way round.
    AskBeside(Question),
    /// Put this text into the clipboard of the terminal.
    Copy(String),
    CaptureMouse(bool),
    /// Is answered with [`Event::Written`](super::Event::Written) or [`Event::Repeated`](super::Event::Repeated).
    Write(WriteJob),
    /// Find out how much room there is in a folder; to be answered with
    /// [`Event::Measured`](super::Event::Measured).
    Measure(PathBuf),
    /// Find out how large the file would be; to be answered with
    /// [`Event::Weighed`](super::Event::Weighed), unless another file is asked about first.
    Weigh(Content),
    /// Open a file in the user's editor, at a line; to be answered with
    /// [`Event::Edited`](super::Event::Edited).
    Edit(PathBuf, u32),
}

/// What the last frame cost, for users who want to see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrawCost {
    /// Frames drawn since the screen was opened.
    pub frames: u64,
    pub drawn_in: Duration,
    pub bytes: usize,
    /// How long the terminal took to read them.
    pub written_in: Duration,
}
