//! *Scope*: whose samples count. Decided per thread and CPU, before any stack
//! is looked at.

use crate::filter::{Clause, Filter, SampleTest};
use crate::tables::{ProcessTable, ThreadSlot};
use crate::{Family, FrameId, ProcessId, View};
use std::sync::Arc;

/// Whose samples count. Kinds combine with "and", values of one kind with "or";
/// none of a kind means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Processes, by the number of one life of each.
    pub processes: Vec<ProcessId>,
    /// Processes with all that they have started, those that are started later as well.
    pub families: Vec<Family>,
    /// Threads: their process and their number.
    pub threads: Vec<(ProcessId, u32)>,
    /// CPUs, by their numbers.
    pub cpus: Vec<u16>,
    /// Paths of control groups; one stands for those below it, too.
    pub cgroups: Vec<String>,
    /// The names of machines, in a profile of several.
    pub hosts: Vec<Arc<str>>,
    /// Samples with any of these functions on the stack, each told by a frame.
    pub functions: Vec<FrameId>,
}

impl Scope {
    /// Whether whatever is in this scope is in `other` as well, as far as the two tell
    /// without looking at who is in them.
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

/// Whether each of the wanted ones is also among the others; none means all.
fn is_part<T: PartialEq>(wanted: &[T], others: &[T]) -> bool {
    others.is_empty() || !wanted.is_empty() && wanted.iter().all(|one| others.contains(one))
}

/// Which threads and CPUs are in.
///
/// Tests of the filter that are about samples are decided here as well. What remains
/// for a sample are two looks into tables.
#[derive(Debug)]
pub(super) struct Admission {
    /// By [`ThreadSlot`].
    threads: Vec<bool>,
    /// By number of a CPU; `None` if all are in.
    cpus: Option<Vec<bool>>,
    /// Nothing is left out.
    is_open: bool,
}

impl Admission {
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
                    // A test of CPUs or stacks says nothing of threads, negated or not.
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

    #[inline]
    pub(super) fn admits(&self, thread: ThreadSlot, cpu: u16) -> bool {
        self.is_open
            || self.threads[thread.0 as usize]
                && self.cpus.as_ref().is_none_or(|cpus| cpus[usize::from(cpu)])
    }
}

/// Which CPUs pass scope and filter; `None` if neither says anything of CPUs.
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

/// Whether a thread passes the scope. A control group is in if its path is one that is
/// wanted or lies below it.
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

/// Whether a thread passes a test; `None` if that is not for threads to say.
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
