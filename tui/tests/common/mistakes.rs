//! Mistakes (panics) that a test makes proftop have, by `PROFTOP_TEST_FAULTS`.

/// The variable that names pieces of work. Each of them fails the first time that a process does it.
pub const VARIABLE: &str = "PROFTOP_TEST_FAULTS";

/// Fails unless proftop has reported this mistake in its own words, and nothing in Rust's.
#[track_caller]
pub fn assert_told(said: &str, work: &str) {
    let told = format!("a mistake of its own while {work}");
    let is_it = |line: &str| line.contains(&told) && line.contains(": a fault that a test asked");
    assert!(said.lines().any(is_it), "{work}: {said}");
    assert!(!said.contains("panicked"), "{work}: {said}");
}
