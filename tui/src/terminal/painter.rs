//! A *painter* turns a frame into the bytes that change the previous frame into this one. They are
//! written with one call, between the marks of a synchronized update, so that the terminal never
//! shows half a frame. The painter never asks the terminal anything.

use crate::geometry::Size;
use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use rustix::io::Errno;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

/// Turns frames into bytes, and stores the last frame.
#[derive(Debug)]
pub struct Painter {
    terminal: Terminal<CrosstermBackend<Sink>>,
    sink: Sink,
    /// The bytes of the last frame.
    last: Vec<u8>,
}

/// The output of the terminal library. The library flushes several times per frame, so `flush` does
/// nothing.
#[derive(Debug, Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>);

impl Painter {
    /// Creates a painter for a terminal of this size. The first frame clears the screen.
    pub fn new(size: Size) -> io::Result<Self> {
        let sink = Sink::default();
        // With another viewport the library would ask for the size at each frame and, after a
        // change of size, for the position of the cursor, which a slow terminal answers late or
        // never.
        let options = TerminalOptions {
            viewport: Viewport::Fixed(Rect::new(0, 0, size.width, size.height)),
        };
        let terminal = Terminal::with_options(CrosstermBackend::new(sink.clone()), options)?;
        queue!(sink.clone(), Clear(ClearType::All))?;
        Ok(Painter {
            terminal,
            sink,
            last: Vec::new(),
        })
    }

    /// Returns the bytes of a frame. They are empty if the terminal already shows it.
    pub fn frame(&mut self, draw: impl FnOnce(&mut Frame)) -> io::Result<Vec<u8>> {
        let before = std::mem::take(&mut *self.sink.0.borrow_mut());
        queue!(self.sink, BeginSynchronizedUpdate)?;
        self.sink.write_all(&before)?;
        self.terminal.draw(draw)?;
        queue!(self.sink, EndSynchronizedUpdate)?;
        let bytes = std::mem::take(&mut *self.sink.0.borrow_mut());
        // Only cells that differ from the last frame are written. If the bytes are the same as last
        // time, no cell differs, and the cursor has not moved.
        if bytes == self.last {
            return Ok(Vec::new());
        }
        self.last.clone_from(&bytes);
        Ok(bytes)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes all bytes to standard output, without the buffer of `std::io::Stdout`, which would split
/// a frame.
pub fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let stdout = io::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(&stdout, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_writable(&stdout)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether the terminal takes bytes within this time.
pub fn is_writable_within(time: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = io::stdout();
    let timeout = Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().into(),
    };
    // After an error a write would not block, so only a timeout counts.
    poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], Some(&timeout)) != Ok(0)
}

fn wait_writable(stdout: &io::Stdout) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    match poll(&mut [PollFd::new(stdout, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
