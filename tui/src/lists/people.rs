//! Facts about rows of processes and threads, and sums of several such rows.

use profile::{Activity, Family, ProcessRow, Report, TREND_LEN};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// Whether a process belongs to one of the families.
pub fn is_of(row: &ProcessRow, families: &[Family]) -> bool {
    Family::any_has(families, row.pid, &row.details)
}

/// Whether a report has processes of several machines.
pub fn are_of_several_machines(report: &Report) -> bool {
    let mut hosts = report.processes.iter().map(|row| &row.details.host);
    let first = hosts.next();
    first.is_some_and(|first| hosts.any(|host| host != first))
}

/// Returns the sum of several activities, or `None` if there are none.
pub fn sum_of_activities<'a>(all: impl Iterator<Item = &'a Activity>) -> Option<Activity> {
    all.fold(None, |sum: Option<Activity>, activity| {
        let mut sum = sum.unwrap_or_default();
        sum.add(activity);
        Some(sum)
    })
}

/// Returns the sum of several trends, second by second.
pub fn sum_of_trends<'a>(all: impl Iterator<Item = &'a [u64; TREND_LEN]>) -> [u64; TREND_LEN] {
    let mut sum = [0u64; TREND_LEN];
    for trend in all {
        for (sum, samples) in sum.iter_mut().zip(trend) {
            *sum = sum.saturating_add(*samples);
        }
    }
    sum
}

/// The top function of a row, and what that function mostly waited for.
pub type Top<'a> = (&'a Option<Arc<str>>, &'a Option<Arc<str>>);

/// Returns the top function with most samples in total, given the top function and the samples of
/// each row, and what that function mostly waited for. Other functions that the rows ran are not
/// known here.
pub fn top_of<'a>(
    all: impl Iterator<Item = (Top<'a>, u64)> + Clone,
) -> (Option<Arc<str>>, Option<Arc<str>>) {
    let named = all.clone().map(|((name, _), samples)| (name, samples));
    let Some(top) = most(named) else {
        return (None, None);
    };
    let is_top = |name: &Option<Arc<str>>| name.as_ref() == Some(&top);
    let waits = all.filter(|((name, _), _)| is_top(name));
    let wait = most(waits.map(|((_, wait), samples)| (wait, samples)));
    (Some(top), wait)
}

/// Returns the name with most samples.
fn most<'a>(all: impl Iterator<Item = (&'a Option<Arc<str>>, u64)>) -> Option<Arc<str>> {
    let mut sums: HashMap<&Arc<str>, u64> = HashMap::new();
    for (name, samples) in all {
        if let Some(name) = name {
            *sums.entry(name).or_default() += samples;
        }
    }
    let most = sums
        .into_iter()
        .max_by_key(|(name, samples)| (*samples, Reverse(*name)));
    most.map(|(name, _)| Arc::clone(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_function_of_several_is_that_of_most_samples() {
        let (hash, scan) = (Some("hash".into()), Some("scan".into()));
        let top = |all: &[(&Option<Arc<str>>, u64)]| most(all.iter().copied());
        assert_eq!(top(&[(&hash, 5), (&scan, 4), (&scan, 3)]), scan);
        assert_eq!(top(&[(&hash, 9), (&scan, 4), (&scan, 3)]), hash);
        // If two have equally many samples, the result is always the same one.
        assert_eq!(top(&[(&scan, 4), (&hash, 4)]), hash);
        assert_eq!(top(&[(&None, 4)]), None);
        // Waits of another function do not count.
        let (lock, sleep) = (
            Some("[waiting: lock]".into()),
            Some("[waiting: sleep]".into()),
        );
        let all = [
            ((&hash, &lock), 5),
            ((&scan, &sleep), 4),
            ((&hash, &None), 3),
        ];
        assert_eq!(top_of(all.into_iter()), (hash.clone(), lock.clone()));
    }

    #[test]
    fn sums_are_of_all_and_what_is_not_told_is_no_zero() {
        let mut run = Activity::default();
        run.ns[0] = 3;
        let sum = sum_of_activities([run, run].iter());
        assert_eq!(sum.map(|sum| sum.ns[0]), Some(6));
        assert_eq!(sum_of_activities([].iter()), None);
        let (mut first, mut second) = ([0; TREND_LEN], [1; TREND_LEN]);
        (first[9], second[0]) = (7, u64::MAX);
        let mut expected = [1; TREND_LEN];
        (expected[0], expected[9]) = (u64::MAX, 8);
        assert_eq!(sum_of_trends([first, second].iter()), expected);
        second[0] = 1;
        assert_eq!(sum_of_trends([second, second].iter()), [2; TREND_LEN]);
    }
}
