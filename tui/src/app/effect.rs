use crate::desk::Question;
use crate::dialogs::write::{Content, WriteJob};
use engine::probes::ProbeOrder;
use engine::snapshot::Span;
use std::path::PathBuf;
use std::time::Duration;

/// What the app asks its surroundings to do: the loop of the screen, or the session of the plain
/// dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Quit,
    /// Give the terminal back until the shell continues us.
    Suspend,
    /// Draw every cell again.
    Redraw,
    /// Let the engine report the window of this length.
    SetWindow(Span),
    /// Take this many samples per second of a busy CPU from now on.
    SetRate(u32),
    /// Record waits as well from now on.
    CountWaits,
    /// Start or stop fetching debug files.
    Fetch(bool),
    /// Place a probe, or change or remove existing ones.
    Probe(ProbeOrder),
    /// Draw in the colors of this theme.
    SetTheme(crate::choices::Theme),
    /// Ask a question. It is answered with [`Event::Answer`](super::Event::Answer), unless another
    /// question follows before that.
    Ask(Question),
    /// Ask a question for the view beside the open one. It does not cancel the question of the open
    /// view, and is not cancelled by it.
    AskBeside(Question),
    /// Put this text into the clipboard of the terminal.
    Copy(String),
    /// Let mouse events be sent to us, or not.
    CaptureMouse(bool),
    /// Write a file. It is answered with [`Event::Written`](super::Event::Written) or
    /// [`Event::Repeated`](super::Event::Repeated).
    Write(WriteJob),
    /// Find out how much free space a folder has. It is answered with
    /// [`Event::Measured`](super::Event::Measured).
    Measure(PathBuf),
    /// Find out how large the file would be. It is answered with
    /// [`Event::Weighed`](super::Event::Weighed), unless another file is asked about before that.
    Weigh(Content),
    /// Open a file in the user's editor at a line. It is answered with
    /// [`Event::Edited`](super::Event::Edited).
    Edit(PathBuf, u32),
}

/// What the last frame cost, for users who want to see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrawCost {
    /// Frames drawn since the screen was opened.
    pub frames: u64,
    /// How long drawing the frame took.
    pub drawn_in: Duration,
    /// The size of the frame in bytes.
    pub bytes: usize,
    /// How long the terminal took to read the frame.
    pub written_in: Duration,
}
