//! The states of threads: as letters in a bar, and in words.

use crate::context::Context;
use crate::words::{names, units, waits};
use profile::few;
use profile::{Activity, STATES};

/// Width of a bar in cells.
pub const BAR_WIDTH: usize = 12;

/// The letter of each of [`STATES`] in a bar.
pub const LETTERS: [char; STATES.len()] = ['R', 'Q', 'L', 'D', 'N', 'S', 'F', 'T', 'O', 'G', 'C'];

/// The meaning of the letters.
pub const LEGEND: &str = "R runs, Q in the queue for a CPU, waits for: C CPU time of its control \
                          group, L a lock, D a disk, N a socket or pipe, S a timer, F a page of \
                          memory, G Python's global lock, T stopped, O another reason";

/// The same as [`LEGEND`], for a line of 62 cells.
pub const SHORT_LEGEND: &str = "R run Q line C cap L lock G GIL D disk N net S nap F mem T O ?";

/// Returns a bar in which each state has a number of letters by its share, so that all states
/// together fill it: `RRRRRRQLLLLL`. A state with less than half a cell has none.
pub fn bar(activity: &Activity) -> String {
    let all: u128 = activity.ns.iter().map(|ns| u128::from(*ns)).sum();
    if all == 0 {
        return String::new();
    }
    let mut text = String::with_capacity(BAR_WIDTH);
    let mut sum = 0u128;
    for (letter, ns) in LETTERS.into_iter().zip(activity.ns) {
        sum += u128::from(ns);
        let end = (sum * 2 * BAR_WIDTH as u128 / all).div_ceil(2) as usize;
        text.extend(std::iter::repeat_n(letter, end.saturating_sub(text.len())));
    }
    text
}

/// Returns the time in each state: `run 5.00s, lock 4.80s, queue 200ms`. The longest is first.
pub fn sums(activity: &Activity) -> String {
    let mut states: Vec<(usize, u64)> = activity.states().collect();
    few::sort_by_key(&mut states, |(state, ns)| (std::cmp::Reverse(*ns), *state));
    let words = states.into_iter().map(|(state, ns)| {
        let word = STATES.get(state).copied().unwrap_or("?");
        format!("{word} {}", units::nanoseconds(ns))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the same as [`sums`]. If another metric is shown and the states are known for only a
/// part of the window, the text begins with that time: `since 03:12:44 CET: run 5.00s, lock 4.80s`.
pub fn sums_since(activity: &Activity, cx: &Context<'_>) -> String {
    let since = waits::missing_before(cx.shown).filter(|_| !cx.counts_time());
    let since = since.map_or_else(String::new, |since| format!("since {since}: "));
    since + &sums(activity)
}

/// Returns a function of a row and, if time waited is counted, the state in which it waited
/// longest: `want_the_lock (lock)`.
pub fn with_function(name: &str, wait: Option<&str>) -> String {
    let short = names::short(name);
    // If the stack has no function of a program, the name already is that of the state.
    let wait = wait.filter(|wait| *wait != name);
    let state = wait.and_then(|wait| wait.strip_prefix("[waiting: ")?.strip_suffix(']'));
    match state {
        Some(state) => format!("{short} ({state})"),
        None => short.into_owned(),
    }
}

/// Returns percentiles of the time in the run queue: `ready before it ran: half <8.2us, 99%
/// <4.19ms`, or `>67.1ms` if it may have been longer. None if the thread never was in the queue.
pub fn delays(activity: &Activity) -> Option<String> {
    let text = |percent| {
        let delay = activity.delays.percentile(percent)?;
        Some(if delay.has_no_end {
            format!(">{}", units::nanoseconds(delay.ns / 2))
        } else {
            format!("<{}", units::nanoseconds(delay.ns))
        })
    };
    let (half, most) = (text(50)?, text(99)?);
    Some(format!("ready before it ran: half {half}, 99% {most}"))
}

/// Returns the wait that is not over, as in `lock since 112s`, or `lock since >112s` if it began
/// before the thread was first seen. None if the thread does not wait.
pub fn open_wait(activity: &Activity) -> Option<String> {
    let now = activity.open_wait()?;
    let word = STATES.get(now.state)?;
    Some(format!(
        "{word} since {}",
        lasting(now.for_ns, now.is_longer)
    ))
}

/// Returns a duration, as in `112s`, or `>112s` if it began before it was first seen.
pub fn lasting(for_ns: u64, is_longer: bool) -> String {
    let sign = if is_longer { ">" } else { "" };
    format!("{sign}{}", units::nanoseconds(for_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::Now;

    fn activity(given: &[(usize, u64)]) -> Activity {
        let mut activity = Activity::default();
        for (state, ns) in given {
            activity.ns[*state] = *ns;
        }
        activity
    }

    #[test]
    fn a_bar_is_full_and_in_proportion() {
        assert_eq!(bar(&activity(&[(0, 6), (2, 6)])), "RRRRRRLLLLLL");
        assert_eq!(bar(&activity(&[(0, 1), (5, 999)])), "SSSSSSSSSSSS");
        assert_eq!(bar(&activity(&[])), "");
        for run in 0..=100 {
            let text = bar(&activity(&[(0, run), (1, 7), (4, 100 - run), (8, 3)]));
            assert_eq!(text.len(), BAR_WIDTH, "{text}");
        }
        let huge = activity(&[(0, u64::MAX), (1, u64::MAX)]);
        assert_eq!(bar(&huge), "RRRRRRQQQQQQ");
    }

    #[test]
    fn letters_tell_states_apart() {
        let mut letters = LETTERS.to_vec();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), STATES.len());
        for letter in LETTERS {
            assert!(LEGEND.contains(&format!("{letter} ")), "{letter}");
        }
    }

    #[test]
    fn a_function_has_what_it_waited_for_beside_it() {
        let lock = Some("[waiting: lock]");
        assert_eq!(with_function("want", lock), "want (lock)");
        assert_eq!(with_function("want", None), "want");
        assert_eq!(with_function("[waiting: lock]", lock), "[waiting: lock]");
    }

    #[test]
    fn the_longest_is_told_first() {
        let told = activity(&[(0, 5_000_000), (2, 4_800_000_000)]);
        assert_eq!(sums(&told), "lock 4.80s, run 5.00ms");
        assert_eq!(open_wait(&told), None);
        assert_eq!(delays(&told), None);
        let mut queued = told;
        queued.delays.0[1] = 98;
        queued.delays.0[profile::DELAY_SLOTS - 1] = 2;
        let text = delays(&queued);
        let expected = "ready before it ran: half <8.19us, 99% >67.1ms";
        assert_eq!(text.as_deref(), Some(expected));
        let now = |state, is_longer| {
            let mut activity = activity(&[]);
            activity.now = Some(Now {
                state,
                for_ns: 112_000_000_000,
                is_longer,
                owner: None,
            });
            activity
        };
        let text = open_wait(&now(2, false));
        assert_eq!(text.as_deref(), Some("lock since 112s"));
        let text = open_wait(&now(5, true));
        assert_eq!(text.as_deref(), Some("sleep since >112s"));
        // A thread that runs, or could run, does not wait.
        assert_eq!(open_wait(&now(0, false)), None);
        assert_eq!(open_wait(&now(1, false)), None);
    }
}
