//! Where the bytes of a .pft go that is written while samples or calls come.

use crate::output::Output;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::rc::Rc;

/// Where the bytes of the .pft go.
pub enum Sink {
    /// Directly to the file or pipe that the user named. It is no failure if whoever reads
    /// the pipe closes it, be it before the first byte: the flag is set, and what comes
    /// then is dropped.
    Output(Output, Rc<Cell<bool>>),
    /// The head of a file that has no name yet: it gets its name with what comes first, so
    /// that a command that cannot be run, or an early end, costs no earlier recording.
    Waiting(Option<(Output, Rc<Cell<bool>>)>, Vec<u8>),
    /// To a file without a name.
    Kept(File),
}

impl Sink {
    /// Writes to an output. `is_left` is set when whoever reads the pipe has closed it.
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
