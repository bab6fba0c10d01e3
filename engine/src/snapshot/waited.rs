//! What threads did in a window, and for whom they waited.

use probe::WaitState;
use profile::query::Doing;
use profile::{Activity, Cancel, Delays, Held, Now, Query, Report, ThreadDid, View, Window};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum shift between the windows of successive snapshots that are treated as the same window.
const SHIFT_NS: u64 = 1_500_000_000;

/// Maximum number of pairs of waiter and holder in a snapshot; beyond it those with the shortest
/// waits are left out.
const HOLDERS_MAX: usize = 4096;

/// Waits in a window.
#[derive(Debug, Clone, Default)]
pub struct Waited {
    /// The window.
    pub window: Window,
    /// Threads by rising tid, for look-up by tid; if several had the same tid, the oldest first.
    pub threads: Vec<ThreadStates>,
    /// Pairs of waiter and holder, longest waits first.
    pub holders: Vec<Held>,
    /// For each thread the function of the program's own code in which it ended waits of other
    /// threads; if there are several, the one with the longest waits. Empty if that is not
    /// followed.
    pub ends_in: HashMap<u32, Arc<str>>,
}

/// A thread that another one waits for, directly or through others.
#[derive(Debug, Clone, Copy)]
pub struct Link<'a> {
    /// The thread.
    pub thread: &'a ThreadStates,
    /// Whether it already occurs earlier in the chain: then all of them wait for each other, for
    /// ever.
    pub is_circle: bool,
}

/// Maximum length of a chain.
const CHAIN_MAX: usize = 16;

impl Waited {
    /// Reads the waits of a window from the log of a view.
    pub fn of(view: &View, window: Window) -> Self {
        let log = view.states();
        let did = log.between(window.start_ns, window.end_ns);
        let mut holders = log.held_between(window.start_ns, window.end_ns);
        holders.truncate(HOLDERS_MAX);
        Self {
            window,
            threads: did.into_iter().filter_map(ThreadStates::of).collect(),
            holders,
            ends_in: HashMap::new(),
        }
    }

    /// Finds the functions in which threads ended waits of others: `kept_waiting` counts those
    /// waits, and `query` is that of the report.
    pub fn learn_ends(&mut self, kept_waiting: &View, query: &Query) {
        let query = Query {
            window: query.window,
            ..Query::default()
        };
        let Ok(selection) = kept_waiting.select(&query, &Cancel::new()) else {
            return;
        };
        let rows = selection.report().threads;
        let functions = rows
            .iter()
            .filter_map(|row| Some((row.tid, row.top_function.clone()?)));
        self.ends_in = functions.collect();
    }

    /// Reads what threads did in the window of a report, which was made from this view and query.
    /// Sets it in the report's rows, and uses the report's thread names.
    pub fn told(report: &mut Report, view: &View, query: &Query) -> Self {
        let mut waited = Self::of(view, report.window);
        let names = report.threads.iter();
        let names: HashMap<_, _> = names.map(|row| ((row.pid, row.tid), &row.comm)).collect();
        for thread in &mut waited.threads {
            if let Some(name) = names.get(&(thread.pid, thread.tid)) {
                thread.comm = Arc::clone(name);
            }
        }
        waited.add_to(report, view, query);
        waited
    }

    /// Returns the last thread with this tid.
    pub fn thread(&self, tid: u32) -> Option<&ThreadStates> {
        let behind = self.threads.partition_point(|thread| thread.tid <= tid);
        let last = self.threads[..behind].last();
        last.filter(|thread| thread.tid == tid)
    }

    /// For how long a thread has been in its current state.
    pub fn for_ns(&self, thread: &ThreadStates) -> u64 {
        self.window.end_ns.saturating_sub(thread.state_since_ns)
    }

    /// Returns the threads that a thread waits for now: the owner of the lock that it waits for,
    /// the owner of the lock which that thread waits for, and so on, up to a thread that waits for
    /// no lock, or whose lock has no known owner. Empty if the owner is unknown.
    pub fn chain(&self, tid: u32) -> Vec<Link<'_>> {
        let find = |tid: u32| self.thread(tid).filter(|thread| !thread.has_ended);
        let mut chain: Vec<Link<'_>> = Vec::new();
        let mut next = find(tid).and_then(|thread| thread.owner);
        while let Some(thread) = next.and_then(find)
            && chain.len() < CHAIN_MAX
        {
            let is_circle =
                thread.tid == tid || chain.iter().any(|link| link.thread.tid == thread.tid);
            chain.push(Link { thread, is_circle });
            next = thread.owner.filter(|_| !is_circle);
        }
        chain
    }

    /// Sets in the rows of a report, which was made by this query, what threads did; does nothing
    /// if the window is another one. Threads that waited all the time have no sample; they get a
    /// row unless there is a filter.
    pub fn add_to(&self, report: &mut Report, view: &View, query: &Query) {
        let (own, its) = (self.window, report.window);
        let is_near = |a: u64, b: u64| a.abs_diff(b) <= SHIFT_NS;
        if !is_near(own.start_ns, its.start_ns) || !is_near(own.end_ns, its.end_ns) {
            return;
        }
        let with_others = query.filter.is_empty() && view.info().metric.is_waiting();
        let doing = |thread: &ThreadStates| Doing {
            pid: thread.pid,
            tid: thread.tid,
            comm: Arc::clone(&thread.comm),
            activity: Activity {
                ns: thread.ns,
                delays: thread.delays,
                now: (!thread.has_ended).then(|| Now {
                    state: thread.state.number(),
                    for_ns: self.for_ns(thread),
                    is_longer: thread.was_so_before,
                    owner: thread.owner,
                }),
            },
        };
        report.add_activities(
            view,
            &query.scope,
            with_others,
            self.threads.iter().map(doing),
        );
    }
}

/// What a thread did in a window: every moment is counted in one state.
#[derive(Debug, Clone)]
pub struct ThreadStates {
    /// Its process.
    pub pid: u32,
    /// The tid.
    pub tid: u32,
    /// Its name.
    pub comm: Arc<str>,
    /// Nanoseconds in each of [`WaitState::ALL`].
    pub ns: [u64; WaitState::ALL.len()],
    /// Number of waits in the queue for a CPU, by length.
    pub delays: Delays,
    /// Its current state.
    pub state: WaitState,
    /// Since when, on the clock of the samples.
    pub state_since_ns: u64,
    /// Whether it was in that state when it was first seen.
    pub was_so_before: bool,
    /// If it waits for a lock now: the tid of the owner. `None` if the lock does not contain it.
    pub owner: Option<u32>,
    /// Whether it had ended at the end of the window, or its state then is unknown.
    pub has_ended: bool,
    /// The state with most time in each stretch of its life, rising. Reaches further back than a
    /// short window.
    pub course: Arc<[Stretch]>,
}

/// The main state of a thread in a stretch of its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Beginning, on the clock of the samples.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// The state with most time.
    pub state: WaitState,
}

impl ThreadStates {
    /// Converts an entry of the log; `None` if it has an unknown state.
    fn of(did: ThreadDid) -> Option<Self> {
        let course = did.course.iter().map(|(start_ns, end_ns, state)| {
            Some(Stretch {
                start_ns: *start_ns,
                end_ns: *end_ns,
                state: WaitState::of_number(*state as u64)?,
            })
        });
        let course: Arc<[Stretch]> = course.collect::<Option<_>>()?;
        let then = did.then;
        let state = then.map(|then| then.state as u64);
        let state = match state {
            Some(state) => WaitState::of_number(state)?,
            None => course.last().map_or(WaitState::Run, |last| last.state),
        };
        let state_since_ns = then.map_or(did.thread.since_ns, |then| then.since_ns);
        Some(Self {
            pid: did.thread.pid,
            tid: did.thread.tid,
            comm: Arc::clone(&did.thread.comm),
            ns: did.ns,
            delays: did.delays,
            state,
            state_since_ns,
            was_so_before: state_since_ns == did.thread.since_ns,
            owner: then.and_then(|then| then.owner),
            has_ended: then.is_none(),
            course,
        })
    }

    /// Returns the main state around a moment; `None` if unknown.
    pub fn state_at(&self, time_ns: u64) -> Option<WaitState> {
        let after = self
            .course
            .partition_point(|stretch| stretch.end_ns <= time_ns);
        let stretch = self.course.get(after)?;
        (stretch.start_ns <= time_ns).then_some(stretch.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Info, Limits, Metric, ProcessId, Scope, Store, TimeRange};

    const SECOND: u64 = 1_000_000_000;

    fn window(start: u64, end: u64) -> Window {
        Window {
            start_ns: start * SECOND,
            end_ns: end * SECOND,
            paused_ns: 0,
        }
    }

    /// Waits of a thread that has waited for a lock since the 7th second.
    fn waited() -> Waited {
        let mut ns = [0; WaitState::ALL.len()];
        ns[WaitState::Lock.number()] = 10 * SECOND;
        Waited {
            window: window(20, 30),
            threads: vec![ThreadStates {
                pid: 42,
                tid: 43,
                comm: "stuck".into(),
                ns,
                delays: Delays::default(),
                state: WaitState::Lock,
                state_since_ns: 7 * SECOND,
                was_so_before: true,
                owner: None,
                has_ended: false,
                course: Arc::default(),
            }],
            holders: Vec::new(),
            ends_in: HashMap::new(),
        }
    }

    /// A profile without samples that contains the process.
    fn view() -> View {
        let mut store = Store::new(Limits::default());
        store.add_process(ProcessId(1), 42, "server");
        store.set_info(Info {
            metric: Metric::off_cpu(),
            ..Info::default()
        });
        store.view()
    }

    fn told(of: Window, query: &Query) -> Report {
        let mut report = Report {
            window: of,
            ..Report::default()
        };
        waited().add_to(&mut report, &view(), query);
        report
    }

    #[test]
    fn a_chain_of_locks_is_followed_to_its_end() {
        let one = waited().threads.remove(0);
        let thread = |tid, owner| ThreadStates {
            tid,
            owner,
            ..one.clone()
        };
        let waited = Waited {
            // The first waits for the second, which waits for the third, which runs; two wait for
            // each other; one for itself; one for a thread that does not exist.
            threads: vec![
                thread(1, Some(2)),
                thread(2, Some(3)),
                thread(3, None),
                thread(4, Some(5)),
                thread(5, Some(4)),
                thread(6, Some(6)),
                thread(7, Some(99)),
            ],
            ..waited()
        };
        let chain = |tid| -> Vec<(u32, bool)> {
            let links = waited.chain(tid).into_iter();
            links
                .map(|link| (link.thread.tid, link.is_circle))
                .collect()
        };
        assert_eq!(chain(1), [(2, false), (3, false)]);
        assert_eq!(chain(3), []);
        assert_eq!(chain(4), [(5, false), (4, true)]);
        assert_eq!(chain(6), [(6, true)]);
        assert_eq!((chain(7), chain(8)), (vec![], vec![]));
    }

    #[test]
    fn what_it_did_most_is_known_between_readings() {
        let stretch = |start, end, state| Stretch {
            start_ns: start * SECOND,
            end_ns: end * SECOND,
            state,
        };
        let course = [
            stretch(20, 21, WaitState::Lock),
            stretch(21, 23, WaitState::Run),
        ];
        let thread = ThreadStates {
            course: course.into(),
            ..waited().threads[0].clone()
        };
        let at = |ms: u64| thread.state_at(ms * 1_000_000);
        assert_eq!((at(19_999), at(20_000)), (None, Some(WaitState::Lock)));
        assert_eq!(
            (at(20_999), at(21_000)),
            (Some(WaitState::Lock), Some(WaitState::Run))
        );
        assert_eq!((at(22_500), at(23_000)), (Some(WaitState::Run), None));
    }

    #[test]
    fn who_waited_all_the_time_has_a_row() {
        let report = told(window(20, 30), &Query::default());
        let [thread] = &report.threads[..] else {
            panic!("{:?}", report.threads);
        };
        assert_eq!((thread.pid, thread.tid, thread.samples), (42, 43, 0));
        let activity = thread.activity.unwrap();
        let now = activity.open_wait().unwrap();
        assert_eq!((now.for_ns, now.is_longer), (23 * SECOND, true));
        let [process] = &report.processes[..] else {
            panic!("{:?}", report.processes);
        };
        assert_eq!((process.pid, process.threads), (42, 1));
        let sums = process.activity.unwrap();
        assert_eq!((sums.ns, sums.now), (activity.ns, None));
    }

    #[test]
    fn of_another_window_or_of_samples_alone_nothing_is_told() {
        // The sums are read once a second.
        let near = Window {
            start_ns: 21 * SECOND,
            end_ns: 31 * SECOND,
            paused_ns: 0,
        };
        assert_eq!(told(near, &Query::default()).threads.len(), 1);
        for other in [window(10, 30), window(20, 25), window(0, 0)] {
            assert!(told(other, &Query::default()).threads.is_empty());
        }
        let query = |filter: &str, scope: Scope| Query {
            filter: filter.parse().unwrap(),
            scope,
            window: TimeRange::ALL,
        };
        let rows = |query| told(window(20, 30), &query).threads.len();
        assert_eq!(rows(query("state:lock", Scope::default())), 0);
        let of = |process, tid| Scope {
            threads: vec![(ProcessId(process), tid)],
            ..Scope::default()
        };
        assert_eq!(rows(query("", of(1, 43))), 1);
        assert_eq!(rows(query("", of(1, 44))), 0);
        let of_cpu = Scope {
            cpus: vec![0],
            ..Scope::default()
        };
        assert_eq!(rows(query("", of_cpu)), 0);
    }
}
