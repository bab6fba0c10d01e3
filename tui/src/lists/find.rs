//! A *find* is a regular expression that marks rows and never hides any: the
//! numbers stay what they are. Capitals count only where the pattern has some.

use regex::{Regex, RegexBuilder};

/// A valid pattern that is being searched for.
#[derive(Debug, Clone)]
pub struct Find {
    pub text: String,
    regex: Regex,
}

/// Why a pattern is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPattern {
    /// At which character; the first is 1.
    pub position: usize,
    pub message: String,
}

/// The find line while it is being typed.
#[derive(Debug, Default)]
pub struct Prompt {
    pub text: String,
    pub error: Option<BadPattern>,
    /// What was searched for before; Esc goes back to it.
    pub before: Option<Find>,
}

/// How large a compiled pattern may be. A pattern is typed, but a pasted one can be
/// anything.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Returns which of the found rows, which are in rising order, is the next one down or up
/// from row `here`. After the last comes the first. None if nothing was found.
pub fn next(found: &[usize], here: usize, down: bool, including: bool) -> Option<usize> {
    let last = found.len().checked_sub(1)?;
    Some(if down {
        let below = |at: &usize| *at > here || (including && *at == here);
        found.iter().position(below).unwrap_or(0)
    } else {
        found.iter().rposition(|at| *at < here).unwrap_or(last)
    })
}

impl Find {
    /// Compiles a pattern. It ignores case unless it contains a capital letter.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        let regex = RegexBuilder::new(text)
            .case_insensitive(!has_capital(text))
            .size_limit(PATTERN_BYTES_MAX)
            .build()
            .map_err(|error| BadPattern::new(&error))?;
        Ok(Find {
            text: text.to_owned(),
            regex,
        })
    }

    /// Whether the pattern is found anywhere in the text.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl BadPattern {
    /// Reads the place from the library's message: it is given only by a caret below the
    /// indented pattern.
    fn new(error: &regex::Error) -> Self {
        const INDENT: usize = 4;
        let text = error.to_string();
        let caret = text
            .lines()
            .find(|line| line.trim_start().starts_with('^'))
            .and_then(|line| line.find('^'));
        let message = text
            .lines()
            .find_map(|line| line.strip_prefix("error: "))
            .unwrap_or("the pattern is too large");
        BadPattern {
            position: caret.map_or(1, |column| column.saturating_sub(INDENT) + 1),
            message: message.to_owned(),
        }
    }
}

/// Whether the pattern has a capital letter; those of classes such as `\S` do not count.
fn has_capital(text: &str) -> bool {
    let mut escaped = false;
    text.chars().any(|c| {
        let counts = c.is_uppercase() && !escaped;
        escaped = c == '\\' && !escaped;
        counts
    })
}

/// What is searched for in a list, and what was found.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    pub find: &'a Find,
    pub rows: usize,
    /// The samples of the rows, where they can be added up; else 0.
    pub samples: u64,
    /// How many rows were searched.
    pub of: usize,
}

impl<'a> Found<'a> {
    /// Returns what was found in rows whose samples cannot be added up.
    pub fn of_rows(find: &'a Find, rows: usize, of: usize) -> Self {
        Found {
            find,
            rows,
            samples: 0,
            of,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_counts_only_with_capitals() {
        let find = |pattern: &str, text: &str| Find::new(pattern).expect(pattern).matches(text);
        assert!(find("hash", "HashSearch"));
        assert!(!find("Hash", "hash_search"));
        assert!(find(r"\Wadd", "OrderBook.ADD"));
        assert!(find("^lw.*lock", "LWLockAcquire"));
    }

    #[test]
    fn a_bad_pattern_says_where() {
        let error = Find::new("foo(").expect_err("unclosed");
        assert_eq!(
            (error.position, error.message.as_str()),
            (4, "unclosed group")
        );
        let error = Find::new("a{2,1}").expect_err("repetition");
        assert_eq!(error.position, 2);
        assert!(Find::new("(a{999}){999}{99}").is_err());
    }
}
