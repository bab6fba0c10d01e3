//! How many samples were lost in a window: the source only counts from the start of the run.

use profile::few;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Lost samples over time, as far back as any window reaches.
#[derive(Debug, Clone, Default)]
pub struct Losses {
    /// `(time, number lost until then)`, only where the number changed.
    steps: VecDeque<(u64, u64)>,
    /// Number lost in the whole run, by CPU.
    by_cpu: Vec<(u32, u64)>,
}

/// Maximum number of steps; older ones are dropped: minutes in which each reading of the ring has
/// losses. Snapshots keep copies.
const STEPS_MAX: usize = 8192;

impl Losses {
    /// Whether [`Losses::note`] would change anything.
    pub fn is_news(&self, lost_run: u64) -> bool {
        self.steps.back().map_or(0, |(_, lost)| *lost) != lost_run
    }

    /// Records how many samples were lost from the start of the run to `time_ns`: `lost_run` on all
    /// CPUs, `by_cpu` on each.
    pub fn note(&mut self, time_ns: u64, lost_run: u64, by_cpu: &[(u32, u64)]) {
        if !self.is_news(lost_run) {
            return;
        }
        self.by_cpu = by_cpu.to_vec();
        few::sort_by_key(&mut self.by_cpu, |(cpu, lost)| (Reverse(*lost), *cpu));
        if self.steps.len() == STEPS_MAX {
            self.steps.pop_front();
        }
        self.steps.push_back((time_ns, lost_run));
    }

    /// Number of samples lost from `start_ns` up to `end_ns`.
    pub fn between(&self, start_ns: u64, end_ns: u64) -> u64 {
        self.until(end_ns) - self.until(start_ns)
    }

    /// Number of samples lost in each second that lost some, in seconds of the clock of the
    /// samples, rising, as far back as known.
    pub fn by_second(&self) -> Vec<(u64, u64)> {
        let mut seconds: Vec<(u64, u64)> = Vec::new();
        let before = self.steps.iter().map(|(_, lost)| *lost);
        // Once steps were dropped, it is unknown what the first one adds.
        let is_whole = self.steps.len() < STEPS_MAX;
        let first = is_whole
            .then_some(0)
            .or(self.steps.front().map(|(_, lost)| *lost));
        let before = first.into_iter().chain(before);
        for ((time_ns, lost), before) in self.steps.iter().zip(before) {
            let (second, more) = (time_ns / 1_000_000_000, lost.saturating_sub(before));
            match seconds.last_mut() {
                Some((last, sum)) if *last == second => *sum += more,
                _ if more > 0 => seconds.push((second, more)),
                _ => {}
            }
        }
        seconds
    }

    /// CPUs that lost samples in this run, with the number, most first.
    pub fn by_cpu(&self) -> &[(u32, u64)] {
        &self.by_cpu
    }

    /// Number of samples lost up to a time.
    fn until(&self, time_ns: u64) -> u64 {
        let after = self.steps.partition_point(|(time, _)| *time <= time_ns);
        after.checked_sub(1).map_or(0, |last| self.steps[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_its_own_losses() {
        let mut losses = Losses::default();
        for (time, lost) in [(10, 0), (20, 5), (30, 5), (40, 7)] {
            losses.note(time, lost, &[]);
        }
        assert_eq!(losses.between(0, 100), 7);
        assert_eq!(losses.between(0, 15), 0);
        assert_eq!(losses.between(15, 35), 5);
        assert_eq!(losses.between(20, 35), 0);
        assert_eq!(losses.between(35, 100), 2);
        assert_eq!(losses.by_second(), [(0, 7)]);
        losses.note(2_500_000_000, 9, &[]);
        losses.note(2_900_000_000, 10, &[]);
        losses.note(4_000_000_000, 11, &[(0, 2), (3, 5), (7, 4)]);
        assert_eq!(losses.by_second(), [(0, 7), (2, 3), (4, 1)]);
        assert_eq!(losses.by_cpu(), [(3, 5), (7, 4), (0, 2)]);
    }
}
