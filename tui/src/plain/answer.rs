//! An *answer*: lines of text, of which some are numbered rows that the next
//! command may refer to.

use crate::knobs::Narrowing;
use profile::FunctionId;
use profile::query::{Direction, NodeKind};

/// What a number stands for, and what is said about it.
#[derive(Debug, Clone)]
pub struct Row {
    pub target: Target,
    /// Its number as a sentence.
    pub explain: String,
}

#[derive(Debug, Clone)]
pub enum Target {
    Function(FunctionId),
    /// Processes or threads.
    People(Narrowing),
    /// A place in the call tree, and the function there.
    Node {
        direction: Direction,
        path: Vec<NodeKind>,
        function: Option<FunctionId>,
    },
    /// A stretch of time, in nanoseconds, from the first to before the last.
    Time(u64, u64),
    /// It only has an explanation.
    Words,
}

impl Target {
    pub fn function(&self) -> Option<FunctionId> {
        match self {
            Target::Function(id) => Some(*id),
            Target::Node { function, .. } => *function,
            Target::People(_) | Target::Time(..) | Target::Words => None,
        }
    }
}

#[derive(Debug, Default)]
pub struct Answer {
    pub lines: Vec<String>,
    pub rows: Vec<Row>,
}

impl Answer {
    pub fn of(line: impl Into<String>) -> Self {
        let mut answer = Answer::default();
        answer.say(line);
        answer
    }

    pub fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// A numbered row.
    pub fn row(&mut self, target: Target, text: &str, explain: impl Into<String>) {
        self.rows.push(Row {
            target,
            explain: explain.into(),
        });
        let number = self.rows.len();
        self.say(format!("{number:>3}  {text}"));
    }

    /// A row that nothing can be asked about.
    pub fn bare_row(&mut self, text: &str) {
        self.say(format!("     {text}"));
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// One sentence.
    Say(String),
    /// It was typed wrong: the usage is said, too.
    Usage(String),
    /// By ^C.
    Stopped,
}

impl Trouble {
    pub fn say(sentence: impl Into<String>) -> Self {
        Trouble::Say(sentence.into())
    }

    pub fn usage(sentence: impl Into<String>) -> Self {
        Trouble::Usage(sentence.into())
    }
}
