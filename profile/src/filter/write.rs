//! Writes a filter as text that [`super::parse`] reads back as the same filter.

use super::parse::clauses;
use super::text::How;
use super::{Action, Clause, Filter, FrameTest, Ranges, SampleTest, Text};
use std::fmt;

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, clause) in self.clauses.iter().enumerate() {
            let space = if at > 0 { " " } else { "" };
            write!(f, "{space}{clause}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clause::FoldRecursion => write!(f, "fold:recursion"),
            Clause::ShowInternals => write!(f, "show:internals"),
            Clause::Sample { test, negated } => {
                let not = if *negated { "!" } else { "" };
                write!(f, "{not}{test}")
            }
            Clause::Stack { action, test } => {
                let action = match action {
                    Action::Focus if matches!(test, FrameTest::Name(text) if text.is_word()) => "",
                    Action::Focus => "focus:",
                    Action::Exclude => "!",
                    Action::Hide => "hide:",
                    Action::Only => "only:",
                };
                write!(f, "{action}{test}")
            }
        }
    }
}

impl fmt::Display for FrameTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameTest::Name(text) => text.write(f, "fn"),
            FrameTest::Module(text) => text.write(f, "mod"),
            FrameTest::File(text) => text.write(f, "file"),
            FrameTest::Kernel => write!(f, "kind:kernel"),
            FrameTest::User => write!(f, "kind:user"),
            FrameTest::Jit => write!(f, "kind:jit"),
            FrameTest::Python => write!(f, "lang:python"),
            FrameTest::Inlined => write!(f, "kind:inlined"),
        }
    }
}

impl fmt::Display for SampleTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SampleTest::Pid(ranges) => write!(f, "pid:{ranges}"),
            SampleTest::Tid(ranges) => write!(f, "tid:{ranges}"),
            SampleTest::Cpu(ranges) => write!(f, "cpu:{ranges}"),
            SampleTest::Comm(text) => text.write(f, "comm"),
            SampleTest::Cgroup(text) => text.write(f, "cgroup"),
            SampleTest::User(text) => text.write(f, "user"),
            SampleTest::Host(text) => text.write(f, "host"),
            SampleTest::State(states) => write!(f, "state:{states}"),
        }
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

impl Text {
    /// Whether the test is a bare word: a part of a function name, without a key.
    fn is_word(&self) -> bool {
        matches!(self.how, How::Word { .. })
    }

    /// Writes the text after its key, so that it is parsed as the same text again.
    fn write(&self, f: &mut fmt::Formatter<'_>, key: &str) -> fmt::Result {
        let source = Quoted(&self.source);
        match &self.how {
            How::Is => write!(f, "{key}:{source}"),
            How::Regex(_) => write!(f, "{key}~{source}"),
            // A word is quoted if it could be read as something else.
            How::Word { .. } if is_plain_word(&self.source) => {
                write!(f, "{}", self.source)
            }
            How::Word { .. } => write!(f, "\"{}\"", Quoted::escaped(&self.source)),
        }
    }
}

/// Whether a word, written without quotes, is parsed as the same word, also after `hide:`, where
/// one more colon would make it a C++ name.
fn is_plain_word(word: &str) -> bool {
    if word.starts_with(':') {
        return false;
    }
    let read = clauses(word);
    let is_it = |text: &Text| *text == Text::word(word);
    matches!(read.as_deref(), Ok([Clause::Stack { action: Action::Focus, test: FrameTest::Name(text) }]) if is_it(text))
}

/// A text for display: in quotes if it needs them.
///
/// Inside the quotes, `"` and `\` are escaped by a backslash.
struct Quoted<'a>(&'a str);

impl Quoted<'_> {
    fn escaped(text: &str) -> String {
        text.replace('\\', "\\\\").replace('"', "\\\"")
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A colon after the colon of the key would read as a C++ name.
        let is_plain = !self.0.is_empty()
            && !self.0.starts_with(['"', ':'])
            && !self.0.contains(char::is_whitespace);
        if is_plain {
            write!(f, "{}", self.0)
        } else {
            write!(f, "\"{}\"", Quoted::escaped(self.0))
        }
    }
}
