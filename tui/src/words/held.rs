//! The words for the thread that another one waits for: the owner of the lock, and its state.

use super::{names, states, text, units};
use engine::snapshot::{ThreadStates, Waited};
use profile::{Activity, Held, HeldBy, STATES};

/// Minimum time of a wait that is reported; shorter ones come and go.
pub const LONG_NS: u64 = 1_000_000_000;

/// Maximum number of threads that are named for one waiter.
const HOLDERS_MAX: usize = 2;

/// Returns the wait of a thread that is not over, its duration, and the owner of the lock: `held by
/// worker[4123], which waits for worker[4124] (sleep), lock since 112s`. The most important part is
/// first, because narrow columns cut the rest. None if the thread does not wait.
pub fn now(activity: &Activity, tid: u32, waited: Option<&Waited>) -> Option<String> {
    let line = states::open_wait(activity)?;
    let Some(owner) = activity.open_wait().and_then(|now| now.owner) else {
        return Some(line);
    };
    let chain = waited.map_or_else(Vec::new, |waited| waited.chain(tid));
    let Some((first, rest)) = chain.split_first() else {
        return Some(format!("held by thread {owner}, {line}"));
    };
    let last = rest.last().unwrap_or(first);
    if last.is_circle && last.thread.tid == tid {
        let others = &chain[..chain.len() - 1];
        let others: Vec<String> = others.iter().map(|link| thread(link.thread)).collect();
        return Some(if others.is_empty() {
            format!("DEADLOCK: it has this lock itself, {line}")
        } else {
            format!("DEADLOCK with {}, {line}", others.join(" and "))
        });
    }
    let mut told = format!("held by {}", thread(first.thread));
    for link in rest {
        told += &format!(", which waits for {}", thread(link.thread));
    }
    told += &if last.is_circle {
        ": DEADLOCK".to_owned()
    } else {
        format!(" ({})", doing(last.thread))
    };
    Some(format!("{told}, {line}"))
}

/// Returns the threads and events for which a thread waited longest in the window: `waited for
/// worker[4123] 4.70s (3 waits, had the lock), a timer 1.00s (1 wait)`. None if it is not known of
/// any wait who ended it.
pub fn holders(tid: u32, waited: &Waited) -> Option<String> {
    let held = waited.holders.iter().filter(|held| held.waiter == tid);
    let words = held.take(HOLDERS_MAX).map(|held| {
        let (time, waits) = (units::nanoseconds(held.ns), waits(held));
        if !held.by.is_thread() {
            return format!("{} {time} ({waits})", how(held.by));
        }
        let holder = waited.thread(held.holder_thread);
        let who = holder.map_or_else(|| format!("thread {}", held.holder_thread), thread);
        let how = match waited.ends_in.get(&held.holder_thread) {
            Some(function) => format!("{} in {}", how(held.by), names::short(function)),
            None => how(held.by).to_owned(),
        };
        format!("{who} {time} ({waits}, {how})")
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("waited for {}", words.join(", ")))
}

/// Returns the number of waits: `3 waits`, or words for a single one that is not over.
pub fn waits(held: &Held) -> String {
    match held.waits {
        0 => "a wait that is not over".to_owned(),
        waits => units::counted(waits, "wait"),
    }
}

/// Returns the relation to the waiter: the holder `had the lock` or `woke it`. If no thread ended
/// the wait, returns what did: `a timer`, `an interrupt`.
pub fn how(by: HeldBy) -> &'static str {
    match by {
        HeldBy::Owner => "had the lock",
        HeldBy::Waker => "woke it",
        HeldBy::Timer => "a timer",
        HeldBy::Interrupt => "an interrupt",
    }
}

/// Maximum number of circles that are reported.
const DEADLOCKS_MAX: usize = 3;

/// Threads that wait for each other, and so wait forever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// The threads as `dead-1[7]`, `dead-2[8]`. A single thread waits for a lock that it owns
    /// itself.
    pub who: Vec<String>,
    /// The ids of the threads.
    pub threads: Vec<u32>,
    /// How long all of them have waited, in nanoseconds.
    pub for_ns: u64,
    /// Whether all of them waited already when they were first seen.
    pub is_longer: bool,
    /// How long all of them have waited, as `25.1s` or `>25.1s`.
    pub since: String,
}

impl Deadlock {
    /// Returns all threads: `dead-1[7] and dead-2[8]`.
    pub fn all(&self) -> String {
        self.who.join(" and ")
    }

    /// Returns the first thread, and the number of others if there is more than one:
    /// `dead-1[7] and 2 more`.
    pub fn first(&self) -> String {
        match &self.who[..] {
            [first, rest @ ..] if rest.len() > 1 => format!("{first} and {} more", rest.len()),
            _ => self.all(),
        }
    }

    /// Returns their state and its duration: `wait for each other since 25.1s`.
    pub fn doing(&self) -> String {
        let doing = match self.who.len() {
            1 => "waits for a lock that it has itself",
            _ => "wait for each other",
        };
        format!("{doing} since {}", self.since)
    }
}

/// Returns the circles of threads that wait for each other, each circle once.
pub fn deadlocks(waited: &Waited) -> Vec<Deadlock> {
    let mut told = Vec::new();
    let waiting = waited.threads.iter().filter(|one| one.owner.is_some());
    for first in waiting {
        let chain = waited.chain(first.tid);
        let Some((last, others)) = chain.split_last() else {
            continue;
        };
        // Each circle is found from each of its threads, so only the thread with the lowest id
        // counts.
        let is_lowest = others.iter().all(|link| link.thread.tid > first.tid);
        if !last.is_circle || last.thread.tid != first.tid || !is_lowest {
            continue;
        }
        let others = others.iter().map(|link| link.thread);
        let circle: Vec<&ThreadStates> = std::iter::once(first).chain(others).collect();
        let for_ns = circle
            .iter()
            .map(|one| waited.for_ns(one))
            .min()
            .unwrap_or_default();
        // The owner of a lock is known as of the beginning of a wait, so a short circle may be
        // wrong.
        if for_ns < LONG_NS {
            continue;
        }
        let is_longer = circle.iter().all(|one| one.was_so_before);
        told.push(Deadlock {
            threads: circle.iter().map(|one| one.tid).collect(),
            who: circle.into_iter().map(thread).collect(),
            for_ns,
            is_longer,
            since: states::lasting(for_ns, is_longer),
        });
        if told.len() == DEADLOCKS_MAX {
            break;
        }
    }
    told
}

fn thread(thread: &ThreadStates) -> String {
    format!("{}[{}]", text::clean(&thread.comm), thread.tid)
}

/// Returns the word for the state of a thread: `run`, `sleep`.
fn doing(thread: &ThreadStates) -> &'static str {
    STATES.get(thread.state.number()).copied().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::WaitState;
    use profile::Now;

    fn one(tid: u32, state: WaitState, owner: Option<u32>) -> ThreadStates {
        ThreadStates {
            pid: 1,
            tid,
            comm: "worker".into(),
            ns: Default::default(),
            delays: Default::default(),
            state,
            state_since_ns: 0,
            was_so_before: false,
            owner,
            has_ended: false,
            course: Default::default(),
        }
    }

    fn waiting(owner: Option<u32>) -> Activity {
        Activity {
            now: Some(Now {
                state: WaitState::Lock.number(),
                for_ns: 112_000_000_000,
                is_longer: false,
                owner,
            }),
            ..Activity::default()
        }
    }

    #[test]
    fn who_has_the_lock_is_named_and_what_that_one_does() {
        let waited = Waited {
            threads: vec![
                one(1, WaitState::Lock, Some(2)),
                one(2, WaitState::Lock, Some(3)),
                one(3, WaitState::Sleep, None),
                one(4, WaitState::Lock, Some(5)),
                one(5, WaitState::Lock, Some(4)),
                one(6, WaitState::Lock, Some(4)),
                one(7, WaitState::Lock, Some(7)),
            ],
            ..Waited::default()
        };
        let told = |tid, owner| now(&waiting(owner), tid, Some(&waited)).unwrap();
        assert_eq!(
            told(2, Some(3)),
            "held by worker[3] (sleep), lock since 112s"
        );
        assert_eq!(
            told(1, Some(2)),
            "held by worker[2], which waits for worker[3] (sleep), lock since 112s"
        );
        assert_eq!(told(4, Some(5)), "DEADLOCK with worker[5], lock since 112s");
        assert_eq!(
            told(6, Some(4)),
            "held by worker[4], which waits for worker[5], which waits for worker[4]: DEADLOCK, \
             lock since 112s"
        );
        assert_eq!(
            told(7, Some(7)),
            "DEADLOCK: it has this lock itself, lock since 112s"
        );
        // The owner may be known by its id alone, or not at all.
        assert_eq!(told(9, Some(99)), "held by thread 99, lock since 112s");
        assert_eq!(told(9, None), "lock since 112s");
        assert_eq!(now(&Activity::default(), 9, None), None);
    }

    #[test]
    fn each_circle_is_told_once() {
        let mut waited = Waited {
            threads: vec![
                one(1, WaitState::Lock, Some(2)),
                one(2, WaitState::Lock, Some(3)),
                one(3, WaitState::Lock, Some(2)),
                one(4, WaitState::Sleep, None),
            ],
            ..Waited::default()
        };
        waited.window.end_ns = 25_100_000_000;
        let told = |who: &[&str], threads: &[u32]| Deadlock {
            who: who.iter().map(|name| name.to_string()).collect(),
            threads: threads.to_vec(),
            for_ns: 25_100_000_000,
            is_longer: false,
            since: "25.1s".into(),
        };
        let expected = told(&["worker[2]", "worker[3]"], &[2, 3]);
        assert_eq!(deadlocks(&waited), [expected]);
        let both = &deadlocks(&waited)[0];
        assert_eq!(both.all(), "worker[2] and worker[3]");
        assert_eq!(
            (both.first(), both.doing().as_str()),
            (both.all(), "wait for each other since 25.1s")
        );
        waited.threads[2].owner = Some(4);
        assert!(deadlocks(&waited).is_empty());
        waited.threads[0].owner = Some(1);
        let alone = told(&["worker[1]"], &[1]);
        assert_eq!(
            alone.doing(),
            "waits for a lock that it has itself since 25.1s"
        );
        assert_eq!(
            told(&["a[1]", "b[2]", "c[3]"], &[]).first(),
            "a[1] and 2 more"
        );
        assert_eq!(deadlocks(&waited), [alone]);
    }

    #[test]
    fn those_it_waited_for_longest_are_named() {
        let held = |holder_thread, by, ms: u64| Held {
            waiter: 1,
            holder: 1,
            holder_thread,
            by,
            state: WaitState::Lock.number(),
            ns: ms * 1_000_000,
            waits: ms / 1_000,
        };
        let waited = Waited {
            threads: vec![one(2, WaitState::Run, None)],
            holders: vec![
                held(2, HeldBy::Owner, 4_000),
                held(7, HeldBy::Waker, 1_000),
                held(8, HeldBy::Waker, 500),
            ],
            ..Waited::default()
        };
        assert_eq!(
            holders(1, &waited).unwrap(),
            "waited for worker[2] 4.00s (4 waits, had the lock), thread 7 1.00s (1 wait, woke it)"
        );
        assert_eq!(holders(2, &waited), None);
        let waited = Waited {
            holders: vec![
                held(0, HeldBy::Timer, 3_000),
                held(0, HeldBy::Interrupt, 1_000),
            ],
            ..Waited::default()
        };
        assert_eq!(
            holders(1, &waited).unwrap(),
            "waited for a timer 3.00s (3 waits), an interrupt 1.00s (1 wait)"
        );
    }
}
