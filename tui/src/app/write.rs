//! Writes what is on the screen to a file, once or repeatedly.

use super::{App, Effect};
use crate::app::mode::{Detail, Mode};
use crate::dialogs::write::{
    Content, FileKind, Manner, Options, Problem, Repeat, Reply, Subject, WriteDialog, WriteJob,
};
use crate::notice::Notice;
use crossterm::event::KeyEvent;
use engine::snapshot::{Snapshot, TargetState};
use profile::Query;
use std::path::PathBuf;

/// The result of a [`WriteJob`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// This many bytes were written to this file.
    Done {
        path: String,
        bytes: u64,
    },
    /// A file of this name exists, and must not be overwritten.
    Exists(Box<WriteJob>),
    Failed(String),
}

/// What is stored about written files.
#[derive(Debug, Default)]
pub struct Files {
    /// The series of files that is being written, if any.
    repeat: Option<Repeat>,
    /// The options of the last file.
    last_options: Options,
}

impl Files {
    /// Whether a series of files is being written.
    pub fn are_repeated(&self) -> bool {
        self.repeat.is_some()
    }
}

impl App {
    /// Opens the dialog for writing a file, or shows a notice that there is nothing to write.
    pub(super) fn open_write(&mut self) {
        if self.shown.view.is_none() {
            self.lines.detail = Detail::Notice(Notice::NothingToWrite);
            return;
        }
        let manner = self.files.last_options.manner;
        let dialog = WriteDialog::new(&self.shown, &self.context().scope_words(), manner);
        self.mode = Mode::Write(dialog);
    }

    /// Handles a key in the dialog for writing. Returns `None` if the dialog does not know the key.
    pub(super) fn press_in_dialog(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let Mode::Write(dialog) = &mut self.mode else {
            return None;
        };
        match dialog.press(key) {
            Reply::Unknown => return None,
            Reply::Stay => {}
            Reply::Close => self.mode = Mode::Browse,
            Reply::Stop => self.stop_writing(),
            Reply::Write { overwrite } => {
                let (kind, name) = (dialog.kind(), dialog.file.text().to_owned());
                let (options, goes_on) = (dialog.options, dialog.goes_on);
                let is_whole = dialog.subject() == Subject::All;
                self.files.last_options = options;
                let mut job = self.write(kind, &name, overwrite, options.manner, is_whole);
                let every = options.every().filter(|_| goes_on);
                if let (Some(every), Some(job)) = (every, &mut job) {
                    let manner = options.manner;
                    let repeat = Repeat::new(kind, manner, is_whole, &name, every, self.now);
                    self.files.repeat = Some(repeat);
                    job.is_repeated = true;
                }
                return Some(job.map(Effect::Write).into_iter().collect());
            }
        }
        Some(Vec::new())
    }

    /// Asks for the facts that the dialog shows about a file: its size, and the free space of its
    /// folder.
    pub(super) fn ask_about_file(&mut self) -> Vec<Effect> {
        let Mode::Write(dialog) = &mut self.mode else {
            return Vec::new();
        };
        let room = dialog.ask_for_room().map(Effect::Measure);
        let size = dialog.ask_for_size().and_then(|shape| {
            let query = self.shown.asked.query.clone();
            let kind = FileKind::Profile(shape.format);
            content(kind, shape.manner, shape.is_whole, &self.shown, query)
        });
        room.into_iter().chain(size.map(Effect::Weigh)).collect()
    }

    /// Returns the job of writing a file, closes the dialog, and shows that the file is being
    /// written. Returns `None` if no samples have come.
    pub(super) fn write(
        &mut self,
        kind: FileKind,
        name: &str,
        overwrite: bool,
        manner: Manner,
        is_whole: bool,
    ) -> Option<WriteJob> {
        let query = self.shown.asked.query.clone();
        let content = content(kind, manner, is_whole, &self.shown, query)?;
        let about = match &self.mode {
            Mode::Write(dialog) => dialog.size(),
            _ => None,
        };
        self.mode = Mode::Browse;
        self.lines.detail = Detail::Notice(Notice::Writing { bytes: 0, about });
        Some(WriteJob {
            path: PathBuf::from(name),
            overwrite,
            content,
            is_repeated: false,
        })
    }

    /// Writes the next file of a series if it is due. It gets the newest samples, even if the
    /// screen is frozen. If the target has ended it is the last one.
    pub(super) fn write_if_due(&mut self) -> Vec<Effect> {
        let now = self.now;
        if !self
            .files
            .repeat
            .as_mut()
            .is_some_and(|repeat| repeat.is_due(now))
        {
            return Vec::new();
        }
        self.write_next().into_iter().collect()
    }

    /// Returns the effect that writes the next file of the series. Returns `None` if there is no
    /// series, or nothing to write yet.
    fn write_next(&mut self) -> Option<Effect> {
        let repeat = self.files.repeat.as_mut()?;
        let waiting = self
            .feed
            .freezing
            .frozen
            .as_ref()
            .and_then(|frozen| frozen.waiting.as_ref());
        let newest = waiting.unwrap_or(&self.feed.base);
        let query = self.knobs.query(newest.report.window.end_ns);
        repeat.is_last = !is_live(newest);
        Some(Effect::Write(WriteJob {
            path: repeat.path(),
            overwrite: false,
            content: content(repeat.kind, repeat.manner, repeat.is_whole, newest, query)?,
            is_repeated: true,
        }))
    }

    /// Ends a series of files. A file that is being written is finished.
    fn stop_writing(&mut self) {
        if let Some(repeat) = self.files.repeat.take() {
            self.mode = Mode::Browse;
            self.lines.detail = Detail::Notice(Notice::NoMoreFiles(repeat.count));
        }
    }

    /// Handles the result of writing a single file.
    pub(super) fn handle_written(&mut self, written: Written) {
        let notice = match written {
            Written::Done { path, bytes } => Notice::Written { path, bytes },
            Written::Failed(why) => Notice::NotWritten { why, stopped: None },
            Written::Exists(job) if matches!(self.mode, Mode::Browse) => {
                let (scope, options) = (self.context().scope_words(), self.files.last_options);
                let mut dialog = WriteDialog::new(&self.shown, &scope, options.manner);
                dialog.ask_again(&job, options);
                dialog.problem = Some(Problem::Exists);
                self.mode = Mode::Write(dialog);
                return;
            }
            Written::Exists(job) => Notice::exists(&job),
        };
        self.lines.detail = Detail::Notice(notice);
    }

    /// Handles the result of writing a file of a series. If a file of this name exists, returns the
    /// effect that writes it under the next name.
    pub(super) fn handle_repeated(&mut self, written: Written) -> Option<Effect> {
        let repeat = self.files.repeat.as_mut()?;
        let is_first = repeat.count == 0;
        let notice = match written {
            Written::Exists(job) if is_first => {
                // If the first name exists, the user is asked, as for a single file.
                self.files.repeat = None;
                self.handle_written(Written::Exists(job));
                return None;
            }
            Written::Exists(_) if repeat.pass_over() => return self.write_next(),
            Written::Exists(job) => self.stop(Notice::exists(&job)),
            Written::Failed(why) => self.stop(Notice::NotWritten { why, stopped: None }),
            Written::Done { path, bytes } => {
                repeat.wrote();
                match (repeat.is_last, is_first) {
                    (true, _) => Notice::NoMoreFiles(self.files.repeat.take()?.count),
                    (false, true) => Notice::Written { path, bytes },
                    // Later files do not replace the detail line: the header shows their number.
                    (false, false) => return None,
                }
            }
        };
        self.lines.detail = Detail::Notice(notice);
        None
    }

    /// Ends the series for the reason in the notice, and adds the number of files written to it.
    fn stop(&mut self, notice: Notice) -> Notice {
        let count = self.files.repeat.take().map(|repeat| repeat.count);
        match notice {
            Notice::NotWritten { why, .. } => Notice::NotWritten {
                why,
                stopped: count.filter(|count| *count > 0),
            },
            other => other,
        }
    }

    /// Returns the series of files that is being written.
    pub fn repeat(&self) -> Option<&Repeat> {
        self.files.repeat.as_ref()
    }
}

impl Notice {
    /// Returns the notice that a file exists and was not overwritten.
    fn exists(job: &WriteJob) -> Notice {
        Notice::NotWritten {
            why: format!("{} exists already", job.path.to_string_lossy()),
            stopped: None,
        }
    }
}

/// Whether more samples may come.
fn is_live(snapshot: &Snapshot) -> bool {
    let is_live = matches!(
        snapshot.run.target,
        TargetState::Starting | TargetState::Running
    );
    is_live && snapshot.source.recording.is_none()
}

/// Returns the content of the file, or `None` if no samples have come.
fn content(
    kind: FileKind,
    manner: Manner,
    is_whole: bool,
    snapshot: &Snapshot,
    query: Query,
) -> Option<Content> {
    Some(match kind {
        FileKind::Text => Content::Screen,
        FileKind::Profile(format) => Content::Profile {
            view: snapshot.view.clone()?,
            query: Box::new(if is_whole { Query::default() } else { query }),
            format,
            manner,
            is_whole,
        },
    })
}
