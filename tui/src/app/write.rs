//! Writing what is on the screen to a file, once or again and again.

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

/// What became of a [`WriteJob`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// This many bytes were written to this file.
    Done {
        path: String,
        bytes: u64,
    },
    /// There is one, and it was not to be overwritten.
    Exists(Box<WriteJob>),
    Failed(String),
}

/// What is remembered of files that were written.
#[derive(Debug, Default)]
pub struct Files {
    /// Files that follow one another.
    repeat: Option<Repeat>,
    /// What was chosen for the last file.
    last_options: Options,
}

impl App {
    pub(super) fn open_write(&mut self) {
        if self.shown.view.is_none() {
            self.detail = Detail::Notice(Notice::NothingToWrite);
            return;
        }
        let manner = self.files.last_options.manner;
        let dialog = WriteDialog::new(&self.shown, &self.context().scope_words(), manner);
        self.mode = Mode::Write(dialog);
    }

    /// `None` if the key means nothing to the dialog.
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

    /// What the dialog has to know of the file, and of where it would be.
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
        self.detail = Detail::Notice(Notice::Writing { bytes: 0, about });
        Some(WriteJob {
            path: PathBuf::from(name),
            overwrite,
            content,
            is_repeated: false,
        })
    }

    /// The next of the files that follow one another. Frozen or not, it has what came
    /// in meanwhile; after the target's end it is the last.
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

    fn write_next(&mut self) -> Option<Effect> {
        let repeat = self.files.repeat.as_mut()?;
        let waiting = self
            .freezing
            .frozen
            .as_ref()
            .and_then(|frozen| frozen.waiting.as_ref());
        let newest = waiting.unwrap_or(&self.base);
        let query = self.knobs.query(newest.report.window.end_ns);
        repeat.is_last = !is_live(newest);
        Some(Effect::Write(WriteJob {
            path: repeat.path(),
            overwrite: false,
            content: content(repeat.kind, repeat.manner, repeat.is_whole, newest, query)?,
            is_repeated: true,
        }))
    }

    /// What was begun is finished.
    fn stop_writing(&mut self) {
        if let Some(repeat) = self.files.repeat.take() {
            self.mode = Mode::Browse;
            self.detail = Detail::Notice(Notice::NoMoreFiles(repeat.count));
        }
    }

    /// What became of a file that was asked for by itself, or of the first of several.
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
        self.detail = Detail::Notice(notice);
    }

    /// The same of one of the files that follow one another.
    pub(super) fn handle_repeated(&mut self, written: Written) -> Option<Effect> {
        let repeat = self.files.repeat.as_mut()?;
        let is_first = repeat.count == 0;
        let notice = match written {
            Written::Exists(job) if is_first => {
                // It is asked about like any other.
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
                    // The line is whose it is; the header has the count.
                    (false, false) => return None,
                }
            }
        };
        self.detail = Detail::Notice(notice);
        None
    }

    /// No more files, for what the notice says.
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

    /// Files that follow one another, while they do.
    pub fn repeat(&self) -> Option<&Repeat> {
        self.files.repeat.as_ref()
    }
}

impl Notice {
    fn exists(job: &WriteJob) -> Notice {
        Notice::NotWritten {
            why: format!("{} exists already", job.path.to_string_lossy()),
            stopped: None,
        }
    }
}

fn is_live(snapshot: &Snapshot) -> bool {
    let is_live = matches!(
        snapshot.run.target,
        TargetState::Starting | TargetState::Running
    );
    is_live && snapshot.source.recording.is_none()
}

/// `None` where no samples have come.
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
            query: if is_whole { Query::default() } else { query },
            format,
            manner,
            is_whole,
        },
    })
}
