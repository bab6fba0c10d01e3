//! Paces what has waited. After an outage all hosts have much to send. Each sends it at a small
//! multiple of the rate at which it would have sent it, so that the server's load is no more than
//! that multiple of the usual one, however many hosts come back.

use crate::backoff::random;
use std::time::Duration;

/// By how much a pause is longer or shorter, as a part of it: hosts that were started at the same
/// moment drift apart.
const JITTER: f64 = 0.25;

/// Longest pause, whatever a window says of its length.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// When the next late window or file may be sent.
#[derive(Debug)]
pub struct CatchUp {
    /// How many are sent in the time in which one comes.
    times: f64,
    /// No late one is sent before this time (ms since 1970); `None` until the first one.
    next_ms: Option<u64>,
}

impl CatchUp {
    pub fn new(times: f64) -> Self {
        Self {
            times,
            next_ms: None,
        }
    }

    /// Returns how long a late window or file has to wait; `None` if it can be sent now. One comes
    /// every `each_ms` in the mean.
    pub fn wait(&mut self, each_ms: f64, now_ms: u64) -> Option<Duration> {
        let pause_ms = self.pause_ms(each_ms);
        // Many hosts may have been started at the same moment.
        let first = || now_ms + (random() * pause_ms) as u64;
        let next_ms = *self.next_ms.get_or_insert_with(first);
        let left_ms = next_ms.saturating_sub(now_ms);
        // If the clock was set back, it does not wait for longer than it would have.
        let longest_ms = (pause_ms * (1.0 + JITTER)) as u64;
        (1..=longest_ms)
            .contains(&left_ms)
            .then(|| Duration::from_millis(left_ms))
    }

    /// Begins the pause after a window or file that was sent.
    pub fn begin_pause(&mut self, each_ms: f64, now_ms: u64) {
        let factor = 1.0 + JITTER * (2.0 * random() - 1.0);
        self.next_ms = Some(now_ms + (self.pause_ms(each_ms) * factor) as u64);
    }

    fn pause_ms(&self, each_ms: f64) -> f64 {
        (each_ms / self.times).clamp(0.0, PAUSE_MAX.as_millis() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: f64 = 60_000.0;

    /// Sends late windows as fast as possible for an hour. Returns when each was sent.
    fn sent_in_an_hour(mut catch_up: CatchUp) -> Vec<u64> {
        let (mut now_ms, mut sent) = (0, Vec::new());
        while now_ms < 3_600_000 {
            match catch_up.wait(MINUTE_MS, now_ms) {
                Some(wait) => now_ms += wait.as_millis() as u64,
                None => {
                    sent.push(now_ms);
                    catch_up.begin_pause(MINUTE_MS, now_ms);
                }
            }
        }
        sent
    }

    #[test]
    fn what_has_waited_is_sent_at_a_multiple_of_the_usual_rate() {
        let sent = sent_in_an_hour(CatchUp::new(2.5));
        // 150 in the mean; each pause is 18 to 30 s.
        assert!((119..=201).contains(&sent.len()), "{}", sent.len());
        let pauses = sent.windows(2).map(|it| it[1] - it[0]);
        for pause in pauses {
            assert!((18_000..=30_000).contains(&pause), "{pause}");
        }
    }

    #[test]
    fn no_moment_has_much_more_than_the_mean_when_many_hosts_start_together() {
        let hosts = 1000;
        let mut bins = vec![0; 120];
        for _ in 0..hosts {
            for at_ms in sent_in_an_hour(CatchUp::new(2.5)) {
                // What is sent at the end of the hour may be beyond it.
                if let Some(bin) = bins.get_mut(at_ms as usize / 30_000) {
                    *bin += 1;
                }
            }
        }
        // Half a window comes in 30 s.
        let usual = f64::from(hosts) * 0.5;
        let most = bins.into_iter().max().unwrap();
        assert!(f64::from(most) <= 3.0 * usual, "{most} by {usual}");
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_it() {
        let mut catch_up = CatchUp::new(2.5);
        catch_up.begin_pause(MINUTE_MS, 10_000_000);
        assert!(catch_up.wait(MINUTE_MS, 10_000_001).is_some());
        assert_eq!(catch_up.wait(MINUTE_MS, 1_000), None);
    }

    #[test]
    fn a_window_that_claims_to_be_endless_makes_a_pause_of_an_hour() {
        let mut catch_up = CatchUp::new(2.5);
        catch_up.begin_pause(f64::INFINITY, 0);
        let wait = catch_up.wait(f64::INFINITY, 0).unwrap();
        assert!(wait <= PAUSE_MAX.mul_f64(1.0 + JITTER), "{wait:?}");
    }
}
