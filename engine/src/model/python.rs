//! Notes about Python functions that are missing in stacks.

use probe::{Missing, PythonStats};
use profile::LanguageStacks;
use profile::few;
use std::cmp::Reverse;

/// Maximum number of samples that may lack functions without a note: the first samples of each
/// process do, until the process is known.
const LACKING_MIN: u64 = 20;

/// A note is written if more than this fraction (1/n) of the samples lack functions.
const LACKING_SHARE: u64 = 20;

/// What is missing, and why.
pub fn notes(stats: &PythonStats) -> Vec<String> {
    let mut notes: Vec<String> = stats
        .lacks
        .iter()
        .map(|(lack, processes)| {
            let of = match processes {
                1 => "1 process".to_string(),
                more => format!("{more} processes"),
            };
            format!("the Python functions of {of} are not shown: {lack}")
        })
        .collect();
    let lacking = stats.lacking();
    let all = stats.whole + lacking;
    // Only a few waits go on at a time, and in a program that hangs they are what matters.
    let waits = stats.missing.get(&Missing::Waits).copied().unwrap_or(0);
    let is_of_note = lacking >= LACKING_MIN && lacking * LACKING_SHARE > all;
    if waits > 0 && !is_of_note {
        let why = cause(Missing::Waits);
        notes.push(format!(
            "{waits} samples in Python lack functions: they {why}"
        ));
    }
    if stats.later > 0 {
        notes.push(format!(
            "the innermost functions of {} of {all} samples in Python are those of a moment later",
            stats.later
        ));
    }
    if is_of_note {
        let causes = stacks(stats).map_or(Vec::new(), |stacks| stacks.lacking);
        let words = |(cause, samples)| format!("{samples} {cause}");
        let causes: Vec<String> = causes.into_iter().map(words).collect();
        notes.push(format!(
            "{lacking} of {all} samples in Python lack functions: {}",
            causes.join(", ")
        ));
    }
    notes
}

/// How many samples have all Python functions; `None` if no Python ran.
pub fn stacks(stats: &PythonStats) -> Option<LanguageStacks> {
    let mut lacking: Vec<_> = stats
        .missing
        .iter()
        .map(|(why, samples)| (cause(*why), *samples))
        .collect();
    few::sort_by_key(&mut lacking, |(_, samples)| Reverse(*samples));
    let stacks = LanguageStacks {
        language: "Python",
        whole: stats.whole,
        lacking,
        lock_known: stats.lock_known,
        lock_held: stats.lock_held,
    };
    (stacks.samples() > 0).then_some(stacks)
}

/// Why samples lack functions, in words that follow their number.
fn cause(why: Missing) -> &'static str {
    match why {
        Missing::Waits => "are of waits that are not over",
        Missing::Early => "were taken before the process was known",
        Missing::NotWalked => "are of processes whose frames are not walked",
        Missing::NoThread => "were taken before the thread was known",
        Missing::Unreadable => "have frames that could not be read",
        Missing::TooDeep => "have more frames than are kept",
        Missing::Mismatch => "have frames that do not fit the native ones",
        Missing::Nested => "lack those of the interpreter that called this one",
        Missing::Moved => "had gone on when their functions were read",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbolize::python::{Lack, Version};

    #[test]
    fn what_is_missing_is_told_with_its_cause() {
        let version = Version {
            major: 3,
            minor: 16,
        };
        let stats = PythonStats {
            whole: 100,
            missing: [(Missing::Early, 5), (Missing::Mismatch, 30)].into(),
            lacks: vec![(Lack::UnknownVersion(version), 2)],
            ..PythonStats::default()
        };
        assert_eq!(
            notes(&stats),
            [
                "the Python functions of 2 processes are not shown: \
                 the structures of Python 3.16 are not known",
                "35 of 135 samples in Python lack functions: \
                 30 have frames that do not fit the native ones, \
                 5 were taken before the process was known",
            ]
        );
    }

    #[test]
    fn a_run_without_python_says_nothing_of_it() {
        assert_eq!(stacks(&PythonStats::default()), None);
        let stats = PythonStats {
            whole: 100,
            missing: [(Missing::Early, 5), (Missing::Mismatch, 30)].into(),
            ..PythonStats::default()
        };
        let stacks = stacks(&stats).expect("some");
        assert_eq!((stacks.whole, stacks.samples()), (100, 135));
        assert_eq!(
            stacks.lacking[1],
            ("were taken before the process was known", 5)
        );
    }

    #[test]
    fn the_first_samples_of_a_process_are_no_news() {
        let stats = |whole| PythonStats {
            whole,
            missing: [(Missing::Early, 30)].into(),
            ..PythonStats::default()
        };
        assert_eq!(notes(&stats(1000)), [""; 0]);
        let later = PythonStats {
            later: 12,
            ..stats(100)
        };
        assert_eq!(
            notes(&later)[0],
            "the innermost functions of 12 of 130 samples in Python are those of a moment later"
        );
        let waits = PythonStats {
            missing: [(Missing::Waits, 3)].into(),
            ..stats(1000)
        };
        let told = "3 samples in Python lack functions: they are of waits that are not over";
        assert_eq!(notes(&waits), [told]);
        assert_eq!(notes(&stats(100)).len(), 1);
    }
}
