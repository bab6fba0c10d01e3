//! The *write dialog* writes what is on the screen to a file. It shows what the chosen format
//! cannot contain before anything is written.

/// The formats, and what they contain.
mod kind;
/// The other options.
mod options;
/// A series of files.
mod repeat;
/// The size of the file that would be written.
mod size;

pub use kind::{FileKind, KINDS};
pub use options::{Manner, Options, Switch};
pub use repeat::Repeat;
pub use size::Shape;

use super::line_edit::LineEdit;
use crate::calendar;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use engine::snapshot::{Run, Snapshot, TargetState};
use profile::formats::Format;
use profile::{Query, View};
use size::Size;
use std::path::{Path, PathBuf};

/// A line of the dialog. One of them has the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// What is written.
    Subject,
    Format,
    File,
    Symbols,
    BuildIds,
    /// Whether threads are kept apart.
    Threads,
    /// Whether names are hidden.
    Names,
    /// Whether more files follow.
    Repeat,
}

/// The fields in the order in which Tab goes through them.
const FIELDS: [Field; 8] = [
    Field::Subject,
    Field::Format,
    Field::File,
    Field::Symbols,
    Field::BuildIds,
    Field::Threads,
    Field::Names,
    Field::Repeat,
];

/// What a file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The samples of the present scope, window and filter.
    Shown,
    /// All samples that are kept.
    All,
    /// The lines on the screen.
    Screen,
}

/// The subjects in the order of the dialog.
pub const SUBJECTS: [Subject; 3] = [Subject::Shown, Subject::All, Subject::Screen];

/// The state of the write dialog.
#[derive(Debug)]
pub struct WriteDialog {
    /// The chosen kind, as an index of [`KINDS`].
    kind: usize,
    pub field: Field,
    /// Whether all samples that are kept are written, in a format that could also contain a part of
    /// them. A .pft always contains all.
    is_whole: bool,
    pub file: LineEdit,
    /// The proposed names without extension, used until the user types a name.
    stem: Stem,
    /// Whether the user has typed a name. Then only its extension changes with the format.
    is_typed: bool,
    pub options: Options,
    /// Whether more samples will come, so that a series of files makes sense.
    pub goes_on: bool,
    /// Why the last attempt did not succeed.
    pub problem: Option<Problem>,
    /// The folder of the file. `None` until the answer about it has come.
    pub room: Option<Room>,
    /// The folder of the last question; `room` is the answer.
    asked: Option<PathBuf>,
    /// The size of the file, if it is known.
    size: Size,
}

/// Why a file was not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A file of this name exists. Another key than Enter overwrites it.
    Exists,
    Failed(String),
}

/// What the dialog shows about a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// The folder as it was typed.
    pub folder: PathBuf,
    /// Its absolute path, because the typed path may be relative to the working directory.
    pub path: PathBuf,
    /// The free space for this user in bytes, or why it is not known.
    pub free_bytes: Result<u64, String>,
    /// The owner of the file, if that is not the user who runs proftop.
    pub owner: Option<String>,
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteJob {
    pub path: PathBuf,
    pub overwrite: bool,
    pub content: Content,
    /// Whether the file belongs to a series.
    pub is_repeated: bool,
}

/// What a file will contain.
#[derive(Debug, Clone)]
pub enum Content {
    Profile {
        view: View,
        query: Box<Query>,
        format: Format,
        manner: Manner,
        /// Whether the query asks for all samples that are kept.
        is_whole: bool,
    },
    /// The screen without the dialog.
    Screen,
}

impl Content {
    /// Returns what determines the size of the file, or `None` for the screen.
    pub fn shape(&self) -> Option<Shape> {
        match *self {
            Content::Profile {
                format,
                manner,
                is_whole,
                ..
            } => Some(Shape {
                format,
                manner,
                is_whole,
            }),
            Content::Screen => None,
        }
    }
}

/// Compares only what the dialog knows, and not the samples.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.shape() == other.shape()
    }
}

impl Eq for Content {}

/// The result of a key in the dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Stay,
    Close,
    Write {
        overwrite: bool,
    },
    /// End the series of files.
    Stop,
    /// The dialog does not know the key.
    Unknown,
}

impl WriteDialog {
    /// Opens the dialog. `scope` is the scope in words, for the name of the file. `manner` is how
    /// the last file was written.
    pub fn new(shown: &Snapshot, scope: &str, manner: Manner) -> Self {
        let is_live = matches!(
            shown.run.target,
            TargetState::Starting | TargetState::Running
        );
        let mut dialog = WriteDialog {
            kind: 0,
            field: Field::Format,
            is_whole: false,
            file: LineEdit::default(),
            stem: Stem::new(shown, scope),
            is_typed: false,
            options: Options {
                manner,
                ..Options::default()
            },
            goes_on: is_live && shown.source.recording.is_none(),
            problem: None,
            room: None,
            asked: None,
            size: Size::default(),
        };
        dialog.choose(0);
        dialog
    }

    /// Fills the dialog with a job that could not be done.
    pub fn ask_again(&mut self, job: &WriteJob, options: Options) {
        let is_it = |kind: &&FileKind| match (&job.content, kind) {
            (Content::Profile { format, .. }, FileKind::Profile(other)) => format == other,
            (Content::Screen, FileKind::Text) => true,
            _ => false,
        };
        self.kind = KINDS.iter().position(|kind| is_it(&kind)).unwrap_or(0);
        let shape = job.content.shape();
        // A .pft always contains all samples, so that it does not tell what the user chose for
        // other formats.
        self.is_whole = shape.is_some_and(|shape| shape.is_whole && shape.format != Format::Pft);
        self.file = LineEdit::new(&job.path.to_string_lossy());
        self.is_typed = true;
        self.field = Field::File;
        self.options = options;
    }

    /// Returns the chosen kind of file.
    pub fn kind(&self) -> FileKind {
        KINDS[self.kind]
    }

    /// Returns what the file would contain.
    pub fn subject(&self) -> Subject {
        match self.kind() {
            FileKind::Profile(Format::Pft) => Subject::All,
            FileKind::Profile(_) if self.is_whole => Subject::All,
            FileKind::Profile(_) => Subject::Shown,
            FileKind::Text => Subject::Screen,
        }
    }

    /// Chooses what the file contains, and a format that can contain it.
    fn choose_subject(&mut self, subject: Subject) {
        self.is_whole = subject == Subject::All;
        let wanted = match (subject, self.kind()) {
            (Subject::Screen, _) => FileKind::Text,
            (Subject::All, FileKind::Text) => FileKind::Profile(Format::Pft),
            (Subject::Shown, FileKind::Text | FileKind::Profile(Format::Pft)) => {
                FileKind::Profile(Format::Pprof)
            }
            (_, kind) => kind,
        };
        let number = KINDS.iter().position(|kind| *kind == wanted);
        self.choose(number.unwrap_or(self.kind));
    }

    /// Returns the chosen kind as an index of [`KINDS`].
    pub fn kind_number(&self) -> usize {
        self.kind
    }

    /// Returns whether the option of a field is on, or `None` for fields that are not options.
    pub fn switch(&self, field: Field) -> Option<Switch> {
        match field {
            Field::Subject | Field::Format | Field::File => None,
            Field::Symbols => Some(self.options.symbols(self.kind())),
            Field::BuildIds => Some(self.options.build_ids(self.kind())),
            Field::Threads => Some(self.options.by_thread(self.kind())),
            Field::Names => Some(self.options.hides_names(self.kind())),
            Field::Repeat => Some(self.options.repeats(self.goes_on)),
        }
    }

    /// Returns the folder of the file if its free space has to be asked for. Returns `None` if it
    /// was asked for, or if an answer about another folder is still awaited.
    pub fn ask_for_room(&mut self) -> Option<PathBuf> {
        let is_waiting = self.asked.is_some() && self.room.is_none();
        let folder = self.folder();
        if is_waiting || self.asked.as_ref() == Some(&folder) {
            return None;
        }
        self.room = None;
        self.asked = Some(folder.clone());
        Some(folder)
    }

    /// Returns the shape of the file if its size has to be asked for, or `None` if it was asked
    /// for.
    pub fn ask_for_size(&mut self) -> Option<Shape> {
        let shape = self.shape()?;
        self.size.ask(shape).then_some(shape)
    }

    /// Takes the size of a file of this shape, in bytes.
    pub fn set_size(&mut self, shape: Shape, bytes: u64) {
        self.size.set(shape, bytes);
    }

    /// Returns the size of the file in bytes, or `None` while it is not known.
    pub fn size(&self) -> Option<u64> {
        self.size.of(self.shape()?)
    }

    /// Returns the shape of the file, or `None` for the screen, whose text is small.
    fn shape(&self) -> Option<Shape> {
        match self.kind() {
            FileKind::Profile(format) => Some(Shape {
                format,
                manner: self.options.manner,
                is_whole: self.subject() == Subject::All,
            }),
            FileKind::Text => None,
        }
    }

    /// Returns the folder of the typed name.
    fn folder(&self) -> PathBuf {
        match self.file.text().rsplit_once('/') {
            Some(("", _)) => "/".into(),
            Some((folder, _)) => folder.into(),
            None => ".".into(),
        }
    }

    /// Takes the facts about a folder. They are dropped if the last question was about another
    /// folder.
    pub fn set_room(&mut self, room: Room) {
        if self.asked.as_ref() == Some(&room.folder) {
            self.room = Some(room);
        }
    }

    /// Handles a key, and returns its result.
    pub fn press(&mut self, key: KeyEvent) -> Reply {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Reply::Close,
            KeyCode::Char('o') if control => return self.try_to_write(true),
            KeyCode::Char('x') if control => return Reply::Stop,
            KeyCode::Enter => return self.try_to_write(false),
            KeyCode::Tab => self.go_to_field(1),
            KeyCode::BackTab => self.go_to_field(FIELDS.len() - 1),
            KeyCode::Down => self.choose(self.kind + 1),
            KeyCode::Up => self.choose(self.kind + KINDS.len() - 1),
            _ => return self.press_in_field(key),
        }
        Reply::Stay
    }

    /// Handles a key whose meaning depends on the selected line.
    fn press_in_field(&mut self, key: KeyEvent) -> Reply {
        match self.field {
            Field::Subject => return self.press_subject(key),
            Field::Format => return self.press_format(key),
            Field::File => {
                if !self.file.press(key) {
                    return Reply::Unknown;
                }
                self.is_typed = true;
                self.follow_ending();
            }
            _ if key.code == KeyCode::Char(' ') => self.turn(),
            Field::Repeat if self.goes_on => {
                if !self.options.type_seconds(key) {
                    return Reply::Unknown;
                }
            }
            Field::Symbols | Field::BuildIds | Field::Threads | Field::Names | Field::Repeat => {
                return Reply::Unknown;
            }
        }
        self.problem = None;
        Reply::Stay
    }

    /// Chooses the format of the typed extension, if there is one.
    fn follow_ending(&mut self) {
        let kind = FileKind::of_path(Path::new(self.file.text()));
        let known = kind.and_then(|kind| KINDS.iter().position(|known| *known == kind));
        self.kind = known.unwrap_or(self.kind);
    }

    /// Returns the reply that writes the file. If the choices do not fit together, the dialog stays
    /// open and says why.
    fn try_to_write(&mut self, overwrite: bool) -> Reply {
        let options = &self.options;
        let is_text = self.kind() == FileKind::Text;
        let why_not = options.manner.why_no_text().filter(|_| is_text);
        let why = if self.file.text().is_empty() {
            "the file needs a name"
        } else if let Some(why) = why_not {
            why
        } else if self.goes_on && options.repeats && options.seconds == 0 {
            "every how many seconds? type the number"
        } else {
            return Reply::Write { overwrite };
        };
        self.problem = Some(Problem::Failed(why.into()));
        Reply::Stay
    }

    /// Goes this many lines down. After the last line comes the first.
    fn go_to_field(&mut self, by: usize) {
        let here = FIELDS.iter().position(|field| *field == self.field);
        self.field = FIELDS[(here.unwrap_or(0) + by) % FIELDS.len()];
        self.options.is_typing = false;
    }

    /// Turns the selected option on or off, if the format allows it. The proposed name is updated,
    /// because it must not contain names that are hidden in the file.
    fn turn(&mut self) {
        let can_be_turned = self.switch(self.field).is_some_and(Switch::can_be_turned);
        let options = &mut self.options;
        let option = match self.field {
            Field::Symbols => &mut options.manner.omits_symbols,
            Field::BuildIds => &mut options.manner.omits_build_ids,
            Field::Threads => &mut options.manner.by_thread,
            Field::Names => &mut options.manner.hides_names,
            Field::Repeat => &mut options.repeats,
            Field::Subject | Field::Format | Field::File => return,
        };
        *option ^= can_be_turned;
        self.name_anew(self.kind().ending());
    }

    /// Chooses what the file contains.
    fn press_subject(&mut self, key: KeyEvent) -> Reply {
        let here = SUBJECTS.iter().position(|all| *all == self.subject());
        let by = match key.code {
            KeyCode::Char(' ') | KeyCode::Right => 1,
            KeyCode::Left => SUBJECTS.len() - 1,
            KeyCode::Backspace => return Reply::Close,
            _ => return self.begin_name(key),
        };
        self.choose_subject(SUBJECTS[(here.unwrap_or(0) + by) % SUBJECTS.len()]);
        Reply::Stay
    }

    /// Chooses the format.
    fn press_format(&mut self, key: KeyEvent) -> Reply {
        match key.code {
            KeyCode::Char(' ') | KeyCode::Right => self.choose(self.kind + 1),
            KeyCode::Left => self.choose(self.kind + KINDS.len() - 1),
            KeyCode::Backspace => return Reply::Close,
            _ => return self.begin_name(key),
        }
        Reply::Stay
    }

    /// Takes a letter that is typed in a line without text as the start of the file's name, which
    /// replaces the proposed one.
    fn begin_name(&mut self, key: KeyEvent) -> Reply {
        let mut typed = if self.is_typed {
            self.file.clone()
        } else {
            LineEdit::default()
        };
        if !matches!(key.code, KeyCode::Char(_)) || !typed.press(key) {
            return Reply::Unknown;
        }
        self.file = typed;
        self.is_typed = true;
        self.field = Field::File;
        self.problem = None;
        self.follow_ending();
        Reply::Stay
    }

    /// Chooses a format by its number; after the last one comes the first. The name of the file is
    /// updated.
    fn choose(&mut self, kind: usize) {
        let before = self.kind().ending();
        self.kind = kind % KINDS.len();
        self.problem = None;
        self.name_anew(before);
    }

    /// Returns the proposed name without extension. It says what the file contains.
    fn stem(&self) -> &str {
        match self.subject() {
            _ if self.options.manner.hides_names => &self.stem.anonymous,
            Subject::All => &self.stem.all,
            Subject::Shown | Subject::Screen => &self.stem.shown,
        }
    }

    /// Gives the file the extension of the chosen format. If the user has typed the name, only the
    /// extension of the format `before` is replaced.
    fn name_anew(&mut self, before: &str) {
        let stem = if self.is_typed {
            self.file.text().strip_suffix(before)
        } else {
            Some(self.stem())
        };
        if let Some(stem) = stem {
            let name = format!("{stem}{}", self.kind().ending());
            self.file = LineEdit::new(&name);
        }
    }
}

/// The names that are proposed for a file, without extension.
#[derive(Debug)]
struct Stem {
    /// `proftop-db-01-postgres-20261120T140312Z`, for what is shown.
    shown: String,
    /// For all samples that are kept: the target takes the place of the scope.
    all: String,
    /// Without machine and scope, for files that hide names.
    anonymous: String,
}

impl Stem {
    fn new(shown: &Snapshot, scope: &str) -> Self {
        let time = shown
            .view
            .as_ref()
            .and_then(|view| {
                let end_ms = shown.report.window.end_ns / 1_000_000;
                end_ms.checked_add_signed(view.info().epoch_unix_ms)
            })
            .filter(|ms| *ms > 0)
            .map_or_else(String::new, |ms| calendar::compact(ms / 1000));
        // The words of the scope may contain any characters, but the name has to be usable in a
        // shell.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let plain = |part: &str| {
            let part: String = part.chars().take(40).collect();
            let words = part.split(|c| !is_plain(c)).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join("_")
        };
        let join = |parts: &[&str]| {
            let parts = parts.iter().map(|part| plain(part));
            let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
            parts.join("-")
        };
        let host = &*shown.source.host.name;
        let sampled = match &*shown.run.scope {
            "" => Run::WHOLE_MACHINE,
            sampled => sampled,
        };
        Stem {
            shown: join(&["proftop", host, scope, &time]),
            all: join(&["proftop", host, sampled, &time]),
            anonymous: join(&["proftop", &time]),
        }
    }
}
