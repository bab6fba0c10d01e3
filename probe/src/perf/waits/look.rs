//! A *look* at a thread that is on no CPU: in which system call it is, and what its stack is
//! walked from. Nothing stops it meanwhile; whether it was in the same wait all the time is seen
//! by its switches afterwards.

use super::record::ThreadPosition;
use crate::decode::{PythonFrames, RawSample};
use crate::events::Event;
use crate::events::wait::{Blocked, WaitState, blocked_in, owner_of, state_in};
use crate::proc_stat;
use crate::stack::{StackBytes, StackCopy};
use crate::time::now_ns;
use probe_ebpf::record::COMM_LEN;
use probe_ebpf::{Ending, Registers, UserFrame};
use symbolize::Files;

/// So much of a stack is read: threads that wait seldom have deeper ones.
const STACK_BYTES: u32 = 64 << 10;

/// Stacks of 64-bit programs lie above; of 32-bit ones below.
const NARROW_END: u64 = 1 << 32;

/// What was seen of a thread.
#[derive(Debug, Clone)]
pub struct Look {
    /// When it began, and when it was seen what the thread waits for: it says that of a wait that
    /// was not over by then.
    pub begun_ns: u64,
    pub seen_ns: u64,
    /// When its stack had been read. It is that of the wait if it was not over by then.
    pub ended_ns: u64,
    /// Afterwards the thread was at the same place: in the same system call, at the same
    /// instruction, with the same stack pointer. So short waits are seen whose thread waits again and
    /// again, and each of which is over before its stack has been read.
    pub is_same_place: bool,
    /// What the thread waited for.
    pub state: WaitState,
    /// Who had the lock that it waited for, as far as that lock says it.
    pub owner: Option<u32>,
    /// A sample of it, without time and weight.
    pub raw: RawSample,
    /// What it is walked from. `None` if the memory of the process could not be read.
    pub copy: Option<StackCopy>,
}

impl Look {
    /// What it says of a wait that ended at `time_ns`: without a stack if that was read too late.
    pub fn of_wait(mut self: Box<Self>, time_ns: u64) -> Box<Self> {
        if self.ended_ns > time_ns && !self.is_same_place {
            self.copy = None;
            self.raw.stack_follows = false;
        }
        self
    }
}

/// What a look found.
pub enum Found {
    /// It waits.
    Waiting(Box<Look>),
    /// It could run, or runs, or is gone: that is no wait.
    NotWaiting,
}

/// Looks at a thread that has left its CPU at `place`, as far as that is known. Who may not look
/// into its process learns only that it waits.
pub fn look(pid: u32, tid: u32, place: Option<&ThreadPosition>, files: &Files) -> Found {
    let begun_ns = now_ns();
    let path = format!("/proc/{pid}/task/{tid}/syscall");
    let call = call_at(&path);
    let seen_ns = now_ns();
    let Ok(stat) = proc_stat::read(&format!("/proc/{pid}/task/{tid}/stat")) else {
        return Found::NotWaiting;
    };
    let here = call.as_deref().and_then(place_in);
    if call.is_some() && here.is_none() {
        return Found::NotWaiting;
    }
    let is_narrow = here.is_some_and(|(_, sp)| sp < NARROW_END);
    let state = state_in(&stat, call.as_deref().filter(|_| !is_narrow));
    let state = state.and_then(|state| WaitState::of_number(state.into()));
    let Some(state) = state.filter(|state| *state != WaitState::Run) else {
        return Found::NotWaiting;
    };
    let blocked = call
        .as_deref()
        .filter(|_| state == WaitState::Lock)
        .and_then(|call| blocked_in(call, pid, tid));
    let seen = seen(pid, tid, place, here.filter(|_| !is_narrow));
    let mut look = with_memory((begun_ns, seen_ns), state, blocked, seen, files);
    let number = |call: &str| call.split_whitespace().next().map(String::from);
    look.is_same_place = call_at(&path).is_some_and(|again| {
        place_in(&again) == here && number(&again) == call.as_deref().and_then(number)
    });
    Found::Waiting(Box::new(look))
}

/// What `/proc/PID/task/TID/syscall` says; `None` if we may not know.
fn call_at(path: &str) -> Option<String> {
    String::from_utf8(proc_stat::read(path).ok()?).ok()
}

/// Looks at a thread that was preempted at `place`: it is in the queue for a CPU.
pub fn look_at_queue(pid: u32, tid: u32, place: &ThreadPosition, files: &Files) -> Box<Look> {
    let begun_ns = now_ns();
    let seen = seen(pid, tid, Some(place), None);
    let times = (begun_ns, begun_ns);
    Box::new(with_memory(times, WaitState::Queue, None, seen, files))
}

/// A sample without a stack, and the registers for its walk.
fn seen(
    pid: u32,
    tid: u32,
    place: Option<&ThreadPosition>,
    here: Option<(u64, u64)>,
) -> (RawSample, Option<StackCopy>) {
    let mut raw = sample_of(pid, tid);
    raw.kernel = place.map_or_else(Vec::new, |place| place.kernel.clone());
    // All registers are known where the kernel may be seen, and else only where the thread is and
    // where its stack.
    let told = place.and_then(|place| place.user);
    let known = told.or_else(|| {
        let (ip, sp) = here?;
        Some((Registers { ip, sp, bp: 0 }, Default::default()))
    });
    let copy = known.map(|(registers, scratch)| StackCopy {
        time_ns: 0,
        cpu: 0,
        registers,
        scratch,
        bytes: StackBytes::new(0, &[], None),
    });
    if let Some(copy) = &copy {
        raw.user.push(UserFrame::exact(copy.registers.ip));
        raw.stopped_at = copy.registers.ip;
    }
    (raw, copy)
}

fn with_memory(
    (begun_ns, seen_ns): (u64, u64),
    state: WaitState,
    blocked: Option<Blocked>,
    (mut raw, copy): (RawSample, Option<StackCopy>),
    files: &Files,
) -> Look {
    let copy = copy.and_then(|copy| {
        let bytes = files.memory_up_to(raw.tgid, copy.registers.sp, STACK_BYTES);
        let bytes = bytes.ok().filter(|bytes| !bytes.is_empty())?;
        // If it goes on behind that, what lies there was not read.
        let reach = (bytes.len() >= STACK_BYTES as usize).then_some(u64::MAX);
        Some(StackCopy {
            bytes: StackBytes::new(0, &bytes, reach),
            ..copy
        })
    });
    raw.stack_follows = copy.is_some();
    Look {
        begun_ns,
        seen_ns,
        is_same_place: false,
        state,
        owner: blocked.and_then(|blocked| owner_of(blocked, files)),
        raw,
        copy,
        ended_ns: now_ns(),
    }
}

/// A sample of a wait of which nothing is known but whose it is.
pub fn sample_of(pid: u32, tid: u32) -> RawSample {
    RawSample {
        event: Event::Wait,
        weight: 0,
        time_ns: 0,
        cgroup_id: 0,
        stopped_at: 0,
        tgid: pid,
        tid,
        cpu: 0,
        ending: Ending::ReadFault,
        // It is not told; the timeline knows it.
        comm: [0; COMM_LEN],
        kernel: Vec::new(),
        user: Vec::new(),
        stack_follows: false,
        python: PythonFrames::default(),
        is_checked: false,
        wait: None,
    }
}

/// Where a thread is and where its stack: the last two words of `/proc/PID/task/TID/syscall`
/// (proc_pid_syscall(5)). `None` if it runs.
fn place_in(call: &str) -> Option<(u64, u64)> {
    let mut words = call.split_whitespace().rev();
    let mut word = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (ip, sp) = (word()?, word()?);
    (ip != 0 && sp != 0).then_some((ip, sp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_thread_waits_is_read() {
        let call = "230 0x0 0x0 0x7ffc 0x0 0x0 0x0 0x7ffe10 0x7f0033\n";
        assert_eq!(place_in(call), Some((0x7f0033, 0x7ffe10)));
        assert_eq!(
            place_in("-1 0x7ffe10 0x7f0033\n"),
            Some((0x7f0033, 0x7ffe10))
        );
        assert_eq!(place_in("running\n"), None);
        assert_eq!(place_in(""), None);
    }

    #[test]
    fn a_thread_that_sleeps_is_seen_and_one_that_runs_is_not() {
        let pid = std::process::id();
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let files = Files::default();
        assert!(matches!(look(pid, own, None, &files), Found::NotWaiting));
        assert!(matches!(
            look(pid, u32::MAX, None, &files),
            Found::NotWaiting
        ));
        let sleeps = std::thread::spawn(std::thread::park);
        let other = test_support::wait_for("the other thread", || {
            let tasks = std::fs::read_dir("/proc/self/task").ok()?.flatten();
            let tids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
            tids.filter(|tid| *tid != own && *tid != pid)
                .find_map(|tid| match look(pid, tid, None, &files) {
                    Found::Waiting(look) if look.state == WaitState::Lock => Some(look),
                    _ => None,
                })
        });
        assert!(other.copy.is_some(), "our own memory can be read");
        assert!(other.begun_ns <= other.ended_ns);
        sleeps.thread().unpark();
        sleeps.join().expect("it ends");
    }
}
