//! All probes of a run, with their counts of every second.
//!
//! A log only grows at its ends, and numbers never change, so a writer can tell what is new. The
//! oldest seconds are dropped only when the log has reached its limit.

use super::{CallTally, ProbeAbout};
use crate::TimeRange;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Maximum number of probes in one run. 64 can be in place at a time.
pub const PROBES_MAX: usize = 4_096;
/// Maximum number of different frames in the stacks of all probes.
pub const FRAMES_MAX: usize = 1 << 20;
/// Maximum number of different stacks of one probe.
pub const STACKS_MAX: usize = 4_096;
/// Maximum number of different threads of one probe.
pub const THREADS_MAX: usize = 4_096;
/// Maximum number of different texts that the values of one probe had.
pub const TEXTS_MAX: usize = 32_768;

/// Maximum sum of stacks, threads and texts of all probes, and of the frames of all these stacks.
const NUMBERED_MAX: usize = 1 << 20;
const STACK_WORDS_MAX: usize = 16 << 20;

/// Maximum memory of the counts of all seconds. A second of a busy probe takes some 2 KiB.
const COUNTS_BYTES_MAX: usize = 64 << 20;

const SECOND_NS: u64 = 1_000_000_000;

/// All probes of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeLog {
    probes: Vec<ProbeRecord>,
    frames: Vec<ProbeFrame>,
    /// Approximate memory of all counts.
    bytes: usize,
    /// Number of stacks, threads and texts, plus the frames in all these stacks.
    numbered: usize,
    stack_words: usize,
}

/// A frame in the stacks of calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeFrame {
    /// The short name of its file.
    pub module: Arc<str>,
    /// Address in the file.
    pub address: u64,
    /// Name of its function; `None` until known.
    pub name: Option<Arc<str>>,
}

/// A thread that called a probed function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeThread {
    /// Its name.
    pub comm: Arc<str>,
    /// Its number.
    pub tid: u32,
}

/// When and why a probe was removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeEnd {
    /// Time of the removal, on the clock of the samples.
    pub at_ns: u64,
    /// The reason, in words that follow "taken away:".
    pub why: Arc<str>,
}

/// One probe with its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeRecord {
    about: Arc<ProbeAbout>,
    /// Stacks as numbers of frames, the caller first.
    stacks: Vec<Arc<[u32]>>,
    threads: Vec<ProbeThread>,
    texts: Vec<Arc<str>>,
    /// Counts by rising seconds; a second may occur more than once.
    counts: VecDeque<(u64, Arc<CallTally>)>,
    /// Number of counts that were dropped because there was no room.
    forgotten: u64,
    end: Option<ProbeEnd>,
}

impl ProbeRecord {
    /// The description of the probe.
    pub fn about(&self) -> &ProbeAbout {
        &self.about
    }

    /// The stacks of its calls, by number: numbers of frames, the caller first.
    pub fn stacks(&self) -> &[Arc<[u32]>] {
        &self.stacks
    }

    /// The threads that called, by number.
    pub fn threads(&self) -> &[ProbeThread] {
        &self.threads
    }

    /// The texts that its values had, by number. They are safe to print.
    pub fn texts(&self) -> &[Arc<str>] {
        &self.texts
    }

    /// When and why it was removed; `None` while it is in place, or if the recording ended before.
    pub fn end(&self) -> Option<&ProbeEnd> {
        self.end.as_ref()
    }

    /// Its counts by second, in the order of time.
    pub fn counts(&self) -> impl DoubleEndedIterator<Item = (u64, &CallTally)> {
        self.counts
            .iter()
            .map(|(second, tally)| (*second, &**tally))
    }

    /// Its counts of each second in `range`; seconds without counts are missing.
    pub fn seconds(&self, range: TimeRange) -> BTreeMap<u64, CallTally> {
        let mut seconds: BTreeMap<u64, CallTally> = BTreeMap::new();
        for (second, tally) in self.counts().filter(|(second, _)| is_in(*second, range)) {
            seconds.entry(second).or_default().add(tally);
        }
        seconds
    }

    /// Number of counts that were dropped because there was no room.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The sum of its counts in all seconds that `range` touches, including the one in which the
    /// range begins.
    pub fn total(&self, range: TimeRange) -> CallTally {
        let mut sum = CallTally::default();
        for (_, tally) in self.counts().filter(|(second, _)| is_in(*second, range)) {
            sum.add(tally);
        }
        sum.values
            .resize_with(self.about.values.len(), Default::default);
        sum
    }
}

impl ProbeLog {
    /// Whether there never was a probe.
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty()
    }

    /// All probes, in the order in which they were placed.
    pub fn probes(&self) -> &[ProbeRecord] {
        &self.probes
    }

    /// The frames of all stacks, by number.
    pub fn frames(&self) -> &[ProbeFrame] {
        &self.frames
    }

    /// Returns the name of a frame, or its file and address if it has none.
    pub fn frame_name(&self, number: u32) -> Arc<str> {
        let Some(frame) = self.frames.get(number as usize) else {
            return "[unknown]".into();
        };
        match &frame.name {
            Some(name) => Arc::clone(name),
            None => format!("{}+{:#x}", frame.module, frame.address).into(),
        }
    }

    /// The last second that has counts.
    pub fn newest_second(&self) -> Option<u64> {
        let last = |probe: &ProbeRecord| probe.counts.back().map(|(second, _)| *second);
        self.probes.iter().filter_map(last).max()
    }

    /// When the first probe was placed.
    pub fn begin_ns(&self) -> Option<u64> {
        self.probes.iter().map(|probe| probe.about.placed_ns).min()
    }

    /// Adds a probe and returns its number; `None` if there are [`PROBES_MAX`].
    pub fn add_probe(&mut self, about: ProbeAbout) -> Option<usize> {
        if self.probes.len() >= PROBES_MAX {
            return None;
        }
        self.probes.push(ProbeRecord {
            about: Arc::new(about),
            stacks: Vec::new(),
            threads: Vec::new(),
            texts: Vec::new(),
            counts: VecDeque::new(),
            forgotten: 0,
            end: None,
        });
        Some(self.probes.len() - 1)
    }

    /// Adds a frame and returns its number; `None` if there are [`FRAMES_MAX`].
    pub fn add_frame(&mut self, frame: ProbeFrame) -> Option<u32> {
        push(&mut self.frames, frame, FRAMES_MAX)
    }

    /// Sets the name of the function that a frame is in; an empty name is ignored. Returns false if
    /// there is no such frame.
    pub fn set_frame_name(&mut self, number: u32, name: Arc<str>) -> bool {
        let frame = self.frames.get_mut(number as usize);
        let name = (!name.is_empty()).then_some(name);
        frame.map(|frame| frame.name = name).is_some()
    }

    /// Adds a stack of a probe and returns its number; `None` if the probe has [`STACKS_MAX`], or
    /// if a frame is unknown.
    pub fn add_stack(&mut self, probe: usize, frames: &[u32]) -> Option<u32> {
        let is_known = |frame: &u32| (*frame as usize) < self.frames.len();
        let words = self.stack_words + frames.len();
        if !frames.iter().all(is_known) || words > STACK_WORDS_MAX {
            return None;
        }
        let number = self.number(
            probe,
            STACKS_MAX,
            |record| &mut record.stacks,
            frames.into(),
        )?;
        self.stack_words = words;
        Some(number)
    }

    /// Adds a thread of a probe and returns its number; `None` if the probe has [`THREADS_MAX`].
    pub fn add_thread(&mut self, probe: usize, thread: ProbeThread) -> Option<u32> {
        self.number(probe, THREADS_MAX, |record| &mut record.threads, thread)
    }

    /// Adds a text that values of a probe had and returns its number; `None` if the probe has
    /// [`TEXTS_MAX`]. The text has to be safe to print.
    pub fn add_text(&mut self, probe: usize, text: Arc<str>) -> Option<u32> {
        self.number(probe, TEXTS_MAX, |record| &mut record.texts, text)
    }

    /// Adds an entry to a table of a probe and returns its number; `None` if there is no room.
    fn number<T>(
        &mut self,
        probe: usize,
        max: usize,
        table: impl Fn(&mut ProbeRecord) -> &mut Vec<T>,
        entry: T,
    ) -> Option<u32> {
        if self.numbered >= NUMBERED_MAX {
            return None;
        }
        let number = push(table(self.probes.get_mut(probe)?), entry, max)?;
        self.numbered += 1;
        Some(number)
    }

    /// Adds the counts of a probe for one second. Ignored if there is no such probe. If there is no
    /// room, the oldest counts of all probes are dropped.
    pub fn count(&mut self, probe: usize, second: u64, tally: CallTally) {
        let Some(record) = self.probes.get_mut(probe) else {
            return;
        };
        self.bytes += tally.bytes();
        // Seconds rise, so that the oldest counts are in front.
        let last = record.counts.back().map_or(0, |(last, _)| *last);
        record.counts.push_back((second.max(last), Arc::new(tally)));
        while self.bytes > COUNTS_BYTES_MAX {
            self.forget_oldest();
        }
    }

    /// Records when and why a probe was removed.
    pub fn set_end(&mut self, probe: usize, end: ProbeEnd) {
        if let Some(record) = self.probes.get_mut(probe) {
            record.end = Some(end);
        }
    }

    /// Returns the log with other names for processes, threads and modules, and without values:
    /// these are data of the programs.
    pub(crate) fn anonymous(&self, mut comm: impl FnMut(&Arc<str>) -> Arc<str>) -> Self {
        let mut log = self.clone();
        for probe in &mut log.probes {
            let about = Arc::make_mut(&mut probe.about);
            about.whose = Arc::default();
            about.values.clear();
            probe.texts.clear();
            for thread in &mut probe.threads {
                thread.comm = comm(&thread.comm);
            }
            for (_, tally) in &mut probe.counts {
                if !tally.values.is_empty() {
                    Arc::make_mut(tally).values.clear();
                }
            }
        }
        log
    }

    /// Returns the log without names of functions: each function is named by its address.
    pub(crate) fn without_symbols(&self) -> Self {
        let mut log = self.clone();
        for probe in &mut log.probes {
            let about = Arc::make_mut(&mut probe.about);
            about.name = format!("{}+{:#x}", about.module, about.address).into();
        }
        for frame in &mut log.frames {
            frame.name = None;
        }
        log
    }

    /// Adds all probes of another log, whose times are shifted by `shift_ns`. Probes for which
    /// there is no room are left out.
    pub(crate) fn add_all(&mut self, other: &ProbeLog, shift_ns: u64) {
        let mut frames = Vec::with_capacity(other.frames.len());
        for frame in &other.frames {
            frames.push(self.add_frame(frame.clone()));
        }
        for probe in &other.probes {
            let mut about = ProbeAbout::clone(&probe.about);
            about.placed_ns = about.placed_ns.saturating_add(shift_ns);
            let Some(number) = self.add_probe(about) else {
                return;
            };
            let added = &mut self.probes[number];
            let renumbered = |stack: &Arc<[u32]>| -> Arc<[u32]> {
                let known = stack.iter().filter_map(|frame| frames[*frame as usize]);
                known.collect()
            };
            self.numbered += probe.stacks.len() + probe.threads.len() + probe.texts.len();
            added.stacks = probe.stacks.iter().map(renumbered).collect();
            added.threads.clone_from(&probe.threads);
            added.texts.clone_from(&probe.texts);
            added.forgotten = probe.forgotten;
            added.end = probe.end.clone().map(|end| ProbeEnd {
                at_ns: end.at_ns.saturating_add(shift_ns),
                ..end
            });
            for (second, tally) in probe.counts() {
                let second = second.saturating_add(shift_ns / SECOND_NS);
                self.count(number, second, tally.clone());
            }
        }
    }

    /// Drops the oldest counts.
    fn forget_oldest(&mut self) {
        let oldest =
            |probe: &&mut ProbeRecord| probe.counts.front().map_or(u64::MAX, |(second, _)| *second);
        let Some(probe) = self.probes.iter_mut().min_by_key(oldest) else {
            return;
        };
        match probe.counts.pop_front() {
            Some((_, tally)) => {
                self.bytes = self.bytes.saturating_sub(tally.bytes());
                probe.forgotten += 1;
            }
            None => self.bytes = 0,
        }
    }
}

/// Whether a second belongs to a range: the second in which the range begins does.
fn is_in(second: u64, range: TimeRange) -> bool {
    let first = range.start_ns.map_or(0, |ns| ns / SECOND_NS);
    let end = range.end_ns.unwrap_or(u64::MAX);
    second >= first && second.saturating_mul(SECOND_NS) < end
}

/// Adds an entry to a table and returns its number; `None` if it is full.
fn push<T>(table: &mut Vec<T>, entry: T, max: usize) -> Option<u32> {
    if table.len() >= max {
        return None;
    }
    table.push(entry);
    Some(table.len() as u32 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(calls: u64) -> CallTally {
        CallTally {
            calls,
            ..CallTally::default()
        }
    }

    #[test]
    fn a_window_has_the_seconds_that_begin_in_it() {
        let mut log = ProbeLog::default();
        let probe = log.add_probe(ProbeAbout::default()).unwrap();
        for (second, count) in [(3, 1), (4, 10), (4, 100), (6, 1_000)] {
            log.count(probe, second, calls(count));
        }
        let of = |start: u64, end: u64| {
            let range = TimeRange::between(start * SECOND_NS, end * SECOND_NS);
            log.probes()[probe].total(range).calls
        };
        assert_eq!([of(0, 3), of(0, 4), of(4, 5), of(3, 7)], [0, 1, 110, 1_111]);
        let all = log.probes()[probe].total(TimeRange::ALL);
        assert_eq!((all.calls, log.newest_second()), (1_111, Some(6)));
    }

    #[test]
    fn the_oldest_counts_leave_when_there_is_no_room() {
        let mut log = ProbeLog::default();
        let both = [0, 1].map(|_| log.add_probe(ProbeAbout::default()).unwrap());
        let large = CallTally {
            calls: 1,
            callers: (0..4_000).map(|stack| (stack, 1)).collect(),
            ..CallTally::default()
        };
        let seconds = (COUNTS_BYTES_MAX / large.bytes()) as u64;
        for second in 0..seconds {
            for probe in both {
                log.count(probe, second, large.clone());
            }
        }
        assert!(log.bytes <= COUNTS_BYTES_MAX);
        let kept = |probe: usize| log.probes()[probe].total(TimeRange::ALL).calls;
        let forgotten = both.map(|probe| log.probes()[probe].forgotten());
        // Both probes lose the same number, as their counts are equally old.
        assert!(forgotten[0].abs_diff(forgotten[1]) <= 1, "{forgotten:?}");
        assert_eq!(
            both.map(|probe| kept(probe) + forgotten[probe]),
            [seconds; 2]
        );
        assert!(kept(0) > seconds / 3, "{}", kept(0));
    }

    #[test]
    fn what_is_given_away_has_no_values_and_no_names_of_threads() {
        let mut log = ProbeLog::default();
        let value = super::super::ValueAbout {
            text: "str(arg1)".into(),
            register: "rdi".into(),
        };
        let about = ProbeAbout {
            name: "open_account".into(),
            module: "bank".into(),
            address: 0x40,
            whose: "bank[7]".into(),
            values: vec![value],
            ..ProbeAbout::default()
        };
        let probe = log.add_probe(about).unwrap();
        log.add_text(probe, "\"secret\"".into());
        let comm = "ann's worker".into();
        log.add_thread(probe, ProbeThread { comm, tid: 9 });
        let mut tally = calls(3);
        tally.values = vec![super::super::ValueTally {
            unreadable: 0,
            texts: [(0, 3)].into(),
        }];
        log.count(probe, 1, tally);
        let given = log.anonymous(|_| "command-1".into());
        let text = format!("{given:?}");
        for private in ["secret", "ann", "bank[7]", "str("] {
            assert!(!text.contains(private), "{private}: {text}");
        }
        assert_eq!(given.probes()[0].total(TimeRange::ALL).calls, 3);
        let bare = log.without_symbols();
        assert_eq!(&*bare.probes()[0].about().name, "bank+0x40");
    }

    #[test]
    fn two_logs_put_together_have_the_probes_of_both() {
        let log = |module: &str| {
            let mut log = ProbeLog::default();
            let probe = log.add_probe(ProbeAbout::default()).unwrap();
            let frame = ProbeFrame {
                module: module.into(),
                ..ProbeFrame::default()
            };
            let frame = log.add_frame(frame).unwrap();
            assert_eq!(log.add_stack(probe, &[frame, 7]), None);
            log.add_stack(probe, &[frame]).unwrap();
            log.count(probe, 5, calls(1));
            log
        };
        let mut both = log("a");
        both.add_all(&log("b"), 2 * SECOND_NS);
        let [a, b] = both.probes() else {
            panic!("{both:?}");
        };
        let caller = |probe: &ProbeRecord| both.frame_name(probe.stacks()[0][0]);
        assert_eq!([&*caller(a), &*caller(b)], ["a+0x0", "b+0x0"]);
        assert_eq!(b.counts().map(|count| count.0).collect::<Vec<_>>(), [7]);
        assert_eq!(b.about().placed_ns, 2 * SECOND_NS);
    }
}
