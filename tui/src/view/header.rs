//! The header: where and when, what is asked, and how far the answer can be
//! trusted. The sample count and the loss are on its third line at any width.

use super::fit::{Segment, fit};
use super::theme::Theme;
use super::{text, units};
use crate::app::App;
use crate::screen::View;
use crate::snapshot::{Snapshot, Span, TargetState};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::time::Duration;

pub fn render(app: &App, theme: &Theme, frame: &mut Frame, area: Rect) {
    let width = usize::from(area.width);
    let (mut place, left) = place(app);
    fit(&mut place, width, 2);
    let (mut query, scope) = query(app);
    fit(&mut query, width, 3);
    let mut trust = trust(app);
    fit(&mut trust, width, 2);

    draw(&place, left, 2, theme.title(), frame, area, 0);
    draw(&query, scope, 3, Style::new(), frame, area, 1);
    let whole_line = trust.len();
    draw(&trust, whole_line, 2, Style::new(), frame, area, 2);
    if app.shown.health.lost > 0 {
        let x = text::width(trust[0].text()) as u16 + 2;
        let lost = Rect::new(x, area.y + 2, text::width(trust[1].text()) as u16, 1);
        let lost = lost.intersection(area);
        frame.buffer_mut().set_style(lost, theme.warning());
    }
}

/// The first `left` segments from the left, the others against the right edge.
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
    let right = join(&segments[left..]);
    let start = area.width.saturating_sub(text::width(&right) as u16);
    buffer.set_stringn(start, y, &right, area.width.into(), first);
    let room = usize::from(area.width);
    buffer.set_stringn(area.x, y, join(&segments[..left]), room, first);
}

/// Line 1: the machine, and how it is being watched.
fn place(app: &App) -> (Vec<Segment>, usize) {
    let snapshot = &app.shown;
    let host = &snapshot.host;
    let name = text::clean(&host.name);
    let release = host.kernel.split('.').take(2).collect::<Vec<_>>().join(".");
    let mut segments = vec![Segment::new(
        8,
        [
            format!("proftop {name}").trim_end().to_owned(),
            format!("proftop {}", text::cut_middle(&name, 12)),
            "proftop".into(),
        ],
    )];
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
            [format!("{} CPU", host.cpus), String::new()],
        ));
        let busy = if is_unmeasured(snapshot, snapshot.busy_cpus) {
            "-".to_owned()
        } else {
            format!("{:.1}", snapshot.busy_cpus)
        };
        segments.push(Segment::new(
            5,
            [
                format!("busy {busy}/{}", host.cpus),
                format!("{busy}/{} CPU", host.cpus),
                String::new(),
            ],
        ));
    }
    let left = segments.len();
    let clock = units::clock(snapshot.elapsed);
    let word = live_word(app);
    segments.push(Segment::new(9, [format!("{word} {clock}"), word.into()]));
    if snapshot.rate_hz > 0 {
        // The usual one needs no word; of another Health says why.
        let engine = match snapshot.engine {
            "" | "bpf" => String::new(),
            other => format!("{other} "),
        };
        let rate = format!("{engine}{} Hz", snapshot.rate_hz);
        segments.push(Segment::new(4, [rate, String::new()]));
    }
    (segments, left)
}

/// Nothing in the first second is not yet a number.
fn is_unmeasured(snapshot: &Snapshot, number: f64) -> bool {
    number == 0.0 && snapshot.elapsed < Duration::from_secs(1)
}

fn live_word(app: &App) -> &'static str {
    match app.shown.target {
        _ if app.frozen.is_some() => "FROZEN",
        TargetState::Starting => "STARTING",
        TargetState::Running => "LIVE",
        TargetState::Exited(_) => "EXITED",
        TargetState::Failed(_) => "FAILED",
    }
}

/// Line 2: the query.
fn query(app: &App) -> (Vec<Segment>, usize) {
    let snapshot = &app.shown;
    let scope = text::clean(&snapshot.scope);
    let scope = match scope.as_ref() {
        "" | "system" => "system".to_owned(),
        scope => format!("system › {scope}"),
    };
    let unit = match app.view {
        View::Functions | View::Tree | View::Flame | View::Health => "unit %",
        View::Processes | View::Threads => "unit CPU",
    };
    let optional = |rank, text: &str| Segment::new(rank, [text.to_owned(), String::new()]);
    let segments = vec![
        Segment::new(
            7,
            [
                scope.clone(),
                text::cut_middle(&scope, 40).into_owned(),
                text::cut_middle(&scope, 20).into_owned(),
            ],
        ),
        Segment::new(9, [window(app)]),
        optional(3, "on-CPU"),
        optional(1, "filter none"),
        optional(2, unit),
    ];
    (segments, 1)
}

fn window(app: &App) -> String {
    let asked = units::span(app.window);
    let shown = &app.shown;
    if shown.generation > 0 && shown.window != app.window {
        return format!("win {asked} ⟳");
    }
    if app.window == Span::All && shown.report.samples > 0 {
        return format!("win all ({:.0}s)", shown.report.window.seconds());
    }
    format!("win {asked}")
}

/// Line 3: the base of every number, and what it lacks.
fn trust(app: &App) -> Vec<Segment> {
    let report = &app.shown.report;
    let health = &app.shown.health;
    let completeness = &report.completeness;
    let samples = units::count(report.samples);
    let whole = percent_sign(units::completeness(
        completeness.whole,
        completeness.user_stacks,
    ));
    let named = percent_sign(units::completeness(completeness.named, completeness.frames));
    let loading = completeness.pending > 0 || !app.shown.loading.is_empty();
    let loading = if loading { " ⟳" } else { "" };
    let own = if is_unmeasured(&app.shown, health.own_cpu_percent) {
        "-".to_owned()
    } else {
        format!("{:.1}%", health.own_cpu_percent)
    };
    vec![
        Segment::new(
            9,
            [
                units::counted(report.samples, "sample"),
                format!("{samples} smp"),
            ],
        ),
        lost(report.samples, health.lost),
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
                format!("symbols {named}{loading}"),
                format!("symbols {named}"),
                format!("sym {named}"),
            ],
        ),
        Segment::new(
            1,
            [
                if own == "-" {
                    "own cost -".into()
                } else {
                    format!("own cost {own} of 1 CPU")
                },
                format!("own cost {own}"),
                format!("own {own}"),
            ],
        ),
    ]
}

fn lost(taken: u64, lost: u64) -> Segment {
    let short = format!("lost {}", units::count(lost));
    if lost == 0 {
        return Segment::new(8, [short]);
    }
    let share = units::percent(lost, taken + lost);
    Segment::new(8, [format!("{short} ({share}%)"), short])
}

fn percent_sign(number: String) -> String {
    if number == "-" { number } else { number + "%" }
}
