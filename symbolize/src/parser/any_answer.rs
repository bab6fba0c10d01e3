//! Any bytes, decoded as answers of a parser or reader: for the fuzz target `answers`.

use super::answer;
use super::jit_order::JitAnswer;
use super::lines_order::{read_lines, read_program};
use super::names::{PlaceName, SourceLine};
use crate::python::PythonFile;
use crate::{object, sanitize};

/// Decodes bytes as each kind of answer. A parser reads untrusted files, which may have taken it
/// over, so that it may answer with any bytes; a reader reads their headers.
///
/// # Panics
///
/// If a text of an answer is not safe to print, if there is more in it than in the bytes, or if
/// what headers tell is encoded in another way than it was.
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
    _ = (read_program(bytes), PythonFile::from_bytes(bytes));
    if let Some(summary) = object::read_answer(bytes) {
        assert_eq!(object::write_answer(&summary), bytes);
    }
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
