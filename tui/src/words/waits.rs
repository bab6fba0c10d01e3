//! The words for waits: their number, their mean and their maximum.

use crate::calendar;
use crate::words::units;
use engine::snapshot::Snapshot;
use profile::filter::{Clause, SampleTest};
use profile::{Filter, FunctionRow, STATES, WAITING_MODULE, Waits, waiting_name};

/// Explains the `~` before a number of waits.
pub const ESTIMATED: &str = "waits with ~ are an estimate: of short waits a few give their stack, \
                             drawn by chance, and each of these stands for those not drawn";

/// Returns since when waits are counted, as in `03:12:44 CET`. None if they are counted for as long
/// as everything else, or not at all.
pub fn since(snapshot: &Snapshot) -> Option<String> {
    clock(snapshot.waits_since_ns()?, snapshot)
}

/// Returns the same as [`since`] if the wanted window begins before that time, else None.
pub fn missing_before(snapshot: &Snapshot) -> Option<String> {
    clock(snapshot.waits_missing_before_ns()?, snapshot)
}

/// Returns a time on the clock of samples as the time of day.
fn clock(ns: u64, snapshot: &Snapshot) -> Option<String> {
    let epoch_ms = snapshot.view.as_ref()?.info().epoch_unix_ms;
    let ms = (ns / 1_000_000) as i64 + epoch_ms;
    Some(format!("{} {}", calendar::of_day(ms), calendar::zone(ms)))
}

/// Returns the number of waits, at most six cells wide, with `~` if not each of them was seen.
pub fn number(waits: &Waits) -> String {
    let sign = if waits.is_exact() { "" } else { "~" };
    match waits.count {
        0..=99_999 if waits.is_exact() => units::count(waits.count),
        0..=9_999 => format!("{sign}{}", units::count(waits.count)),
        10_000..=9_999_999 => format!("{sign}{}k", waits.count / 1000),
        _ => format!("{sign}{}M", waits.count / 1_000_000),
    }
}

/// Returns the mean of waits, or a dash if none is over.
pub fn mean(waits: &Waits) -> String {
    let mean = waits.mean_ns().map(units::nanoseconds);
    mean.unwrap_or_else(|| "-".to_owned())
}

/// Returns the longest wait, formatted by `text`, with `>` if it is not over: `>4.95s`.
pub fn longest(waits: &Waits, text: impl Fn(u64) -> String) -> String {
    let sign = if waits.longest_is_open { ">" } else { "" };
    format!("{sign}{}", text(waits.longest_ns))
}

/// Returns number, mean and maximum: `~1,203 waits, mean 4.39ms, longest 300ms`, or `no wait over
/// yet, longest >112s`.
pub fn brief(waits: &Waits) -> String {
    let longest = longest(waits, units::nanoseconds);
    if waits.count == 0 {
        return format!("no wait over yet, longest {longest}");
    }
    let sign = if waits.is_exact() { "" } else { "~" };
    format!(
        "{sign}{}, mean {}, longest {longest}",
        units::counted(waits.count, "wait"),
        mean(waits),
    )
}

/// Explains why the mean times the number of waits is not the time waited.
const NOT_THE_PRODUCT: &str = "the mean times their number is not the time: a wait counts when it \
                               ends, with all of its length, and time as it passes, also of \
                               waits that are not over";

/// Returns the same as [`brief`], with a sentence on how the number was obtained.
pub fn explain(waits: &Waits) -> String {
    let brief = brief(waits);
    if !waits.is_exact() {
        format!(
            "{brief}; {} of them gave their stack: long ones always do, short ones by chance, \
             and then stand for those that were not drawn; {NOT_THE_PRODUCT}",
            units::count(waits.drawn)
        )
    } else if waits.count == 0 {
        format!("{brief}: time counts as it passes, waits when they end")
    } else {
        format!("{brief}; each of them gave its stack; {NOT_THE_PRODUCT}")
    }
}

/// Returns, in parentheses, which waits a filter treats as idle. Empty if no clause of the filter
/// is about idle waits.
pub fn idle_rule(filter: &Filter) -> &'static str {
    let asks = |clause: &Clause| matches!(clause, Clause::Sample { test: SampleTest::State(states), .. } if states.has_idle());
    if filter.clauses().iter().any(asks) {
        " (idle: waits with epoll, poll, select, accept or a condition on the stack, by the \
             names of such calls; the same calls may wait for an answer)"
    } else {
        ""
    }
}

/// Returns the rule by which a wait counts as in a state. The row is that of the frame which stands
/// for the state. None for any other function.
pub fn rule(row: &FunctionRow) -> Option<&'static str> {
    if *row.module != *WAITING_MODULE {
        return None;
    }
    let state = STATES
        .into_iter()
        .find(|state| *waiting_name(state) == *row.name)?;
    Some(match state {
        "queue" => "it could run, and no CPU was free: preempted, or woken and not on a CPU yet",
        "lock" => {
            "in futex, flock, semop or a call that takes the lock of the memory map; also a \
             condition and the end of a thread (state:join), which are a futex as well"
        }
        "disk" => {
            "the kernel counted it as waiting for a disk, or no signal could end a call on files"
        }
        "net" => {
            "in poll, epoll, select, accept, a call on sockets, or a read or write that a signal \
             could end: of a pipe, socket or terminal"
        }
        "sleep" => "in nanosleep or clock_nanosleep",
        "fault" => "in no system call: it touched a page of memory that was not there",
        "stopped" => "a signal or a debugger had stopped it",
        "quota" => {
            "it could run, but its control group had used up its CPU time of the period (cpu.max)"
        }
        "gil" => "in a futex that is Python's global lock: one thread at a time runs Python code",
        "other" => "in none of the calls that tell: wait4, sigwait, io_uring, 32-bit programs",
        _ => return None,
    })
}

/// Whether the number of a function's waits is an estimate.
pub fn is_estimate(row: &FunctionRow) -> bool {
    row.waits.is_some_and(|waits| !waits.is_exact())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(count: u64, drawn: u64) -> Waits {
        Waits {
            count,
            drawn,
            is_estimate: count != drawn,
            ns: 2_000_000 * count,
            longest_ns: 30_000_000,
            longest_is_open: false,
        }
    }

    #[test]
    fn an_estimate_says_so() {
        assert_eq!(brief(&waits(1, 1)), "1 wait, mean 2.00ms, longest 30.0ms");
        let text = explain(&waits(1203, 88));
        let begin = "~1,203 waits, mean 2.00ms, longest 30.0ms; 88 of them gave";
        assert!(text.starts_with(begin), "{text}");
        assert!(explain(&waits(3, 3)).contains("each of them gave its stack"));
        // Number times mean is another number than the sum, and the sentence says why.
        assert!(explain(&waits(3, 3)).contains("is not the time"));
        assert!(explain(&waits(1203, 88)).contains("is not the time"));
        assert!(explain(&waits(0, 0)).contains("waits when they end"));
    }

    #[test]
    fn numbers_fit_into_their_column() {
        for count in [0, 7, 9_999, 10_000, 99_999, 100_000, 9_999_999, 99_999_999] {
            for drawn in [count, 0] {
                let text = number(&waits(count, drawn));
                assert!(text.len() <= 6, "{text}");
            }
        }
        assert_eq!(number(&waits(1203, 88)), "~1,203");
        assert_eq!(number(&waits(12_030, 12_030)), "12,030");
    }
}
