//! The destination of a .pft that is written while samples or calls arrive.

use crate::output::Output;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::rc::Rc;

/// The destination of the .pft.
pub enum Sink {
    /// The file or pipe that the user named. If the reader of the pipe closes it, even before the
    /// first byte, that is no failure: the flag is set, and all further bytes are dropped.
    Output(Output, Rc<Cell<bool>>),
    /// An output that has no name yet, and the head of the file. It gets its name with the first
    /// bytes after the head: so a command that cannot be run, or an early end, does not replace an
    /// earlier recording.
    Waiting(Option<(Output, Rc<Cell<bool>>)>, Vec<u8>),
    /// A file without a name.
    Kept(File),
}

impl Sink {
    /// Writes to an output. `is_left` is set when the reader of the pipe has closed it.
    pub fn new(output: Output, is_left: Rc<Cell<bool>>) -> Self {
        if output.is_unnamed() {
            Sink::Waiting(Some((output, is_left)), Vec::new())
        } else {
            Sink::Output(output, is_left)
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Sink::Waiting(output, head) = self {
            if head.is_empty() {
                head.extend(bytes);
                return Ok(bytes.len());
            }
            let head = std::mem::take(head);
            let (output, is_left) = output.take().expect("taken only here");
            *self = Sink::Output(output, is_left);
            self.write_all(&[&head, bytes].concat())?;
            return Ok(bytes.len());
        }
        let (output, is_left) = match self {
            Sink::Output(output, is_left) => (output, is_left),
            Sink::Kept(file) => return file.write(bytes),
            Sink::Waiting(..) => return Err(io::Error::other("its head was not written")),
        };
        let is_read = output
            .write(bytes)
            .map_err(|failure| io::Error::other(failure.message))?;
        is_left.set(is_left.get() || !is_read);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
