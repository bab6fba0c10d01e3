//! How a filter compares text: with the whole text, with a part of it, or by a regular expression.

use regex::{Regex, RegexBuilder};

/// Limit of the memory of one compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// A test of text.
#[derive(Debug, Clone)]
pub struct Text {
    /// The text as the user wrote it.
    pub(super) source: String,
    /// The kind of comparison, with what it needs.
    pub(super) how: How,
}

/// The kind of comparison.
#[derive(Debug, Clone)]
pub(super) enum How {
    /// The whole text is equal.
    Is,
    Regex(Regex),
    /// The text contains the word. Case is ignored if the word has no capital letter.
    Word {
        any_case: bool,
    },
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
            && std::mem::discriminant(&self.how) == std::mem::discriminant(&other.how)
    }
}

impl Text {
    /// Matches this text and no other.
    pub fn is(text: &str) -> Self {
        Self {
            source: text.into(),
            how: How::Is,
        }
    }

    /// Matches a regular expression; an error is one sentence.
    pub fn regex(expression: &str) -> Result<Self, String> {
        let regex = RegexBuilder::new(expression)
            .size_limit(REGEX_BYTES_MAX)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => "the expression is too large".to_string(),
                // The last line of the regex error message says what is wrong.
                error => {
                    let text = error.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    last.trim_start_matches("error: ").to_string()
                }
            })?;
        Ok(Self {
            source: expression.into(),
            how: How::Regex(regex),
        })
    }

    /// Matches every text that has the word in it. Case counts if the word has a capital.
    pub fn word(word: &str) -> Self {
        let any_case = !word.chars().any(char::is_uppercase);
        Self {
            source: word.into(),
            how: How::Word { any_case },
        }
    }

    /// Whether a text matches.
    pub fn matches(&self, text: &str) -> bool {
        match &self.how {
            How::Is => self.source == text,
            How::Regex(regex) => regex.is_match(text),
            How::Word { any_case: false } => text.contains(&self.source),
            How::Word { any_case: true } => {
                text.contains(&self.source) || text.to_lowercase().contains(&self.source)
            }
        }
    }

    /// Whether a path matches. Unlike [`Text::matches`], a whole path also matches the paths that
    /// begin or end with it, by whole components.
    pub(crate) fn matches_path(&self, path: &str) -> bool {
        if self.matches(path) {
            return true;
        }
        let How::Is = self.how else {
            return false;
        };
        let below = path.strip_prefix(self.source.trim_end_matches('/'));
        let above = path.strip_suffix(self.source.trim_start_matches('/'));
        !self.source.is_empty()
            && (below.is_some_and(|rest| rest.starts_with('/'))
                || above.is_some_and(|rest| rest.ends_with('/')))
    }
}
