//! Writing what is on the screen to a file.

use super::{App, Effect};
use crate::screen::write::{Content, FileKind, Problem, Reply, WriteDialog, WriteJob};
use crate::screen::{Detail, Mode, Notice};
use crossterm::event::KeyEvent;
use std::path::PathBuf;
use std::sync::Arc;

/// What became of a [`WriteJob`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// To that file, so many bytes.
    Done {
        path: String,
        bytes: u64,
    },
    /// There is one, and it was not to be overwritten.
    Exists(Box<WriteJob>),
    Failed(String),
}

impl App {
    pub(super) fn open_write(&mut self) {
        if self.shown.view.is_none() {
            self.detail = Detail::Notice(Notice::NothingToWrite);
            return;
        }
        let dialog = WriteDialog::new(&self.shown, &self.scope_words());
        self.mode = Mode::Write(dialog);
    }

    /// The innermost part that is looked at.
    pub fn scope_words(&self) -> Arc<str> {
        match (self.knobs.scope.last(), &*self.shown.scope) {
            (Some(narrowed), _) => Arc::clone(&narrowed.words),
            (None, "") => "system".into(),
            (None, _) => Arc::clone(&self.shown.scope),
        }
    }

    /// Nothing if the key means nothing to the dialog.
    pub(super) fn press_in_dialog(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let Mode::Write(dialog) = &mut self.mode else {
            return None;
        };
        match dialog.press(key) {
            Reply::Unknown => return None,
            Reply::Stay => {}
            Reply::Close => self.mode = Mode::Browse,
            Reply::Write { overwrite } => {
                let (kind, name) = (dialog.kind(), dialog.file.text().to_owned());
                return Some(self.write(kind, &name, overwrite).into_iter().collect());
            }
        }
        Some(Vec::new())
    }

    pub(super) fn write(&mut self, kind: FileKind, name: &str, overwrite: bool) -> Option<Effect> {
        let content = match kind {
            FileKind::Text => Content::Screen,
            FileKind::Profile(format) => Content::Profile {
                view: self.shown.view.clone()?,
                query: self.shown.query.clone(),
                format,
            },
        };
        self.mode = Mode::Browse;
        self.detail = Detail::Notice(Notice::Writing);
        Some(Effect::Write(WriteJob {
            path: PathBuf::from(name),
            overwrite,
            content,
        }))
    }

    pub(super) fn hear_written(&mut self, written: Written) {
        let notice = match written {
            Written::Done { path, bytes } => Notice::Written { path, bytes },
            Written::Failed(why) => Notice::NotWritten(why),
            Written::Exists(job) if matches!(self.mode, Mode::Browse) => {
                let mut dialog = WriteDialog::new(&self.shown, &self.scope_words());
                dialog.ask_again(&job);
                dialog.problem = Some(Problem::Exists);
                self.mode = Mode::Write(dialog);
                return;
            }
            Written::Exists(job) => {
                let name = job.path.to_string_lossy();
                Notice::NotWritten(format!("{name} exists already"))
            }
        };
        self.detail = Detail::Notice(notice);
    }
}
