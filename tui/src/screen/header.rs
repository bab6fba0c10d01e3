//! The header: where and when, what is asked, and how far the answer can be
//! trusted. The sample count and the loss are on its third line at any width.

use crate::app::{App, Crumb};
use crate::calendar;
use crate::knobs::Window;
use crate::views::PaneId;
use crate::widgets::theme::Theme;
use crate::words::fit::{Segment, fit};
use crate::words::metric::{metric, metric_told, number_of};
use crate::words::{compared, names, text, units};
use engine::snapshot::{Snapshot, Span, TargetState};
use probe::EngineKind;
use profile::Completeness;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::sync::Arc;
use std::time::Duration;

/// Draws the header: three lines, or only the last one if there is room for one.
pub fn render(app: &App, theme: &Theme, frame: &mut Frame, area: Rect) {
    let width = usize::from(area.width);
    if area.height == 1 {
        return render_base(app, theme, frame, area);
    }
    // Each line is fitted before it is drawn: segments take shorter forms, the least
    // important first, until the line fits. The gap is as wide as it will be drawn.
    let (mut place, left) = place(app);
    fit(&mut place, width, 2);
    let (mut query, scope) = query(app);
    fit(&mut query, width, 3);
    draw(&place, left, 2, theme.title(), frame, area, 0);
    draw(&query, scope, 3, Style::new(), frame, area, 1);
    let last = Rect {
        y: area.y + 2,
        height: 1,
        ..area
    };
    render_base(app, theme, frame, last);
}

/// Draws the line that is always there: what all numbers are shares of, and what is
/// missing.
fn render_base(app: &App, theme: &Theme, frame: &mut Frame, area: Rect) {
    let mut trust = trust(app);
    fit(&mut trust, area.width.into(), 2);
    let whole_line = trust.len();
    draw(&trust, whole_line, 2, Style::new(), frame, area, 0);
    // The first two segments of this line are always the count and the loss.
    if app.shown.health.lost > 0 {
        let x = text::width(trust[0].text()) as u16 + 2;
        let lost = Rect::new(x, area.y, text::width(trust[1].text()) as u16, 1).intersection(area);
        frame.buffer_mut().set_style(lost, theme.warning());
    }
}

/// Returns what numbers are shares of and what is counted, as one line, for front ends
/// without a screen.
pub fn base(app: &App) -> String {
    let join = |segments: Vec<Segment>| {
        let texts = segments.iter().map(Segment::text);
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        texts.join(", ")
    };
    format!("{}; {}", join(trust(app)), join(query(app).0))
}

/// Draws the first `left` segments from the left edge, and the others at the right edge.
fn draw(
    segments: &[Segment],
    left: usize,
    gap: usize,
    first: Style,
    frame: &mut Frame,
    area: Rect,
    line: u16,
) {
    let join = |segments: &[Segment]| {
        let texts: Vec<&str> = segments
            .iter()
            .map(Segment::text)
            .filter(|text| !text.is_empty())
            .collect();
        texts.join(&" ".repeat(gap))
    };
    let y = area.y + line;
    let buffer = frame.buffer_mut();
    // The right part is drawn first: if the line is too narrow for both even so, the left
    // part covers it, which says more.
    let right = join(&segments[left..]);
    let start = area.width.saturating_sub(text::width(&right) as u16);
    buffer.set_stringn(start, y, &right, area.width.into(), first);
    let room = usize::from(area.width);
    buffer.set_stringn(area.x, y, join(&segments[..left]), room, first);
}

/// Returns line 1: the machine, and how it is sampled. The number is how many segments go
/// to the left.
fn place(app: &App) -> (Vec<Segment>, usize) {
    let snapshot = &app.shown;
    let host = &snapshot.source.host;
    let name = text::clean(&host.name);
    // Of `6.18.44-cloud` the first two numbers say which kernel it is.
    let release = host.kernel.split('.').take(2).collect::<Vec<_>>().join(".");
    let mut segments = vec![Segment::new(
        8,
        [
            format!("proftop {name}").trim_end().to_owned(),
            format!("proftop {}", text::cut_middle(&name, 12)),
            "proftop".into(),
        ],
    )];
    // A recording of another tool may not know the machine.
    if host.cpus > 0 {
        segments.push(Segment::new(
            1,
            [
                format!("Linux {release} {}", host.arch),
                format!("Linux {release}"),
                String::new(),
            ],
        ));
        segments.push(Segment::new(
            2,
            match host.sampled_cpus.len() {
                0 => [format!("{} CPU", host.cpus), String::new()],
                some => [format!("{some} of {} CPU", host.cpus), String::new()],
            },
        ));
        // How busy the machine is now says nothing of a recording.
        if snapshot.source.recording.is_none() {
            segments.push(busy(snapshot));
        }
    }
    let left = segments.len();
    let clock = units::clock(snapshot.run.elapsed);
    let word = live_word(app);
    // Longest form first: for a recording with its file, then with the file's name cut,
    // then as for a live target.
    let mut live = vec![format!("{word} {clock}"), word.into()];
    if let Some(recording) = &snapshot.source.recording {
        let file = text::clean(&recording.name);
        let clock = if snapshot.run.elapsed.is_zero() {
            String::new()
        } else {
            format!(" {clock}")
        };
        live.insert(0, format!("{word} {}{clock}", text::cut_middle(&file, 20)));
        live.insert(0, format!("{word} {file}{clock}"));
    }
    segments.push(Segment::new(9, live));
    if let Some(repeat) = app.repeat() {
        let every = format!("writes every {} s", repeat.every.as_secs());
        let count = repeat.count;
        segments.push(Segment::new(
            8,
            [format!("{every} ({count})"), "writes".into()],
        ));
    }
    if snapshot.source.rate_hz > 0 {
        // BPF is the usual engine and not mentioned. Why it is another one is said in
        // Health.
        let engine = match snapshot.source.engine {
            None | Some(EngineKind::Bpf) => String::new(),
            Some(other) => format!("{} ", other.label()),
        };
        let rate_hz = snapshot.source.rate_hz;
        let wanted_hz = snapshot
            .source
            .budget
            .map_or(rate_hz, |budget| budget.rate_hz);
        let rate = if wanted_hz > rate_hz {
            // The rest was given up to keep to the budget.
            format!("{engine}{rate_hz} of {wanted_hz} Hz")
        } else {
            format!("{engine}{rate_hz} Hz")
        };
        segments.push(Segment::new(4, [rate, String::new()]));
    }
    (segments, left)
}

/// Returns how many of the sampled CPUs are busy, such as `busy 5.3/16`.
fn busy(snapshot: &Snapshot) -> Segment {
    let cpus = snapshot.source.host.cpus_sampled();
    let busy = if is_unmeasured(snapshot, snapshot.run.busy_cpus) {
        "-".to_owned()
    } else {
        format!("{:.1}", snapshot.run.busy_cpus)
    };
    Segment::new(
        5,
        [
            format!("busy {busy}/{cpus}"),
            format!("{busy}/{cpus} CPU"),
            String::new(),
        ],
    )
}

/// Whether a number is not measured yet: 0 in the first second.
fn is_unmeasured(snapshot: &Snapshot, number: f64) -> bool {
    number == 0.0 && snapshot.run.elapsed < Duration::from_secs(1)
}

/// Returns in one word whether what is shown still grows. Frozen comes first: then it does
/// not, whatever the target does.
fn live_word(app: &App) -> &'static str {
    match app.shown.run.target {
        _ if app.freezing.frozen.is_some() => "FROZEN",
        TargetState::Starting => "STARTING",
        TargetState::Recorded => "FILE",
        TargetState::Running if !app.shown.source.machines.is_empty() => "LIVE",
        TargetState::Running if app.shown.source.recording.is_some() => "READING",
        TargetState::Running => "LIVE",
        TargetState::Exited { .. } => "EXITED",
        TargetState::Failed(_) => "FAILED",
    }
}

/// Returns line 2: what is counted. The number is how many segments go to the left.
fn query(app: &App) -> (Vec<Segment>, usize) {
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

/// Returns what is counted. Another metric than the usual one is shown at any width.
fn metric_segment(app: &App) -> Segment {
    // The rank of what is shown at any width is 8; the usual metric may disappear.
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

/// Returns the scope in words: the path from the whole to the part that is counted, and the
/// short form with only that part.
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

/// From this width on the header tells when the window ended.
const WIDTH_WITH_CLOCK: u16 = 120;

/// Stands between the steps of the scope.
const BETWEEN: &str = " › ";

/// Returns the steps of the scope with their words as they are shown: control characters
/// are removed, as names of processes may have some, and a function has its short name.
fn crumbs(app: &App) -> Vec<(Crumb, String)> {
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

/// Returns the step of the path that is at column `x`. None where the path is cut.
pub fn crumb_at(app: &App, width: u16, x: u16) -> Option<Crumb> {
    let (mut segments, _) = query(app);
    fit(&mut segments, width.into(), 3);
    let crumbs = crumbs(app);
    let words: Vec<&str> = crumbs.iter().map(|(_, words)| &**words).collect();
    // The scope is the first segment and begins at the left edge, so that the column on the
    // screen is a cell of its text. Only a cut of its middle has to be undone.
    let x = uncut(segments[0].text(), &words.join(BETWEEN), x.into())?;
    let mut start = 0;
    for (crumb, words) in &crumbs {
        let end = start + text::width(words);
        if (start..end).contains(&x) {
            return Some(*crumb);
        }
        start = end + text::width(BETWEEN);
    }
    None
}

/// Converts a cell of the shown text, from whose middle something may be cut, to the cell
/// of the whole text. None at the cut.
fn uncut(shown: &str, whole: &str, x: usize) -> Option<usize> {
    let same = |(a, b): &(char, char)| a == b;
    let pairs = shown.chars().zip(whole.chars());
    let before: String = pairs.take_while(same).map(|(c, _)| c).collect();
    let (shown_rest, whole_rest) = (&shown[before.len()..], &whole[before.len()..]);
    let pairs = shown_rest.chars().rev().zip(whole_rest.chars().rev());
    let after: String = pairs.take_while(same).map(|(c, _)| c).collect();
    let width = text::width(shown);
    match x {
        _ if x < text::width(&before) => Some(x),
        _ if x >= width => None,
        _ if width - x <= text::width(&after) => Some(x + text::width(whole) - width),
        _ => None,
    }
}

/// Returns when the window was, in the time of day: of a stretch of time if there is room,
/// of the last seconds on a wide screen, which has room to spare.
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
        _ if app.size.width < WIDTH_WITH_CLOCK => return none,
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

/// Returns the window as it was asked for and, where that does not say it, how many seconds
/// it has. `⟳` stands behind it while what is shown is still of the window before.
fn window(app: &App) -> String {
    let shown = &app.shown;
    let recording = shown.source.recording.as_ref();
    if recording.is_some_and(|recording| recording.lacks.time) {
        // The second that the samples were put into is none of theirs.
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
        // Waits are counted for so much of it.
        (false, Window::Last(_))
            if shown.counts_time() && shown.waits_missing_before_ns().is_some() =>
        {
            format!("{asked} ({seconds:.0}s)")
        }
        (false, Window::Last(_)) => asked,
    }
}

/// Returns that a baseline is compared with, and which. Empty without a comparison.
fn difference(app: &App) -> Segment {
    match (&app.shown.comparison.functions, app.knobs.difference()) {
        (Some(diff), Some(_)) => {
            let other = app.shown.comparison.baseline.as_ref();
            let whose = other.and_then(|baseline| baseline.whose());
            let baseline = compared::baseline(diff, whose, &app.context());
            // That other samples are compared is said as long as there is any room.
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
    // The share is of the filter that was asked for then. While another one is being
    // counted, it is not known yet.
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

/// Returns line 3: what all numbers are shares of, and how complete that is.
fn trust(app: &App) -> Vec<Segment> {
    let report = &app.shown.report;
    let health = &app.shown.health;
    let completeness = &report.completeness;
    let before = app.shown.comparison.lacks.as_deref();
    // One number, or in a comparison those of before and now.
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
    // Names may come that change the share, because frames wait for them or files are read.
    let loading = completeness.pending > 0 || !app.shown.names.loading.is_empty();
    let loading = if loading { " ⟳" } else { "" };
    // That servers are asked is shown at any width.
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
    // A view of a part of the samples, such as the code of one function, says itself how
    // far its numbers can be trusted.
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
/// different weights, it also says how many were taken.
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
                // Too many digits for a time.
                _ => format!("{} ms", units::count(count / 1_000_000)),
            };
            (all.clone(), all.clone(), all)
        }
    };
    let taken = report.reweighed.map(|told| units::count(told.taken));
    let taken = taken.map(|taken| format!("{of_many} ({taken} taken)"));
    Segment::new(9, taken.into_iter().chain([all, short]))
}

/// Returns what proftop itself takes, in percent of one CPU.
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

/// Returns how many samples were lost in the window and, if any were, their share of all
/// that were due. Their number is shown at any width.
fn lost(taken: u64, lost: u64) -> Segment {
    let short = format!("lost {}", units::count(lost));
    if lost == 0 {
        return Segment::new(8, [short]);
    }
    let share = units::percent(lost, taken + lost);
    Segment::new(8, [format!("{short} ({share}%)"), short])
}

/// Adds the sign to a number, but not to `-`, which stands for a share of nothing.
fn percent_sign(number: String) -> String {
    if number.ends_with('-') {
        number
    } else {
        number + "%"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_cut_path_is_where_it_was() {
        let whole = "system › postgres[4121] › heap_getnext";
        for (shown, x, expected) in [
            (whole, 9, Some(9)),
            (whole, 40, None),
            ("system › post…heap_getnext", 0, Some(0)),
            ("system › post…heap_getnext", 12, Some(12)),
            ("system › post…heap_getnext", 13, None),
            ("system › post…heap_getnext", 14, Some(26)),
            ("system › post…heap_getnext", 25, Some(37)),
            ("… › heap_getnext", 4, Some(26)),
            ("… › heap_getnext", 16, None),
        ] {
            assert_eq!(uncut(shown, whole, x), expected, "{shown} {x}");
        }
    }
}
