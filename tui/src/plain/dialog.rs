//! The *dialog*: a line in, an answer out. It reads nothing and writes nothing.

use super::answer::{Answer, Row, Target, Trouble};
use super::session::Session;
use crate::action::Keymap;
use crate::lists::find::Find;
use crate::screen::state_line;
use crate::widgets::ascii;
use crate::words::text;
use profile::{FunctionId, FunctionRow};
use std::mem::{Discriminant, discriminant};

/// Functions that an ambiguous name is said to mean.
const GUESSES_MAX: usize = 9;

pub struct Dialog {
    pub session: Session,
    /// Those of the last list.
    pub rows: Vec<Row>,
    /// The function that was asked about last.
    pub subject: Option<FunctionId>,
    /// The kind of state that was said last.
    said: Option<Discriminant<crate::app::state::State>>,
    ascii: bool,
    pub is_over: bool,
}

impl Dialog {
    pub fn new(mut session: Session, ascii: bool) -> Self {
        // There are commands instead of keys.
        session.app.keymap = Keymap::without_keys();
        Dialog {
            session,
            rows: Vec::new(),
            subject: None,
            said: None,
            ascii,
            is_over: false,
        }
    }

    /// What is said before the first command.
    pub fn greet(&self) -> Vec<String> {
        let greeting = "proftop, line by line: help lists the commands, quit leaves";
        let mut lines = vec![greeting.to_owned()];
        if let crate::app::mode::Detail::Notice(crate::notice::Notice::Configuration(what)) =
            &self.session.app.detail
        {
            lines.push(format!("configuration: {what}"));
        }
        self.clean(lines)
    }

    /// The state, when it is another than before.
    pub(super) fn news(&mut self) -> Option<String> {
        let app = &self.session.app;
        let state = app.state.as_ref();
        let kind = state.map(discriminant);
        if kind == self.said {
            return None;
        }
        self.said = kind;
        state.map(|state| state_line::sentence(app, state))
    }

    /// The last door: nothing that a terminal would act on gets through.
    pub(super) fn clean(&self, lines: Vec<String>) -> Vec<String> {
        let clean = |line: String| {
            let line = line.replace(" \u{27f3}", " (more to come)");
            let line = text::clean(&line).into_owned();
            match self.ascii {
                true => line.replace('±', "+-").chars().map(ascii::plain).collect(),
                false => line,
            }
        };
        lines.into_iter().map(clean).collect()
    }

    /// The function that is meant: by the number of its row, by its name, or the
    /// one that was asked about last. It is the one asked about from now on.
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

    pub fn row(&self, number: usize) -> Result<&Row, Trouble> {
        let row = number.checked_sub(1).and_then(|at| self.rows.get(at));
        row.ok_or_else(|| match self.rows.len() {
            0 => Trouble::say("there are no numbered rows yet: top lists functions"),
            1 => Trouble::say("the last list has one row"),
            count => Trouble::say(format!("the last list has rows 1 to {count}")),
        })
    }

    /// Exactly, or else the only one that has the words in its name.
    fn named(&self, words: &str) -> Result<FunctionId, Trouble> {
        let functions = &self.session.app.shown.report.functions;
        let exact = functions.iter().find(|row| *row.name == *words);
        if let Some(row) = exact {
            return Ok(row.id);
        }
        let find = Find::new(&regex::escape(words));
        let find = find.map_err(|error| Trouble::say(error.message))?;
        let near: Vec<&FunctionRow> = functions
            .iter()
            .filter(|row| find.matches(&row.name))
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

    /// The row of a function, as far as it is one.
    pub fn function_target(&self, name: &str, module: &str) -> Target {
        let functions = &self.session.app.shown.report.functions;
        let mut functions = functions.iter();
        let found = functions.find(|row| *row.name == *name && *row.module == *module);
        found.map_or(Target::Words, |row| Target::Function(row.id))
    }
}

/// How many rows, or the usual number.
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

/// For commands that take nothing.
pub fn nothing(words: &str) -> Result<(), Trouble> {
    match words {
        "" => Ok(()),
        _ => Err(Trouble::usage(format!("'{words}' means nothing here"))),
    }
}

/// A sentence as the whole answer.
pub fn sentence(words: impl Into<String>) -> Result<Answer, Trouble> {
    Ok(Answer::of(words))
}
