//! Decides when *frames* are drawn, and sends them to the terminal: at most thirty a second, and
//! fewer if the terminal takes long for a frame.

use crate::app::DrawCost;
use crate::geometry::Size;
use crate::terminal::{self, Painter, Writer};
use ratatui::Frame;
use std::io;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The minimum time between two frames.
const FRAME_EVERY: Duration = Duration::from_millis(33);
/// A terminal that takes longer than this for a frame counts as slow.
const SLOW_FRAME: Duration = Duration::from_millis(100);
/// The maximum time between two frames on a slow terminal.
const SLOW_FRAME_EVERY_MAX: Duration = Duration::from_secs(5);

/// How long a frame waits for the answers to the questions about a new snapshot, which usually come
/// within some milliseconds: so both are drawn in one frame.
const ANSWERS_WAIT: Duration = Duration::from_millis(40);

/// Draws frames and writes them at a limited rate.
pub struct Frames {
    painter: Painter,
    writer: Writer,
    /// Bytes to write before the next frame.
    before: Vec<u8>,
    /// The cost of the last frame.
    cost: DrawCost,
    drawn_at: Option<Instant>,
    every: Duration,
    /// Whether there was an event since the last frame.
    is_due: bool,
    /// The answers that the next frame waits for.
    awaited: Option<Awaited>,
    /// Whether the next frame waits for no answer.
    is_urgent: bool,
}

/// Answers about a new snapshot that have not come yet.
#[derive(Debug)]
struct Awaited {
    answers: usize,
    /// The frame is drawn then, with the answers or without.
    until: Instant,
}

impl Frames {
    /// Starts the writing thread. `before` is written before the first frame.
    pub fn new(size: Size, before: Vec<u8>) -> io::Result<Self> {
        Ok(Frames {
            painter: Painter::new(size)?,
            writer: Writer::start()?,
            before,
            cost: DrawCost::default(),
            drawn_at: None,
            every: FRAME_EVERY,
            is_due: true,
            awaited: None,
            is_urgent: false,
        })
    }

    /// Returns the cost of the last frame.
    pub fn cost(&self) -> DrawCost {
        self.cost
    }

    /// Forgets the contents of the screen, so that every cell is drawn again in this size.
    pub fn start_again(&mut self, size: Size) -> io::Result<()> {
        self.painter = Painter::new(size)?;
        Ok(())
    }

    /// Adds bytes that are not cells, such as commands for the clipboard or the mouse.
    pub fn add(&mut self, bytes: impl IntoIterator<Item = u8>) {
        self.before.extend(bytes);
    }

    /// Requests a frame after an event.
    pub fn request(&mut self) {
        self.is_due = true;
    }

    /// Lets the next frame wait until this number of answers has come, for [`ANSWERS_WAIT`] at
    /// most. If it waits for answers already, the end of that wait stays as it is.
    pub fn wait_for_answers(&mut self, answers: usize) {
        let waits_until = self.awaited.as_ref().map(|awaited| awaited.until);
        let until = waits_until.unwrap_or_else(|| Instant::now() + ANSWERS_WAIT);
        let waits = answers > 0 && !self.is_urgent;
        self.awaited = waits.then_some(Awaited { answers, until });
    }

    /// Notes that an answer has come. It may be one that was not waited for, such as to an older
    /// question: then the frame comes too soon, and another one follows it.
    pub fn note_answer(&mut self) {
        let left = self.awaited.take().map(|awaited| Awaited {
            answers: awaited.answers - 1,
            ..awaited
        });
        self.awaited = left.filter(|left| left.answers > 0);
    }

    /// Lets the next frame wait for no answer: the user has pressed a key, and wants to see that.
    pub fn wait_for_nothing(&mut self) {
        self.awaited = None;
        self.is_urgent = true;
    }

    /// Returns when the next frame may be drawn. None if there was no event, or a frame is still
    /// being written.
    pub fn due_at(&self) -> Option<Instant> {
        let may_draw = self.is_due && !self.writer.is_busy();
        may_draw.then(|| {
            let next = self
                .drawn_at
                .map_or_else(Instant::now, |at| at + self.every);
            let awaited = self.awaited.as_ref().map(|awaited| awaited.until);
            awaited.map_or(next, |until| next.max(until))
        })
    }

    /// Draws a frame and returns the bytes for the changed cells.
    pub fn paint(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<Vec<u8>> {
        self.painter.frame(draw)
    }

    /// Postpones the next attempt after a failure to draw.
    pub fn put_off(&mut self) {
        self.drawn_at = Some(Instant::now());
    }

    /// Sends a painted frame to the writing thread. `begun` is when drawing began, to measure its
    /// cost.
    pub fn write(&mut self, frame: Vec<u8>, begun: Instant) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.before);
        bytes.extend(frame);
        self.cost = DrawCost {
            frames: self.cost.frames + 1,
            drawn_in: begun.elapsed(),
            bytes: bytes.len(),
            ..self.cost
        };
        if !bytes.is_empty() {
            self.writer.write(bytes)?;
        }
        self.drawn_at = Some(Instant::now());
        self.is_due = false;
        self.awaited = None;
        self.is_urgent = false;
        Ok(())
    }

    /// Waits until the present frame is written, and returns how long that took.
    pub async fn written(&mut self) -> io::Result<Duration> {
        self.writer.written().await
    }

    /// Waits until the present frame is written, but only for a short time.
    pub async fn finish(&mut self) {
        if self.writer.is_busy() {
            let _ = timeout(terminal::RESTORE_WAIT, self.writer.written()).await;
        }
    }

    /// Adapts the rate to the terminal, so that frames are not outdated when they appear on a slow
    /// one. Returns how long the last frame took, if that was long.
    pub fn pace(&mut self, took: Duration) -> Option<Duration> {
        self.cost.written_in = took;
        let is_behind = took >= SLOW_FRAME;
        self.every = if is_behind {
            (took * 2).clamp(FRAME_EVERY, SLOW_FRAME_EVERY_MAX)
        } else {
            FRAME_EVERY
        };
        is_behind.then_some(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Frames {
        let size = Size {
            width: 80,
            height: 24,
        };
        let mut frames = Frames::new(size, Vec::new()).unwrap();
        frames.request();
        frames
    }

    fn is_due_now(frames: &Frames) -> bool {
        frames.due_at().is_some_and(|at| at <= Instant::now())
    }

    #[test]
    fn a_frame_waits_for_the_answers_about_a_snapshot() {
        let mut frames = frames();
        assert!(is_due_now(&frames));
        let asked = Instant::now();
        frames.wait_for_answers(2);
        assert!(frames.due_at().is_some_and(|at| at >= asked + ANSWERS_WAIT));
        frames.note_answer();
        assert!(frames.due_at().is_some_and(|at| at >= asked + ANSWERS_WAIT));
        frames.note_answer();
        assert!(is_due_now(&frames));
        // An answer to a question of before.
        frames.note_answer();
        assert!(is_due_now(&frames));
    }

    #[test]
    fn a_frame_waits_neither_without_questions_nor_after_a_key() {
        let mut frames = frames();
        frames.wait_for_answers(0);
        assert!(is_due_now(&frames));
        frames.wait_for_answers(1);
        frames.wait_for_nothing();
        assert!(is_due_now(&frames));
        // A snapshot that comes after the key, and before the frame.
        frames.wait_for_answers(1);
        assert!(is_due_now(&frames));
    }

    #[test]
    fn a_second_snapshot_does_not_put_a_frame_off() {
        let mut frames = frames();
        frames.wait_for_answers(1);
        let until = frames.due_at();
        frames.wait_for_answers(2);
        assert_eq!(frames.due_at(), until);
    }
}
