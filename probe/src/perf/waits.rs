//! Finds what threads wait for, without BPF. When a thread leaves its CPU and when it gets one
//! again, the kernel reports that to the thread's own user without further rights (`rings`). What
//! it waits for, and with which stack, is looked up while it waits (`look`), at random moments.
//!
//! | module | holds |
//! |---|---|
//! | `rings` | the events that report switches, and their rings |
//! | `record` | decodes the records of these rings |
//! | `look` | examines a thread that is on no CPU |
//! | `thread` | the state of a thread, and estimates of its waits that no look met |

mod look;
pub(crate) mod record;
mod rings;
mod thread;

use super::cpu::Offer;
use super::scope::Scope;
use crate::cpus::presence::Present;
use crate::decode::{RawSample, Record as Decoded};
use crate::events::wait::{
    EndedThread, Follows, OpenWait, Pace, RawWait, ThreadTotals, WaitCounters, WaitState,
    asleep_threads,
};
use crate::files;
use crate::proc_stat;
use crate::random::Random;
use crate::sideband::record::{Event as SideEvent, What};
use crate::stack::StackCopy;
use crate::target::Target;
use crate::time::now_ns;
use crate::timeline::Timeline;
use look::{Found, Look};
use probe_ebpf::waits::Orders;
use record::{At, Record, ThreadPosition};
use rings::Switches;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use symbolize::{Files, sanitize};
use thread::{Ended, Places, Thread};

/// Minimum distance of looks: each wakes the sampler.
const PERIOD_NS_MIN: u64 = 10_000_000;

/// Maximum number of looks at a wait whose stack could not be read.
const TRIES: u32 = 3;

/// Maximum number of remembered places; with more, all are forgotten.
const PLACES_MAX: usize = 4096;

/// Maximum number of followed threads, as with BPF.
const THREADS_MAX: usize = 32_768;

/// Interval of the searches for what is left of short waits.
const REST_NS: u64 = 100_000_000;

/// How long the end of a thread is remembered: its last switch comes after its end.
const DEAD_NS: u64 = 1_000_000_000;

/// The waits of the threads of a run.
pub struct Waits {
    switches: Vec<Switches>,
    offer: Offer,
    files: Files,
    random: Random,
    pace: Pace,
    orders: Orders,
    /// When the next looks are due, when the last ones were, and their average distance.
    due_ns: u64,
    looked_ns: u64,
    apart_ns: u64,
    /// The second in which looks are counted, and their number.
    second: (u64, u64),
    /// Switches and ends that were read, but are newer than the time until which everything is
    /// known.
    waiting: Vec<Step>,
    /// The last action of each thread, settled or not.
    latest: HashMap<u32, Latest>,
    /// Threads that are off their CPU, and were not looked at since.
    unlooked: HashSet<u32>,
    /// Looks that may belong to waits whose beginning is not settled yet.
    looks: HashMap<u32, Box<Look>>,
    threads: HashMap<u32, Thread>,
    /// Threads that have ended, and when.
    dead: HashMap<u32, u64>,
    /// Processes that were started by targets.
    children: HashSet<u32>,
    follows_children: bool,
    /// Whether a process is one of the kernel's.
    is_kernel: HashMap<u32, bool>,
    places: Places,
    settled_ns: u64,
    /// When pools were last searched for what is left in them.
    emptied_ns: u64,
    ended: Vec<ThreadTotals>,
    samples: Vec<Decoded>,
    counters: WaitCounters,
}

/// An event of a thread.
struct Step {
    time_ns: u64,
    what: Stepped,
}

enum Stepped {
    Switched(Record),
    Forked { pid: u32, parent_pid: u32 },
    Ended { tid: u32 },
    Renamed { tid: u32, comm: Vec<u8> },
}

/// The last action of a thread.
#[derive(Default)]
struct Latest {
    time_ns: u64,
    pid: u32,
    is_away: bool,
    is_preempted: bool,
    place: Option<Box<ThreadPosition>>,
    /// Number of attempts since then in which its stack could not be read.
    without: u32,
}

impl Waits {
    /// Follows the waits of a scope from now on.
    pub fn start(
        target: &Target,
        scope: &Scope,
        offer: Offer,
        cpus: &BTreeSet<u32>,
    ) -> io::Result<Self> {
        let mut switches = Vec::new();
        for cpu in cpus {
            match Switches::open(*cpu, scope, offer) {
                Ok(opened) => switches.push(opened),
                // The CPU went offline after the list was read.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(error),
            }
        }
        let now_ns = now_ns();
        let pace = Pace::new(WaitCounters::default(), now_ns);
        let mut waits = Self {
            switches,
            offer,
            files: files::for_sampler(),
            random: Random::new(),
            orders: pace.orders(),
            pace,
            due_ns: now_ns,
            looked_ns: now_ns,
            apart_ns: PERIOD_NS_MIN,
            second: (0, 0),
            waiting: Vec::new(),
            latest: HashMap::new(),
            unlooked: HashSet::new(),
            looks: HashMap::new(),
            threads: HashMap::new(),
            dead: HashMap::new(),
            children: HashSet::new(),
            follows_children: target.children,
            is_kernel: HashMap::new(),
            places: Places::new(),
            settled_ns: now_ns,
            emptied_ns: now_ns,
            ended: Vec::new(),
            samples: Vec::new(),
            counters: WaitCounters {
                lacks_wakers: true,
                ..WaitCounters::default()
            },
        };
        waits.meet_those_asleep(target, now_ns);
        Ok(waits)
    }

    /// Adds the threads that exist already, with what they are doing.
    fn meet_those_asleep(&mut self, target: &Target, now_ns: u64) {
        for (tid, met, _) in asleep_threads(target, now_ns) {
            if self.threads.len() >= THREADS_MAX {
                self.counters.no_room += 1;
                continue;
            }
            let comm = sanitize(crate::bytes::until_zero(&met.comm)).into();
            let delay_ns = queue_delay(met.tgid, tid);
            let mut thread = Thread::running(met.tgid, comm, now_ns, delay_ns);
            let state = WaitState::of_number(met.state.into());
            if let Some(state) = state.filter(|state| *state != WaitState::Run) {
                thread.expect(state);
                thread.leave(now_ns, false);
                let latest = Latest {
                    time_ns: now_ns,
                    pid: met.tgid,
                    is_away: true,
                    ..Latest::default()
                };
                self.latest.insert(tid, latest);
                self.unlooked.insert(tid);
            }
            self.threads.insert(tid, thread);
        }
    }

    /// Opens and closes CPUs that came or went, if all threads are watched.
    pub fn follow_hotplug(&mut self, present: &Present, scope: &Scope) {
        self.switches
            .retain(|switches| present.keeps_events_of(switches.cpu()));
        for cpu in &present.online {
            if self.switches.iter().all(|switches| switches.cpu() != *cpu) {
                // An error is ignored, as it is tried again in a second.
                self.switches
                    .extend(Switches::open(*cpu, scope, self.offer));
            }
        }
    }

    /// Iterates over descriptors that become readable when a ring is half full.
    pub fn buffers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.switches.iter().map(Switches::as_fd)
    }

    /// Returns the time until looks are due.
    pub fn until_due(&self) -> Duration {
        Duration::from_nanos(self.due_ns.saturating_sub(now_ns()))
    }

    /// Whether looks are due.
    pub fn is_due(&self) -> bool {
        now_ns() >= self.due_ns
    }

    /// Reads the rings.
    pub fn drain(&mut self) {
        let (waiting, latest) = (&mut self.waiting, &mut self.latest);
        let (unlooked, lost) = (&mut self.unlooked, &mut self.counters.switches_lost);
        for switches in &mut self.switches {
            switches.drain(|record| {
                let (at, time_ns) = match &record {
                    Record::Joins(at) | Record::Leaves { at, .. } | Record::From(at, _) => {
                        (*at, at.time_ns)
                    }
                    Record::Lost(records) => {
                        *lost += records;
                        return;
                    }
                };
                note(latest, unlooked, at, &record);
                waiting.push(Step {
                    time_ns,
                    what: Stepped::Switched(record),
                });
            });
        }
    }

    /// Processes the other events of threads.
    pub fn handle_side_events(&mut self, events: &[SideEvent]) {
        for event in events.iter().filter(|event| !event.what.is_outside()) {
            let what = match &event.what {
                What::Fork { pid, parent_pid } => Stepped::Forked {
                    pid: *pid,
                    parent_pid: *parent_pid,
                },
                What::Exit { tid, .. } => Stepped::Ended { tid: *tid },
                What::Comm { tid, comm, .. } => Stepped::Renamed {
                    tid: *tid,
                    comm: comm.clone(),
                },
                What::Map(_) | What::Lost(_) => continue,
            };
            let time_ns = event.time_ns;
            self.waiting.push(Step { time_ns, what });
        }
    }

    fn period_ns(&self) -> u64 {
        self.orders.period_ns.max(PERIOD_NS_MIN)
    }

    /// Returns the length from which on a wait is certainly met by a look: the maximum distance of
    /// looks.
    fn long_ns(&self) -> u64 {
        self.distance_ns() * 3 / 2
    }

    /// Returns the average distance of looks.
    fn distance_ns(&self) -> u64 {
        self.period_ns().max(self.apart_ns)
    }

    /// Looks at threads that are off their CPU and were not looked at since, the longest away
    /// first. Frames of Python are read by the timeline. Has to be called just after the rings were
    /// read.
    pub fn look(&mut self, timeline: &mut Timeline) {
        let begun_ns = now_ns();
        let period_ns = self.period_ns() as f64;
        self.due_ns = begun_ns + self.random.between(0.5 * period_ns, 1.5 * period_ns) as u64;
        // On a busy machine they come later than they are due.
        self.apart_ns = (7 * self.apart_ns + (begun_ns - self.looked_ns)) / 8;
        self.looked_ns = begun_ns;
        let second = begun_ns / 1_000_000_000;
        if self.second.0 != second {
            self.second = (second, 0);
        }
        let left = self.orders.stacks_per_second.saturating_sub(self.second.1) as usize;
        let (latest, threads) = (&self.latest, &self.threads);
        let candidates = self.unlooked.iter().filter_map(|tid| {
            let last = latest.get(tid)?;
            threads.contains_key(tid).then_some((last.time_ns, *tid))
        });
        let mut candidates: Vec<(u64, u32)> = candidates.collect();
        candidates.sort_unstable();
        let over = candidates.len().saturating_sub(left);
        candidates.truncate(left);
        self.second.1 += (candidates.len() + over) as u64;
        for (_, tid) in candidates {
            self.look_at(tid, timeline);
            self.counters.taken += 1;
        }
        // There are too many: they are met less often from now on.
        self.counters.over_rate.0 += over as u64;
        self.counters.stacks_ns += now_ns().saturating_sub(begun_ns);
        if let Some(orders) = self.pace.follow(self.counters, now_ns()) {
            self.orders = orders;
        }
    }

    fn look_at(&mut self, tid: u32, timeline: &mut Timeline) {
        self.unlooked.remove(&tid);
        let Some(latest) = self.latest.get(&tid) else {
            return;
        };
        let (pid, place) = (latest.pid, latest.place.as_deref());
        let mut look = match (latest.is_preempted, place) {
            (false, place) => match look::look(pid, tid, place, &self.files) {
                Found::Waiting(look) => look,
                Found::NotWaiting => return,
            },
            (true, Some(place)) if place.user.is_some() => {
                look::look_at_queue(pid, tid, place, &self.files)
            }
            // The place of the thread is not available.
            (true, _) => return,
        };
        if let Some(ip) = place.and_then(ip_of)
            && look.state != WaitState::Queue
        {
            if self.places.len() >= PLACES_MAX {
                self.places.clear();
            }
            self.places.insert((pid, ip), look.state);
        }
        let Look { raw, copy, .. } = &mut *look;
        if let Some(copy) = copy {
            timeline.read_python(raw, copy);
            // It has not moved meanwhile; otherwise this look belongs to no wait.
            let is_same = raw.python.later.is_some_and(|later| later.same_from == 0);
            if is_same {
                raw.python.later = None;
            }
        }
        look.ended_ns = now_ns();
        let is_without = look.copy.is_none();
        self.take_look(tid, look);
        if let Some(latest) = self.latest.get_mut(&tid)
            && is_without
            && latest.without < TRIES
        {
            // A reader that answers late is not always tried.
            latest.without += 1;
            self.unlooked.insert(tid);
        }
    }

    fn take_look(&mut self, tid: u32, look: Box<Look>) {
        let left = match self.threads.get_mut(&tid) {
            Some(thread) => thread.offer(look),
            None => None,
        };
        if let Some(look) = left {
            self.looks.insert(tid, look);
        }
    }

    /// Advances to `settled_ns`, until which everything was read. Returns the samples of waits.
    pub fn advance(&mut self, settled_ns: u64, timeline: &mut Timeline) -> Vec<Decoded> {
        self.waiting.sort_by_key(|step| step.time_ns);
        let behind = self
            .waiting
            .partition_point(|step| step.time_ns <= settled_ns);
        let steps: Vec<Step> = self.waiting.drain(..behind).collect();
        for step in steps {
            self.step(step, timeline);
        }
        self.settled_ns = self.settled_ns.max(settled_ns);
        let (time_ns, period_ns) = (self.settled_ns, self.distance_ns());
        let looks_for_rests = time_ns.saturating_sub(self.emptied_ns) >= REST_NS;
        if looks_for_rests {
            self.emptied_ns = time_ns;
        }
        let ended = self.threads.iter().filter(|(_, thread)| {
            thread.has_ended_waits() || looks_for_rests && thread.has_rest(time_ns, period_ns)
        });
        let ended: Vec<u32> = ended.map(|(tid, _)| *tid).collect();
        for tid in ended {
            self.settle(tid, time_ns);
            self.sample_ended(tid, time_ns, false);
        }
        std::mem::take(&mut self.samples)
    }

    fn step(&mut self, step: Step, timeline: &mut Timeline) {
        let time_ns = step.time_ns;
        match step.what {
            Stepped::Switched(record) => self.switch(record, timeline),
            Stepped::Forked { pid, parent_pid } => {
                let is_target =
                    self.children.contains(&parent_pid) || timeline.wants(parent_pid, 0);
                if self.follows_children && is_target {
                    self.children.insert(pid);
                }
            }
            Stepped::Renamed { tid, comm } => {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.comm = sanitize(&comm).into();
                }
            }
            Stepped::Ended { tid } => self.end(tid, time_ns),
        }
    }

    fn switch(&mut self, record: Record, timeline: &mut Timeline) {
        let at = match &record {
            Record::Joins(at) | Record::Leaves { at, .. } => *at,
            // The position is in the last known state of the thread.
            Record::From(at, place) => {
                if let Some(thread) = self.threads.get_mut(&at.tid) {
                    thread.leaves_from(ip_of(place).unwrap_or(0));
                }
                return;
            }
            Record::Lost(_) => return,
        };
        let long_ns = self.long_ns();
        let Some(thread) = self.threads.get_mut(&at.tid) else {
            self.handle_record(&record, at, timeline);
            return;
        };
        if at.time_ns < thread.known_until_ns() {
            return;
        }
        let later = match record {
            Record::Joins(_) => thread.join(at.time_ns, at.cpu, long_ns, &self.places),
            Record::Leaves { is_preempted, .. } => {
                thread.leave(at.time_ns, is_preempted);
                self.looks.remove(&at.tid)
            }
            Record::From(..) | Record::Lost(_) => None,
        };
        if let Some(look) = later {
            self.take_look(at.tid, look);
        }
    }

    /// Follows another thread, if it is a target.
    fn handle_record(&mut self, record: &Record, at: At, timeline: &mut Timeline) {
        let died_ns = self.dead.get(&at.tid);
        if died_ns.is_some_and(|died_ns| at.time_ns.saturating_sub(*died_ns) < DEAD_NS) {
            return;
        }
        let is_child = self.children.contains(&at.pid);
        if !is_child && !timeline.wants(at.pid, at.tid) || self.is_of_kernel(at.pid) {
            return;
        }
        if self.threads.len() >= THREADS_MAX {
            self.counters.no_room += 1;
            return;
        }
        let comm =
            proc_stat::read(&format!("/proc/{}/task/{}/comm", at.pid, at.tid)).unwrap_or_default();
        let comm = sanitize(comm.strip_suffix(b"\n").unwrap_or(&comm));
        let delay_ns = queue_delay(at.pid, at.tid);
        let mut thread = Thread::running(at.pid, comm.into(), at.time_ns, delay_ns);
        if let Record::Leaves { is_preempted, .. } = record {
            thread.leave(at.time_ns, *is_preempted);
        }
        self.threads.insert(at.tid, thread);
    }

    /// Whether a process belongs to the kernel: then it has no program.
    fn is_of_kernel(&mut self, pid: u32) -> bool {
        if self.is_kernel.len() >= THREADS_MAX {
            self.is_kernel.clear();
        }
        *self.is_kernel.entry(pid).or_insert_with(|| {
            let program = std::fs::read_link(format!("/proc/{pid}/exe"));
            let is_there = || std::fs::exists(format!("/proc/{pid}")).unwrap_or(false);
            program.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) && is_there()
        })
    }

    fn end(&mut self, tid: u32, time_ns: u64) {
        self.dead.insert(tid, time_ns);
        self.latest.remove(&tid);
        self.unlooked.remove(&tid);
        self.looks.remove(&tid);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.end(time_ns);
            self.settle(tid, time_ns);
            self.sample_ended(tid, time_ns, true);
            if let Some(thread) = self.threads.remove(&tid) {
                self.ended.push(thread.totals(tid, true, &self.places));
            }
        }
    }

    /// Settles what a thread did until that time.
    fn settle(&mut self, tid: u32, time_ns: u64) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            // Without waits that ended there is nothing to divide.
            let delay_ns = thread
                .has_unsettled_ends()
                .then(|| queue_delay(thread.pid, tid));
            thread.settle(time_ns, delay_ns.flatten(), &self.places);
        }
    }

    /// Makes samples of the waits of a thread that have ended, and of what is left if the thread
    /// itself `has_ended`.
    fn sample_ended(&mut self, tid: u32, time_ns: u64, has_ended: bool) {
        let period_ns = self.distance_ns();
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let pid = thread.pid;
        for mut ended in thread.take_ended(time_ns, period_ns, has_ended) {
            if ended.look.as_ref().is_none_or(|look| look.copy.is_none()) {
                self.counters.unmet.0 += ended.waits;
                self.counters.unmet.1 += ended.ns;
            }
            if ended.is_rest {
                // A stack is assigned to its sample by CPU and time: no two samples may have both
                // the same.
                ended.time_ns = ended.time_ns.saturating_sub(self.samples.len() as u64);
            }
            let (sample, stack) = sample(pid, tid, ended);
            self.samples.extend(stack.map(Decoded::Stack));
            self.samples.push(Decoded::Sample(sample));
        }
    }
}

impl Follows for Waits {
    fn take(&mut self, _ended: &[EndedThread], all: bool) -> Vec<ThreadTotals> {
        let mut threads = std::mem::take(&mut self.ended);
        if all {
            self.is_kernel.clear();
            let settled_ns = self.settled_ns;
            self.dead
                .retain(|_, died_ns| settled_ns.saturating_sub(*died_ns) < DEAD_NS);
            let threads = &self.threads;
            self.latest.retain(|tid, _| threads.contains_key(tid));
            self.unlooked.retain(|tid| threads.contains_key(tid));
        }
        if all {
            threads.extend(self.threads());
        }
        threads
    }

    fn threads(&mut self) -> Vec<ThreadTotals> {
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        for tid in tids {
            self.settle(tid, self.settled_ns);
        }
        let places = &self.places;
        let totals = self
            .threads
            .iter()
            .map(|(tid, thread)| thread.totals(*tid, false, places));
        totals.collect()
    }

    fn open(&mut self, from_ns: u64, to_ns: u64) -> Vec<OpenWait> {
        let open = self.threads.iter().filter_map(|(tid, thread)| {
            let (since_ns, look) = thread.open()?;
            let copy = look.copy.as_ref()?;
            let is_asked_for = since_ns > from_ns && since_ns <= to_ns;
            is_asked_for.then(|| OpenWait {
                since_ns,
                tid: *tid,
                tgid: thread.pid,
                state: look.state.number() as u32,
                comm: look.raw.comm,
                registers: copy.registers,
                scratch: copy.scratch,
                kernel: look.raw.kernel.clone(),
            })
        });
        open.collect()
    }

    fn counters(&self) -> WaitCounters {
        self.counters
    }
}

/// Records the last action of a thread.
fn note(latest: &mut HashMap<u32, Latest>, unlooked: &mut HashSet<u32>, at: At, record: &Record) {
    let last = latest.entry(at.tid).or_default();
    if at.time_ns < last.time_ns {
        return;
    }
    (last.time_ns, last.pid) = (at.time_ns, at.pid);
    match record {
        Record::From(_, place) => last.place = Some(place.clone()),
        Record::Leaves { is_preempted, .. } => {
            (last.is_away, last.is_preempted) = (true, *is_preempted);
            last.without = 0;
            unlooked.insert(at.tid);
        }
        Record::Joins(_) => {
            (last.is_away, last.place) = (false, None);
            unlooked.remove(&at.tid);
        }
        Record::Lost(_) => {}
    }
}

fn ip_of(place: &ThreadPosition) -> Option<u64> {
    place.user.map(|(registers, _)| registers.ip)
}

/// Returns the total time that a thread was in the queue for a CPU: the second word of its
/// `schedstat` (Documentation/scheduler/sched-stats.rst). `None` if the kernel does not count it.
fn queue_delay(pid: u32, tid: u32) -> Option<u64> {
    let text = proc_stat::read(&format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    let text = String::from_utf8(text).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Makes the sample of a wait, and the copy of its stack.
fn sample(pid: u32, tid: u32, ended: Ended) -> (RawSample, Option<StackCopy>) {
    let Ended {
        look,
        state,
        time_ns,
        cpu,
        ns,
        away_ns,
        queued_ns,
        ..
    } = ended;
    let owner = look.as_ref().and_then(|look| look.owner);
    let (raw, copy) = match look {
        Some(look) => (look.raw, look.copy),
        None => (look::sample_of(pid, tid), None),
    };
    let copy = copy.map(|copy| StackCopy {
        time_ns,
        cpu,
        ..copy
    });
    let wait = RawWait {
        state,
        waited_ns: ns - queued_ns,
        queued_ns,
        away_ns,
        waker: None,
        owner: owner.map(|owner| (pid, owner)),
        told_ns: 0,
        is_open: false,
    };
    let raw = RawSample {
        weight: ns,
        time_ns,
        cpu,
        wait: Some(wait),
        ..raw
    };
    (raw, copy)
}
