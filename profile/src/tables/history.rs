//! The kept samples, one bucket per second, stored as columns.
//!
//! A sample takes twelve bytes: a stamp (hundredths of the second), the ending of the walk and
//! whether it hit in the kernel, the CPU, the thread, the stack. Whole buckets are dropped, the
//! oldest first. Details of waits are a column of their own, which only seconds with waits have.

use super::processes::ThreadSlot;
use crate::Ending;
use crate::growth;
use crate::intern::StackId;
use crate::rates::Weighing;
use crate::time::{STAMPS_PER_SECOND, Stamps};
use crate::wait::WaitPart;
use std::collections::VecDeque;
use std::sync::Arc;

/// Memory of one stored sample, without its share of stacks and frames.
pub(crate) const BYTES_PER_SAMPLE: usize = 12;

/// A sample as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// When it was taken, as a stamp: see [`crate::time`].
    pub(crate) stamp: u64,
    pub(crate) cpu: u16,
    pub(crate) thread: ThreadSlot,
    pub(crate) stack: StackId,
    pub(crate) ending: Ending,
    pub(crate) in_kernel: bool,
    /// Number of samples that it stands for.
    pub(crate) weight: u64,
}

/// The samples of one event. Cloning is cheap: a bucket is copied only if it grows after that.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// Buckets by rising second; seconds without a sample have none.
    buckets: VecDeque<Arc<Bucket>>,
    samples: u64,
    /// Memory of the columns of all buckets except the last one, which grows with nearly each
    /// sample. It is kept, as the memory is asked for so often that adding up the buckets of a long
    /// recording each time would take most of the time of reading it.
    settled_bytes: usize,
}

/// The samples of one second, in the order in which they were added. All columns except weights and
/// waits have the same length; row n of each is the n-th sample.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bucket {
    second: u64,
    /// Hundredths of the second, 0 to 99.
    centis: Vec<u8>,
    hows: Vec<How>,
    cpus: Vec<u16>,
    threads: Vec<ThreadSlot>,
    stacks: Vec<StackId>,
    /// Weights; empty as long as every sample weighs one.
    weights: Vec<u64>,
    /// Details of waits; empty as long as no sample is of a wait.
    waits: Vec<WaitPart>,
}

/// An [`Ending`], with the highest bit set if the sample hit in the kernel.
#[derive(Debug, Clone, Copy)]
struct How(u8);

const IN_KERNEL: u8 = 0x80;
const _: () = assert!(Ending::ALL.len() < IN_KERNEL as usize);

impl How {
    fn new(ending: Ending, in_kernel: bool) -> Self {
        Self(ending.number() | if in_kernel { IN_KERNEL } else { 0 })
    }

    fn ending(self) -> Ending {
        Ending::ALL[usize::from(self.0 & !IN_KERNEL)]
    }

    fn in_kernel(self) -> bool {
        self.0 & IN_KERNEL != 0
    }
}

impl History {
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    pub(crate) fn seconds(&self) -> usize {
        self.buckets.len()
    }

    pub(crate) fn oldest_second(&self) -> Option<u64> {
        Some(self.buckets.front()?.second)
    }

    pub(crate) fn newest_second(&self) -> Option<u64> {
        Some(self.buckets.back()?.second)
    }

    /// Stores a sample. Samples of several CPUs arrive nearly, but not exactly, in order, so a
    /// bucket that is no longer the last may still grow.
    pub(crate) fn push(&mut self, sample: Sample, wait: WaitPart) {
        let second = sample.stamp / STAMPS_PER_SECOND;
        match self.buckets.back_mut() {
            Some(last) if last.second == second => Arc::make_mut(last).push(sample, wait),
            _ => {
                let at = self.find_or_open(second);
                self.change(at, |bucket| bucket.push(sample, wait));
            }
        }
        self.samples += 1;
    }

    /// Removes the oldest bucket and returns it; `None` if there is none.
    pub(crate) fn pop_oldest(&mut self) -> Option<Arc<Bucket>> {
        let bucket = self.buckets.pop_front()?;
        self.samples -= bucket.len() as u64;
        if !self.buckets.is_empty() {
            self.settled_bytes -= bucket.memory_bytes();
        }
        Some(bucket)
    }

    /// The buckets, oldest first.
    pub(crate) fn buckets(&self) -> impl DoubleEndedIterator<Item = &Arc<Bucket>> {
        self.buckets.iter()
    }

    /// Whether any sample is of a wait.
    pub(crate) fn has_waits(&self) -> bool {
        self.buckets().any(|bucket| bucket.has_waits())
    }

    /// Calls `look` with each sample in `stamps`, with its weighed count.
    #[inline]
    pub(crate) fn visit(&self, stamps: Stamps, weighing: &Weighing, mut look: impl FnMut(Sample)) {
        let all: Result<(), std::convert::Infallible> = self.visit_buckets(stamps, |bucket| {
            bucket.visit(stamps, weighing, &mut look);
            Ok(())
        });
        let Ok(()) = all;
    }

    /// Calls `look` with each bucket that overlaps `stamps`, until it returns an error.
    pub(crate) fn visit_buckets<E>(
        &self,
        stamps: Stamps,
        mut look: impl FnMut(&Bucket) -> Result<(), E>,
    ) -> Result<(), E> {
        let first = stamps.first / STAMPS_PER_SECOND;
        let start = self.buckets.partition_point(|b| b.second < first);
        let last = stamps.last / STAMPS_PER_SECOND;
        for bucket in self.buckets.range(start..) {
            if bucket.second > last {
                break;
            }
            look(bucket)?;
        }
        Ok(())
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let last = self.buckets.back().map_or(0, |last| last.memory_bytes());
        self.settled_bytes + last + self.buckets.capacity() * size_of::<Bucket>()
    }

    /// Returns the index of a second's bucket, which is created if there is none.
    fn find_or_open(&mut self, second: u64) -> usize {
        let at = self.buckets.partition_point(|b| b.second < second);
        if self.buckets.get(at).is_none_or(|b| b.second != second) {
            // The bucket before is complete now, except for a few late samples.
            if let Some(before) = at.checked_sub(1) {
                self.change(before, Bucket::shrink);
            }
            if at == self.buckets.len() {
                // The bucket that was the last is not any more.
                self.settled_bytes += self.buckets.back().map_or(0, |last| last.memory_bytes());
            }
            let bucket = Bucket {
                second,
                ..Bucket::default()
            };
            self.buckets.insert(at, Arc::new(bucket));
        }
        at
    }

    /// Changes a bucket, which is copied first if a view shares it.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Bucket)) {
        // A copy may take less memory than the bucket did.
        let before = self.buckets[at].memory_bytes();
        let bucket = Arc::make_mut(&mut self.buckets[at]);
        change(bucket);
        let now = bucket.memory_bytes();
        if at + 1 < self.buckets.len() {
            self.settled_bytes = self.settled_bytes - before + now;
        }
    }
}

impl Bucket {
    pub(crate) fn len(&self) -> usize {
        self.centis.len()
    }

    pub(crate) fn second(&self) -> u64 {
        self.second
    }

    /// Calls `look` with each sample in `stamps`, with its weighed count.
    #[inline]
    pub(crate) fn visit(&self, stamps: Stamps, weighing: &Weighing, look: impl FnMut(Sample)) {
        let is_in = |sample: &Sample| stamps.contains(sample.stamp);
        match weighing.in_second(self.second) {
            // The usual case: most of a query's time is spent in this loop.
            None => self.iter().filter(is_in).for_each(look),
            Some(_) => self.weighed(weighing).filter(is_in).for_each(look),
        }
    }

    /// All samples with their weighed counts.
    pub(crate) fn weighed(&self, weighing: &Weighing) -> impl Iterator<Item = Sample> {
        let weighing = weighing.in_second(self.second);
        self.iter().enumerate().map(move |(at, mut sample)| {
            if let Some(weighing) = &weighing {
                sample.weight = weighing.weigh(at, sample.stamp, sample.weight);
            }
            sample
        })
    }

    /// All samples in the order in which they were added, with their stored weights.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Sample> {
        let when = self.centis.iter().zip(&self.hows);
        let who = self.cpus.iter().zip(&self.threads);
        let base = self.second * STAMPS_PER_SECOND;
        when.zip(who).zip(&self.stacks).enumerate().map(
            move |(at, (((centi, how), (cpu, thread)), stack))| Sample {
                stamp: base + u64::from(*centi),
                cpu: *cpu,
                thread: *thread,
                stack: *stack,
                ending: how.ending(),
                in_kernel: how.in_kernel(),
                weight: self.weights.get(at).copied().unwrap_or(1),
            },
        )
    }

    /// Calls `look` with the wait of each sample in `stamps`. Does nothing if no sample is of a
    /// wait.
    pub(crate) fn visit_waits(&self, stamps: Stamps, mut look: impl FnMut(Sample, WaitPart)) {
        for (sample, wait) in self.iter().zip(&self.waits) {
            if stamps.contains(sample.stamp) {
                look(sample, *wait);
            }
        }
    }

    /// Whether any of its samples is of a wait.
    pub(crate) fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// The details of a sample's wait.
    pub(crate) fn wait(&self, at: usize) -> WaitPart {
        self.waits.get(at).copied().unwrap_or(WaitPart::NONE)
    }

    /// Adds a sample to all columns.
    fn push(&mut self, sample: Sample, wait: WaitPart) {
        if self.stacks.len() == self.stacks.capacity() {
            self.grow();
        }
        self.centis.push((sample.stamp % STAMPS_PER_SECOND) as u8);
        self.hows.push(How::new(sample.ending, sample.in_kernel));
        self.cpus.push(sample.cpu);
        self.threads.push(sample.thread);
        self.stacks.push(sample.stack);
        if sample.weight != 1 || !self.weights.is_empty() {
            // The samples before this one have weight 1.
            self.weights.resize(self.stacks.len() - 1, 1);
            self.weights.push(sample.weight);
        }
        if wait != WaitPart::NONE || !self.waits.is_empty() {
            self.waits.resize(self.stacks.len() - 1, WaitPart::NONE);
            self.waits.push(wait);
        }
    }

    /// Grows all columns at once, so that they keep the same capacity.
    fn grow(&mut self) {
        growth::reserve(&mut self.centis, 1);
        growth::reserve(&mut self.hows, 1);
        growth::reserve(&mut self.cpus, 1);
        growth::reserve(&mut self.threads, 1);
        growth::reserve(&mut self.stacks, 1);
    }

    /// Frees capacity that will not be used.
    fn shrink(&mut self) {
        self.centis.shrink_to_fit();
        self.hows.shrink_to_fit();
        self.cpus.shrink_to_fit();
        self.threads.shrink_to_fit();
        self.stacks.shrink_to_fit();
    }

    fn memory_bytes(&self) -> usize {
        // The columns grow together, so the capacity of one stands for all.
        self.stacks.capacity() * BYTES_PER_SAMPLE
            + self.weights.capacity() * size_of::<u64>()
            + self.waits.capacity() * size_of::<WaitPart>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(stamp: u64) -> Sample {
        Sample {
            stamp,
            cpu: 3,
            thread: ThreadSlot(5),
            stack: StackId(7),
            ending: Ending::TooDeep,
            in_kernel: stamp.is_multiple_of(2),
            weight: 1 + stamp % 3,
        }
    }

    fn seen(history: &History, first: u64, last: u64) -> Vec<u64> {
        let mut seen = Vec::new();
        history.visit(Stamps { first, last }, &Weighing::default(), |s| {
            seen.push(s.stamp)
        });
        seen
    }

    #[test]
    fn a_sample_comes_back_as_it_was() {
        let mut history = History::default();
        let stored: Vec<Sample> = [250, 99, 100, 251].map(sample).to_vec();
        let push = |s: &Sample| history.push(*s, WaitPart::NONE);
        stored.iter().for_each(push);
        let mut seen = Vec::new();
        let all = Stamps {
            first: 0,
            last: u64::MAX,
        };
        history.visit(all, &Weighing::default(), |s| seen.push(s));
        assert_eq!(seen, [99, 100, 250, 251].map(sample));
        assert_eq!((history.samples(), history.seconds()), (4, 3));
    }

    #[test]
    fn a_window_cuts_inside_a_second_too() {
        let mut history = History::default();
        (0..400).for_each(|stamp| history.push(sample(stamp), WaitPart::NONE));
        assert_eq!(seen(&history, 150, 152), [150, 151, 152]);
        assert_eq!(seen(&history, 399, 1000), [399]);
        assert!(seen(&history, 10, 5).is_empty());
        assert_eq!(history.pop_oldest().map(|b| b.len()), Some(100));
        assert_eq!(seen(&history, 0, 101), [100, 101]);
    }

    #[test]
    fn what_a_sample_tells_of_a_wait_stays_beside_it() {
        let mut history = History::default();
        let wait = WaitPart::whole(7);
        history.push(sample(1), WaitPart::NONE);
        history.push(sample(2), wait);
        history.push(sample(3), WaitPart::NONE);
        let bucket = history.buckets().next().unwrap();
        assert_eq!((bucket.wait(1), bucket.wait(2)), (wait, WaitPart::NONE));
        let mut seen = Vec::new();
        let stamps = Stamps { first: 2, last: 9 };
        bucket.visit_waits(stamps, |sample, wait| seen.push((sample.stamp, wait)));
        assert_eq!(seen, [(2, wait), (3, WaitPart::NONE)]);
    }

    #[test]
    fn the_memory_is_that_of_all_buckets() {
        let mut random = test_support::Random::new(5);
        let mut history = History::default();
        // Views share buckets, so that some are copied when they change.
        let mut views = Vec::new();
        for step in 0..20_000_u64 {
            let late_most = 1 << random.below(12);
            let late = random.below(late_most);
            let stamp = (step * 3).saturating_sub(late);
            let wait = match random.below(50) {
                0 => WaitPart::whole(7),
                _ => WaitPart::NONE,
            };
            match random.below(500) {
                0 => _ = history.pop_oldest(),
                1 => views = vec![history.clone()],
                _ => history.push(sample(stamp), wait),
            }
            for history in views.iter().chain([&history]) {
                let columns = history.buckets().map(|bucket| bucket.memory_bytes());
                let places = history.buckets.capacity() * size_of::<Bucket>();
                assert_eq!(history.memory_bytes(), columns.sum::<usize>() + places);
            }
        }
        while history.pop_oldest().is_some() {}
        let places = history.buckets.capacity() * size_of::<Bucket>();
        assert_eq!(history.memory_bytes(), places);
    }

    #[test]
    fn a_stored_sample_is_small() {
        let mut history = History::default();
        let light = |stamp| Sample {
            weight: 1,
            ..sample(stamp)
        };
        (0..100_000).for_each(|i| history.push(light(i / 1000), WaitPart::NONE));
        history.push(light(5000), WaitPart::NONE);
        let each = history.memory_bytes() as f64 / 100_001.0;
        assert!(each < 12.5, "{each}");
    }
}
