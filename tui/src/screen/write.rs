//! The *write dialog*: what is on the screen, to a file. What the chosen format
//! cannot hold is said before anything is written.

use super::knobs::Window;
use super::line_edit::LineEdit;
use crate::app::App;
use crate::calendar;
use crate::snapshot::{Snapshot, Span};
use crossterm::event::{KeyCode, KeyEvent};
use profile::formats::Format;
use profile::{Query, View};
use std::path::PathBuf;

/// What a file is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Profile(Format),
    /// The screen as text.
    Text,
}

/// What can be chosen, in the order of the dialog.
pub const KINDS: [FileKind; 9] = [
    FileKind::Profile(Format::Pft),
    FileKind::Profile(Format::Pprof),
    FileKind::Profile(Format::Folded),
    FileKind::Profile(Format::Speedscope),
    FileKind::Profile(Format::Firefox),
    FileKind::Profile(Format::Trace),
    FileKind::Profile(Format::Html),
    FileKind::Profile(Format::Svg),
    FileKind::Text,
];

impl FileKind {
    /// How its files' names end.
    pub fn ending(self) -> &'static str {
        match self {
            FileKind::Profile(Format::Pft) => ".pft",
            FileKind::Profile(Format::Pprof) => ".pb.gz",
            FileKind::Profile(Format::Folded) => ".folded",
            FileKind::Profile(Format::Speedscope) => ".speedscope.json",
            FileKind::Profile(Format::Firefox) => ".firefox.json.gz",
            FileKind::Profile(Format::Trace) => ".trace.json.gz",
            FileKind::Profile(Format::Html) => ".html",
            FileKind::Profile(Format::Svg) => ".svg",
            FileKind::Text => ".txt",
        }
    }

    /// Who reads it.
    pub fn purpose(self) -> &'static str {
        match self {
            FileKind::Profile(Format::Pft) => "everything; opens here again, all views",
            FileKind::Profile(Format::Pprof) => "go tool pprof, Pyroscope, Parca",
            FileKind::Profile(Format::Folded) => "flamegraph.pl, inferno, flamelens",
            FileKind::Profile(Format::Speedscope) => "speedscope.app",
            FileKind::Profile(Format::Firefox) => "profiler.firefox.com, with times",
            FileKind::Profile(Format::Trace) => "ui.perfetto.dev, with times",
            FileKind::Profile(Format::Html) => "a flame graph as one page, searched",
            FileKind::Profile(Format::Svg) => "a flame graph as a picture",
            FileKind::Text => "this screen as text",
        }
    }

    /// What it does not hold of what is counted.
    pub fn loses(self) -> String {
        match self {
            FileKind::Profile(format) => format.loses().join(", "),
            FileKind::Text => "all that is not on the screen".into(),
        }
    }
}

/// Where the keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Format,
    File,
}

#[derive(Debug)]
pub struct WriteDialog {
    /// In [`KINDS`].
    kind: usize,
    pub field: Field,
    pub file: LineEdit,
    /// What the name begins with unless it is typed.
    stem: String,
    /// The name was typed: it stays when the format changes, but for its end.
    is_typed: bool,
    /// Why the last attempt did not succeed.
    pub problem: Option<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// There is such a file: only another key overwrites it.
    Exists,
    Failed(String),
}

/// A file to be written.
#[derive(Debug, Clone)]
pub struct WriteJob {
    pub path: PathBuf,
    pub overwrite: bool,
    pub content: Content,
}

#[derive(Debug, Clone)]
pub enum Content {
    Profile {
        view: View,
        query: Query,
        format: Format,
    },
    /// What the screen looks like without the dialog.
    Screen,
}

impl PartialEq for WriteJob {
    fn eq(&self, other: &Self) -> bool {
        let format = |job: &Self| match &job.content {
            Content::Profile { format, .. } => Some(*format),
            Content::Screen => None,
        };
        self.path == other.path
            && self.overwrite == other.overwrite
            && format(self) == format(other)
    }
}

impl Eq for WriteJob {}

/// What a key in the dialog leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Stay,
    Close,
    Write {
        overwrite: bool,
    },
    /// It means nothing here.
    Unknown,
}

impl WriteDialog {
    pub fn new(shown: &Snapshot, scope: &str) -> Self {
        let mut dialog = WriteDialog {
            kind: 0,
            field: Field::Format,
            file: LineEdit::default(),
            stem: stem(shown, scope),
            is_typed: false,
            problem: None,
        };
        dialog.choose(0);
        dialog
    }

    /// As it was before a job that was not done.
    pub fn ask_again(&mut self, job: &WriteJob) {
        let is_it = |kind: &&FileKind| match (&job.content, kind) {
            (Content::Profile { format, .. }, FileKind::Profile(other)) => format == other,
            (Content::Screen, FileKind::Text) => true,
            _ => false,
        };
        self.kind = KINDS.iter().position(|kind| is_it(&kind)).unwrap_or(0);
        self.file = LineEdit::new(&job.path.to_string_lossy());
        self.is_typed = true;
        self.field = Field::File;
    }

    pub fn kind(&self) -> FileKind {
        KINDS[self.kind]
    }

    pub fn kind_number(&self) -> usize {
        self.kind
    }

    pub fn press(&mut self, key: KeyEvent) -> Reply {
        let control = key
            .modifiers
            .contains(crossterm::event::KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Reply::Close,
            KeyCode::Char('o') if control => return Reply::Write { overwrite: true },
            KeyCode::Enter if self.file.text().is_empty() => {
                self.problem = Some(Problem::Failed("the file needs a name".into()));
            }
            KeyCode::Enter => return Reply::Write { overwrite: false },
            KeyCode::Tab | KeyCode::BackTab => {
                self.field = match self.field {
                    Field::Format => Field::File,
                    Field::File => Field::Format,
                };
            }
            KeyCode::Down => self.choose(self.kind + 1),
            KeyCode::Up => self.choose(self.kind + KINDS.len() - 1),
            _ if self.field == Field::Format => return self.press_format(key),
            _ => {
                if !self.file.press(key) {
                    return Reply::Unknown;
                }
                self.is_typed = true;
                self.problem = None;
            }
        }
        Reply::Stay
    }

    fn press_format(&mut self, key: KeyEvent) -> Reply {
        match key.code {
            KeyCode::Char('j') | KeyCode::Right => self.choose(self.kind + 1),
            KeyCode::Char('k') | KeyCode::Left => self.choose(self.kind + KINDS.len() - 1),
            KeyCode::Char('q') | KeyCode::Backspace => return Reply::Close,
            _ => return Reply::Unknown,
        }
        Reply::Stay
    }

    /// A name that was typed keeps all but the ending of the format before.
    fn choose(&mut self, kind: usize) {
        let before = self.kind().ending();
        self.kind = kind % KINDS.len();
        self.problem = None;
        let stem = match self.is_typed {
            true => self.file.text().strip_suffix(before),
            false => Some(self.stem.as_str()),
        };
        if let Some(stem) = stem {
            let name = format!("{stem}{}", self.kind().ending());
            self.file = LineEdit::new(&name);
        }
    }
}

/// `./db-01-postgres-20261120T140312Z`
fn stem(shown: &Snapshot, scope: &str) -> String {
    let time = shown.view.as_ref().and_then(|view| {
        let end_ms = shown.report.window.end_ns / 1_000_000;
        end_ms.checked_add_signed(view.info().epoch_unix_ms)
    });
    let mut parts = vec!["proftop".to_owned(), shown.host.name.clone(), scope.into()];
    if let Some(ms) = time.filter(|ms| *ms > 0) {
        parts.push(calendar::compact(ms / 1000));
    }
    // The scope's words are a stranger's, and a shell is to take the name.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain = parts.iter().map(|part| {
        let part: String = part.chars().take(40).collect();
        let words = part.split(|c| !is_plain(c)).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("_")
    });
    let plain: Vec<String> = plain.filter(|part| !part.is_empty()).collect();
    plain.join("-")
}

/// What is written, in words.
pub fn subject(app: &App, kind: FileKind) -> String {
    let shown = &app.shown;
    let samples = crate::view::units::counted;
    match kind {
        FileKind::Profile(Format::Pft) => {
            let kept = shown.view.as_ref().map_or(0, View::samples);
            format!("all that is kept: {}", samples(kept, "sample"))
        }
        FileKind::Profile(_) => {
            let window = match app.knobs.window {
                Window::Last(Span::All) => "all".into(),
                Window::Last(span) => format!("last {}", crate::view::units::span(span)),
                Window::Since { .. } => "since the mark".into(),
                Window::Between { .. } => "the marked time".into(),
            };
            let filter = match app.knobs.filter.is_empty() {
                true => "",
                false => ", filtered",
            };
            format!(
                "this query: {}, {window}{filter}: {}",
                app.scope_words(),
                samples(shown.report.samples, "sample")
            )
        }
        FileKind::Text => "the lines of this screen".into(),
    }
}
