//! Line 2 of the header: what is counted.

use crate::app::{App, Crumb};
use crate::calendar;
use crate::knobs::Window;
use crate::words::fit::Segment;
use crate::words::metric::{metric, metric_told};
use crate::words::{compared, names, text, units};
use engine::snapshot::Span;
use std::sync::Arc;

/// Returns the segments of line 2, and how many of them belong to the left edge.
pub fn segments(app: &App) -> (Vec<Segment>, usize) {
    let [scope, inside] = scope(app);
    let unit = format!("unit {}", app.context().unit_words());
    // A unit that the user has chosen is shown at any width.
    let unit = match app.knobs.unit {
        Some(_) => Segment::new(8, [unit]),
        None => Segment::new(2, [unit, String::new()]),
    };
    let segments = vec![
        Segment::new(
            7,
            [
                scope.clone(),
                text::cut_middle(&scope, 40).into_owned(),
                text::cut_middle(&inside, 20).into_owned(),
            ],
        ),
        Segment::new(9, [window(app)]),
        clock(app),
        metric_segment(app),
        filter(app),
        difference(app),
        unit,
    ];
    (segments, 1)
}

/// Returns the metric. Any metric other than the default one is shown at any width.
fn metric_segment(app: &App) -> Segment {
    // Segments of rank 8 are shown at any width. The default metric may be left out.
    let rank = if metric_told(&app.context()).is_some() {
        8
    } else {
        3
    };
    let metric = metric(&app.context());
    match rank {
        8 => Segment::new(
            rank,
            [metric.clone(), text::cut_middle(&metric, 12).into_owned()],
        ),
        _ => Segment::new(rank, [metric, String::new()]),
    }
}

/// Returns the scope in words: the path from the whole to the part that is counted, and a short
/// form with only that part.
fn scope(app: &App) -> [String; 2] {
    let crumbs: Vec<String> = crumbs(app).into_iter().map(|(_, words)| words).collect();
    // `system › postgres[4121] › heap_getnext` becomes `… › heap_getnext`.
    let inside = match &crumbs[..] {
        [only] | [_, only] => only.clone(),
        [.., last] => format!("… › {last}"),
        [] => String::new(),
    };
    let inside = match crumbs.len() {
        2 => format!("system › {inside}"),
        _ => inside,
    };
    [crumbs.join(BETWEEN), inside]
}

/// From this width on the header says when the window ended.
const WIDTH_WITH_CLOCK: u16 = 120;

/// The separator between the steps of the scope.
pub const BETWEEN: &str = " › ";

/// Returns the steps of the scope with the words that are shown. Control characters are removed,
/// because names of processes may contain some, and functions have their short names.
pub fn crumbs(app: &App) -> Vec<(Crumb, String)> {
    let crumbs = app.crumbs().into_iter();
    let words = |(crumb, words): (Crumb, Arc<str>)| match crumb {
        Crumb::Function => (
            crumb,
            text::cut_middle(&names::short(&words), 40).into_owned(),
        ),
        _ => (crumb, text::clean(&words).into_owned()),
    };
    crumbs.map(words).collect()
}

/// Returns the time of day of the window: for a stretch of time if there is room, for the last
/// seconds only on a wide screen.
fn clock(app: &App) -> Segment {
    let none = Segment::new(2, [String::new()]);
    let (Some(view), false) = (&app.shown.view, app.is_catching_up()) else {
        return none;
    };
    let epoch_ms = view.info().epoch_unix_ms;
    if epoch_ms == 0 {
        return none;
    }
    let ms = |ns: u64| (ns / 1_000_000) as i64 + epoch_ms;
    let of_day = |ns| {
        let ms = ms(ns);
        format!("{}.{}", calendar::of_day(ms), ms.rem_euclid(1_000) / 100)
    };
    let words = match app.knobs.window {
        Window::Between { start_ns, end_ns } => {
            format!(
                "{}-{} {}",
                of_day(start_ns),
                of_day(end_ns),
                calendar::zone(ms(end_ns))
            )
        }
        _ if app.terminal.size.width < WIDTH_WITH_CLOCK => return none,
        Window::Last(_) | Window::Since { .. } => {
            let end_ms = ms(app.shown.report.window.end_ns);
            format!(
                "until {} {}",
                calendar::of_day(end_ms),
                calendar::zone(end_ms)
            )
        }
    };
    Segment::new(2, [words, String::new()])
}

/// Returns the window that the user asked for, and its length in seconds where the words do not say
/// it. `⟳` is appended while the shown report still has the previous window.
fn window(app: &App) -> String {
    let shown = &app.shown;
    let recording = shown.source.recording.as_ref();
    if recording.is_some_and(|recording| recording.lacks.time) {
        // The samples have no times; the store puts them all into one second.
        return "win all".into();
    }
    let seconds = shown.report.window.seconds();
    let asked = match app.knobs.window {
        Window::Last(Span::All) if shown.report.samples > 0 && !app.is_catching_up() => {
            return if shown.run.elapsed.is_zero() {
                "win all".into()
            } else {
                format!("win all ({seconds:.0}s)")
            };
        }
        window => units::window(window),
    };
    match (app.is_catching_up(), app.knobs.window) {
        (true, _) => format!("{asked} ⟳"),
        (false, Window::Between { .. }) => format!("{asked} ({seconds:.1}s)"),
        (false, Window::Since { .. }) => {
            format!("{asked} ({seconds:.0}s)")
        }
        // Waits were recorded in only a part of the window.
        (false, Window::Last(_))
            if shown.counts_time() && shown.waits_missing_before_ns().is_some() =>
        {
            format!("{asked} ({seconds:.0}s)")
        }
        (false, Window::Last(_)) => asked,
    }
}

/// Returns which baseline is compared with. Empty without a comparison.
fn difference(app: &App) -> Segment {
    match (&app.shown.comparison.functions, app.knobs.difference()) {
        (Some(diff), Some(_)) => {
            let other = app.shown.comparison.baseline.as_ref();
            let whose = other.and_then(|baseline| baseline.whose());
            let baseline = compared::baseline(diff, whose, &app.context());
            // If the baseline belongs to another scope, that is shown as long as there is any room.
            let short = whose.map_or_else(String::new, |whose| format!(" to A, {whose}"));
            let whole = format!("DIFF to {baseline}");
            Segment::new(8, [whole, format!("DIFF{short}"), "DIFF".into()])
        }
        (None, Some(_)) => Segment::new(8, ["DIFF ⟳".into()]),
        (_, None) => Segment::new(8, [String::new()]),
    }
}

/// Returns the filter. How much it keeps is shown at any width.
fn filter(app: &App) -> Segment {
    let filter = &app.knobs.filter;
    if filter.is_empty() {
        return Segment::new(1, ["filter none".into(), String::new()]);
    }
    let shown = &app.shown;
    // The share belongs to the filter that was counted. While another filter is being counted, its
    // share is not known yet.
    let keeps = if shown.asked.query.filter == *filter {
        format!(
            "keeps {}%",
            units::completeness_in(&shown.report, shown.report.samples, shown.offered)
        )
    } else {
        "⟳".into()
    };
    let words = filter.to_string();
    let words = text::clean(&words);
    Segment::new(
        8,
        [
            format!("filter {words} {keeps}"),
            format!("filter {} {keeps}", text::cut_middle(&words, 24)),
            format!("filter {keeps}"),
        ],
    )
}
