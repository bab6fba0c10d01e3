//! Decides when the clocks of which CPU are restarted.

use super::rhythm::turn_ns;
use crate::random::Random;
use crate::time::now_ns;
use std::time::{Duration, Instant};

/// The turns of all CPUs, one after the other at random moments. They must not depend on when
/// samples are read, because code that runs then would be sampled less often.
#[derive(Debug)]
pub struct Turns {
    random: Random,
    due_ns: u64,
    /// Number of turns so far: determines which CPU is next.
    number: usize,
}

impl Turns {
    /// Starts without a turn: the first one comes some time after the first call of
    /// [`Turns::take`].
    pub fn new() -> Self {
        Self {
            random: Random::new(),
            due_ns: 0,
            number: 0,
        }
    }

    /// Returns the number of the clocks, of `clocks` in total, that are to be restarted now, and
    /// about how long they will continue; `None` if it is not time.
    pub fn take(&mut self, rate_hz: u32, clocks: usize) -> Option<(usize, u64)> {
        let now_ns = now_ns();
        if now_ns < self.due_ns {
            return None;
        }
        let turn_ns = turn_ns(rate_hz, clocks);
        let each = turn_ns as f64 / clocks.max(1) as f64;
        let is_first = self.due_ns == 0;
        self.due_ns = now_ns + self.random.between(0.5 * each, 1.5 * each) as u64;
        if is_first || clocks == 0 {
            return None;
        }
        self.number = self.number.wrapping_add(1);
        Some((self.number % clocks, turn_ns))
    }

    /// Calls `wait` with the rest of `time`, but at most until the next turn. Returns true if it is
    /// time for that turn and there is time left.
    pub fn wait<E>(
        &self,
        until: Instant,
        wait: impl FnOnce(Duration) -> Result<(), E>,
    ) -> Result<bool, E> {
        let left = until.saturating_duration_since(Instant::now());
        let to_turn = Duration::from_nanos(self.due_ns.saturating_sub(now_ns()));
        wait(left.min(to_turn))?;
        Ok(to_turn < left && now_ns() >= self.due_ns)
    }
}
