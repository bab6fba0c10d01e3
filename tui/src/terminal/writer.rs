//! The *writer* is a thread that writes to the terminal. If the terminal is slow, or stopped by ^S,
//! the write blocks, but keys and signals are still handled. The writer takes one frame at a time.
//! While it is busy no frame is drawn, so that the next frame has the newest state and no frames
//! wait in a queue.

use super::painter::write_all;
use probe::channel::{SyncSender, sync_channel};
use probe::confine::{self, Duty};
use std::time::{Duration, Instant};
use std::{io, thread};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The main thread's handle of the writing thread.
#[derive(Debug)]
pub struct Writer {
    frames: SyncSender<Vec<u8>>,
    written: UnboundedReceiver<io::Result<()>>,
    /// When the present frame was handed over. `None` if no frame is being written.
    busy_since: Option<Instant>,
}

impl Writer {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        let (frames, waiting) = sync_channel::<Vec<u8>>(1);
        let (done, written) = unbounded_channel();
        thread::Builder::new()
            .name("writer".into())
            .spawn(move || {
                confine::thread(Duty::Waiting);
                for frame in waiting.iter() {
                    // If writing panics, the frame is drawn again with the next one.
                    let written = faults::catch("writing to the terminal", || write_all(&frame));
                    if done.send(written.unwrap_or(Ok(()))).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            frames,
            written,
            busy_since: None,
        })
    }

    /// Whether a frame is being written.
    pub fn is_busy(&self) -> bool {
        self.busy_since.is_some()
    }

    /// Hands over a frame. Must only be called if the writer is not busy.
    pub fn write(&mut self, frame: Vec<u8>) -> io::Result<()> {
        self.busy_since = Some(Instant::now());
        self.frames
            .try_send(frame)
            .map_err(|_| io::Error::other("the thread that draws is gone"))
    }

    /// Waits until the present frame is written, and returns how long that took. If no frame is
    /// being written it waits forever, so that it can be used in a `select!`.
    pub async fn written(&mut self) -> io::Result<Duration> {
        let Some(since) = self.busy_since else {
            return std::future::pending().await;
        };
        let result = self.written.recv().await;
        self.busy_since = None;
        result.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()))?;
        Ok(since.elapsed())
    }
}
