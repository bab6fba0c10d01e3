//! An *answer*: lines of text. Some of them are numbered rows, to which the next command may refer.

use crate::knobs::Narrowing;
use profile::FunctionId;
use profile::query::{Direction, NodeKind};

/// A numbered row of an answer. Later commands refer to it by its number.
#[derive(Debug, Clone)]
pub struct Row {
    pub target: Target,
    /// The sentence that `explain` prints about the number in this row.
    pub explain: String,
}

/// The subject of a numbered row, which decides which commands accept its number.
#[derive(Debug, Clone)]
pub enum Target {
    Function(FunctionId),
    /// One or several processes, or threads.
    People(Narrowing),
    /// A place in the call tree, and the function there.
    Node {
        direction: Direction,
        path: Vec<NodeKind>,
        function: Option<FunctionId>,
    },
    /// A range of time in nanoseconds: from the first value to just before the second.
    Time(u64, u64),
    /// Text: only `explain` accepts the number of this row.
    Words,
}

impl Target {
    /// Returns the function of the row. None for processes, threads, times and plain text, and for
    /// places in the tree that are not functions.
    pub fn function(&self) -> Option<FunctionId> {
        match self {
            Target::Function(id) => Some(*id),
            Target::Node { function, .. } => *function,
            Target::People(_) | Target::Time(..) | Target::Words => None,
        }
    }
}

/// The result of a command: its lines, and the subjects of the numbered ones among them.
#[derive(Debug, Default)]
pub struct Answer {
    pub lines: Vec<String>,
    pub rows: Vec<Row>,
}

impl Answer {
    /// Returns an answer of this single line, without a number.
    pub fn of(line: impl Into<String>) -> Self {
        let mut answer = Answer::default();
        answer.say(line);
        answer
    }

    /// Adds a line without a number.
    pub fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Adds a line that begins with the next row number; the first is 1.
    pub fn row(&mut self, target: Target, text: &str, explain: impl Into<String>) {
        self.rows.push(Row {
            target,
            explain: explain.into(),
        });
        let number = self.rows.len();
        self.say(format!("{number:>3}  {text}"));
    }

    /// Adds an indented line without a number, so that no command can refer to it.
    pub fn bare_row(&mut self, text: &str) {
        self.say(format!("     {text}"));
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// A sentence that tells the user what is wrong.
    Say(String),
    /// The command was typed wrong: its usage is printed after the sentence.
    Usage(String),
    /// The user stopped the answer with ^C.
    Stopped,
}

impl Trouble {
    /// Returns [`Trouble::Say`] with this sentence.
    pub fn say(sentence: impl Into<String>) -> Self {
        Trouble::Say(sentence.into())
    }

    /// Returns [`Trouble::Usage`] with this sentence.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Trouble::Usage(sentence.into())
    }
}
