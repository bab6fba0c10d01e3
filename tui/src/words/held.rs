//! For whom a thread waits: who has the lock, and what that one does.

use super::{states, text, units};
use engine::snapshot::{HeldBy, ThreadStates, Waited};
use profile::{Activity, STATES};

/// How many of those that a thread waited for are named.
const HOLDERS_MAX: usize = 2;

/// What a thread waits for that is not over, since when, and who has the lock:
/// `lock since 112s, held by worker[4123], which waits for worker[4124] (sleep)`. None if it
/// waits for nothing.
pub fn now(activity: &Activity, tid: u32, waited: Option<&Waited>) -> Option<String> {
    let mut line = states::open_wait(activity)?;
    let Some(owner) = activity.open_wait().and_then(|now| now.owner) else {
        return Some(line);
    };
    let chain = waited.map_or_else(Vec::new, |waited| waited.chain(tid));
    let Some((first, rest)) = chain.split_first() else {
        return Some(format!("{line}, held by thread {owner}"));
    };
    let last = rest.last().unwrap_or(first);
    if last.is_circle && last.thread.tid == tid {
        let others = &chain[..chain.len() - 1];
        let others: Vec<String> = others.iter().map(|link| thread(link.thread)).collect();
        return Some(match others.is_empty() {
            true => format!("{line}, DEADLOCK: it has this lock itself"),
            false => format!("{line}, DEADLOCK with {}", others.join(" and ")),
        });
    }
    line += &format!(", held by {}", thread(first.thread));
    for link in rest {
        line += &format!(", which waits for {}", thread(link.thread));
    }
    line += &match last.is_circle {
        true => ": DEADLOCK".to_owned(),
        false => format!(" ({})", doing(last.thread)),
    };
    Some(line)
}

/// Those that a thread waited for longest in the window: `waited for worker[4123] 4.70s (3
/// waits, had the lock)`. None if nobody is known.
pub fn holders(tid: u32, waited: &Waited) -> Option<String> {
    let held = waited.holders.iter().filter(|held| held.waiter == tid);
    let words = held.take(HOLDERS_MAX).map(|held| {
        let mut threads = waited.threads.iter();
        let holder = threads.find(|thread| thread.tid == held.holder_thread);
        let who = holder.map_or_else(|| format!("thread {}", held.holder_thread), thread);
        let how = match held.by {
            HeldBy::Owner => "had the lock",
            HeldBy::Waker => "woke it",
        };
        let (time, waits) = (
            units::nanoseconds(held.ns),
            units::counted(held.waits, "wait"),
        );
        format!("{who} {time} ({waits}, {how})")
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("waited for {}", words.join(", ")))
}

fn thread(thread: &ThreadStates) -> String {
    format!("{}[{}]", text::clean(&thread.comm), thread.tid)
}

/// The word for what a thread does now: `run`, `sleep`.
fn doing(thread: &ThreadStates) -> &'static str {
    STATES.get(thread.state.number()).copied().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::snapshot::Held;
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
            "lock since 112s, held by worker[3] (sleep)"
        );
        assert_eq!(
            told(1, Some(2)),
            "lock since 112s, held by worker[2], which waits for worker[3] (sleep)"
        );
        assert_eq!(told(4, Some(5)), "lock since 112s, DEADLOCK with worker[5]");
        assert_eq!(
            told(6, Some(4)),
            "lock since 112s, held by worker[4], which waits for worker[5], which waits for \
             worker[4]: DEADLOCK"
        );
        assert_eq!(
            told(7, Some(7)),
            "lock since 112s, DEADLOCK: it has this lock itself"
        );
        // It is known by its number alone, or not at all.
        assert_eq!(told(9, Some(99)), "lock since 112s, held by thread 99");
        assert_eq!(told(9, None), "lock since 112s");
        assert_eq!(now(&Activity::default(), 9, None), None);
    }

    #[test]
    fn those_it_waited_for_longest_are_named() {
        let held = |holder_thread, by, ms: u64| Held {
            waiter: 1,
            holder: 1,
            holder_thread,
            by,
            state: WaitState::Lock,
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
    }
}
