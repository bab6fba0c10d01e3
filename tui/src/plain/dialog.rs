//! The *dialog*: it takes a line and returns an answer. It does no input or output itself.

use super::answer::{Answer, Row, Target, Trouble};
use super::session::Session;
use crate::action::Keymap;
use crate::lists::find::Find;
use crate::status;
use crate::widgets::ascii;
use crate::words::{names, text};
use profile::{FunctionId, FunctionRow};
use std::mem::{Discriminant, discriminant};

/// Maximum number of functions that are listed when a name matches several.
const GUESSES_MAX: usize = 9;

/// The state that is kept from one command to the next: the session, the numbered rows of the last
/// list, and the function of the last command.
pub struct Dialog {
    pub session: Session,
    /// The numbered rows of the last list; row 1 is the first.
    pub rows: Vec<Row>,
    /// The function of the last command.
    pub subject: Option<FunctionId>,
    /// The kind of the last printed state, to print the state only when its kind changes.
    said: Option<Discriminant<crate::app::state::StateLine>>,
    ascii: bool,
    pub is_over: bool,
}

impl Dialog {
    /// Starts a dialog about this session. If `ascii`, its lines contain only ASCII characters.
    pub fn new(mut session: Session, ascii: bool) -> Self {
        // Sentences must not name keys, because the dialog has commands instead.
        session.app.input.keymap = Keymap::without_keys();
        Dialog {
            session,
            rows: Vec::new(),
            subject: None,
            said: None,
            ascii,
            is_over: false,
        }
    }

    /// Returns the lines to print before the first command.
    pub fn greet(&self) -> Vec<String> {
        let greeting = "proftop, line by line: help lists the commands, quit leaves";
        let mut lines = vec![greeting.to_owned()];
        if let crate::app::mode::Detail::Notice(crate::notice::Notice::Configuration(what)) =
            &self.session.app.lines.detail
        {
            lines.push(format!("configuration: {what}"));
        }
        self.clean(lines)
    }

    /// Returns the state as a sentence if its kind has changed since the last time. None if it has
    /// not, or if there is nothing to report.
    pub(super) fn news(&mut self) -> Option<String> {
        let app = &self.session.app;
        let state = app.lines.state.as_ref();
        let kind = state.map(discriminant);
        if kind == self.said {
            return None;
        }
        self.said = kind;
        state.map(|state| status::state::sentence(app, state))
    }

    /// Replaces the characters that a terminal acts on. Every line passes through here just before
    /// it is printed.
    pub(super) fn clean(&self, lines: Vec<String>) -> Vec<String> {
        let clean = |line: String| {
            let line = line.replace(" \u{27f3}", " (more to come)");
            let line = text::clean(&line).into_owned();
            if self.ascii {
                line.replace('±', "+-").chars().map(ascii::plain).collect()
            } else {
                line
            }
        };
        lines.into_iter().map(clean).collect()
    }

    /// Returns the function that `words` name: the number of a row, or a name. If empty, it is the
    /// function of the last command. Remembers it as such.
    pub fn function(&mut self, words: &str) -> Result<FunctionId, Trouble> {
        let function = match words.parse::<usize>() {
            _ if words.is_empty() => self.subject.ok_or_else(|| {
                Trouble::usage("which function? give the number of a row of top, or a name")
            })?,
            Ok(number) => self
                .row(number)?
                .target
                .function()
                .ok_or_else(|| Trouble::say(format!("row {number} is no function")))?,
            Err(_) => self.named(words)?,
        };
        self.subject = Some(function);
        Ok(function)
    }

    /// Returns the row with this number, counted from 1, of the last list. The error says which
    /// numbers are valid.
    pub fn row(&self, number: usize) -> Result<&Row, Trouble> {
        let row = number.checked_sub(1).and_then(|at| self.rows.get(at));
        row.ok_or_else(|| match self.rows.len() {
            0 => Trouble::say("there are no numbered rows yet: top lists functions"),
            1 => Trouble::say("the last list has one row"),
            count => Trouble::say(format!("the last list has rows 1 to {count}")),
        })
    }

    /// Returns the function of exactly this name, or else the only one whose name contains the
    /// words, or whose short name equals them.
    fn named(&self, words: &str) -> Result<FunctionId, Trouble> {
        let functions = &self.session.app.shown.report.functions;
        let exact = functions.iter().find(|row| *row.name == *words);
        if let Some(row) = exact {
            return Ok(row.id);
        }
        let find = Find::new(&regex::escape(words)).map_err(|error| Trouble::say(error.message))?;
        let near: Vec<&FunctionRow> = functions
            .iter()
            .filter(|row| find.matches(&row.name) || *names::short(&row.name) == *words)
            .collect();
        match &near[..] {
            [] => Err(Trouble::say(format!(
                "no function here is called '{words}'"
            ))),
            [only] => Ok(only.id),
            several => {
                let names = several.iter().take(GUESSES_MAX).map(|row| &*row.name);
                let names: Vec<&str> = names.collect();
                let more = match several.len() - names.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let names = names.join(", ");
                Err(Trouble::say(format!("'{words}' can be {names}{more}")))
            }
        }
    }

    /// Returns the function with this name and module as a target. It is [`Target::Words`] if the
    /// function has no samples now.
    pub fn function_target(&self, name: &str, module: &str) -> Target {
        let functions = &self.session.app.shown.report.functions;
        let mut functions = functions.iter();
        let found = functions.find(|row| *row.name == *name && *row.module == *module);
        found.map_or(Target::Words, |row| Target::Function(row.id))
    }
}

/// Parses how many rows a command lists: `usual` if nothing was typed, no limit for `all`.
pub fn count(words: &str, usual: usize) -> Result<usize, Trouble> {
    match words {
        "" => Ok(usual),
        "all" => Ok(usize::MAX),
        _ => match words.parse() {
            Ok(0) | Err(_) => Err(Trouble::usage(format!("'{words}' is no count of rows"))),
            Ok(count) => Ok(count),
        },
    }
}

/// Returns an error if anything was typed after a command that takes no arguments.
pub fn nothing(words: &str) -> Result<(), Trouble> {
    match words {
        "" => Ok(()),
        _ => Err(Trouble::usage(format!("'{words}' means nothing here"))),
    }
}

/// Returns an answer that consists of this sentence.
pub fn sentence(words: impl Into<String>) -> Result<Answer, Trouble> {
    Ok(Answer::of(words))
}
