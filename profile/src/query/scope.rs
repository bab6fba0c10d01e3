//! *Scope*: the processes, threads, CPUs and functions whose samples count. It is evaluated for
//! each thread and CPU before any stack is looked at.

use crate::filter::{Clause, Filter, SampleTest};
use crate::tables::{ProcessTable, ThreadSlot};
use crate::{Family, FrameId, ProcessId, View};
use std::sync::Arc;

/// Which samples count. Different kinds combine with "and", values of one kind with "or"; an empty
/// list means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Processes, each with the number of one life.
    pub processes: Vec<ProcessId>,
    /// Processes with all their descendants, including those started later.
    pub families: Vec<Family>,
    /// Threads: process and tid.
    pub threads: Vec<(ProcessId, u32)>,
    /// CPU numbers.
    pub cpus: Vec<u16>,
    /// Paths of control groups, each including the groups below it.
    pub cgroups: Vec<String>,
    /// Names of machines, in a profile of several machines.
    pub hosts: Vec<Arc<str>>,
    /// Functions, each given by one of its frames: samples with any of them on the stack count.
    pub functions: Vec<FrameId>,
}

impl Scope {
    /// Whether everything in this scope is also in `other`, as far as that can be decided without
    /// looking up processes.
    pub fn is_within(&self, other: &Scope) -> bool {
        let of_threads = || {
            !self.threads.is_empty()
                && self
                    .threads
                    .iter()
                    .all(|(process, _)| other.processes.contains(process))
        };
        (is_part(&self.processes, &other.processes) || of_threads())
            && is_part(&self.families, &other.families)
            && is_part(&self.threads, &other.threads)
            && is_part(&self.cpus, &other.cpus)
            && is_part(&self.cgroups, &other.cgroups)
            && is_part(&self.hosts, &other.hosts)
            && is_part(&self.functions, &other.functions)
    }
}

/// Whether each of the wanted values is among the others; an empty list means all.
fn is_part<T: PartialEq>(wanted: &[T], others: &[T]) -> bool {
    others.is_empty() || !wanted.is_empty() && wanted.iter().all(|one| others.contains(one))
}

/// Which threads and CPUs pass.
///
/// The tests of the filter that are about samples are evaluated here as well. For each sample only
/// two table look-ups remain.
#[derive(Debug)]
pub(super) struct Admission {
    /// Whether each thread passes, by [`ThreadSlot`].
    threads: Vec<bool>,
    /// Whether each CPU passes, by number; `None` if all do.
    cpus: Option<Vec<bool>>,
    /// Whether all threads and CPUs pass.
    is_open: bool,
}

impl Admission {
    /// Evaluates scope and sample tests for all threads and CPUs of the view.
    pub(super) fn new(view: &View, scope: &Scope, filter: &Filter) -> Self {
        let table = &view.tables.processes;
        let tests: Vec<(&SampleTest, bool)> = filter
            .clauses()
            .iter()
            .filter_map(|clause| match clause {
                Clause::Sample { test, negated } => Some((test, *negated)),
                Clause::Stack { .. } | Clause::FoldRecursion | Clause::ShowInternals => None,
            })
            .collect();
        let threads: Vec<bool> = (0..table.thread_slots() as u32)
            .map(ThreadSlot)
            .map(|slot| {
                let of_thread = |(test, negated): &(&SampleTest, bool)| {
                    // A test of CPUs or stacks does not apply to threads, negated or not.
                    let held = admits(test, table, slot);
                    held.is_none_or(|held| held != *negated)
                };
                is_in_scope(scope, table, slot) && tests.iter().all(of_thread)
            })
            .collect();
        let cpus = cpus(scope, &tests);
        Self {
            is_open: cpus.is_none() && threads.iter().all(|thread| *thread),
            threads,
            cpus,
        }
    }

    /// Whether a sample of this thread on this CPU passes.
    #[inline]
    pub(super) fn admits(&self, thread: ThreadSlot, cpu: u16) -> bool {
        self.is_open
            || self.threads[thread.0 as usize]
                && self.cpus.as_ref().is_none_or(|cpus| cpus[usize::from(cpu)])
    }
}

/// The CPUs that pass scope and filter; `None` if neither restricts CPUs.
fn cpus(scope: &Scope, tests: &[(&SampleTest, bool)]) -> Option<Vec<bool>> {
    let mut cpus: Option<Vec<bool>> = None;
    let mut keep = |wanted: &dyn Fn(u16) -> bool| {
        let all = cpus.get_or_insert_with(|| vec![true; usize::from(u16::MAX) + 1]);
        (0..=u16::MAX)
            .zip(all)
            .for_each(|(cpu, kept)| *kept &= wanted(cpu));
    };
    if !scope.cpus.is_empty() {
        keep(&|cpu| scope.cpus.contains(&cpu));
    }
    for (test, negated) in tests {
        if let SampleTest::Cpu(ranges) = test {
            keep(&|cpu| ranges.contains(cpu.into()) != *negated);
        }
    }
    cpus
}

/// Whether a thread passes the scope. A control group passes if its path equals a given one or lies
/// below it.
fn is_in_scope(scope: &Scope, table: &ProcessTable, slot: ThreadSlot) -> bool {
    let thread = table.thread(slot);
    let process = table.get(thread.process);
    let details = process.map(|p| &p.details);
    let cgroup = details.and_then(|details| details.cgroup.as_deref());
    let host = details.and_then(|details| details.host.as_ref());
    let is_below = |wanted: &String| {
        let rest = cgroup.and_then(|path| path.strip_prefix(wanted.trim_end_matches('/')));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    (scope.processes.is_empty() || scope.processes.contains(&thread.process))
        && (scope.families.is_empty() || process.is_some_and(|p| p.is_of(&scope.families)))
        && (scope.threads.is_empty() || scope.threads.contains(&(thread.process, thread.tid)))
        && (scope.cgroups.is_empty() || scope.cgroups.iter().any(is_below))
        && (scope.hosts.is_empty() || host.is_some_and(|host| scope.hosts.contains(host)))
}

/// Whether a thread passes a test; `None` if the test is not about threads.
fn admits(test: &SampleTest, table: &ProcessTable, slot: ThreadSlot) -> Option<bool> {
    let thread = table.thread(slot);
    let process = table.get(thread.process);
    let details = process.map(|p| &p.details);
    Some(match test {
        SampleTest::Cpu(_) | SampleTest::State(_) => return None,
        SampleTest::Pid(ids) => ids.contains(process.map_or(thread.tid, |p| p.pid)),
        SampleTest::Tid(ids) => ids.contains(thread.tid),
        SampleTest::Comm(text) => {
            text.matches(&thread.comm) || process.is_some_and(|p| text.matches(&p.comm))
        }
        SampleTest::Cgroup(text) => details
            .and_then(|d| d.cgroup.as_deref())
            .is_some_and(|path| text.matches_path(path)),
        SampleTest::User(text) => details
            .and_then(|d| d.user.as_deref())
            .is_some_and(|user| text.matches(user)),
        SampleTest::Host(text) => details
            .and_then(|d| d.host.as_deref())
            .is_some_and(|host| text.matches(host)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_within_and_nothing_else() {
        let all = Scope::default();
        let process = Scope {
            processes: vec![ProcessId(1)],
            ..Scope::default()
        };
        let two = Scope {
            processes: vec![ProcessId(2), ProcessId(1)],
            ..Scope::default()
        };
        let thread = Scope {
            threads: vec![(ProcessId(1), 7)],
            ..Scope::default()
        };
        let on_cpu = Scope {
            cpus: vec![3],
            ..process.clone()
        };
        let parts = [
            (&process, &all),
            (&process, &process),
            (&process, &two),
            (&thread, &process),
            (&on_cpu, &process),
            (&thread, &all),
        ];
        for (part, whole) in parts {
            assert!(part.is_within(whole), "{part:?} of {whole:?}");
            assert!(
                part == whole || !whole.is_within(part),
                "{whole:?} of {part:?}"
            );
        }
        assert!(!thread.is_within(&on_cpu), "it may run elsewhere");
    }
}
