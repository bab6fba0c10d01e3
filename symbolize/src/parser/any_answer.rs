//! Any bytes, decoded as answers of a parser: for the fuzz target `answers`.

use super::answer;
use super::jit_order::JitAnswer;
use super::lines_order::{read_lines, read_program};
use super::names::{PlaceName, SourceLine};
use crate::sanitize;

/// Decodes bytes as each kind of answer. A parser reads untrusted files, which may have taken it
/// over, so that it may answer with any bytes.
///
/// # Panics
///
/// If a text of an answer is not safe to print, or there is more in it than in the bytes.
pub fn check_any_answer(bytes: &[u8]) {
    if let Some((names, _)) = answer::read(bytes) {
        assert!(names.places.len() <= bytes.len());
        for place in &names.places {
            if let PlaceName::Named { name, .. } = &place.name {
                check_text(name);
            }
            place.lines.iter().for_each(check_line);
        }
    }
    if let Some(lines) = read_lines(bytes) {
        assert!(lines.chains.len() <= bytes.len());
        lines.chains.iter().flatten().for_each(check_line);
    }
    _ = read_program(bytes);
    if let Some(answer) = JitAnswer::read(bytes) {
        assert!(answer.names.len() <= bytes.len());
    }
}

fn check_line(line: &SourceLine) {
    check_text(&line.function);
    check_text(&line.file);
}

fn check_text(text: &str) {
    assert_eq!(sanitize(text.as_bytes()), text);
}
