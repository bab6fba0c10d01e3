//! What threads wait for, compared with what they measure themselves. Other programs run
//! at the same time: they increase the time in the queue, but the sums must still be right.

#![allow(dead_code, reason = "the other tests use the rest of what is shared")]

mod burn;
#[path = "waits/by_perf.rs"]
mod by_perf;
mod common;
#[path = "waits/wakers.rs"]
mod wakers;

use common::{alone, only, unless_forbidden};
use probe::{
    BpfSource, Config, Ending, Event, RawWait, Sample, Source, Target, ThreadTotals, WaitCounters,
    WaitState, Waker,
};
use rustix::process::Signal;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use test_support::{Process, Scratch, skip, wait_for, wait_until};

/// Duration of one wait in most tests: longer than waits that only give a stack by chance.
const WAIT: Duration = Duration::from_millis(20);
const WAITS: u32 = 20;

/// A wait of this length certainly gives its stack, unless the machine is busy.
const CERTAIN_NS: u64 = 10_000_000;

/// What a thread measures itself.
struct Measured {
    tid: u32,
    /// Time in calls that wait.
    waited: Duration,
    /// Time from its first instruction to its last.
    wall: Duration,
    /// Time on a CPU, as the kernel counts it: including the work of switching to it.
    cpu: Duration,
    /// The time that the host of a virtual machine took from all CPUs meanwhile. The kernel does
    /// not count it as CPU time of the thread that was running, though that thread did not wait
    /// either.
    stolen: Duration,
}

/// Runs `work` on a thread of its own; it returns how long it was in calls that wait.
fn measured(name: &str, work: impl FnOnce() -> Duration + Send + 'static) -> JoinHandle<Measured> {
    let body = move || {
        let (begun, stolen_before) = (Instant::now(), stolen());
        let waited = work();
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        Measured {
            tid: gettid().as_raw_nonzero().get() as u32,
            waited,
            wall: begun.elapsed(),
            cpu: Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32),
            stolen: stolen().saturating_sub(stolen_before),
        }
    };
    let thread = std::thread::Builder::new().name(name.into());
    thread.spawn(body).unwrap()
}

/// Returns the time since the start of the machine that the host took from all CPUs: the eighth
/// number of the first line of proc_stat(5), in hundredths of a second.
fn stolen() -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let ticks = stat.split_whitespace().nth(8).unwrap();
    Duration::from_millis(10 * ticks.parse::<u64>().unwrap())
}

fn timed<T>(sum: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    *sum += begun.elapsed();
    result
}

/// Everything that a source reported about waits.
struct Told<S = BpfSource> {
    source: S,
    samples: Vec<Sample>,
    /// The newest sums of each thread.
    threads: BTreeMap<u32, ThreadTotals>,
    counters: WaitCounters,
}

impl Told {
    /// Starts a source; `None` if rights are missing.
    fn start(target: Target) -> Option<Self> {
        let config = Config {
            target,
            waits: true,
            ..Config::default()
        };
        let source = unless_forbidden(BpfSource::start(&config), "BPF")?;
        assert_eq!(source.info().notes, [""; 0]);
        let mut told = Self::of_source(source);
        // From now on waits give their stacks.
        told.take();
        Some(told)
    }
}

impl<S: Source> Told<S> {
    fn of_source(source: S) -> Self {
        Self {
            source,
            samples: Vec::new(),
            threads: BTreeMap::new(),
            counters: WaitCounters::default(),
        }
    }

    fn take(&mut self) {
        let batch = self.source.poll(Duration::from_millis(20)).unwrap();
        let waits = batch
            .samples
            .into_iter()
            .filter(|sample| sample.event == Event::Wait);
        self.samples.extend(waits);
        for thread in batch.threads {
            let lived = thread.until_ns - thread.since_ns;
            assert_eq!(thread.ns.iter().sum::<u64>(), lived, "{thread:?}");
            self.threads.insert(thread.tid, thread);
        }
        self.counters = batch.waits;
    }

    /// Returns what a thread has measured, and its sums when it has ended.
    fn end_of(&mut self, thread: JoinHandle<Measured>) -> (Measured, ThreadTotals) {
        while !thread.is_finished() {
            self.take();
        }
        let measured = thread.join().unwrap();
        let tid = measured.tid;
        let totals = wait_for("the end of the thread", || {
            self.take();
            let totals = self.threads.get(&tid)?;
            totals.has_ended.then(|| totals.clone())
        });
        self.check(&measured, &totals);
        (measured, totals)
    }

    /// Checks what is true for every thread.
    #[track_caller]
    fn check(&self, measured: &Measured, totals: &ThreadTotals) {
        let lived = Duration::from_nanos(totals.ns.iter().sum());
        let slack = measured.wall / 100 + Duration::from_millis(1);
        // By the kernel a thread begins a little earlier and ends a little later, and other threads
        // may run meanwhile: that is in its queue.
        let queued = Duration::from_nanos(totals.ns_in(WaitState::Queue));
        assert!(
            lived + slack >= measured.wall && lived <= measured.wall + slack + queued,
            "{lived:?} of {:?}: {totals:?}",
            measured.wall
        );
    }

    /// Returns the waits of a thread that gave their stacks.
    fn of(&self, tid: u32) -> impl Iterator<Item = (&Sample, RawWait)> {
        let own = self.samples.iter().filter(move |sample| sample.tid == tid);
        own.map(|sample| (sample, sample.wait.expect("it is one")))
    }

    /// Returns the nanoseconds in a state for which the stacks of a thread stand.
    fn sampled(&self, tid: u32, state: WaitState) -> u64 {
        let parts = self.of(tid).flat_map(|(_, wait)| wait.parts());
        parts
            .filter(|(its, _)| *its == state)
            .map(|(_, ns)| ns)
            .sum()
    }
}

/// Checks that the time in calls that wait is the time in the state, and in the queue after it,
/// except for what these calls compute. There may be more time in the queue, from between the calls.
#[track_caller]
fn assert_waited(state: WaitState, measured: &Measured, totals: &ThreadTotals) {
    let waited = Duration::from_nanos(totals.ns_in(state));
    let queued = Duration::from_nanos(totals.ns_in(WaitState::Queue));
    let slack = measured.waited / 33;
    // On a slow machine even a call that only waits has a CPU for a while each time it is woken,
    // and a CPU that the host took away counts as the thread's.
    let computed = measured.cpu + measured.stolen;
    assert!(
        waited <= measured.waited + slack && waited + queued + computed + slack >= measured.waited,
        "{waited:?} and {queued:?} of {:?} {}, {:?} on a CPU, {:?} stolen: {totals:?}",
        measured.waited,
        state.word(),
        measured.cpu,
        measured.stolen,
    );
    // Other states have very little of it.
    let others = WaitState::ALL
        .into_iter()
        .filter(|its| ![state, WaitState::Run, WaitState::Queue].contains(its));
    let others: u64 = others.map(|its| totals.ns_in(its)).sum();
    let crumb = measured.waited / 33;
    assert!(Duration::from_nanos(others) <= crumb, "{totals:?}");
}

/// Returns the parts of a wait that was reported when it ended, as long as they were. A wait stands
/// for more than that if it was shorter than the period: it gave its stack by chance then, and
/// stands for a period. The period is longer than usual for a moment when many threads wait.
fn own_parts(wait: RawWait) -> impl Iterator<Item = (WaitState, u64)> {
    let (stands_for, away) = (wait.weight_ns().max(1), wait.away_ns);
    let own = move |ns| {
        if stands_for > away {
            ns * away / stands_for
        } else {
            ns
        }
    };
    wait.parts().map(move |(state, ns)| (state, own(ns)))
}

/// Checks that each wait gave its stack, as all were long enough, and that stacks are whole.
#[track_caller]
fn assert_sampled<S: Source>(told: &Told<S>, state: WaitState, totals: &ThreadTotals) {
    // Shorter waits gave their stacks by chance.
    let long = told
        .of(totals.tid)
        .filter(|(_, wait)| wait.away_ns >= CERTAIN_NS);
    let parts = long.flat_map(|(_, wait)| own_parts(wait));
    let parts: Vec<u64> = parts
        .filter(|(its, _)| *its == state)
        .map(|(_, ns)| ns)
        .collect();
    let (sampled, all) = (parts.iter().sum::<u64>(), totals.ns_in(state));
    let lost = told.counters.without_stack_ns();
    // Each part was rounded. On a busy machine a part of a wait is in the queue, and the rest may be
    // short.
    assert!(
        sampled <= all + parts.len() as u64 && sampled + lost >= all * 8 / 10,
        "{sampled} of {all}, {lost} lost: {:?}",
        told.counters
    );
    // The first few waits come before the process is known; their stacks are walked later, or cut.
    let whole = told
        .of(totals.tid)
        .filter(|(sample, _)| sample.ending == Ending::Root);
    let all = told.of(totals.tid).count();
    assert!(whole.count() * 10 >= all * 8, "{all} stacks");
    for (sample, _) in told.of(totals.tid) {
        assert!(sample.kernel_frames > 0, "it waited in the kernel");
    }
}

/// Moves this thread to another CPU, so that its waits begin on one and end on another.
fn move_to_cpu(number: u32) {
    let online: Vec<u32> = probe::cpus::online().unwrap().into_iter().collect();
    let cpu = online[number as usize % online.len()];
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
}

#[test]
fn a_sleeper_sleeps_whatever_cpu_it_wakes_on() {
    let _alone = alone();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    let sleeper = measured("sleeping", || {
        let mut waited = Duration::ZERO;
        for turn in 0..WAITS {
            move_to_cpu(turn);
            timed(&mut waited, || std::thread::sleep(WAIT));
        }
        waited
    });
    let (measured, totals) = told.end_of(sleeper);
    assert_eq!(&*totals.comm, "sleeping");
    assert_eq!(totals.pid, std::process::id());
    // If a thread is preempted before it sleeps, its timer may end before.
    let times = totals.times[WaitState::Sleep.number()];
    let all = WAITS;
    assert!((all * 8 / 10..=all).contains(&times), "{totals:?}");
    // Each time that it was woken or preempted, it was ready before it ran.
    let delays: u32 = totals.delays.iter().sum();
    assert!(
        delays >= totals.times[WaitState::Queue.number()],
        "{totals:?}"
    );
    assert!(delays >= WAITS * 8 / 10, "{totals:?}");
    // The delays together are at least as long as the time in the queue.
    let ends = (0..probe::DELAY_SLOTS).map(|slot| probe::delay_end_ns(slot).unwrap_or(1 << 40));
    let most: u64 = ends
        .zip(totals.delays)
        .map(|(end, count)| end * u64::from(count))
        .sum();
    assert!(most >= totals.ns_in(WaitState::Queue), "{totals:?}");
    assert_waited(WaitState::Sleep, &measured, &totals);
    assert_sampled(&told, WaitState::Sleep, &totals);
}

#[test]
fn who_waits_for_a_lock_waits_for_its_holder() {
    let _alone = alone();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    let lock = Arc::new(Mutex::new(()));
    let theirs = lock.clone();
    let (has_it, is_held) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let holder = measured("holding", move || {
        for _ in 0..WAITS {
            let held = theirs.lock().unwrap();
            has_it.send(()).unwrap();
            std::thread::sleep(WAIT);
            drop(held);
            may_go_on.recv().unwrap();
        }
        Duration::ZERO
    });
    let waiter = measured("waiting", move || {
        let mut waited = Duration::ZERO;
        for _ in 0..WAITS {
            timed(&mut waited, || {
                // This call waits as a lock does.
                is_held.recv().unwrap();
                drop(lock.lock().unwrap());
            });
            go_on.send(()).unwrap();
        }
        waited
    });
    let (measured, totals) = told.end_of(waiter);
    let (holder, _) = told.end_of(holder);
    assert_waited(WaitState::Lock, &measured, &totals);
    assert_sampled(&told, WaitState::Lock, &totals);
    let waits: Vec<RawWait> = told.of(measured.tid).map(|(_, wait)| wait).collect();
    let long = waits
        .iter()
        .filter(|wait| wait.state == WaitState::Lock)
        .filter(|wait| wait.waited_ns >= 1_000_000);
    let mut count = 0;
    for wait in long {
        assert_eq!(
            wait.waker,
            Some(Waker::Thread {
                pid: std::process::id(),
                tid: holder.tid
            }),
            "{wait:?}"
        );
        count += 1;
    }
    assert!(count >= WAITS / 2, "{count} waits: {waits:?}");
}

#[test]
fn who_reads_a_pipe_waits_for_its_writer() {
    let _alone = alone();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    let (mut from, mut to) = std::io::pipe().unwrap();
    let writer = measured("writing", move || {
        for _ in 0..WAITS {
            std::thread::sleep(WAIT);
            to.write_all(&[1]).unwrap();
        }
        Duration::ZERO
    });
    let reader = measured("reading", move || {
        let mut waited = Duration::ZERO;
        timed(&mut waited, || from.read_to_end(&mut Vec::new()).unwrap());
        waited
    });
    let (measured, totals) = told.end_of(reader);
    let (writer, _) = told.end_of(writer);
    assert_waited(WaitState::Net, &measured, &totals);
    assert_sampled(&told, WaitState::Net, &totals);
    let waker = told.of(measured.tid).find_map(|(_, wait)| wait.waker);
    let by_writer = Waker::Thread {
        pid: std::process::id(),
        tid: writer.tid,
    };
    assert_eq!(waker, Some(by_writer));
}

/// Checks threads whose calls also compute: they waited at most as long as the calls took, and at
/// least as long as the thread had no CPU, except for time that the host took.
#[track_caller]
fn assert_waited_in(states: &[WaitState], measured: &Measured, totals: &ThreadTotals) {
    let at_least = measured.wall.saturating_sub(measured.cpu + measured.stolen);
    if at_least < measured.wall / 5 {
        skip(format_args!(
            "the disk is too fast: {at_least:?} of {:?}",
            measured.wall
        ));
        return;
    }
    let waited: u64 = states.iter().map(|state| totals.ns_in(*state)).sum();
    let waited = Duration::from_nanos(waited);
    let queued = Duration::from_nanos(totals.ns_in(WaitState::Queue));
    let slack = measured.wall / 33;
    assert!(
        waited <= measured.waited + slack && waited + queued + slack >= at_least,
        "{waited:?} and {queued:?} of {at_least:?} to {:?}: {totals:?}",
        measured.waited
    );
}

#[test]
fn who_writes_to_a_disk_waits_for_it() {
    let _alone = alone();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    let scratch = Scratch::new();
    let path = scratch.join("file");
    let writer = measured("syncing", move || {
        let mut file = File::create(path).unwrap();
        let begun = Instant::now();
        let mut waited = Duration::ZERO;
        while begun.elapsed() < WAIT * WAITS {
            timed(&mut waited, || {
                file.write_all(&[7; 4096]).unwrap();
                file.sync_all().unwrap();
            });
        }
        waited
    });
    let (measured, totals) = told.end_of(writer);
    assert_waited_in(&[WaitState::Disk], &measured, &totals);
}

#[test]
fn who_touches_a_page_that_is_not_there_waits_for_it() {
    let _alone = alone();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    const PAGES: usize = 4096;
    let scratch = Scratch::new();
    let path = scratch.join("file");
    fs::write(&path, vec![7; PAGES * 4096]).unwrap();
    let toucher = measured("touching", move || {
        let file = OpenOptions::new().read(true).open(path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let length = PAGES * 4096;
        // SAFETY: a new mapping of a file that nobody truncates.
        let pages = unsafe {
            let at = libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            );
            assert_ne!(at, libc::MAP_FAILED);
            libc::madvise(at, length, libc::MADV_RANDOM);
            std::slice::from_raw_parts(at.cast::<u8>(), length)
        };
        let mut waited = Duration::ZERO;
        let first_bytes = pages.chunks(4096).map(|page| u64::from(page[0]));
        let sum: u64 = timed(&mut waited, || first_bytes.sum());
        assert_eq!(sum, 7 * PAGES as u64);
        waited
    });
    let (measured, totals) = told.end_of(toucher);
    assert_waited_in(&[WaitState::Fault, WaitState::Disk], &measured, &totals);
}

/// Starts threads that burn the CPUs, two more than there are CPUs.
fn burn_with_two_too_many() -> Vec<JoinHandle<Measured>> {
    let cpus = probe::cpus::online().unwrap().len();
    let burner = |_| {
        measured("burning", || {
            let begun = Instant::now();
            while begun.elapsed() < WAIT * WAITS {
                std::hint::spin_loop();
            }
            Duration::ZERO
        })
    };
    (0..cpus + 2).map(burner).collect()
}

#[test]
fn more_threads_than_cpus_queue() {
    let _alone = alone();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    let mut queued = Duration::ZERO;
    for burner in burn_with_two_too_many() {
        let (measured, totals) = told.end_of(burner);
        let of = |state| Duration::from_nanos(totals.ns_in(state));
        let busy = of(WaitState::Run) + of(WaitState::Queue);
        assert!(busy * 100 >= measured.wall * 99, "{totals:?}");
        // The kernel does not count time that a hypervisor took.
        let run = of(WaitState::Run);
        assert!(
            run * 100 >= measured.cpu * 97,
            "{:?}: {totals:?}",
            measured.cpu
        );
        queued += of(WaitState::Queue);
    }
    // At any time at least two of them had to wait.
    assert!(queued >= WAIT * WAITS, "{queued:?}");
}

/// A control group that may use a fifth of a CPU; removed when this is dropped.
struct Quota(PathBuf);

impl Quota {
    /// Creates the group; `None` if there is no controller of CPU time that this process may use.
    fn create() -> Option<Self> {
        let name = format!("proftop-test-{}", std::process::id());
        for (root, file, limit) in [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000"),
            ("/sys/fs/cgroup", "cpu.max", "20000 100000"),
        ] {
            let root = Path::new(root);
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
            let group = Self(root.join(&name));
            let is_made = fs::create_dir(&group.0).is_ok();
            if is_made && fs::write(group.0.join(file), limit).is_ok() {
                return Some(group);
            }
        }
        None
    }

    fn add(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// Returns how long its threads had no CPU time left, as the kernel counts it.
    fn throttled(&self) -> Duration {
        let stat = fs::read_to_string(self.0.join("cpu.stat")).unwrap();
        let of = |line: &str| {
            let (word, number) = line.split_once(' ')?;
            let number = number.trim().parse().ok()?;
            match word {
                "throttled_time" => Some(Duration::from_nanos(number)),
                "throttled_usec" => Some(Duration::from_micros(number)),
                _ => None,
            }
        };
        stat.lines().find_map(of).expect("cpu.stat says it")
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Processes in it were killed, and may not have ended yet.
        wait_until("the control group is empty", || {
            fs::remove_dir(&self.0).is_ok()
        });
    }
}

#[test]
fn who_has_used_up_its_quota_waits_for_the_next_period() {
    let _alone = alone();
    let Some(quota) = Quota::create() else {
        skip("no controller of CPU time");
        return;
    };
    let mut shell = Command::new("sh");
    let shell = Process::start(shell.args(["-c", "while :; do :; done"]));
    let pid = shell.pid();
    let Some(mut told) = Told::start(only(pid)) else {
        drop((shell, quota));
        return;
    };
    let in_quota = |told: &Told| {
        let ns = |thread: &ThreadTotals| thread.ns_in(WaitState::Quota);
        Duration::from_nanos(told.threads.get(&pid).map_or(0, ns))
    };
    assert_eq!(in_quota(&told), Duration::ZERO);
    quota.add(pid);
    wait_until("it had no CPU time left for a second", || {
        told.take();
        in_quota(&told) >= Duration::from_secs(1)
    });
    let of_kernel = quota.throttled();
    told.take();
    let counted = in_quota(&told);
    // If other threads run, this one also has to queue when there is CPU time again, and the kernel
    // counts both as one; and one of the readings may be a period of 100 ms older than the other.
    let slack = of_kernel / 20 + Duration::from_millis(100);
    let queued = Duration::from_nanos(told.threads[&pid].ns_in(WaitState::Queue));
    assert!(
        counted + slack >= of_kernel && counted <= of_kernel + slack + queued,
        "{counted:?}, by the kernel {of_kernel:?}: {:?}",
        told.threads[&pid]
    );
    let sampled = told.sampled(pid, WaitState::Quota);
    assert!(sampled > 0, "its stack says where it was");
    drop((shell, quota));
}

#[test]
fn who_is_stopped_waits_for_its_end() {
    let _alone = alone();
    let mut shell = Command::new("sh");
    let shell = Process::start(shell.args(["-c", "while :; do :; done"]));
    let Some(mut told) = Told::start(only(shell.pid())) else {
        return;
    };
    let pid = shell.pid();
    let stopped = |told: &mut Told| {
        told.take();
        let state = |thread: &ThreadTotals| thread.ns_in(WaitState::Stopped);
        told.threads.get(&pid).map_or(0, state)
    };
    let before = Instant::now();
    shell.signal(Signal::STOP);
    wait_until("it is stopped", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.contains(") T ")
    });
    let seen = Instant::now();
    while seen.elapsed() < WAIT * WAITS {
        told.take();
    }
    let at_least = seen.elapsed();
    shell.signal(Signal::CONT);
    let at_most = before.elapsed();
    wait_until("it runs again", || {
        told.take();
        let thread = told.threads.get(&pid);
        thread.is_some_and(|thread| {
            thread.state != WaitState::Stopped && { thread.ns_in(WaitState::Stopped) > 0 }
        })
    });
    let told = Duration::from_nanos(stopped(&mut told));
    let slack = at_most / 33;
    assert!(
        told + slack >= at_least && told <= at_most + slack,
        "{told:?}, {at_least:?} to {at_most:?}"
    );
}

/// Starts a thread, and returns its number and a channel as soon as it waits: it waits for the end
/// of the channel.
fn waiting_thread() -> (u32, mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let (tell, told_of) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let waiter = std::thread::spawn(move || {
        tell.send(gettid().as_raw_nonzero().get() as u32).unwrap();
        _ = may_go_on.recv();
    });
    let tid = told_of.recv().unwrap();
    wait_until("it waits", || {
        let stat = fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
        stat.contains(") S ")
    });
    (tid, go_on, waiter)
}

#[test]
fn who_waits_since_before_is_known() {
    let _alone = alone();
    let (tid, go_on, waiter) = waiting_thread();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    let thread = wait_for("the threads", || {
        told.take();
        told.threads.get(&tid).cloned()
    });
    assert_eq!((thread.state, thread.has_ended), (WaitState::Lock, false));
    assert_eq!(
        thread.ns_in(WaitState::Lock),
        thread.until_ns - thread.since_ns
    );
    drop(go_on);
    waiter.join().unwrap();
}

/// One thread begins to wait before the source starts, and one afterwards. The source reports both
/// while they wait, by whole stacks, and what it reports of a wait adds up to the wait's length
/// when it is over.
#[test]
fn waits_are_told_before_they_end() {
    let _alone = alone();
    let (tell, told_of) = mpsc::channel();
    let waiter = |tell: mpsc::Sender<u32>| {
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let waiter = std::thread::spawn(move || {
            tell.send(gettid().as_raw_nonzero().get() as u32).unwrap();
            _ = may_go_on.recv();
        });
        (go_on, waiter)
    };
    let before = waiter(tell.clone());
    let tid_before = told_of.recv().unwrap();
    wait_until("it waits", || {
        let stat = fs::read_to_string(format!("/proc/self/task/{tid_before}/stat")).unwrap();
        stat.contains(") S ")
    });
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    let after = waiter(tell);
    let tid_after = told_of.recv().unwrap();
    let both = [tid_before, tid_after];
    for tid in both {
        wait_until("it has been told three times", || {
            told.take();
            told.of(tid).filter(|(_, wait)| wait.is_open).count() >= 3
        });
        let open = told.of(tid).filter(|(_, wait)| wait.is_open);
        let mut until_ns = 0;
        for (sample, wait) in open {
            assert_eq!((wait.state, sample.ending), (WaitState::Lock, Ending::Root));
            assert!(sample.kernel_frames > 0 && sample.frames.len() > sample.kernel_frames);
            assert_eq!((sample.weight, wait.queued_ns), (wait.waited_ns, 0));
            assert!(wait.away_ns > until_ns, "each tells of the time since");
            until_ns = wait.away_ns;
        }
        let thread = &told.threads[&tid];
        let lived = thread.ns_in(WaitState::Lock) + (probe::now_ns() - thread.until_ns);
        assert!(told.sampled(tid, WaitState::Lock) <= lived);
    }
    drop((before.0, after.0));
    before.1.join().unwrap();
    after.1.join().unwrap();
    for tid in both {
        let (sum, all) = wait_for("the end of the thread", || {
            told.take();
            let thread = told.threads.get(&tid).filter(|thread| thread.has_ended)?;
            let long = told.of(tid).filter(|(_, wait)| wait.away_ns > CERTAIN_NS);
            let parts = long.flat_map(|(_, wait)| wait.parts());
            let lock = parts.filter(|(state, _)| *state == WaitState::Lock);
            let sum: u64 = lock.map(|(_, ns)| ns).sum();
            let all = thread.ns_in(WaitState::Lock);
            // If an open wait was reported a moment before it ended, its last part is short. Only
            // some short parts give a sample.
            (sum + CERTAIN_NS >= all).then_some((sum, all))
        });
        assert!(sum <= all, "{sum} of {all}");
    }
    assert_eq!(told.counters.open_without_stack, 0);
}

#[test]
fn short_waits_count_as_if_all_gave_their_stacks() {
    let _alone = alone();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    let sleeper = measured("napping", || {
        for _ in 0..4000 {
            std::thread::sleep(Duration::from_micros(100));
        }
        Duration::ZERO
    });
    let (_, totals) = told.end_of(sleeper);
    let stacks = told.of(totals.tid).count() as u64;
    let all = totals.ns_in(WaitState::Sleep);
    let sampled = told.sampled(totals.tid, WaitState::Sleep);
    assert!(stacks > 20 && stacks < 2000, "{stacks} stacks");
    // The bound is five times the deviation that a sum over this number of stacks has by chance.
    let off = sampled.abs_diff(all) as f64 / all as f64;
    assert!(
        off < 5.0 / (stacks as f64).sqrt(),
        "{sampled} of {all} by {stacks}"
    );
}

#[test]
fn first_waits_of_new_threads_count_as_long_as_they_were() {
    let _alone = alone();
    let Some(mut told) = Told::start(only(std::process::id())) else {
        return;
    };
    const THREADS: usize = 400;
    let starter = std::thread::spawn(|| {
        for _ in 0..THREADS {
            let short = std::thread::spawn(|| gettid().as_raw_nonzero().get() as u32);
            short.join().unwrap();
        }
    });
    while !starter.is_finished() {
        told.take();
    }
    starter.join().unwrap();
    // Threads that have not ended belong to other tests or to this one.
    let ended = |told: &Told| {
        let threads = told.threads.values().filter(|thread| thread.has_ended);
        threads.cloned().collect::<Vec<_>>()
    };
    wait_until("the ends of all threads", || {
        told.take();
        ended(&told).len() >= THREADS
    });
    let (mut all, mut sampled) = (0, 0);
    for thread in ended(&told) {
        all += thread.ns_in(WaitState::Queue);
        sampled += told.sampled(thread.tid, WaitState::Queue);
    }
    // A wait whose stack is taken stands for at least 10 ms. By chance there are as many as fit
    // into the time, and at most five standard deviations more.
    let period = CERTAIN_NS as f64;
    let expected = all as f64 / period;
    let limit = expected + 5.0 * expected.sqrt() + 5.0;
    let found = sampled as f64 / period;
    assert!(
        found <= limit,
        "{found:.1} periods, and {expected:.1} were waited"
    );
}

#[test]
fn without_being_asked_for_nothing_is_followed() {
    let _alone = alone();
    let config = Config {
        target: only(std::process::id()),
        ..Config::default()
    };
    let Some(source) = unless_forbidden(BpfSource::start(&config), "BPF") else {
        return;
    };
    let programs = source.verified_instructions();
    assert!(
        programs.iter().all(|(name, _)| !name.starts_with("wait")),
        "{programs:?}"
    );
}

/// A run that counts only time on CPUs at first: threads that wait when waits begin to be followed
/// are met, those that come later are followed from their beginning to their end, and a second
/// order changes nothing.
#[test]
fn waits_can_be_followed_later() {
    let _alone = alone();
    let config = Config {
        target: only(std::process::id()),
        ..Config::default()
    };
    let Some(source) = unless_forbidden(BpfSource::start(&config), "BPF") else {
        return;
    };
    let mut told = Told::of_source(source);
    let (tid, go_on, waiter) = waiting_thread();
    told.take();
    assert!(told.threads.is_empty() && told.samples.is_empty());
    let before_ns = probe::now_ns();
    let since_ns = told.source.count_waits().unwrap();
    assert!(since_ns >= before_ns && since_ns <= probe::now_ns());
    assert_eq!(told.source.info().notes, [""; 0]);
    let programs = told.source.verified_instructions().len();
    assert_eq!(told.source.count_waits(), Ok(since_ns));
    assert_eq!(told.source.verified_instructions().len(), programs);
    told.take();
    let sleeper = measured("asleep", || {
        let mut waited = Duration::ZERO;
        for _ in 0..WAITS {
            timed(&mut waited, || std::thread::sleep(WAIT));
        }
        waited
    });
    let (measured, totals) = told.end_of(sleeper);
    assert_waited(WaitState::Sleep, &measured, &totals);
    assert_sampled(&told, WaitState::Sleep, &totals);
    // Of the thread that waited before, only the time since then is counted.
    wait_until("its stack is told while it waits", || {
        told.take();
        told.of(tid).any(|(_, wait)| wait.is_open)
    });
    let thread = told.threads[&tid].clone();
    assert_eq!((thread.state, thread.has_ended), (WaitState::Lock, false));
    assert!(thread.since_ns >= before_ns && thread.since_ns <= since_ns);
    drop(go_on);
    waiter.join().unwrap();
    let told_ns = wait_for("the end of its wait", || {
        told.take();
        let is_over = told.of(tid).any(|(_, wait)| !wait.is_open);
        is_over.then(|| told.sampled(tid, WaitState::Lock))
    });
    assert!(told_ns <= probe::now_ns() - before_ns, "{told_ns}");
}
