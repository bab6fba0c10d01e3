//! A *failure* is the end of a run that cannot do what the user wants: a sentence, the reasons,
//! remedies, and the exit status.
//!
//! ```text
//! proftop: cannot sample: no right to load BPF programs and open CPU clocks
//!   you are uid 1000 without CAP_BPF+CAP_PERFMON; kernel.perf_event_paranoid = 2
//!   Any one of these is enough:
//!     sudo proftop        this run
//!     …
//!   Works without rights: proftop doctor, proftop --help
//! ```

pub mod rights;

use std::borrow::Cow;
use std::fmt;
use symbolize::sanitize;

/// The exit status, on which scripts rely. The numbers never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    /// The command line is invalid.
    Usage,
    /// A comparison exceeds its limit.
    Exceeded,
    /// Impossible on this machine, or without more rights.
    NotPossible,
    NoSamples,
    /// `-- COMMAND` could not be started, because of proftop. The status of this and of the next
    /// two is the same as with `env`.
    CommandNotStarted,
    CommandNotExecutable,
    CommandNotFound,
    /// The exit status of the command; 128 + N for signal N.
    Command(u8),
    /// A signal ended proftop: 128 + N, as in a shell.
    Signal(u8),
}

impl Exit {
    /// Returns the exit status.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Exceeded => 3,
            Exit::NotPossible => 4,
            Exit::NoSamples => 5,
            Exit::CommandNotStarted => 125,
            Exit::CommandNotExecutable => 126,
            Exit::CommandNotFound => 127,
            Exit::Command(code) => code,
            Exit::Signal(signal) => signal.saturating_add(128),
        }
    }
}

impl Exit {
    /// Returns the meaning of an exit status of proftop.
    pub fn of_code(code: u8) -> Exit {
        const OWN: [Exit; 6] = [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::Exceeded,
            Exit::NotPossible,
            Exit::NoSamples,
        ];
        let own = OWN.into_iter().find(|exit| exit.code() == code);
        own.unwrap_or(Exit::Command(code))
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// A command to type, and its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// May be several lines, joined by trailing backslashes.
    pub command: String,
    pub note: String,
}

/// Why a run ends without doing what the user wants. `Display` writes the whole message, which
/// begins with `proftop:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    /// What failed, and on which object. One line, without a full stop.
    pub message: String,
    /// The reasons, one line each.
    pub details: Vec<String>,
    /// Commands that help; one of them is enough.
    pub remedies: Vec<Remedy>,
    /// What the user can do instead.
    pub more: Option<String>,
}

impl Failure {
    /// Creates a failure with one sentence, without a full stop.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure {
            exit,
            message: message.into(),
            details: Vec::new(),
            remedies: Vec::new(),
            more: None,
        }
    }

    /// Creates the failure of a run whose sampling has failed. `said` is the engine's message: a
    /// sentence, and reasons on further lines.
    pub fn of_sampling(said: &str) -> Failure {
        let mut lines = said.lines().map(str::trim);
        let failure = Failure::new(Exit::NotPossible, lines.next().unwrap_or_default());
        lines
            .fold(failure, Failure::detail)
            .more("More: proftop doctor")
    }

    /// Creates a failure with the usual exit status.
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Failed, message)
    }

    /// Creates a failure about an invalid command line.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// Adds a line with a reason.
    #[must_use]
    pub fn detail(mut self, line: impl Into<String>) -> Failure {
        self.details.push(line.into());
        self
    }

    /// Adds a command that helps, and a note on it.
    #[must_use]
    pub fn remedy(mut self, command: impl Into<String>, note: impl Into<String>) -> Failure {
        self.remedies.push(Remedy {
            command: command.into(),
            note: note.into(),
        });
        self
    }

    /// Sets the last line, which says what the user can do instead.
    #[must_use]
    pub fn more(mut self, line: impl Into<String>) -> Failure {
        self.more = Some(line.into());
        self
    }
}

impl From<probe::child::StartError> for Failure {
    fn from(error: probe::child::StartError) -> Failure {
        let exit = match error.exit_code() {
            127 => Exit::CommandNotFound,
            126 => Exit::CommandNotExecutable,
            _ => Exit::CommandNotStarted,
        };
        Failure::new(exit, error.to_string())
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "proftop: {}", one_line(&self.message))?;
        for detail in &self.details {
            writeln!(f, "  {}", one_line(detail))?;
        }
        match self.remedies.len() {
            0 => {}
            1 => writeln!(f, "  This is enough:")?,
            _ => writeln!(f, "  Any one of these is enough:")?,
        }
        for remedy in &self.remedies {
            write_remedy(f, remedy)?;
        }
        match &self.more {
            Some(more) => writeln!(f, "  {more}"),
            None => Ok(()),
        }
    }
}

/// Returns a sentence for printing, in one line. A name in it may contain newlines, and the rest of
/// it must not look like a line of proftop.
fn one_line(sentence: &str) -> String {
    sanitize(without_numbers(sentence).as_bytes()).into_owned()
}

/// Returns a sentence without the numbers of system errors, such as that in `No such file or
/// directory (os error 2)`.
pub fn without_numbers(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = " (os error ";
    let mut text = Cow::Borrowed(text);
    while let Some(at) = text.find(BEGIN) {
        let Some(len) = text[at..].find(')') else {
            break;
        };
        text.to_mut().replace_range(at..=at + len, "");
    }
    text
}

/// The column at which notes begin, if the command is shorter.
const NOTE_COLUMN: usize = 44;

fn write_remedy(f: &mut fmt::Formatter<'_>, remedy: &Remedy) -> fmt::Result {
    let mut lines = remedy.command.lines().peekable();
    while let Some(line) = lines.next() {
        if lines.peek().is_some() {
            writeln!(f, "    {line}")?;
        } else {
            writeln!(f, "    {line:<NOTE_COLUMN$}  {}", remedy.note)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_words() {
        let failure = Failure::failed("cannot read x: No such file or directory (os error 2)");
        let text = failure.detail("and (os error 13): y").to_string();
        assert_eq!(
            text,
            "proftop: cannot read x: No such file or directory\n  and: y\n"
        );
        assert_eq!(without_numbers(" (os error "), " (os error ");
    }

    #[test]
    fn reads_as_one_sentence_and_indented_lines() {
        let failure = Failure::new(Exit::NotPossible, "cannot sample: no rights")
            .detail("you are uid 1000")
            .remedy("sudo proftop", "this run")
            .remedy("sudo setcap \\\n  cap_bpf+ep proftop", "every run")
            .more("More: proftop doctor");
        assert_eq!(
            failure.to_string(),
            "proftop: cannot sample: no rights\n  \
               you are uid 1000\n  \
               Any one of these is enough:\n    \
                 sudo proftop                                  this run\n    \
                 sudo setcap \\\n      \
                   cap_bpf+ep proftop                          every run\n  \
               More: proftop doctor\n"
        );
    }

    #[test]
    fn each_reason_of_the_engine_has_a_line() {
        let said = "cannot sample: no clock\n  CPU clock: denied\n  BTF: none";
        assert_eq!(
            Failure::of_sampling(said).to_string(),
            "proftop: cannot sample: no clock\n  CPU clock: denied\n  BTF: none\n  \
             More: proftop doctor\n"
        );
    }

    #[test]
    fn a_plain_failure_is_one_line() {
        let failure = Failure::failed("no process 4121");
        assert_eq!(failure.to_string(), "proftop: no process 4121\n");
        assert_eq!(failure.exit.code(), 1);
    }

    #[test]
    fn the_codes_are_the_documented_ones() {
        let codes = [
            (Exit::Done, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::Exceeded, 3),
            (Exit::NotPossible, 4),
            (Exit::NoSamples, 5),
            (Exit::CommandNotStarted, 125),
            (Exit::CommandNotExecutable, 126),
            (Exit::CommandNotFound, 127),
            (Exit::Command(139), 139),
        ];
        for (exit, code) in codes {
            assert_eq!(exit.code(), code);
        }
    }

    #[test]
    fn a_command_that_does_not_start_ends_as_env_does() {
        let missing = probe::child::StartError::NotFound {
            program: "nope".into(),
        };
        let failure = Failure::from(missing);
        assert_eq!(failure.exit, Exit::CommandNotFound);
        assert_eq!(failure.to_string(), "proftop: command not found: nope\n");
    }

    #[test]
    fn names_with_several_lines_make_no_lines_of_ours() {
        let failure = Failure::failed("no file a\nproftop: b").detail("c\n  d");
        assert_eq!(
            failure.to_string(),
            "proftop: no file a\\nproftop: b\n  c\\n  d\n"
        );
    }
}
