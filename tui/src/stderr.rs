//! Standard error, for people: what is said beside the output. Where it cannot be written
//! (a full disk, a pipe that nobody reads) nothing else can be told, and the exit status
//! still says how the run ended. `eprintln!` would panic, and end it with another.

use std::fmt::Display;
use std::io::{self, Write as _};
use symbolize::sanitize;

/// Writes a sentence as a line of its own, with our name in front of it.
pub fn say(sentence: impl Display) {
    write(format_args!("proftop: {sentence}\n"));
}

/// Writes lines. What a terminal would act on, as in the name of a file that somebody else
/// has chosen, is made visible here, whoever has put the text together.
pub fn write(text: impl Display) {
    put(&visible(&text.to_string()));
}

/// Writes a text in the place of the last line of the terminal, from where the next one goes
/// on. An empty text removes the line.
pub fn write_over_line(text: impl Display) {
    put(&format!(
        "\r{}\x1b[K",
        sanitize(text.to_string().as_bytes())
    ));
}

/// Returns lines with everything made visible but their ends.
fn visible(text: &str) -> String {
    let lines: Vec<_> = text
        .split('\n')
        .map(|line| sanitize(line.as_bytes()))
        .collect();
    lines.join("\n")
}

fn put(text: &str) {
    // In one piece, so that lines of other threads and programs stay whole.
    // Nobody is left to be told that it failed.
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
