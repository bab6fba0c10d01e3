//! Where samples go: to a file that grows, or to a flight recorder.

use super::control::Request;
use super::recording::Recording;
use super::ring::Ring;
use crate::cli::RecordConfig;
use crate::failure::Failure;
use crate::reader::Reader;
use engine::snapshot::Snapshot;

/// Where samples go.
pub enum Destination {
    /// A file or a pipe, and what tells whether anybody still reads it.
    File(Box<Recording>, Reader),
    Ring(Box<Ring>),
}

/// What came of appending samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    Done,
    /// A pipe was closed, which is no error.
    Closed,
    /// Soon something will be saved, with lines of source text.
    WantsLines,
}

impl Destination {
    /// Opens it. Whatever can be refused is refused here, before a sample is taken.
    pub fn open(record: &RecordConfig) -> Result<Self, Failure> {
        Ok(match &record.ring {
            Some(ring) => Destination::Ring(Box::new(Ring::open(record, ring)?)),
            None => {
                let (recording, reader) = Recording::open(record)?;
                Destination::File(Box::new(recording), reader)
            }
        })
    }

    /// Waits until nobody reads any more. For files it waits forever.
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

    /// Writes what there is, because SIGUSR2 asked for it.
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

    /// Does what somebody asks a flight recorder for. `last` is the last report, if there was
    /// one.
    pub fn handle(&mut self, request: Request, last: Option<&Snapshot>) {
        if let Destination::Ring(ring) = self {
            ring.handle(request, last);
        }
    }

    /// Prints time and size over the last line of the terminal, where there is one.
    pub fn show_progress(&self, snapshot: &Snapshot) {
        match self {
            Destination::File(recording, _) => recording.show_progress(snapshot),
            Destination::Ring(ring) => ring.show_progress(snapshot),
        }
    }

    /// Writes what is left, and prints a summary to standard error.
    pub fn finish(&mut self, last: &Snapshot) -> Result<(), Failure> {
        match self {
            Destination::File(recording, _) => recording.finish(last)?,
            Destination::Ring(ring) => ring.finish(last),
        }
        Ok(())
    }

    /// Returns how many samples were taken so far.
    pub fn samples(&self) -> u64 {
        match self {
            Destination::File(recording, _) => recording.samples(),
            Destination::Ring(ring) => ring.samples(),
        }
    }
}
