//! Parses a filter's text into clauses. An error gives the column where it is.
//!
//! ```text
//! filter  = clause*                        separated by spaces
//! clause  = ["!"] [action ":"] test
//! action  = focus | exclude | hide | fold | only | show
//! test    = key ":" value | key "~" regex | value
//! value   = word | '"' … '"'               with \ before " and \
//! ```
//!
//! `!x` and `exclude:x` are the same; without an action it is `focus`. Keys of frames
//! (`fn`, `mod`, `file`, `kind`, `lang`) go with every action but `fold`, which takes a
//! module or the word `recursion`; `show` takes the word `internals`; those of samples only with `focus` and `exclude`. A
//! value without a key is a part of a function's name.

use super::{Action, Clause, FrameTest, Ranges, SampleTest, States, Text};

/// What is wrong with a filter's text, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at column {column})")]
pub struct FilterError {
    /// Column of the error, counted in characters from 1.
    pub column: usize,
    /// What is wrong, as a sentence without the place.
    pub message: String,
}

/// Known keys: first the keys that test frames, then the keys that test samples.
const KEYS: [&str; 13] = [
    "fn", "mod", "file", "kind", "lang", "pid", "tid", "cpu", "comm", "cgroup", "user", "host",
    "state",
];
const ACTIONS: [&str; 6] = ["focus", "exclude", "hide", "fold", "only", "show"];

/// Parses all clauses in their order; stops at the first error.
pub(super) fn clauses(text: &str) -> Result<Vec<Clause>, FilterError> {
    let mut reader = Reader { text, at: 0 };
    let mut clauses = Vec::new();
    loop {
        reader.skip_spaces();
        if reader.rest().is_empty() {
            return Ok(clauses);
        }
        clauses.push(reader.clause()?);
    }
}

/// Reads the text once from front to back; each method consumes what it reads.
struct Reader<'a> {
    text: &'a str,
    /// Current position in bytes.
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// An error at byte `at` of the text; its column is counted in characters.
    fn error(&self, at: usize, message: impl Into<String>) -> FilterError {
        FilterError {
            column: self.text[..at].chars().count() + 1,
            message: message.into(),
        }
    }

    /// Reads the clause that begins at the current position.
    fn clause(&mut self) -> Result<Clause, FilterError> {
        let start = self.at;
        // A name that begins with `!` has to be quoted.
        let negated = self.take('!');
        let action = match self.key(&ACTIONS) {
            Some((action, ':')) => Some(action),
            _ => None,
        };
        if negated && !matches!(action, None | Some("focus")) {
            let message = "`!` drops stacks: it goes with no other action";
            return Err(self.error(start, message));
        }
        if action == Some("fold") {
            return self.fold();
        }
        if action == Some("show") {
            let at = self.at;
            return match &*self.value()? {
                // `interpreter` is the name that filters of earlier versions use.
                "internals" | "interpreter" => Ok(Clause::ShowInternals),
                _ => Err(self.error(at, "`show:` takes the word `internals`")),
            };
        }
        let at = self.at;
        if let Some((key, operator)) = self.key(&KEYS) {
            if let Some(test) = self.sample_test(at, key, operator)? {
                return match action {
                    None | Some("focus") => Ok(Clause::Sample { test, negated }),
                    Some("exclude") => Ok(Clause::Sample {
                        test,
                        negated: true,
                    }),
                    Some(action) => {
                        let message = format!("`{action}:` is about frames, `{key}` about samples");
                        Err(self.error(at, message))
                    }
                };
            }
            let test = self.frame_test(at, key, operator)?;
            return Ok(self.stack(action, negated, test));
        }
        // No known key. A word that looks like a key is an error: taken as a name, a mistyped key
        // would silently match nothing.
        self.check_unknown_key(at)?;
        let word = self.value()?;
        let test = FrameTest::Name(Text::word(&word));
        Ok(self.stack(action, negated, test))
    }

    /// Builds a clause about frames. Without an action it keeps stacks that have such a frame.
    fn stack(&self, action: Option<&str>, negated: bool, test: FrameTest) -> Clause {
        let action = match action {
            _ if negated => Action::Exclude,
            Some("exclude") => Action::Exclude,
            Some("hide") => Action::Hide,
            Some("only") => Action::Only,
            _ => Action::Focus,
        };
        Clause::Stack { action, test }
    }

    /// Reads what follows `fold:`: the word `recursion`, or the name of a module.
    fn fold(&mut self) -> Result<Clause, FilterError> {
        let at = self.at;
        let action = Action::Hide;
        if let Some((key, operator)) = self.key(&KEYS) {
            if key != "mod" {
                return Err(self.error(at, "`fold:` takes a module, or `recursion`"));
            }
            let test = self.frame_test(at, key, operator)?;
            return Ok(Clause::Stack { action, test });
        }
        let name = self.value()?;
        if name == "recursion" {
            return Ok(Clause::FoldRecursion);
        }
        let test = FrameTest::Module(Text::is(&name));
        Ok(Clause::Stack { action, test })
    }

    /// Consumes `c` if it is the next character, and returns whether it was.
    fn take(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    /// Consumes one of the `known` words and the `:` or `~` after it.
    fn key(&mut self, known: &[&'static str]) -> Option<(&'static str, char)> {
        let rest = self.rest();
        for key in known {
            let Some(after) = rest.strip_prefix(key) else {
                continue;
            };
            // `fn::name` is a name in C++ or Rust.
            let operator = after.chars().next().filter(|c| matches!(c, ':' | '~'));
            if let Some(operator) = operator
                && !after.starts_with("::")
            {
                self.at += key.len() + 1;
                return Some((key, operator));
            }
        }
        None
    }

    /// An error if the next word looks like `key:value` of no known key: lowercase
    /// letters before a single colon or a tilde.
    fn check_unknown_key(&self, at: usize) -> Result<(), FilterError> {
        let rest = self.rest();
        let word = rest.split(char::is_whitespace).next().unwrap_or_default();
        // No function has such a name, and other tools write a test like this.
        if let Some((key, value)) = word.split_once('=')
            && KEYS.iter().chain(&ACTIONS).any(|known| *known == key)
        {
            let message = format!("`{key}` is followed by a colon: {key}:{value}");
            return Err(self.error(at + key.len(), message));
        }
        let Some((key, after)) = word.split_once([':', '~']) else {
            return Ok(());
        };
        let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase());
        if is_key && !after.starts_with(':') {
            let message = format!("unknown key `{key}`: {}", KEYS.join(" "));
            return Err(self.error(at, message));
        }
        Ok(())
    }

    /// Reads a value up to the next space, or in quotes.
    fn value(&mut self) -> Result<String, FilterError> {
        let start = self.at;
        if !self.take('"') {
            let rest = self.rest();
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            if end == 0 {
                return Err(self.error(start, "a value is missing"));
            }
            self.at += end;
            return Ok(rest[..end].to_string());
        }
        let mut value = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return if value.is_empty() {
                        Err(self.error(start, "a value is missing"))
                    } else {
                        Ok(value)
                    };
                }
                '\\' => value.extend(chars.next().map(|(_, c)| c)),
                c => value.push(c),
            }
        }
        Err(self.error(start, "the quote is not closed"))
    }

    /// Reads a value to compare with: a regular expression after `~`, else the text as it is.
    fn text(&mut self, operator: char) -> Result<Text, FilterError> {
        let at = self.at;
        let value = self.value()?;
        match operator {
            '~' => Text::regex(&value).map_err(|message| self.error(at, message)),
            _ => Ok(Text::is(&value)),
        }
    }

    /// Reads the value of a frame test whose key was already read.
    fn frame_test(
        &mut self,
        at: usize,
        key: &str,
        operator: char,
    ) -> Result<FrameTest, FilterError> {
        if key == "lang" {
            return match &*self.value()? {
                "python" => Ok(FrameTest::Python),
                other => {
                    let message = format!("no language `{other}`; there is python");
                    Err(self.error(at, message))
                }
            };
        }
        if key != "kind" {
            let text = self.text(operator)?;
            return Ok(match key {
                "mod" => FrameTest::Module(text),
                "file" => FrameTest::File(text),
                _ => FrameTest::Name(text),
            });
        }
        match &*self.value()? {
            "kernel" => Ok(FrameTest::Kernel),
            "user" => Ok(FrameTest::User),
            "jit" => Ok(FrameTest::Jit),
            "inlined" => Ok(FrameTest::Inlined),
            other => {
                let message = format!("no kind `{other}`; there are kernel, user, jit, inlined");
                Err(self.error(at, message))
            }
        }
    }

    /// Reads the value of a sample test; `None` if the key belongs to frames.
    fn sample_test(
        &mut self,
        at: usize,
        key: &str,
        operator: char,
    ) -> Result<Option<SampleTest>, FilterError> {
        let test = match key {
            "comm" => SampleTest::Comm(self.text(operator)?),
            "cgroup" => SampleTest::Cgroup(self.text(operator)?),
            "user" => SampleTest::User(self.text(operator)?),
            "host" => SampleTest::Host(self.text(operator)?),
            "pid" | "tid" | "cpu" if operator == '~' => {
                return Err(self.error(at, format!("`{key}` takes numbers: {key}:1,4-7")));
            }
            "state" if operator == '~' => {
                return Err(self.error(at, "`state` takes words: state:lock,disk"));
            }
            "state" => {
                let at = self.at;
                let states = States::parse(&self.value()?);
                SampleTest::State(states.map_err(|message| self.error(at, message))?)
            }
            "pid" => SampleTest::Pid(self.ranges()?),
            "tid" => SampleTest::Tid(self.ranges()?),
            "cpu" => SampleTest::Cpu(self.ranges()?),
            _ => return Ok(None),
        };
        Ok(Some(test))
    }

    /// Reads numbers and ranges, `0-3,7`.
    fn ranges(&mut self) -> Result<Ranges, FilterError> {
        let start = self.at;
        let value = self.value()?;
        let mut ranges = Vec::new();
        let mut at = start;
        for part in value.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (first.parse(), last.parse()) {
                (Ok(first), Ok(last)) if first <= last => ranges.push((first, last)),
                _ => {
                    let message = format!("`{part}` is no number and no range of numbers");
                    return Err(self.error(at, message));
                }
            }
            at += part.len() + 1;
        }
        Ok(Ranges(ranges))
    }
}

#[cfg(test)]
mod tests {
    use crate::filter::Filter;

    fn read(text: &str) -> Filter {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_is_written_is_read_again() {
        for (text, written) in [
            ("", ""),
            ("hash_search", "hash_search"),
            (
                "focus:fn~^Exec !mod:libc.so.6 comm:postgres tid:4131 cpu:0-3,7 user:ann",
                "focus:fn~^Exec !mod:libc.so.6 comm:postgres tid:4131 cpu:0-3,7 user:ann",
            ),
            ("exclude:comm:cc1plus", "!comm:cc1plus"),
            ("std::vector<int>::push_back", "std::vector<int>::push_back"),
            (
                "fn:\"operator new\" hide:kind:inlined",
                "focus:fn:\"operator new\" hide:kind:inlined",
            ),
            (
                "fold:libc.so.6 fold:recursion only:kind:kernel",
                "hide:mod:libc.so.6 fold:recursion only:kind:kernel",
            ),
            ("\"comm:x\"", "\"comm:x\""),
            ("!memcpy", "!memcpy"),
            ("hide:memcpy", "hide:memcpy"),
            ("mod:\":x\"", "focus:mod:\":x\""),
            ("hide:\":\" ::new", "hide:\":\" \"::new\""),
            ("a\\b", "a\\b"),
            ("state:disk,lock !state:idle", "state:lock,disk !state:idle"),
            ("show:internals main", "show:internals main"),
            ("show:interpreter main", "show:internals main"),
        ] {
            let filter = read(text);
            let shown = filter.to_string();
            assert_eq!(shown, written);
            assert_eq!(read(&shown), filter, "{text}");
        }
    }

    #[test]
    fn errors_point_at_the_place() {
        for (text, column, part) in [
            ("main comn:x", 6, "unknown key `comn`"),
            ("main comm=x", 10, "`comm` is followed by a colon: comm:x"),
            ("fn~(", 4, "unclosed group"),
            ("cpu:0-3,x", 9, "`x` is no number"),
            ("ä cpu:3-1", 7, "`3-1`"),
            ("pid~1", 1, "takes numbers"),
            ("main fn:", 9, "value is missing"),
            ("fn:\"x", 4, "not closed"),
            ("hide:pid:7", 6, "about frames"),
            ("!hide:x", 1, "`!`"),
            ("kind:gpu", 1, "no kind"),
            ("main state:lock,lick", 12, "no state `lick`"),
            ("state~lock", 1, "takes words"),
            ("hide:state:lock", 6, "about frames"),
            ("fold:fn:x", 6, "takes a module"),
            ("show:python", 6, "takes the word"),
        ] {
            let error = text.parse::<Filter>().expect_err(text);
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }
}
