//! A *find* is a search with a regular expression. It highlights rows and never hides any, so that
//! numbers stay the same. Case matters only if the pattern has capital letters.

use regex::{Regex, RegexBuilder};

/// A valid pattern of a search.
#[derive(Debug, Clone)]
pub struct Find {
    pub text: String,
    regex: Regex,
}

/// Why a pattern is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPattern {
    /// The position of the error in characters, counted from 1.
    pub position: usize,
    pub message: String,
}

/// The find line while it is being typed.
#[derive(Debug, Default)]
pub struct Prompt {
    pub text: String,
    pub error: Option<BadPattern>,
    /// The previous search; Esc goes back to it.
    pub before: Option<Find>,
}

/// Maximum size of a compiled pattern, in bytes. A pattern that was pasted can be anything.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Returns the position in `found`, which has row numbers in rising order, of the next match below
/// row `here`, or above it if `down` is false. After the last one comes the first. With `including`
/// and `down`, row `here` itself may be the match. Returns `None` if there are no matches.
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

    /// Whether the text contains a match.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl BadPattern {
    /// Takes message and position from the text of the library's error, in which the position is
    /// only shown by a caret below the indented pattern.
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

/// Whether the pattern has a capital letter. Escaped letters such as that of `\S` do not count.
fn has_capital(text: &str) -> bool {
    let mut escaped = false;
    text.chars().any(|c| {
        let counts = c.is_uppercase() && !escaped;
        escaped = c == '\\' && !escaped;
        counts
    })
}

/// The pattern of a search, and how many rows it matches.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    pub find: &'a Find,
    /// Number of matching rows.
    pub rows: usize,
    /// The samples of the matching rows, or 0 if they cannot be added up.
    pub samples: u64,
    /// How many rows were searched.
    pub of: usize,
}

impl<'a> Found<'a> {
    /// Returns the result of a search in rows whose samples cannot be added up.
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
