//! Any bytes, decoded as answers of a parser: for the fuzz target `answers`.

use super::answer;
use super::jit_order::JitAnswer;
use super::lines_order::{read_lines, read_program, write_lines, write_program};

/// Decodes bytes as each kind of answer. A parser reads untrusted files, which may have taken it
/// over, so that it may answer with any bytes.
///
/// # Panics
///
/// If what was decoded is another answer after it was encoded and decoded again.
pub fn check_any_answer(bytes: &[u8]) {
    if let Some((names, beside)) = answer::read(bytes) {
        let again = answer::write(&names, beside);
        assert_eq!(answer::read(&again), Some((names, beside)));
    }
    if let Some(id) = read_program(bytes) {
        assert_eq!(read_program(&write_program(id.as_ref())), Some(id));
    }
    if let Some(lines) = read_lines(bytes) {
        let again = write_lines(lines.unread_bytes as usize, lines.chains.clone());
        assert_eq!(read_lines(&again), Some(lines));
    }
    if let Some(jit) = JitAnswer::read(bytes) {
        assert_eq!(JitAnswer::read(&jit.write()), Some(jit));
    }
}
