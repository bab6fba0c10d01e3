//! How the program ends when something cannot be done: one sentence and an exit code.

use std::fmt;
use std::process::ExitCode;

/// Why the program ends. Displays as a sentence.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    sentence: String,
}

impl Failure {
    /// What was asked for failed: exit code 1.
    pub fn failed(sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { code: 1, sentence }
    }

    /// What was typed, or is in the configuration, is not understood: exit code 2.
    pub fn usage(sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { code: 2, sentence }
    }

    /// It was ended by a signal: the exit code that shells give, 128 and its number.
    pub fn ended(signal: u8) -> Self {
        Self {
            code: 128 + signal,
            sentence: format!("ended by signal {signal}"),
        }
    }

    /// The same with what came of it before it.
    pub fn about(self, what: impl fmt::Display) -> Self {
        let sentence = format!("{what}: {}", self.sentence);
        Self { sentence, ..self }
    }

    /// The exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// A text from outside, as it can be printed in a sentence.
pub fn safe(text: &str) -> String {
    symbolize::sanitize(text.as_bytes()).into_owned()
}

/// A path, as it can be printed in a sentence.
pub fn shown(path: &std::path::Path) -> String {
    symbolize::sanitize(path.as_os_str().as_encoded_bytes()).into_owned()
}
