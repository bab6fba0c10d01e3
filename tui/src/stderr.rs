//! Messages for people on standard error, beside the output. If standard error cannot be written to
//! (a full disk, a pipe without a reader), the message is lost, and the exit status still says how
//! the run ended. `eprintln!` would panic instead, and change the exit status.

use std::fmt::Display;
use std::io::{self, Write as _};
use symbolize::sanitize;

/// Writes a sentence as a line of its own, after `proftop: `.
pub fn say(sentence: impl Display) {
    write(format_args!("proftop: {sentence}\n"));
}

/// Writes lines. Control characters, as in a file name that another user has chosen, are made
/// visible here, so that callers need not do it.
pub fn write(text: impl Display) {
    put(&visible(&text.to_string()));
}

/// Replaces the last line of the terminal by a text. The cursor stays behind it. An empty text
/// removes the line.
pub fn write_over_line(text: impl Display) {
    put(&format!(
        "\r{}\x1b[K",
        sanitize(text.to_string().as_bytes())
    ));
}

/// Returns the text with all control characters made visible, except the ends of lines.
fn visible(text: &str) -> String {
    let lines: Vec<_> = text
        .split('\n')
        .map(|line| sanitize(line.as_bytes()))
        .collect();
    lines.join("\n")
}

fn put(text: &str) {
    // Written at once, so that lines of other threads and programs are not mixed into it. An error
    // is ignored: there is no other place to report it.
    _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_what_acts_is_visible() {
        assert_eq!(
            visible("proftop: no \x1b[2Jfile\u{202e}\n  a\tb\n"),
            "proftop: no \\u{1b}[2Jfile\\u{202e}\n  a\\tb\n"
        );
    }
}
