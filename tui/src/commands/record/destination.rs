//! The destination of samples: a file that grows, or a flight recorder.

use super::control::Request;
use super::recording::Recording;
use super::ring::Ring;
use crate::cli::RecordConfig;
use crate::failure::Failure;
use crate::reader::Reader;
use engine::snapshot::Snapshot;

/// The destination of samples.
pub enum Destination {
    /// A file or a pipe, and the watch for its reader.
    File(Box<Recording>, Reader),
    Ring(Box<Ring>),
}

/// The result of appending samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    Done,
    /// The pipe was closed, which is no error.
    Closed,
    /// Something will be saved soon, with source lines.
    WantsLines,
}

impl Destination {
    /// Opens the destination. All that can be refused is refused here, before the first sample.
    pub fn open(record: &RecordConfig) -> Result<Self, Failure> {
        Ok(match &record.ring {
            Some(ring) => Destination::Ring(Box::new(Ring::open(record, ring)?)),
            None => {
                let (recording, reader) = Recording::open(record)?;
                Destination::File(Box::new(recording), reader)
            }
        })
    }

    /// Waits until the reader of a pipe is gone. For files, waits forever.
    pub async fn reader_gone(&self) {
        match self {
            Destination::File(_, reader) => reader.gone().await,
            Destination::Ring(_) => std::future::pending().await,
        }
    }

    /// Appends the samples up to the end of a report.
    pub fn append(&mut self, snapshot: &Snapshot) -> Result<Appended, Failure> {
        let end_ns = snapshot.report.window.end_ns;
        Ok(match self {
            Destination::File(recording, _) => {
                if recording.append(snapshot, Some(end_ns))? {
                    Appended::Done
                } else {
                    Appended::Closed
                }
            }
            Destination::Ring(ring) => {
                if ring.append(snapshot, end_ns) {
                    Appended::WantsLines
                } else {
                    Appended::Done
                }
            }
        })
    }

    /// Returns the rate to sample at from now on. None if it stays as it is.
    pub fn take_rate(&mut self) -> Option<u32> {
        match self {
            Destination::File(..) => None,
            Destination::Ring(ring) => ring.take_rate(),
        }
    }

    /// Writes the samples so far, on SIGUSR2.
    pub fn write_now(&mut self, last: Option<&Snapshot>) -> Result<(), Failure> {
        match (self, last) {
            (Destination::File(recording, _), Some(last)) => {
                recording.append(last, None)?;
                recording.say_written();
            }
            (Destination::File(..), None) => {}
            (Destination::Ring(ring), _) => ring.save_soon(),
        }
        Ok(())
    }

    /// Handles a request to a flight recorder. `last` is the last report, if there is one.
    pub fn handle(&mut self, request: Request, last: Option<&Snapshot>) {
        if let Destination::Ring(ring) = self {
            ring.handle(request, last);
        }
    }

    /// Prints time and size over the last line of the terminal, if there is one.
    pub fn show_progress(&self, snapshot: &Snapshot) {
        match self {
            Destination::File(recording, _) => recording.show_progress(snapshot),
            Destination::Ring(ring) => ring.show_progress(snapshot),
        }
    }

    /// Writes the rest, and prints a summary to standard error.
    pub fn finish(&mut self, last: &Snapshot) -> Result<(), Failure> {
        match self {
            Destination::File(recording, _) => recording.finish(last)?,
            Destination::Ring(ring) => ring.finish(last)?,
        }
        Ok(())
    }

    /// Returns the number of samples so far.
    pub fn samples(&self) -> u64 {
        match self {
            Destination::File(recording, _) => recording.samples(),
            Destination::Ring(ring) => ring.samples(),
        }
    }
}
