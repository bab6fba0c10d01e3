//! Line 3 of the header: what all numbers are shares of, and how complete the samples are.

use super::is_unmeasured;
use crate::app::App;
use crate::views::PaneId;
use crate::words::fit::Segment;
use crate::words::metric::{metric_told, number_of};
use crate::words::units;
use engine::snapshot::Snapshot;
use profile::Completeness;

/// Returns the segments of line 3.
pub fn segments(app: &App) -> Vec<Segment> {
    let report = &app.shown.report;
    let health = &app.shown.health;
    let completeness = &report.completeness;
    let before = app.shown.comparison.lacks.as_deref();
    // One share, or in a comparison those of the baseline and of now.
    let both = |share: fn(&Completeness) -> (u64, u64)| {
        let share = |of| {
            let (part, all) = share(of);
            units::completeness_in(report, part, all)
        };
        percent_sign(match before {
            Some(before) => format!("{}/{}", share(&before.completeness), share(completeness)),
            None => share(completeness),
        })
    };
    let whole = both(|of| (of.whole, of.user_stacks));
    let named = both(|of| (of.named, of.frames));
    // Names that are still to come may change the share.
    let loading = completeness.pending > 0 || !app.shown.names.loading.is_empty();
    let loading = if loading { " ⟳" } else { "" };
    // That servers are being asked is shown at any width.
    let is_remote = app
        .shown
        .names
        .loading
        .iter()
        .any(|loading| loading.is_remote);
    let net = if is_remote { " net" } else { "" };
    let mut segments = vec![
        counted(app),
        match before {
            None => lost(report.samples, health.lost),
            Some(before) => Segment::new(
                8,
                [format!(
                    "lost {}/{}",
                    units::count(before.lost),
                    units::count(health.lost)
                )],
            ),
        },
    ];
    // A view of a part of the samples, such as the code of one function, says itself how reliable
    // its numbers are.
    let trust = app.views.get(PaneId::of(app.view)).trust();
    if let Some(trust) = trust {
        segments.extend(trust);
        if is_remote {
            segments.push(Segment::new(8, [net.trim_start().to_owned()]));
        }
        return segments;
    }
    segments.extend([
        Segment::new(
            5,
            [
                if whole == "-" {
                    "stacks -".into()
                } else {
                    format!("stacks {whole} whole")
                },
                format!("stacks {whole}"),
                format!("st {whole}"),
            ],
        ),
        Segment::new(
            4,
            [
                format!("symbols {named}{loading}{net}"),
                format!("symbols {named}{net}"),
                match before {
                    None => format!("sym {named}{net}"),
                    Some(_) => {
                        let now = named.rsplit('/').next().unwrap_or_default();
                        format!("sym {now}{net}")
                    }
                },
            ],
        ),
    ]);
    if app.shown.source.recording.is_none() {
        segments.push(own_cost(&app.shown));
    }
    segments
}

/// Returns what is counted, such as `3,277 samples` or `52,428,800 bytes`. If samples have
/// different weights, the number of samples that were taken is added.
fn counted(app: &App) -> Segment {
    let report = &app.shown.report;
    let count = app.counted();
    let samples = units::count(count);
    let (all, of_many, short) = match metric_told(&app.context()) {
        None => (
            units::counted(count, "sample"),
            format!("{samples} samples at {} Hz", report.rate_hz),
            format!("{samples} smp"),
        ),
        Some(metric) => {
            let all = match metric.per_second() {
                0 => number_of(metric, count),
                // Nanoseconds would have too many digits.
                _ => format!("{} ms", units::count(count / 1_000_000)),
            };
            (all.clone(), all.clone(), all)
        }
    };
    let taken = report.reweighed.map(|told| units::count(told.taken));
    let taken = taken.map(|taken| format!("{of_many} ({taken} taken)"));
    Segment::new(9, taken.into_iter().chain([all, short]))
}

/// Returns how much CPU time proftop itself uses, in percent of one CPU.
fn own_cost(snapshot: &Snapshot) -> Segment {
    let percent = snapshot.health.own_cpu_percent;
    if is_unmeasured(snapshot, percent) {
        let forms = ["own cost -", "own cost -", "own -"];
        return Segment::new(1, forms.map(String::from));
    }
    Segment::new(
        1,
        [
            format!("own cost {percent:.1}% of 1 CPU"),
            format!("own cost {percent:.1}%"),
            format!("own {percent:.1}%"),
        ],
    )
}

/// Returns how many samples were lost in the window and, if any were, their share of the samples
/// that should have been taken. Their number is shown at any width.
fn lost(taken: u64, lost: u64) -> Segment {
    let short = format!("lost {}", units::count(lost));
    if lost == 0 {
        return Segment::new(8, [short]);
    }
    let share = units::percent(lost, taken + lost);
    Segment::new(8, [format!("{short} ({share}%)"), short])
}

/// Adds the percent sign to a number, but not to `-`, which stands for a share of 0 samples.
fn percent_sign(number: String) -> String {
    if number.ends_with('-') {
        number
    } else {
        number + "%"
    }
}
