//! Decides when the clocks of which CPU are restarted.

use super::rhythm::turn_ns;
use crate::random::Random;
use crate::time::now_ns;
use std::time::{Duration, Instant};

/// How many times longer clocks keep their periods while the machine is idle: there is next to nothing
/// to be sampled then, and each change wakes up proftop and a CPU.
const IDLE_TIMES: u64 = 32;

/// The turns of all CPUs, one after the other at random moments. They must not depend on when
/// samples are read, because code that runs then would be sampled less often.
#[derive(Debug)]
pub struct Turns {
    random: Random,
    due_ns: u64,
    /// Number of turns so far: determines which CPU is next.
    number: usize,
    is_idle: bool,
}

impl Turns {
    /// Starts without a turn: the first one comes some time after the first call of
    /// [`Turns::take`].
    pub fn new() -> Self {
        Self {
            random: Random::new(),
            due_ns: 0,
            number: 0,
            is_idle: false,
        }
    }

    /// Says whether the machine is idle. That must not be told by samples: periods that are kept
    /// longer when they find nothing would make the program count less that they do not find.
    pub fn set_idle(&mut self, is_idle: bool) {
        self.is_idle = is_idle;
    }

    /// Returns the number of the clocks, of `clocks` in total, that are to be restarted now, and
    /// about how long they will continue; `None` if it is not time.
    pub fn take(&mut self, rate_hz: u32, clocks: usize) -> Option<(usize, u64)> {
        self.take_at(now_ns(), rate_hz, clocks)
    }

    fn take_at(&mut self, now_ns: u64, rate_hz: u32, clocks: usize) -> Option<(usize, u64)> {
        let mut turn_ns = turn_ns(rate_hz, clocks);
        if self.is_idle {
            turn_ns *= IDLE_TIMES;
        }
        let each = turn_ns as f64 / clocks.max(1) as f64;
        let is_first = self.due_ns == 0;
        // The machine was idle when the time of that turn was chosen, and is not any more.
        let is_too_late = self.due_ns.saturating_sub(now_ns) as f64 > 1.5 * each;
        if now_ns < self.due_ns && !is_too_late {
            return None;
        }
        self.due_ns = now_ns + self.random.between(0.5 * each, 1.5 * each) as u64;
        if is_first || is_too_late || clocks == 0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Has the next turn chosen at this time if it is due; returns the milliseconds until then.
    fn wait_from(turns: &mut Turns, now_ns: u64) -> u64 {
        turns.take_at(now_ns, 99, 2);
        (turns.due_ns - now_ns) / 1_000_000
    }

    #[test]
    fn turns_are_rare_while_the_machine_is_idle_and_as_soon_as_ever_after_that() {
        let mut turns = Turns::new();
        let soon = 62..190;
        assert!(soon.contains(&wait_from(&mut turns, 1_000)));
        turns.set_idle(true);
        let due_ns = turns.due_ns;
        let wait = wait_from(&mut turns, due_ns);
        assert!((2_000..6_080).contains(&wait), "{wait}");
        turns.set_idle(false);
        assert_eq!(
            turns.take_at(due_ns, 99, 2),
            None,
            "the time is chosen anew"
        );
        assert!(soon.contains(&wait_from(&mut turns, due_ns)));
    }
}
