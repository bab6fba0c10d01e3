//! Threads that were already waiting at the start. The kernel side notices a thread when it leaves
//! its CPU, which these may not do for hours. What they wait for is read from /proc.

use super::owners::Blocked;
use crate::family::descendants_of;
use crate::proc_stat;
use crate::target::Target;
use probe_ebpf::record::COMM_LEN;
use probe_ebpf::waits::{FUTEX, Leaving, Thread, may_have_owner, state, state_of};
use std::fs;
use std::path::Path;

/// Returns the threads of the targets if processes or threads were specified, else all threads;
/// none if only the kernel side can decide what is a target. With each the lock that it waits for,
/// if the lock may contain its owner.
pub fn threads(target: &Target, now_ns: u64) -> Vec<(u32, Thread, Option<Blocked>)> {
    if target.comm.is_some() || !target.uids.is_empty() || target.cgroup.is_some() {
        return Vec::new();
    }
    let mut pids = target.pids.clone();
    if target.children {
        pids.extend(descendants_of(&target.pids));
    }
    if target.pids.is_empty() {
        pids = numbers(Path::new("/proc"));
    }
    let mut threads = Vec::new();
    for pid in pids {
        let folder = Path::new("/proc").join(pid.to_string());
        // A kernel thread has no program.
        if fs::read_link(folder.join("exe")).is_err() {
            continue;
        }
        for tid in numbers(&folder.join("task")) {
            if !target.tids.is_empty() && !target.tids.contains(&tid) {
                continue;
            }
            let folder = folder.join("task").join(tid.to_string());
            if let Some((thread, blocked)) = thread(&folder, pid, tid, now_ns) {
                threads.push((tid, thread, blocked));
            }
        }
    }
    threads
}

/// The entries of a directory that are numbers.
fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// Reads a thread; `None` if it has ended.
fn thread(folder: &Path, pid: u32, tid: u32, now_ns: u64) -> Option<(Thread, Option<Blocked>)> {
    let stat = fs::read(folder.join("stat")).ok()?;
    let call = fs::read_to_string(folder.join("syscall")).ok();
    let comm = fs::read(folder.join("comm")).ok()?;
    let state = state_in(&stat, call.as_deref())?;
    let mut thread = Thread {
        since_ns: now_ns,
        known_ns: now_ns,
        tgid: pid,
        state,
        ..Thread::UNKNOWN
    };
    let length = comm.len().saturating_sub(1).min(COMM_LEN - 1);
    thread.comm[..length].copy_from_slice(&comm[..length]);
    let blocked = call
        .filter(|_| state == state::LOCK)
        .and_then(|call| blocked_in(&call, pid, tid));
    Some((thread, blocked))
}

/// Returns the lock that a thread waits for, from its `syscall`: `202 0x7f… 0x80 0x2 …`. `None` if
/// it does not wait for a lock that may contain its owner.
pub fn blocked_in(call: &str, pid: u32, tid: u32) -> Option<Blocked> {
    let mut words = call.split_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (at, operation, expected) = (argument()?, argument()?, argument()?);
    let is_lock = number == FUTEX && may_have_owner(operation, expected);
    is_lock.then_some(Blocked {
        pid,
        tid,
        at,
        operation,
        expected,
    })
}

/// Returns the state according to /proc/PID/task/TID/stat and …/syscall (proc_pid_stat(5),
/// proc_pid_syscall(5)). The latter may not be readable: then it is unknown what the thread waits
/// for.
pub fn state_in(stat: &[u8], call: Option<&str>) -> Option<u32> {
    let task_state = match proc_stat::state(stat)? {
        b'R' => return Some(state::RUN),
        b'S' => 1,
        b'D' => 2,
        b'T' => 4,
        b't' => 8,
        // A zombie, or another state.
        _ => return None,
    };
    let number = call.and_then(|call| call.split_whitespace().next());
    let call = match number.map(str::parse::<i64>) {
        Some(Ok(call)) => call,
        _ => i64::MAX,
    };
    Some(state_of(Leaving {
        task_state,
        is_in_iowait: false,
        call,
        is_compat: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_waits_for_is_read() {
        let of = |letter: char, call| state_in(format!("7 (a) b) {letter} 1").as_bytes(), call);
        assert_eq!(of('S', Some("202 0x1 0x0")), Some(state::LOCK));
        assert_eq!(of('S', Some("running\n")), Some(state::OTHER));
        assert_eq!(of('S', None), Some(state::OTHER));
        assert_eq!(of('D', Some("0 0x1")), Some(state::DISK));
        assert_eq!(of('D', Some("-1 0x1 0x2")), Some(state::FAULT));
        assert_eq!(of('T', None), Some(state::STOPPED));
        assert_eq!(of('R', Some("running")), Some(state::RUN));
        assert_eq!(of('Z', None), None);
        assert_eq!(state_in(b"", None), None);
    }

    #[test]
    fn a_lock_that_may_say_who_has_it_is_told_from_others() {
        let at = |call| blocked_in(call, 7, 8).map(|blocked| blocked.at);
        assert_eq!(
            at("202 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f01"),
            Some(0x7f00)
        );
        // It wakes; it waits for another number; it is another call; it runs.
        assert_eq!(at("202 0x7f00 0x81 0x2 0x0"), None);
        assert_eq!(at("202 0x7f00 0x80 0x4 0x0"), None);
        assert_eq!(at("35 0x7f00 0x80 0x2 0x0"), None);
        assert_eq!(at("running\n"), None);
        assert_eq!(at("202 0x7f00"), None);
    }

    #[test]
    fn our_own_threads_are_found() {
        let target = Target {
            pids: vec![std::process::id()],
            ..Target::default()
        };
        let found = threads(&target, 7);
        let own = found.iter().find(|(tid, ..)| *tid == std::process::id());
        let (_, own, _) = own.expect("the first thread");
        assert_eq!((own.tgid, own.since_ns), (std::process::id(), 7));
    }
}
