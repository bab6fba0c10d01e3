//! Reports that a test has not tested anything, or not everything.

use std::fmt::Display;
use std::io::Write as _;
use std::panic::Location;

/// Prints `skipped: TEST: WHY` to standard error, as one line. `.ci/run` collects these
/// lines and repeats them at its end.
///
/// `println` and `eprintln` cannot be used: the test harness captures their output if a test
/// passes.
#[track_caller]
pub fn skip(why: impl Display) {
    let thread = std::thread::current();
    let line = match thread.name() {
        // The harness names the thread of a test after the test, but with
        // `--test-threads=1` it runs all of them on its own.
        Some(test) if test != "main" => line(test, &why.to_string()),
        _ => line(Location::caller().file(), &why.to_string()),
    };
    // Written in one piece, as other tests may write at the same time.
    _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether this process is root; if not, skips the test with that reason.
#[track_caller]
pub fn is_root_or_skip(why: impl Display) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(why);
    }
    is_root
}

/// Returns the line to print. Messages of compilers have several lines, which are joined.
fn line(what: &str, why: &str) -> String {
    let why: Vec<&str> = why
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let why = if why.is_empty() {
        "no reason was given".to_owned()
    } else {
        why.join("; ")
    };
    format!("skipped: {what}: {why}\n")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_reason_is_one_line_and_never_missing() {
        assert_eq!(line("a", "needs root"), "skipped: a: needs root\n");
        assert_eq!(
            line("a", "cc:\n  error: x\n"),
            "skipped: a: cc:; error: x\n"
        );
        assert_eq!(line("a", "\n"), "skipped: a: no reason was given\n");
    }
}
