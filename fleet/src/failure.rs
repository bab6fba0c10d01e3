//! The end of the program after an error: one sentence and an exit code.

use std::fmt;
use std::process::ExitCode;

/// Why the program ends. Displays as a sentence.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    sentence: String,
}

impl Failure {
    /// Makes the failure of an operation: exit code 1.
    pub fn failed(sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { code: 1, sentence }
    }

    /// Makes the failure for an invalid command line or configuration: exit code 2.
    pub fn usage(sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { code: 2, sentence }
    }

    /// Makes the failure after a signal: the exit code of shells, 128 plus its number.
    pub fn ended(signal: u8) -> Self {
        Self {
            code: 128 + signal,
            sentence: format!("ended by signal {signal}"),
        }
    }

    /// Adds the subject of the error before it.
    pub fn about(self, what: impl fmt::Display) -> Self {
        let sentence = format!("{what}: {}", self.sentence);
        Self { sentence, ..self }
    }

    /// Returns the exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// Escapes a text from outside, so that it can be printed in a sentence.
pub fn safe(text: &str) -> String {
    symbolize::sanitize(text.as_bytes()).into_owned()
}

/// Formats a path, so that it can be printed in a sentence.
pub fn shown(path: &std::path::Path) -> String {
    symbolize::sanitize(path.as_os_str().as_encoded_bytes()).into_owned()
}
