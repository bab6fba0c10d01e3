//! Waits for a condition.

use std::time::{Duration, Instant};

/// How long a test waits before it fails. It is longer than anything takes on the busiest machine;
/// an idle one never comes near it.
pub const DEADLINE: Duration = Duration::from_secs(300);

const PAUSE: Duration = Duration::from_millis(10);

/// Waits until `holds` returns true, and fails the test if it does not within [`DEADLINE`].
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// Waits until `find` returns a value, and returns it; fails the test if there is none within
/// [`DEADLINE`].
#[track_caller]
pub fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        // Checked once more after the end: this thread may not have run for long.
        let is_over = Instant::now() >= end;
        if let Some(found) = find() {
            return found;
        }
        assert!(!is_over, "waited in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_until_there_is_something() {
        let mut asked = 0;
        let found = wait_for("the third", || {
            asked += 1;
            (asked == 3).then_some("here")
        });
        assert_eq!((found, asked), ("here", 3));
        wait_until("it holds at once", || true);
    }
}
