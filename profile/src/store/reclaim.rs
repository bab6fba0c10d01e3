//! Keeps the store within its bounds: what is dropped, and when.
//!
//! Time first: a bucket is dropped when it is older than `keep`. Memory next: the oldest buckets
//! are dropped until the rest fits. A bucket takes its samples with it; the last sample of a thread
//! takes the thread, and the last thread an ended process. Stacks that no sample uses are removed
//! when they are a quarter of their table, or when memory is short. Frames stay longest, because their
//! numbers are used outside of the store (see [`crate::intern::Frames`]): they are dropped, with
//! their names and modules, only when there are twice as many as are in use, or too many for the
//! memory.

use super::Store;
use crate::time::{STAMP_NS, STAMPS_PER_SECOND};

/// Number of samples between two checks of the memory: often enough that a bound of a few megabytes
/// holds, rarely enough not to show in a profile.
const CHECK_SAMPLES: u32 = 256;

impl Store {
    /// Called when time has reached a new second: drops what is too old.
    pub(super) fn enter_second(&mut self, second: u64) {
        self.newest_second = self.newest_second.max(second);
        let oldest = self.oldest_wanted();
        while self.histories.oldest_second().is_some_and(|s| s < oldest) {
            self.drop_oldest_second();
        }
        self.processes.sweep(self.newest_second);
        if self.states.oldest_second().is_some_and(|s| s < oldest) {
            self.states_mut().forget_before(oldest);
        }
        if self.is_full {
            // One second alone had reached the bound; it is dropped as a whole.
            self.drop_oldest_second();
            self.is_full = false;
        }
        self.check_memory();
    }

    /// The first second that may still be kept: a sample from before it would leave a gap between
    /// itself and the rest.
    pub(super) fn oldest_wanted(&self) -> u64 {
        let keep = self.limits.keep.as_secs().max(1);
        (self.newest_second + 1)
            .saturating_sub(keep)
            .max(self.first_second)
    }

    /// Called for each sample; checks the memory at every [`CHECK_SAMPLES`]th.
    pub(super) fn check_memory_sometimes(&mut self) {
        self.until_check = self.until_check.saturating_sub(1);
        if self.until_check == 0 {
            self.until_check = CHECK_SAMPLES;
            self.check_memory();
        }
    }

    /// Releases the frames that nothing uses: no stack, no running look-up, no living member of the
    /// function that they own.
    pub(super) fn release_frames(&mut self) {
        // Compacting copies all stacks. While few of them are dead it is not done, and their frames
        // stay as well.
        if self.stacks.is_quarter_dead() {
            self.compact_stacks();
        }
        let mut live = vec![false; self.frames.len()];
        // A frame is used by a stack, as the owner of a function whose frame is used, or as a
        // function that is inlined in one.
        for (_, stack) in self.stacks.iter() {
            for frame in stack {
                live[frame.0 as usize] = true;
                live[self.names.owners()[frame.0 as usize].0 as usize] = true;
                for link in self.sources.chain(frame) {
                    live[link.function.0 as usize] = true;
                }
            }
        }
        let names = &self.names;
        let gone = self
            .frames
            .release(|id| live[id.0 as usize] || names.tag(id).is_asked());

        for id in &gone {
            if let Some(frame) = self.frames.get(*id) {
                self.names.forget(*id, self.modules.whole(frame.module));
                self.modules.drop_frame(frame.module);
                self.sources.forget(*id);
            }
        }
        self.sources.compact();
        self.names.shrink();
        self.naming
            .forget_frame(|frame| gone.binary_search(&frame).is_ok());
    }

    /// Drops history until all fits, in this order:
    ///
    /// 1. stacks that no sample uses, if they are a quarter of their table
    /// 2. the oldest seconds except the last one, while samples and stacks take most of the memory
    /// 3. frames that nothing uses, with their names, and more seconds if that is not enough
    /// 4. if the newest second alone does not fit, its further samples are refused
    fn check_memory(&mut self) {
        if self.stacks.has_many_dead() {
            self.compact_stacks();
        }
        if self.memory_bytes() <= self.limits.memory_bytes {
            return;
        }
        // A little more than needed: compacting for each sample would be slow.
        let target = self.limits.memory_bytes - self.limits.memory_bytes / 16;
        while self.histories.seconds() > 1
            // Otherwise frames and names take most of the memory, which step 3 handles.
            && self.tables_bytes() <= self.limits.memory_bytes / 2
            // The memory of dead stacks is freed by the compaction below.
            && self.memory_bytes() > target.saturating_add(self.stacks.dead_bytes())
        {
            self.drop_oldest_second();
        }
        self.compact_stacks();
        self.shrink_tables(target);
        self.is_full =
            self.histories.seconds() <= 1 && self.memory_bytes() > self.limits.memory_bytes;
    }

    /// Used when frames and names take most of the memory. Dropping samples alone does not help
    /// then: it only makes frames that can be released.
    ///
    /// Each turn drops an eighth of the seconds, so that there are few turns: each of them visits
    /// every kept stack.
    fn shrink_tables(&mut self, target: usize) {
        while self.memory_bytes() > target {
            self.release_frames();
            self.frames.stop_growing();
            if self.memory_bytes() <= target || self.histories.seconds() <= 1 {
                return;
            }
            let seconds = (self.histories.seconds() / 8).max(1);
            (0..seconds).for_each(|_| self.drop_oldest_second());
        }
    }

    /// Memory that is not freed together with samples.
    fn tables_bytes(&self) -> usize {
        self.frames.memory_bytes()
            + self.names.memory_bytes()
            + self.sources.memory_bytes()
            + self.modules.memory_bytes()
    }

    /// Drops the oldest second of all events. History then begins with the second after it, and
    /// samples from before are refused.
    fn drop_oldest_second(&mut self) {
        let Some(second) = self.histories.oldest_second() else {
            return;
        };
        while let Some(bucket) = self.histories.pop_oldest(second) {
            for sample in bucket.iter() {
                self.stacks.drop_use(sample.stack);
                self.processes.drop_sample(sample.thread);
            }
        }
        self.first_second = second + 1;
        let next_ns = self
            .first_second
            .saturating_mul(STAMP_NS * STAMPS_PER_SECOND);
        self.begin_ns = self.begin_ns.map(|begin| begin.max(next_ns));
    }

    /// Removes unused stacks, also from the list of those that need names.
    fn compact_stacks(&mut self) {
        let stacks = &self.stacks;
        self.naming.retain(|stack| stacks.uses(stack) > 0);
        self.stacks.compact();
    }
}

#[cfg(test)]
mod tests {
    use crate::store::tests::{frame, sample, store, waiting};
    use crate::{Frame, Limits, ModuleId, NameState, NewSample, NoName, ProcessId, Store};
    use std::time::Duration;

    fn bounded(keep_seconds: u64, memory_bytes: usize) -> Store {
        Store::new(Limits {
            keep: Duration::from_secs(keep_seconds),
            memory_bytes,
        })
    }

    const SECOND: u64 = 1_000_000_000;

    /// Samples of all events leave with their second, and their stacks with them.
    #[test]
    fn all_events_are_kept_as_long() {
        let mut store = bounded(3, 1 << 20);
        let waits = store.add_event(waiting()).unwrap();
        for second in 0..10 {
            let frames = [frame(second)];
            let sample = sample(second * SECOND, &frames);
            // Events take turns, and both have a sample in one second.
            assert!(second % 2 == 0 || store.add_sample(sample));
            assert!(second % 3 != 0 || store.add_sample_of(waits, sample));
        }
        let view = store.view();
        let counts = view.events().map(|(_, _, samples)| samples);
        assert_eq!(counts.collect::<Vec<_>>(), [2, 1], "7, 9 and 9");
        assert_eq!((store.stats().samples, store.kept_seconds()), (3, 3.0));
        store.enter_second(10_000);
        store.release_frames();
        assert_eq!((store.stats().samples, store.stats().stacks), (0, 0));
    }

    #[test]
    fn history_is_as_long_as_asked() {
        let mut store = bounded(3, 1 << 20);
        (0..10).for_each(|s| assert!(store.add_sample(sample(s * SECOND, &[frame(s)]))));
        assert_eq!(store.stats().samples, 3);
        assert_eq!(store.kept_seconds(), 3.0);
        assert!(!store.add_sample(sample(6 * SECOND, &[frame(6)])), "late");
        assert!(store.add_sample(sample(8 * SECOND, &[frame(6)])), "in time");
        assert_eq!(store.stats().refused_late, 1);
    }

    #[test]
    fn memory_is_bounded_and_the_newest_stay() {
        const BOUND: usize = 4 << 20;
        let mut store = bounded(600, BOUND);
        let mut most = 0;
        for i in 0..200_000u64 {
            // Every sample has a stack of its own.
            let frames: Vec<Frame> = (0..20).map(|d| frame((i >> d) % 5000)).collect();
            assert!(store.add_sample(sample(i * SECOND / 1000, &frames)));
            most = most.max(store.memory_bytes());
        }
        // An index that doubles between two checks may exceed the bound.
        assert!(most < BOUND * 12 / 10, "{most}");
        let kept = store.kept_seconds();
        assert!((5.0..199.0).contains(&kept), "{kept}");
        let report = store.report(Duration::from_secs(1), 200 * SECOND - 1);
        assert_eq!(report.samples, 1000);
    }

    #[test]
    fn one_second_cannot_take_all_memory() {
        const BOUND: usize = 4 << 20;
        let mut store = bounded(600, BOUND);
        let taken = (0..200_000u64)
            .filter(|i| store.add_sample(sample(*i, &[frame(*i), frame(i + 1)])))
            .count() as u64;
        assert!(store.memory_bytes() < BOUND * 5 / 4, "{:?}", store.stats());
        assert_eq!(store.stats().refused_memory, 200_000 - taken);
        assert!(taken > 1000);
        assert!(store.add_sample(sample(SECOND, &[frame(1)])), "and goes on");
    }

    /// Feeds five minutes of two hundred short-lived processes a second; returns the memory after
    /// two minutes and at the end.
    fn feed_builds(store: &mut Store, binaries: u32) -> (usize, usize) {
        let mut after_two_minutes = 0;
        for n in 0..300 * 200u32 {
            let module = ModuleId(n % binaries + 1);
            store.add_module(module, "build-script", "/tmp/target/build-script");
            store.add_process(ProcessId(n), n % 10_000, "build-script");
            let frames: Vec<Frame> = (0..20)
                .map(|depth| Frame {
                    module: if depth % 2 == 0 { module } else { ModuleId(0) },
                    ..frame(depth * 64)
                })
                .collect();
            store.add_sample(NewSample {
                process: ProcessId(n),
                tid: n,
                ..sample(u64::from(n) * SECOND / 200, &frames)
            });
            // Every other end is reported; the others are noticed when the pid is used again.
            if n % 2 == 0 {
                store.process_exited(ProcessId(n));
            }
            if n % 200 == 0 {
                for id in store.frames_to_name(5000) {
                    let name = format!("f{}", id.0 % 5000);
                    store.set_name(id, NameState::Named(name.into()));
                }
            }
            if n == 120 * 200 {
                after_two_minutes = store.memory_bytes();
            }
        }
        (after_two_minutes, store.memory_bytes())
    }

    #[test]
    fn short_lived_processes_leave_nothing_behind() {
        let mut store = bounded(60, 64 << 20);
        let (early, late) = feed_builds(&mut store, 1000);
        let stats = store.stats();
        assert_eq!((stats.samples, stats.threads), (12_000, 12_000));
        assert!(stats.processes <= 12_000 + 10_000, "{stats:?}");
        assert!(late < early * 21 / 20, "{early} {late}");
        assert!(late < 20 << 20, "{late}");
    }

    /// Like `feed_builds`, but each process runs a binary that was never seen before.
    #[test]
    fn binaries_never_seen_again_leave_with_their_processes() {
        const BOUND: usize = 24 << 20;
        let mut store = bounded(60, BOUND);
        let (_, late) = feed_builds(&mut store, u32::MAX);
        let stats = store.stats();
        assert!(late < BOUND * 11 / 10, "{stats:?}");
        assert!(stats.modules < 40_000, "{stats:?}");
        assert!(stats.samples > 5_000, "{stats:?}");
    }

    /// Places that are sampled only once, as in code made at run time.
    #[test]
    fn places_never_seen_again_are_forgotten() {
        const BOUND: usize = 2 << 20;
        let mut store = bounded(5, BOUND);
        let mut held = None;
        for i in 0..300_000u64 {
            assert!(store.add_sample(sample(i * SECOND / 1000, &[frame(i + 10), frame(1)])));
            let asked = if i % 64 == 0 {
                store.frames_to_name(128)
            } else {
                Vec::new()
            };
            for id in asked {
                if store.frame(id) == Some(frame(1)) {
                    held = Some(id);
                    store.set_name(id, NameState::Named("main".into()));
                } else {
                    store.set_name(id, NameState::Unnamed(NoName::Stripped));
                }
            }
        }
        let stats = store.stats();
        assert!(stats.memory_bytes < BOUND * 11 / 10, "{stats:?}");
        assert!(stats.frames < 30_000, "{stats:?}");
        // The frame that is still used kept its number, its name and its row.
        let held = held.expect("asked for");
        assert_eq!(store.frame(held), Some(frame(1)));
        assert_eq!(store.name(held), NameState::Named("main".into()));
        let report = store.report(Duration::from_secs(1), 300 * SECOND - 1);
        assert_eq!(report.samples, 1000);
        let row = &report.functions[report.find_function(held).expect("a row")];
        assert_eq!((row.total_samples, row.self_samples), (1000, 0));
    }

    #[test]
    fn a_frame_that_was_asked_for_is_not_released() {
        let mut store = store();
        store.add_sample(sample(0, &[frame(1)]));
        store.add_sample(sample(0, &[frame(2)]));
        let asked = store.frames_to_name(1)[0];
        store.enter_second(10_000);
        store.release_frames();
        assert_eq!(store.stats().frames, 1);
        store.set_name(asked, NameState::Named("f".into()));
        store.release_frames();
        assert_eq!(store.stats().frames, 0);
        assert_eq!(store.stats().functions, 0);
        assert_eq!(store.name(asked), NameState::Pending);
    }
}
