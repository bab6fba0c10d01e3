//! Reports waits that are not over. A thread that waits causes no event, possibly for hours; but
//! what it waits for, and in which functions, is what a user wants to see of a program that hangs.
//!
//! ```text
//!  wait begins     1.5 s: its stack is read      each quarter of a second       it ends
//!  ├──────────────────────┼──────────────────────┼───────────┼─────────────────────┤
//!                         told: all until here    told: the rest since      told: what is left
//! ```
//!
//! 1. Four times a second the sums of all threads are read; with very many threads, once a second.
//!    Waits that are [`OPEN_NS`] old by then are requested: the kernel side returns the registers
//!    and frames of the kernel ([`Follows::open`]), and the stack is read from the process's memory
//!    on another thread.
//! 2. If the thread is in the same wait after that, nothing has changed meanwhile, and the stack is
//!    walked like any copied stack: this gives a sample with the time until then. If the stack was
//!    deeper than what was read, more is read.
//! 3. As long as the wait goes on, each reading reports the same sample again, with the time that
//!    has passed since the previous one.
//! 4. The sample of the whole wait, when it ends, has the rest of the time ([`RawWait::told_ns`]).
//!    Such a long wait always causes one: [`OPEN_NS`] is longer than any period.

use crate::aside::Aside;
use crate::decode::{PythonFrames, RawSample, Record};
use crate::events::Event;
use crate::events::wait::{EndedThread, Follows, OpenWait, RawWait, ThreadTotals, WaitState};
use crate::owner::real_uid;
use crate::sample::{Batch, Sample};
use crate::shares::{NOBODY, may_have_more};
use crate::stack::{StackBytes, StackCopy};
use crate::time::now_ns;
use probe_ebpf::{Ending, UserFrame};
use std::collections::{HashMap, VecDeque};
use symbolize::Files;
use symbolize::files::fields_behind_name;

/// Age from which a wait is reported before its end: more than the longest period, so that its end
/// always causes a sample as well.
const OPEN_NS: u64 = 1_500_000_000;

/// Maximum number of waits whose stacks are kept, divided among users; of more, the newest have no
/// stack.
const OPEN_MAX: usize = 4096;

/// Maximum bytes of stacks that are requested at a time: they stay in memory until they are walked.
const ASKED_BYTES_MAX: u64 = 8 << 20;

/// How often the sums of threads are read if there are few threads (the maximum is the next
/// constant); with more it is done once a second.
const LOOK_SOON_NS: u64 = 250_000_000;
const LOOK_SOON_MAX: usize = 1024;

/// Maximum number of waits of which one reading reports samples. If more go on, each of them is
/// reported by every second reading, every third, and so on.
const TOLD_MAX: usize = 2048;

/// Bytes of a stack that are read at first: threads that wait seldom have deeper stacks.
const STACK_BYTES: u32 = 16 << 10;

/// For a deeper stack, factor by which more is read each time,
const DEEPER: u32 = 8;

/// up to this size, which is the maximum of one read.
const STACK_BYTES_MAX: u32 = 1 << 20;

/// How long a wait that has ended is remembered: its last sample may still be queued.
const REMEMBERED_NS: u64 = 10_000_000_000;

/// All waits that are not over.
pub struct OpenWaits {
    /// The thread that reads stacks; `None` if it could not be started.
    reader: Option<Aside<Asked, Read>>,
    /// Waits reported by the kernel side whose stacks were not requested yet.
    backlog: VecDeque<Asked>,
    /// Bytes of stacks that were requested and did not arrive yet.
    asked_bytes: u64,
    /// Waits whose stacks have been read since the sums of threads were last read.
    read: Vec<Read>,
    /// Waits that began until this time were requested from the kernel side.
    asked_ns: u64,
    by_thread: HashMap<u32, Open>,
    /// When the sums of threads were last read, and how many threads there were.
    looked_ns: u64,
    threads: usize,
    /// Number of readings of the sums.
    looks: u32,
    /// Number of waits whose stack could not be read.
    without: u64,
}

/// A wait whose stack is requested.
#[derive(Debug, Clone)]
struct Asked {
    told: OpenWait,
    /// The user who started its process.
    user: u32,
    /// Maximum bytes of the stack to read.
    bytes: u32,
}

/// A wait, and the data from which its stack is walked.
struct Read {
    asked: Asked,
    /// The stack from the stack pointer on; `None` if it could not be read.
    stack: Option<Vec<u8>>,
    /// The CPU on which the thread ran last.
    cpu: u32,
}

/// A wait that is reported before its end, or will be soon.
struct Open {
    since_ns: u64,
    user: u32,
    /// When it was last seen; `None` if it is over.
    seen_ns: Option<u64>,
    /// Samples have reported the wait until this time.
    told_until_ns: u64,
    stage: Stage,
}

/// The state of the stack of a wait.
enum Stage {
    /// It is being read or walked.
    Walked(Box<Asked>),
    /// It has been walked: the sample, which is reported repeatedly.
    Told(Box<Sample>),
}

impl OpenWaits {
    /// Starts without waits. The memory of targets is read through `files`.
    pub fn new(files: &Files) -> Self {
        let files = files.clone();
        let read = move |asked: Asked| Some(read(asked, &files));
        Self {
            reader: Aside::start("open waits", "reading stacks of threads that wait", read).ok(),
            backlog: VecDeque::new(),
            asked_bytes: 0,
            read: Vec::new(),
            asked_ns: 0,
            by_thread: HashMap::new(),
            looked_ns: 0,
            threads: 0,
            looks: 0,
            without: 0,
        }
    }

    /// Takes new data about waits, and adds to the batch of a turn: the sums of threads that have
    /// `ended` and, when it is time to read them, of those that live; and samples of waits that are
    /// not over. Returns samples of such waits that are still to be walked.
    pub fn turn(
        &mut self,
        waits: &mut impl Follows,
        ended: &[EndedThread],
        is_new_second: bool,
        batch: &mut Batch,
    ) -> Vec<Record> {
        self.correct(batch);
        let is_few = self.threads <= LOOK_SOON_MAX;
        let is_soon = is_few && now_ns().saturating_sub(self.looked_ns) >= LOOK_SOON_NS;
        if is_new_second || is_soon {
            // Stacks that were read before the sums are complete if the sums show that the wait
            // goes on.
            self.take_read();
        }
        batch.threads = waits.take(ended, is_new_second);
        let mut to_walk = Vec::new();
        if is_new_second {
            to_walk = self.look(&batch.threads, waits, now_ns());
            self.report_to(batch);
        } else if is_soon {
            let living = waits.threads();
            to_walk = self.look(&living, waits, now_ns());
            self.report_to(batch);
            batch.threads.extend(living);
        }
        batch.waits = waits.counters();
        batch.waits.open_without_stack = self.without;
        to_walk
    }

    /// Compares with the sums of all threads, which were read just now, requests stacks, and
    /// returns samples of those that were read.
    fn look(
        &mut self,
        threads: &[ThreadTotals],
        waits: &mut impl Follows,
        now_ns: u64,
    ) -> Vec<Record> {
        (self.looked_ns, self.threads) = (now_ns, threads.len());
        if let Some((from_ns, to_ns)) = self.follow(threads, now_ns) {
            self.take_told(waits.open(from_ns, to_ns));
        }
        self.samples(threads, now_ns)
    }

    /// Takes the stacks that were read.
    fn take_read(&mut self) {
        if let Some(reader) = &self.reader {
            for read in std::iter::from_fn(|| reader.answer()) {
                let bytes = u64::from(read.asked.bytes);
                self.asked_bytes = self.asked_bytes.saturating_sub(bytes);
                self.read.push(read);
            }
        }
    }

    /// Compares with the sums of all threads, which were read just now. Returns the range of begin
    /// times of waits that are to be requested, if there are any.
    fn follow(&mut self, threads: &[ThreadTotals], now_ns: u64) -> Option<(u64, u64)> {
        let waiting: HashMap<u32, &ThreadTotals> = threads
            .iter()
            .filter(|thread| is_waiting(thread))
            .map(|thread| (thread.tid, thread))
            .collect();
        self.looks = self.looks.wrapping_add(1);
        for (tid, open) in &mut self.by_thread {
            let same = waiting
                .get(tid)
                .filter(|thread| thread.state_since_ns == open.since_ns);
            open.seen_ns = same.map(|thread| thread.until_ns);
        }
        self.by_thread.retain(|_, open| {
            open.seen_ns.is_some() || now_ns.saturating_sub(open.told_until_ns) < REMEMBERED_NS
        });
        let to_ns = now_ns.saturating_sub(OPEN_NS);
        let is_new = |thread: &&ThreadTotals| {
            thread.state_since_ns > self.asked_ns && thread.state_since_ns <= to_ns
        };
        if !waiting.values().any(is_new) {
            return None;
        }
        let from_ns = std::mem::replace(&mut self.asked_ns, to_ns);
        Some((from_ns, to_ns))
    }

    /// Queues waits that the kernel side returned, as far as their users have room left.
    fn take_told(&mut self, told: Vec<OpenWait>) {
        let mut by_user: HashMap<u32, usize> = HashMap::new();
        let known = self.by_thread.values().map(|open| open.user);
        for user in known.chain(self.backlog.iter().map(|asked| asked.user)) {
            *by_user.entry(user).or_default() += 1;
        }
        let mut all: usize = by_user.values().sum();
        let mut users = HashMap::new();
        for told in told {
            let user = users.entry(told.tgid);
            let user = *user.or_insert_with(|| real_uid(told.tgid).unwrap_or(NOBODY));
            let own = by_user.entry(user).or_default();
            if !may_have_more(*own, all, OPEN_MAX) {
                self.without += 1;
                continue;
            }
            (*own, all) = (*own + 1, all + 1);
            self.backlog.push_back(Asked {
                told,
                user,
                bytes: STACK_BYTES,
            });
        }
    }

    /// Requests stacks, and returns samples with those that were read. `threads` are those passed
    /// to [`OpenWaits::follow`].
    fn samples(&mut self, threads: &[ThreadTotals], now_ns: u64) -> Vec<Record> {
        while let (Some(reader), Some(asked)) = (&self.reader, self.backlog.front()) {
            let bytes = self.asked_bytes + u64::from(asked.bytes);
            if bytes > ASKED_BYTES_MAX || !reader.ask(asked.user, asked.clone()) {
                break;
            }
            self.asked_bytes = bytes;
            self.backlog.pop_front();
        }
        if self.read.is_empty() {
            return Vec::new();
        }
        let by_tid: HashMap<u32, &ThreadTotals> =
            threads.iter().map(|thread| (thread.tid, thread)).collect();
        let read = std::mem::take(&mut self.read);
        let mut samples = Vec::with_capacity(2 * read.len());
        // Each gets another time, as two samples of the same time and CPU could not be
        // distinguished.
        for (time_ns, read) in (now_ns..).zip(read) {
            let told = &read.asked.told;
            let thread = by_tid.get(&told.tid);
            let is_same = |thread: &&&ThreadTotals| {
                is_waiting(thread) && thread.state_since_ns == told.since_ns
            };
            // Otherwise the wait is over, and its own sample reports it.
            let Some(thread) = thread.filter(is_same) else {
                continue;
            };
            let Some(state) = WaitState::of_number(told.state.into()) else {
                continue;
            };
            self.without += u64::from(read.stack.is_none());
            self.by_thread.insert(
                told.tid,
                Open {
                    since_ns: told.since_ns,
                    user: read.asked.user,
                    seen_ns: Some(thread.until_ns),
                    told_until_ns: told.since_ns,
                    stage: Stage::Walked(Box::new(read.asked.clone())),
                },
            );
            let (sample, stack) = sample(read, state, thread, time_ns);
            samples.extend(stack.map(Record::Stack));
            samples.push(Record::Sample(sample));
        }
        samples
    }

    /// Corrects the samples of a turn for waits that were reported before they ended, and keeps the
    /// samples that are to be reported again.
    fn correct(&mut self, batch: &mut Batch) {
        if self.by_thread.is_empty() {
            return;
        }
        batch.samples.retain_mut(|sample| {
            let (Some(wait), Event::Wait, time_ns) =
                (&mut sample.wait, sample.event, sample.time_ns)
            else {
                return true;
            };
            let since_ns = time_ns.saturating_sub(wait.away_ns);
            let open = self.by_thread.get_mut(&sample.tid);
            let open = open.filter(|open| open.since_ns == since_ns);
            let Some(open) = open else {
                return !wait.is_open;
            };
            if !wait.is_open {
                open.seen_ns = None;
                wait.told_ns = open
                    .told_until_ns
                    .saturating_sub(since_ns)
                    .min(wait.waited_ns);
                sample.weight = sample.weight.saturating_sub(wait.told_ns);
                // The sample that is walked only now has reported the wait until its time.
                open.told_until_ns = open.told_until_ns.max(time_ns);
                return true;
            }
            if open.told_until_ns >= time_ns {
                return false;
            }
            if sample.ending == Ending::CopyCut
                && let Stage::Walked(asked) = &open.stage
                && asked.bytes < STACK_BYTES_MAX
            {
                self.backlog.push_back(Asked {
                    bytes: STACK_BYTES_MAX.min(asked.bytes * DEEPER),
                    ..Asked::clone(asked)
                });
                return false;
            }
            open.told_until_ns = time_ns;
            open.stage = Stage::Told(Box::new(sample.clone()));
            true
        });
    }

    /// Reports each wait that is not over once more, with the time since it was last reported.
    fn report_to(&mut self, batch: &mut Batch) {
        let known = self.by_thread.len();
        let every = (known / TOLD_MAX + 1) as u32;
        for (tid, open) in &mut self.by_thread {
            let is_due = tid.wrapping_add(self.looks).is_multiple_of(every);
            let (Some(seen_ns), Stage::Told(sample)) = (open.seen_ns, &open.stage) else {
                continue;
            };
            let ns = seen_ns.saturating_sub(open.told_until_ns);
            let Some(wait) = sample.wait.filter(|_| is_due && ns > 0) else {
                continue;
            };
            open.told_until_ns = seen_ns;
            batch.samples.push(Sample {
                time_ns: batch.complete_until_ns,
                weight: ns,
                wait: Some(RawWait {
                    waited_ns: ns,
                    away_ns: seen_ns - open.since_ns,
                    ..wait
                }),
                ..Sample::clone(sample)
            });
        }
    }
}

/// Whether it waits for something other than a CPU.
fn is_waiting(thread: &ThreadTotals) -> bool {
    !thread.has_ended && !matches!(thread.state, WaitState::Run | WaitState::Queue)
}

/// Makes the sample of a wait that began some time ago, and the copy of its stack.
fn sample(
    read: Read,
    state: WaitState,
    thread: &ThreadTotals,
    time_ns: u64,
) -> (RawSample, Option<StackCopy>) {
    let Read { asked, stack, cpu } = read;
    let Asked {
        told, bytes: most, ..
    } = asked;
    let age_ns = time_ns.saturating_sub(told.since_ns);
    let raw = RawSample {
        event: Event::Wait,
        weight: age_ns,
        time_ns,
        cgroup_id: 0,
        stopped_at: told.registers.ip,
        tgid: told.tgid,
        tid: told.tid,
        cpu,
        ending: Ending::ReadFault,
        comm: told.comm,
        kernel: told.kernel,
        user: vec![UserFrame::exact(told.registers.ip)],
        stack_follows: stack.is_some(),
        python: PythonFrames::default(),
        is_checked: false,
        wait: Some(RawWait {
            state,
            waited_ns: age_ns,
            queued_ns: 0,
            away_ns: age_ns,
            waker: None,
            owner: thread.owner.map(|owner| (told.tgid, owner)),
            told_ns: 0,
            is_open: true,
        }),
    };
    let copy = stack.map(|bytes| {
        // If the stack is deeper than that, the rest was not read.
        let reach = (bytes.len() >= most as usize).then_some(u64::MAX);
        StackCopy {
            time_ns,
            cpu,
            registers: told.registers,
            scratch: told.scratch,
            bytes: StackBytes::new(0, &bytes, reach),
        }
    });
    (raw, copy)
}

/// Reads the stack of a thread that waits.
fn read(asked: Asked, files: &Files) -> Read {
    let told = &asked.told;
    let stack = files.memory_up_to(told.tgid, told.registers.sp, asked.bytes);
    let stat = std::fs::read(format!("/proc/{}/task/{}/stat", told.tgid, told.tid));
    Read {
        stack: stack.ok().filter(|stack| !stack.is_empty()),
        cpu: stat.ok().and_then(|stat| cpu_in(&stat)).unwrap_or(0),
        asked,
    }
}

/// Returns the CPU in /proc/PID/task/TID/stat (proc_pid_stat(5)).
fn cpu_in(stat: &[u8]) -> Option<u32> {
    /// The field's index after the name, which the third field follows.
    const PROCESSOR: usize = 39 - 3;
    let mut fields = fields_behind_name(stat)?.split_whitespace();
    fields.nth(PROCESSOR)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ProcessId;

    const TID: u32 = 8;
    const SECOND: u64 = 1_000_000_000;

    /// The sums of a thread that has slept since `since_ns`.
    fn asleep(since_ns: u64, now_ns: u64) -> ThreadTotals {
        ThreadTotals {
            pid: 7,
            tid: TID,
            comm: "worker".into(),
            since_ns: 0,
            until_ns: now_ns,
            has_ended: false,
            state: WaitState::Sleep,
            state_since_ns: since_ns,
            owner: None,
            ns: Default::default(),
            times: Default::default(),
            delays: Default::default(),
        }
    }

    fn asked(since_ns: u64) -> Asked {
        let told = OpenWait {
            since_ns,
            tid: TID,
            tgid: 7,
            state: WaitState::Sleep.number() as u32,
            comm: *b"worker\0\0\0\0\0\0\0\0\0\0",
            registers: Default::default(),
            scratch: Default::default(),
            kernel: vec![1, 2],
        };
        Asked {
            told,
            user: 0,
            bytes: STACK_BYTES,
        }
    }

    /// The sample that is made of a raw sample after its walk.
    fn walked(raw: &RawSample) -> Sample {
        Sample {
            event: raw.event,
            weight: raw.weight,
            time_ns: raw.time_ns,
            cpu: raw.cpu,
            process: ProcessId(1),
            tid: raw.tid,
            comm: "worker".into(),
            cgroup_id: 0,
            frames: Vec::new(),
            kernel_frames: 0,
            ending: Ending::Root,
            stopped_at: 0,
            over_share: false,
            tables_late: false,
            outside: false,
            wait: raw.wait,
        }
    }

    fn batch(samples: Vec<Sample>, complete_until_ns: u64) -> Batch {
        Batch {
            samples,
            complete_until_ns,
            ..Batch::default()
        }
    }

    /// Returns the sample of a thread whose stack has been read, and which is still in its wait.
    fn opened(waits: &mut OpenWaits, since_ns: u64, now_ns: u64) -> Sample {
        waits.read.push(Read {
            asked: asked(since_ns),
            stack: Some(vec![0; 64]),
            cpu: 3,
        });
        let samples = waits.samples(&[asleep(since_ns, now_ns)], now_ns);
        let [Record::Stack(copy), Record::Sample(raw)] = &samples[..] else {
            panic!("{samples:?}");
        };
        assert_eq!((copy.cpu, copy.time_ns), (raw.cpu, raw.time_ns));
        walked(raw)
    }

    /// Makes the sample of a wait that ended.
    fn ended(since_ns: u64, woken_ns: u64, end_ns: u64) -> Sample {
        let raw = walked(&sample_of_end(since_ns, woken_ns, end_ns));
        assert!(!raw.wait.unwrap().is_open);
        raw
    }

    fn sample_of_end(since_ns: u64, woken_ns: u64, end_ns: u64) -> RawSample {
        let read = Read {
            asked: asked(since_ns),
            stack: None,
            cpu: 0,
        };
        let (mut raw, _) = sample(read, WaitState::Sleep, &asleep(since_ns, end_ns), end_ns);
        let wait = raw.wait.as_mut().unwrap();
        wait.is_open = false;
        wait.waited_ns = woken_ns - since_ns;
        wait.queued_ns = end_ns - woken_ns;
        raw
    }

    #[test]
    fn only_waits_that_are_old_are_asked_for_and_each_once() {
        let mut waits = OpenWaits::new(&Files::default());
        let mut ask = |since_ns, now_ns| waits.follow(&[asleep(since_ns, now_ns)], now_ns);
        assert_eq!(ask(SECOND, 2 * SECOND), None);
        let to_ns = 3 * SECOND - OPEN_NS;
        assert_eq!(ask(SECOND, 3 * SECOND), Some((0, to_ns)));
        assert_eq!(ask(SECOND, 4 * SECOND), None);
        let later = Some((to_ns, 9 * SECOND - OPEN_NS));
        assert_eq!(ask(4 * SECOND, 9 * SECOND), later);
    }

    #[test]
    fn all_samples_of_a_wait_add_up_to_it() {
        let mut waits = OpenWaits::new(&Files::default());
        let first = opened(&mut waits, SECOND, 4 * SECOND);
        assert_eq!(first.weight, 3 * SECOND);
        let mut turn = batch(vec![first], 4 * SECOND);
        waits.correct(&mut turn);
        waits.report_to(&mut turn);
        assert_eq!(turn.samples.len(), 1, "it has just been told");
        let mut sum = turn.samples[0].weight;
        for second in [5, 6] {
            let now_ns = second * SECOND;
            waits.follow(&[asleep(SECOND, now_ns)], now_ns);
            let mut turn = batch(Vec::new(), now_ns - 5);
            waits.correct(&mut turn);
            waits.report_to(&mut turn);
            let [again] = &turn.samples[..] else {
                panic!("{}", turn.samples.len());
            };
            let wait = again.wait.unwrap();
            assert!(wait.is_open);
            assert_eq!((again.time_ns, wait.away_ns), (now_ns - 5, now_ns - SECOND));
            sum += again.weight;
        }
        assert_eq!(sum, 5 * SECOND);
        let mut turn = batch(vec![ended(SECOND, 8 * SECOND, 9 * SECOND)], 9 * SECOND);
        waits.correct(&mut turn);
        let wait = turn.samples[0].wait.unwrap();
        assert_eq!((wait.told_ns, turn.samples[0].weight), (sum, 3 * SECOND));
        let parts: Vec<_> = wait.parts().collect();
        let expected = [(WaitState::Sleep, 2 * SECOND), (WaitState::Queue, SECOND)];
        assert_eq!(parts, expected);
        // It is over: the stack does not count for another wait of the same thread.
        waits.follow(&[asleep(9 * SECOND, 10 * SECOND)], 10 * SECOND);
        let mut turn = batch(Vec::new(), 10 * SECOND);
        waits.report_to(&mut turn);
        assert!(turn.samples.is_empty());
        waits.follow(&[], 9 * SECOND + REMEMBERED_NS);
        assert!(waits.by_thread.is_empty());
    }

    #[test]
    fn a_wait_that_ended_before_its_stack_was_walked_counts_once() {
        let mut waits = OpenWaits::new(&Files::default());
        let first = opened(&mut waits, SECOND, 4 * SECOND);
        let end = ended(SECOND, 5 * SECOND, 5 * SECOND);
        let mut turn = batch(vec![end, first], 5 * SECOND);
        waits.correct(&mut turn);
        let weights: Vec<_> = turn.samples.iter().map(|sample| sample.weight).collect();
        assert_eq!(weights, [4 * SECOND]);
    }

    #[test]
    fn of_a_deep_stack_more_is_read() {
        let mut waits = OpenWaits::new(&Files::default());
        let cut = |sample| Sample {
            ending: Ending::CopyCut,
            ..sample
        };
        let first = cut(opened(&mut waits, SECOND, 4 * SECOND));
        let mut turn = batch(vec![first.clone()], 4 * SECOND);
        waits.correct(&mut turn);
        assert!(turn.samples.is_empty());
        for (second, bytes) in [(5, 128 << 10), (6, 1 << 20)] {
            let deep = waits.backlog.pop_front().unwrap();
            assert_eq!(deep.bytes, bytes);
            waits.read.push(Read {
                asked: deep,
                stack: Some(vec![0; 64]),
                cpu: 0,
            });
            let now_ns = second * SECOND;
            let samples = waits.samples(&[asleep(SECOND, now_ns)], now_ns);
            let [_, Record::Sample(again)] = &samples[..] else {
                panic!("{samples:?}");
            };
            turn = batch(vec![cut(walked(again))], now_ns);
            waits.correct(&mut turn);
        }
        assert_eq!(turn.samples[0].weight, 5 * SECOND, "there is no more");
        assert!(waits.backlog.is_empty());
    }

    #[test]
    fn a_stack_of_a_thread_that_moved_is_not_used() {
        let mut waits = OpenWaits::new(&Files::default());
        waits.read.push(Read {
            asked: asked(SECOND),
            stack: Some(vec![0; 64]),
            cpu: 0,
        });
        let now_ns = 4 * SECOND;
        let another = asleep(2 * SECOND, now_ns);
        assert!(waits.samples(&[another], now_ns).is_empty());
        assert!(waits.by_thread.is_empty());
    }

    #[test]
    fn very_many_are_told_in_turns_and_nothing_is_lost() {
        let mut waits = OpenWaits::new(&Files::default());
        let sample = opened(&mut waits, SECOND, 4 * SECOND);
        let threads = 3 * TOLD_MAX as u32;
        for tid in 0..threads {
            let open = Open {
                since_ns: SECOND,
                user: 0,
                seen_ns: Some(0),
                told_until_ns: 4 * SECOND,
                stage: Stage::Told(Box::new(sample.clone())),
            };
            waits.by_thread.insert(tid, open);
        }
        let mut sum = 0;
        for second in 5..13 {
            let now_ns = second * SECOND;
            let asleep = |tid| ThreadTotals {
                tid,
                ..asleep(SECOND, now_ns)
            };
            let threads: Vec<_> = (0..threads).map(asleep).collect();
            waits.follow(&threads, now_ns);
            let mut turn = batch(Vec::new(), now_ns);
            waits.report_to(&mut turn);
            assert!(turn.samples.len() <= TOLD_MAX, "{}", turn.samples.len());
            sum += turn.samples.iter().map(|sample| sample.weight).sum::<u64>();
        }
        let untold = waits
            .by_thread
            .values()
            .map(|open| 12 * SECOND - open.told_until_ns);
        assert_eq!(sum + untold.sum::<u64>(), 8 * SECOND * u64::from(threads));
    }

    #[test]
    fn nobody_takes_all_the_room() {
        let mut waits = OpenWaits::new(&Files::default());
        // Processes that do not exist belong to no user.
        let told = |tgid, tid| OpenWait {
            tid,
            tgid,
            ..asked(SECOND).told
        };
        let many = (0..2 * OPEN_MAX as u32).map(|tid| told(u32::MAX, tid));
        waits.take_told(many.collect());
        let taken = waits.backlog.len();
        assert_eq!(taken, OPEN_MAX - OPEN_MAX / 8);
        assert_eq!(waits.without, 2 * OPEN_MAX as u64 - taken as u64);
        let own = std::process::id();
        waits.take_told(vec![told(own, own), told(u32::MAX, 0)]);
        let last = waits.backlog.back().unwrap();
        assert_eq!((last.told.tgid, waits.backlog.len()), (own, taken + 1));
        // Not all of them are requested at once.
        waits.samples(&[], SECOND);
        assert_eq!(waits.asked_bytes, ASKED_BYTES_MAX);
        let left = waits.backlog.len() as u64;
        let asked = ASKED_BYTES_MAX / u64::from(STACK_BYTES);
        assert_eq!(left, taken as u64 + 1 - asked);
    }

    #[test]
    fn the_cpu_of_a_thread_is_read() {
        let fields: Vec<_> = (3..53).map(|field| field.to_string()).collect();
        let stat = format!("8 (a) b) {}", fields.join(" "));
        assert_eq!(cpu_in(stat.as_bytes()), Some(39));
        assert_eq!(cpu_in(b"8 (a) S"), None);
    }
}
