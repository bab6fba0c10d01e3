//! Writing files, each on its own thread, because disks may be slow.

/// Counts bytes while they are written.
mod counted;

use crate::app::{App, Event, Written};
use crate::dialogs::write::{Content, FileKind, Room, WriteJob};
use crate::output::{Output, is_there};
use crate::screen;
use crate::widgets::theme::Theme;
use counted::Counted;
use probe::privilege::UserRights;
use profile::Cancel;
use profile::formats::FormatError;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

/// The files that are being written, and the events about them.
#[derive(Debug)]
pub struct Writing {
    threads: Vec<JoinHandle<()>>,
    events: UnboundedSender<Event>,
    told: UnboundedReceiver<Event>,
    /// Cancels the running estimate of a file's size.
    weighing: Cancel,
}

/// Time between two checks whether files are complete, at the end of the run.
const FINISH_LOOK_EVERY: Duration = Duration::from_millis(10);

/// The nice value of threads for which the user does not wait.
const NICE: i32 = 19;

impl Writing {
    /// Creates the state without any files.
    pub fn new() -> Self {
        let (events, told) = unbounded_channel();
        Writing {
            threads: Vec::new(),
            events,
            told,
            weighing: Cancel::new(),
        }
    }

    /// Writes a file on its own thread. An event reports the result to the app.
    pub fn start(&mut self, job: WriteJob, app: &App, theme: &Theme) {
        // The screen is drawn here, because the thread has no access to the app.
        let screen = match job.content {
            Content::Screen => screen::as_text(app, theme),
            Content::Profile { .. } => String::new(),
        };
        let events = self.events.clone();
        let event = if job.is_repeated {
            Event::Repeated
        } else {
            Event::Written
        };
        let work = move || {
            // Sending fails after the screen was left.
            let is_repeated = job.is_repeated;
            let progress = |bytes| {
                if !is_repeated {
                    let _ = events.send(Event::Progress(bytes));
                }
            };
            let _ = events.send(event(write(job, screen, &progress)));
        };
        self.threads.retain(|thread| !thread.is_finished());
        match Builder::new().name("writing".into()).spawn(work) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                let why = format!("cannot start a thread: {error}");
                let _ = self.events.send(event(Written::Failed(why)));
            }
        }
    }

    /// Determines the free space of a folder, and reports it to the app. The end of the run does
    /// not wait for this thread, because a file server may never answer.
    pub fn measure(&self, folder: PathBuf) {
        let events = self.events.clone();
        let work = move || {
            let _ = events.send(Event::Measured(room(folder)));
        };
        // If no thread can be started, the free space stays unknown.
        let _ = Builder::new().name("measuring".into()).spawn(work);
    }

    /// Determines the size of a file by writing it to a sink, and reports it to the app. Cancels
    /// the previous estimate. The end of the run does not wait for this thread either.
    pub fn weigh(&mut self, content: Content) {
        self.weighing.cancel();
        self.weighing = Cancel::new();
        let (cancel, events) = (self.weighing.clone(), self.events.clone());
        let work = move || {
            // The result does not matter: the work is also right at normal priority.
            _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
            let Some(shape) = content.shape() else { return };
            let ending = FileKind::Profile(shape.format).ending();
            let mut nowhere = Counted::new(std::io::sink(), &cancel, &|_| ());
            if write_profile(&content, Path::new(ending), &mut nowhere, &cancel).is_ok() {
                let _ = events.send(Event::Weighed(shape, nowhere.bytes()));
            }
        };
        let _ = Builder::new().name("weighing".into()).spawn(work);
    }

    /// Waits for the next event. The future can be dropped at any time without losing one.
    pub async fn told(&mut self) -> Event {
        match self.told.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// Waits for the files that are being written, for at most this time. None means until all are
    /// done.
    pub async fn finish(&mut self, patience: Option<Duration>) {
        let end = patience.map(|patience| Instant::now() + patience);
        while self.threads.iter().any(|thread| !thread.is_finished())
            && end.is_none_or(|end| Instant::now() < end)
        {
            sleep(FINISH_LOOK_EVERY).await;
        }
    }
}

/// Returns the free space and the owner of files in a folder. This may block on the disk.
pub fn room(folder: PathBuf) -> Room {
    let free_bytes = rustix::fs::statvfs(&folder)
        .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize))
        .map_err(|errno| std::io::Error::from(errno).to_string());
    Room {
        free_bytes,
        owner: UserRights::current().user().map(|user| user.name.clone()),
        path: std::path::absolute(&folder).unwrap_or_else(|_| folder.clone()),
        folder,
    }
}

/// Writes a file on this thread. `screen` is the text of the screen, for jobs that write it. `tell`
/// is called now and then with the number of bytes so far.
pub fn write(job: WriteJob, screen: String, tell: &dyn Fn(u64)) -> Written {
    if !job.overwrite && is_there(&job.path) {
        return Written::Exists(Box::new(job));
    }
    let bytes = match &job.content {
        Content::Screen => Ok(screen.into_bytes()),
        profile => {
            let (mut bytes, cancel) = (Vec::new(), Cancel::new());
            let mut out = Counted::new(&mut bytes, &cancel, tell);
            let written = write_profile(profile, &job.path, &mut out, &cancel);
            written.map(|()| bytes)
        }
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return Written::Failed(error.to_string()),
    };
    match write_file(&job.path, job.overwrite, &bytes) {
        Ok(path) => Written::Done {
            path,
            bytes: bytes.len() as u64,
        },
        // Another program has created a file of this name in the meantime.
        Err(_) if !job.overwrite && is_there(&job.path) => Written::Exists(Box::new(job)),
        Err(why) => Written::Failed(why),
    }
}

/// Writes a profile; does nothing for the screen. The extension of the path says whether it is
/// compressed.
fn write_profile(
    content: &Content,
    path: &Path,
    out: &mut impl Write,
    cancel: &Cancel,
) -> Result<(), FormatError> {
    let Content::Profile {
        view,
        query,
        format,
        manner,
        ..
    } = content
    else {
        return Ok(());
    };
    let Ok(selection) = view.select(query, cancel) else {
        return Err(std::io::Error::other("cancelled").into());
    };
    format.write_as(path, manner.by_thread, &manner.apply(selection), out)
}

/// Writes the bytes, and returns the absolute path, which is safe to print. The error is a
/// sentence.
fn write_file(path: &Path, overwrite: bool, bytes: &[u8]) -> Result<String, String> {
    let written = Output::write_whole(Some(path), overwrite, bytes);
    written.map_err(|failure| failure.message)?;
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = whole.to_string_lossy();
    Ok(symbolize::sanitize(text.as_bytes()).into_owned())
}
