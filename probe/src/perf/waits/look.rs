//! A *look* at a thread that is on no CPU: finds its system call, and copies what its stack is
//! walked from. The thread is not stopped; its switches show afterwards whether it was in the same
//! wait all the time.

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

/// Bytes of a stack that are read: threads that wait seldom have deeper stacks.
const STACK_BYTES: u32 = 64 << 10;

/// Stacks of 64-bit programs are above this address, of 32-bit programs below.
const NARROW_END: u64 = 1 << 32;

/// The result of a look at a thread.
#[derive(Debug, Clone)]
pub struct Look {
    /// When the look began. It applies to a wait that had begun by then.
    pub begun_ns: u64,
    /// When it was found what the thread waits for. That is valid for a wait that was not over by
    /// then.
    pub seen_ns: u64,
    /// When its stack had been read. The stack is valid for a wait that was not over by then.
    pub ended_ns: u64,
    /// Whether the thread was at the same place afterwards: in the same system call, at the same
    /// instruction, with the same stack pointer. This way short waits are seen of a thread that
    /// waits again and again, even if each is over before its stack has been read.
    pub is_same_place: bool,
    /// What the thread waited for.
    pub state: WaitState,
    /// The thread that had the lock for which it waited, if the lock itself contains that.
    pub owner: Option<u32>,
    /// A sample of the wait, without time and weight.
    pub raw: RawSample,
    /// The data from which the stack is walked; `None` if the memory of the process could not be
    /// read.
    pub copy: Option<StackCopy>,
}

impl Look {
    /// Returns the look as it applies to a wait that ended at `time_ns`: without a stack if that
    /// was read too late.
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
    /// The thread waits.
    Waiting(Box<Look>),
    /// The thread could run, or runs, or has ended: this is not a wait.
    NotWaiting,
}

/// Looks at a thread that has left its CPU at `place`, if that is known. Without the right to
/// inspect its process, the only result is that it waits.
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

/// Returns the content of `/proc/PID/task/TID/syscall`; `None` if it may not be read.
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

/// Makes a sample without a stack, and the registers for its walk.
fn seen(
    pid: u32,
    tid: u32,
    place: Option<&ThreadPosition>,
    here: Option<(u64, u64)>,
) -> (RawSample, Option<StackCopy>) {
    let mut raw = sample_of(pid, tid);
    raw.kernel = place.map_or_else(Vec::new, |place| place.kernel.clone());
    // All registers are known if the kernel may be sampled; otherwise only the instruction and
    // stack pointers.
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
        // If the stack is deeper than that, the rest was not read.
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

/// Makes a sample of a wait of which only the thread is known.
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
        // It is unknown here; the timeline adds it.
        comm: [0; COMM_LEN],
        kernel: Vec::new(),
        user: Vec::new(),
        stack_follows: false,
        python: PythonFrames::default(),
        is_checked: false,
        wait: None,
    }
}

/// Returns stack pointer and instruction pointer: the last two words of
/// `/proc/PID/task/TID/syscall` (proc_pid_syscall(5)). `None` if it runs.
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
