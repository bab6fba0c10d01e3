//! A *selection*: the samples of a query, counted by stack.

use super::internals::Internals;
use super::plumbing::Plumbing;
use super::scope::Admission;
use super::shape::{Shaper, Step};
use super::{Cancel, Cancelled, Query};
use crate::intern::StackId;
use crate::rates::{Evidence, Weighing};
use crate::tables::{Sample, Tag};
use crate::time::Stamps;
use crate::wait::WaitSum;
use crate::{Ending, Filter, FrameId, Info, Rates, Reweighed, View, Window};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Number of stacks between two checks of the cancel flag.
pub(super) const STEP: usize = 4096;

/// The samples of a query. It never changes and owns its view.
///
/// It is computed in three passes, each of which can be cancelled: samples per stack; the shape of
/// each stack that has samples; everything that depends on whether a stack is kept. A fourth pass
/// handles the seconds that have waits.
#[derive(Debug)]
pub struct Selection {
    pub(crate) view: View,
    pub(super) query: Query,
    /// The window of the query in stamps.
    pub(super) stamps: Stamps,
    /// How samples are weighed where the rate was changed.
    pub(super) weighing: Weighing,
    /// Which threads and CPUs are in scope.
    pub(super) admission: Admission,
    /// Number of samples that the filter keeps.
    pub(super) samples: u64,
    /// Whether some sample stands for more than one, or for none.
    pub(super) is_weighted: bool,
    /// Set if samples do not all count the same.
    reweighed: Option<Reweighed>,
    /// Whether the number of samples is unknown, because only their total weight is stored.
    hides_samples: bool,
    /// Number of samples in scope and window, before the filter.
    offered: u64,
    /// One entry for each combination of stack and ending that has samples.
    pub(super) entries: Vec<Entry>,
    /// The waits of each stack that has some, by rising stack numbers.
    pub(super) waits: Vec<(StackId, WaitSum)>,
    /// The shapes of all kept stacks, one after the other.
    pub(super) shapes: Vec<u32>,
    /// Position of each stack's shape, by stack number.
    pub(super) shape_of: Vec<ShapeAt>,
    /// What is folded of interpreters; `None` if nothing is.
    pub(super) internals: Option<Internals>,
    /// What is folded of waits; `None` if nothing is.
    pub(super) plumbing: Option<Plumbing>,
    /// Counts of each thread, by [`ThreadSlot`](crate::tables::ThreadSlot).
    pub(super) threads: Vec<Tally>,
    pub(super) cpus: BTreeMap<u16, Tally>,
    /// Samples by the way their walk ended.
    pub(super) endings: [u64; Ending::ALL.len()],
    /// Number of frame occurrences, by the tag of the frame's name.
    pub(crate) tags: [u64; Tag::COUNT],
}

/// The samples with one stack and one ending.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) stack: StackId,
    pub(super) ending: Ending,
    pub(super) samples: u64,
    pub(super) shape: ShapeAt,
}

/// Position of a stack's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShapeAt {
    /// Index in `shapes`.
    start: u32,
    len: u32,
}

impl ShapeAt {
    /// Marks a stack that no sample in scope and window has.
    pub(super) const UNSEEN: ShapeAt = ShapeAt { start: 0, len: 0 };
    /// Marks a stack that the filter drops.
    const DROPPED: ShapeAt = ShapeAt { start: 1, len: 0 };

    /// Whether the filter keeps the stack.
    pub(super) fn is_kept(self) -> bool {
        self.len > 0
    }
}

/// The counts of a thread or a CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) samples: u64,
    /// Number of stored samples, whatever their weights.
    pub(super) stored: u32,
    /// The part of `samples` that hit in the kernel.
    pub(super) in_kernel: u64,
}

impl Tally {
    pub(super) fn add(&mut self, sample: &Sample) {
        self.samples += sample.weight;
        self.stored += 1;
        self.in_kernel += if sample.in_kernel { sample.weight } else { 0 };
    }
}

impl View {
    /// Selects the samples of a query; returns an error if it was cancelled.
    pub fn select(&self, query: &Query, cancel: &Cancel) -> Result<Selection, Cancelled> {
        let weighing = Weighing::new(&self.info().rates, self.reach(query.window));
        Selection::new(self, query, weighing, cancel)
    }
}

impl Selection {
    pub(crate) fn new(
        view: &View,
        query: &Query,
        weighing: Weighing,
        cancel: &Cancel,
    ) -> Result<Self, Cancelled> {
        let tables = &*view.tables;
        let mut selection = Self {
            view: view.clone(),
            query: query.clone(),
            stamps: query.window.stamps(),
            weighing,
            admission: Admission::new(view, &query.scope, &query.filter),
            samples: 0,
            is_weighted: false,
            reweighed: None,
            hides_samples: false,
            offered: 0,
            entries: Vec::new(),
            waits: Vec::new(),
            shapes: Vec::new(),
            shape_of: vec![ShapeAt::UNSEEN; tables.stacks.len()],
            internals: None,
            plumbing: None,
            threads: vec![Tally::default(); tables.processes.thread_slots()],
            cpus: BTreeMap::new(),
            endings: [0; Ending::ALL.len()],
            tags: [0; Tag::COUNT],
        };
        let counts = selection.count_stacks(cancel)?;
        selection.offered = selection.count_offered(&counts, cancel)?;
        selection.shape_stacks(&counts, cancel)?;
        selection.count_samples(counts, cancel)?;
        selection.count_waits(cancel)?;
        Ok(selection)
    }

    /// Selects the samples of another query with the same weighing, so that the result, a part of
    /// this selection, can be compared with the rest.
    pub fn part(&self, query: &Query, cancel: &Cancel) -> Result<Self, Cancelled> {
        Self::new(&self.view, query, self.weighing.clone(), cancel)
    }

    /// Returns the same samples, [anonymized](View::anonymous). Samples that were selected by a
    /// name stay selected.
    pub fn anonymous(self) -> Self {
        Self {
            view: self.view.anonymous(),
            ..self
        }
    }

    /// The view that it was made from.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The query that it is the result of.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Number of samples that count: the base of every percentage.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Samples per second of a busy CPU, as they are counted here: the highest rate within the
    /// window. 0 if unknown.
    pub fn rate_hz(&self) -> u32 {
        self.weighing.hz()
    }

    /// How samples were weighed; `None` if all count as they were taken.
    pub fn reweighed(&self) -> Option<Reweighed> {
        self.reweighed
    }

    /// Whether the number of samples is unknown, because the file stores only the sum for equal
    /// stacks: then no confidence band can be given.
    pub fn hides_samples(&self) -> bool {
        self.hides_samples
    }

    /// Number of equally weighted samples that would be as much evidence as one sample counted
    /// here; 0 if unknown.
    pub(crate) fn evidence(&self) -> f64 {
        if self.hides_samples {
            return 0.0;
        }
        self.reweighed.map_or(1.0, |reweighed| reweighed.evidence)
    }

    /// Description of the recording, with the one rate at which samples are counted.
    pub fn info(&self) -> Info {
        Info {
            rates: Rates::always(self.rate_hz()),
            ..Info::clone(self.view.info())
        }
    }

    /// Number of samples in scope and window, of which the filter keeps [`Selection::samples`].
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// The part of the query's window that the history covers.
    pub fn window(&self) -> Window {
        self.view.window(self.query.window)
    }

    /// Calls `look` with each sample that counts, in `stamps`.
    #[inline]
    pub(super) fn visit(&self, stamps: Stamps, mut look: impl FnMut(Sample)) {
        self.view
            .tables
            .history
            .visit(stamps, &self.weighing, |sample| {
                if self.shape_of[sample.stack.0 as usize].is_kept()
                    && self.admission.admits(sample.thread, sample.cpu)
                {
                    look(sample);
                }
            });
    }

    /// Removes inlined functions from all shapes.
    pub(crate) fn drop_inlined(&mut self) {
        let mut shapes = Vec::with_capacity(self.shapes.len());
        let entries = self.entries.iter_mut().map(|entry| &mut entry.shape);
        // Stacks and entries share shapes, so each shape is copied once; the key is its old
        // position.
        let mut moved: HashMap<u32, ShapeAt> = HashMap::new();
        for at in self.shape_of.iter_mut().chain(entries) {
            if !at.is_kept() {
                continue;
            }
            *at = *moved.entry(at.start).or_insert_with(|| {
                let shape = &self.shapes[at.start as usize..][..at.len as usize];
                let start = shapes.len() as u32;
                shapes.extend(shape.iter().filter(|step| !Step(**step).is_inlined()));
                if shapes.len() as u32 == start {
                    shapes.push(crate::intern::HIDDEN.0);
                }
                let len = shapes.len() as u32 - start;
                ShapeAt { start, len }
            });
        }
        self.shapes = shapes;
    }

    #[inline]
    pub(super) fn shape(&self, at: ShapeAt) -> &[u32] {
        &self.shapes[at.start as usize..][..at.len as usize]
    }

    /// The function that samples with this shape are charged to.
    #[inline]
    pub(super) fn leaf(&self, at: ShapeAt) -> FrameId {
        Step(self.shapes[at.start as usize]).function()
    }

    /// The function that the samples of each stack are charged to, by stack number; 0 for stacks
    /// that do not count. For callers that need all of them: looking at each stack's shape would
    /// miss the cache.
    pub(super) fn leaves(&self) -> Vec<u32> {
        let leaf = |at: &ShapeAt| if at.is_kept() { self.leaf(*at).0 } else { 0 };
        self.shape_of.iter().map(leaf).collect()
    }

    /// Counts the samples of each stack, in scope and window. This and the last pass go through all
    /// samples and take most of a query's time.
    fn count_stacks(&mut self, cancel: &Cancel) -> Result<Vec<u64>, Cancelled> {
        let mut counts = vec![0u64; self.shape_of.len()];
        let history = &self.view.tables.history;
        history.visit_buckets(self.stamps, |bucket| {
            cancel.check()?;
            bucket.visit(self.stamps, &self.weighing, |sample| {
                if self.admission.admits(sample.thread, sample.cpu) {
                    counts[sample.stack.0 as usize] += sample.weight;
                }
            });
            Ok(())
        })?;
        Ok(counts)
    }

    /// Counts the samples in scope and window before the filter. `counts` has only those whose
    /// thread and CPU pass the filter; if the filter tests neither, these are all.
    fn count_offered(&self, counts: &[u64], cancel: &Cancel) -> Result<u64, Cancelled> {
        if !self.query.filter.asks_of_samples() {
            return Ok(counts.iter().sum());
        }
        let scope = Admission::new(&self.view, &self.query.scope, &Filter::default());
        let mut offered = 0;
        let history = &self.view.tables.history;
        history.visit_buckets(self.stamps, |bucket| {
            cancel.check()?;
            bucket.visit(self.stamps, &self.weighing, |sample| {
                if scope.admits(sample.thread, sample.cpu) {
                    offered += sample.weight;
                }
            });
            Ok(())
        })?;
        Ok(offered)
    }

    /// Builds the shape of each stack that has samples, and counts the kept samples and how many of
    /// their frames have names.
    fn shape_stacks(&mut self, counts: &[u64], cancel: &Cancel) -> Result<(), Cancelled> {
        let view = self.view.clone();
        let tables = &*view.tables;
        let shaper = Shaper::new(&view, &self.query.scope, &self.query.filter);
        let tags = tables.names.tags();
        for (number, samples) in (0u32..).zip(counts).filter(|(_, samples)| **samples > 0) {
            if (number as usize).is_multiple_of(STEP) {
                cancel.check()?;
            }
            let start = self.shapes.len() as u32;
            let stack = StackId(number);
            if !shaper.append(stack, &mut self.shapes) {
                self.shape_of[number as usize] = ShapeAt::DROPPED;
                continue;
            }
            self.samples += samples;
            let len = self.shapes.len() as u32 - start;
            self.shape_of[number as usize] = ShapeAt { start, len };
            for frame in tables.stacks.frames(stack) {
                self.tags[tags[frame.0 as usize].index()] += samples;
            }
            if tables.stacks.leaf(stack) == crate::intern::NO_STACK {
                // What stands for a missing stack does not count as a frame.
                self.tags[tags[crate::intern::NO_STACK.0 as usize].index()] -= samples;
            }
        }
        (self.internals, self.plumbing) = shaper.into_folded();
        Ok(())
    }

    /// Counts samples by thread, CPU and ending, and creates the entries.
    fn count_samples(&mut self, counts: Vec<u64>, cancel: &Cancel) -> Result<(), Cancelled> {
        // Nearly every stack has only one ending; further ones are kept in a map.
        const NONE: u8 = u8::MAX;
        let mut ending_of = vec![NONE; counts.len()];
        let mut others: HashMap<(StackId, Ending), u64> = HashMap::new();
        let mut threads = std::mem::take(&mut self.threads);
        let mut endings = self.endings;
        let mut is_weighted = false;
        let info = Arc::clone(self.view.info());
        let mut evidence = Evidence::new(&self.weighing, &info.metric);
        let mut cpus: Vec<Tally> = Vec::new();
        cancel.check()?;
        self.visit(self.stamps, |sample| {
            threads[sample.thread.0 as usize].add(&sample);
            is_weighted |= sample.weight != 1;
            evidence.add(sample.stamp, sample.weight);
            endings[sample.ending as usize] += sample.weight;
            let cpu = usize::from(sample.cpu);
            if cpu >= cpus.len() {
                cpus.resize(cpu + 1, Tally::default());
            }
            cpus[cpu].add(&sample);
            let first = &mut ending_of[sample.stack.0 as usize];
            if *first == NONE {
                *first = sample.ending as u8;
            } else if *first != sample.ending as u8 {
                *others.entry((sample.stack, sample.ending)).or_default() += sample.weight;
            }
        });
        self.threads = threads;
        self.endings = endings;
        self.is_weighted = is_weighted;
        self.reweighed = evidence.reweighed();
        self.hides_samples = evidence.is_unknown();
        let seen = (0..=u16::MAX)
            .zip(cpus)
            .filter(|(_, tally)| tally.samples > 0);
        self.cpus = seen.collect();
        cancel.check()?;

        let mut left = counts;
        for ((stack, _), samples) in &others {
            left[stack.0 as usize] -= samples;
        }
        for (number, ending) in (0u32..).zip(&ending_of).filter(|(_, e)| **e != NONE) {
            self.entries.push(Entry {
                stack: StackId(number),
                ending: Ending::ALL[usize::from(*ending)],
                samples: left[number as usize],
                shape: self.shape_of[number as usize],
            });
        }
        for ((stack, ending), samples) in others {
            self.entries.push(Entry {
                stack,
                ending,
                samples,
                shape: self.shape_of[stack.0 as usize],
            });
        }
        Ok(())
    }

    /// Counts the waits of the samples that count, by stack.
    fn count_waits(&mut self, cancel: &Cancel) -> Result<(), Cancelled> {
        let mut sums: BTreeMap<StackId, WaitSum> = BTreeMap::new();
        let (mut squares, mut by_chance) = (0.0, 0.0);
        self.view
            .tables
            .history
            .visit_buckets(self.stamps, |bucket| {
                cancel.check()?;
                bucket.visit_waits(self.stamps, |sample, wait| {
                    if self.shape_of[sample.stack.0 as usize].is_kept()
                        && self.admission.admits(sample.thread, sample.cpu)
                    {
                        let sum = sums.entry(sample.stack).or_default();
                        sum.add_part(wait, sample.weight);
                        let weight = sample.weight as f64;
                        squares += weight * weight;
                        by_chance += weight * wait.by_chance_ns(sample.weight) as f64;
                    }
                });
                Ok(())
            })?;
        if self.view.info().metric.is_waiting() && !self.view.tables.history.has_waits() {
            // Other formats store only the total waiting time of equal stacks, and not the number
            // of waits.
            self.hides_samples = true;
            self.reweighed = None;
        }
        let sum = self.samples as f64;
        let reweighed = self.reweighed;
        self.reweighed = reweighed.map(|told| told.with_waits(sum, squares, by_chance));
        self.waits = sums.into_iter().collect();
        Ok(())
    }
}
