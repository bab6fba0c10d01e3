//! The selected frame in words.

use crate::app::App;
use crate::screen::flame::{Bar, Flame, Gone};
use crate::view::{difference, text, units};
use profile::Role;
use profile::query::{Direction, GroupBy, NodeKind};

/// What a long name gets at least.
const NAME_MIN: usize = 24;

/// All samples of the graph.
pub fn base(flame: &Flame) -> u64 {
    flame.tree().map_or(0, |tree| tree.root().samples)
}

pub fn title(flame: &Flame) -> String {
    let title = match flame.direction() {
        Direction::TopDown => "TOP-DOWN: callees below their caller",
        Direction::BottomUp => "BOTTOM-UP: callers below their callee",
    };
    format!("{title}{}", grouped(flame.groups()))
}

/// What is between the root and the functions.
pub fn grouped(group_by: GroupBy) -> &'static str {
    match group_by {
        GroupBy::None => "",
        GroupBy::Comm => ", by name of thread",
        GroupBy::Process => ", by process",
        GroupBy::Thread => ", by thread",
    }
}

/// As a frame is called on the screen.
pub fn name(bar: &Bar, app: &App) -> String {
    match bar.node.map(|node| node.kind) {
        Some(NodeKind::Root) if !app.shown.scope.is_empty() => app.shown.scope.to_string(),
        Some(NodeKind::Function { inlined: true, .. }) => format!("{} (inl)", bar.name),
        _ => bar.name.to_string(),
    }
}

/// By how much a frame is more than before, in the unit of the two sides; 0 where
/// nothing is compared.
pub fn change(bar: &Bar, app: &App) -> f64 {
    let sides = app.views.flame.sides();
    let pair = sides.zip(bar.before);
    pair.map_or(0.0, |(sides, before)| sides.change(before, bar.samples))
}

pub fn is_sure(bar: &Bar, app: &App) -> bool {
    let pair = app.shown.difference.as_ref().zip(bar.before);
    pair.is_some_and(|(diff, before)| diff.is_sure(before, bar.samples))
}

/// What is written at a frame's right end: its share, or by how much it changed.
pub fn number(bar: &Bar, app: &App) -> String {
    let flame = &app.views.flame;
    let (Some(sides), Some(before)) = (flame.sides(), bar.before) else {
        return format!("{}%", units::percent(bar.samples, base(flame)));
    };
    match sides.amount(&sides.a, before) {
        _ if !is_sure(bar, app) => "~".into(),
        0.0 => "new".into(),
        was => {
            let percent = change(bar, app) * 100.0 / was;
            format!("{percent:+.0}%")
        }
    }
}

/// What only the baseline has: `gone in B: GetOldSnapshot 44.0, f 3.1 ms/s`
pub fn gone(flame: &Flame, width: usize) -> Option<String> {
    let sides = flame.sides()?;
    let first = flame.gone().first()?;
    let unit = if sides.have_time() { "ms/s" } else { "pp" };
    let amount = |gone: &Gone| sides.amount(&sides.a, gone.samples);
    let mut names = format!("{} {:.1}", text::clean(&first.name), amount(first));
    let mut left = flame.gone().len() - 1;
    for next in &flame.gone()[1..] {
        let more = format!("{names}, {} {:.1}", text::clean(&next.name), amount(next));
        if text::width(&more) + 30 > width / 2 {
            break;
        }
        (names, left) = (more, left - 1);
    }
    let more = match left {
        0 => String::new(),
        left => format!(" and {} more", units::count(left as u64)),
    };
    Some(format!("gone in B: {names} {unit}{more}"))
}

pub fn why_empty(app: &App) -> String {
    let flame = &app.views.flame;
    match flame.tree() {
        _ if app.shown.report.samples == 0 => "no samples".into(),
        None => "counting…".into(),
        Some(_) => "no samples in what is zoomed into, in this window; Backspace: out".into(),
    }
}

/// `heap_hot_search_buffer  31.6% of scope ±1.6 pp  1,036 smp  49.4% of parent`
pub fn detail(app: &App, width: usize) -> String {
    let flame = &app.views.flame;
    let Some(bar) = flame.selected() else {
        return String::new();
    };
    let base = base(flame);
    if let Some((name, is_here)) = flame.hidden() {
        let why = match is_here {
            true => "too narrow here; Enter: zoom in on it",
            false => "gone from the window",
        };
        let room = width.saturating_sub(why.len() + 2);
        return format!("{}: {why}", text::cut_middle(&name, room));
    }
    let percent = |part| units::percent(part, base);
    let mut parts = match (flame.sides(), bar.before) {
        (Some(sides), Some(before)) => vec![
            format!(
                "{}% -> {}% of scope",
                units::percent(before, sides.a.samples),
                percent(bar.samples)
            ),
            format!(
                "{} -> {} smp",
                units::count(before),
                units::count(bar.samples)
            ),
        ],
        _ => vec![
            format!(
                "{}% of scope {} pp",
                percent(bar.samples),
                units::band_text(bar.samples, base)
            ),
            format!("{} smp", units::count(bar.samples)),
        ],
    };
    let name = text::clean(&name(bar, app)).into_owned();
    let room = width.saturating_sub(text::width(&name).min(NAME_MIN));
    let mut add = |part: String| {
        let used: usize = parts.iter().map(|part| text::width(part) + 2).sum();
        if used + part.len() + 2 <= room {
            parts.push(part);
        }
    };
    if let Some(parent) = flame.parent() {
        let share = units::percent(bar.samples, parent.samples);
        add(format!("{share}% of parent"));
    }
    if let Some(node) = bar.node
        && flame.direction() == Direction::TopDown
    {
        add(format!("self {}%", percent(node.own)));
    }
    if let Some(function) = bar.function.as_ref().filter(|f| !f.module.is_empty()) {
        add(text::clean(&function.module).into_owned());
    }
    let numbers = parts.join("  ");
    let name = text::cut_middle(&name, width.saturating_sub(text::width(&numbers) + 2));
    format!("{name}  {numbers}")
}

/// One sentence on the selected frame.
pub fn explain(app: &App) -> Option<String> {
    let flame = &app.views.flame;
    let bar = flame.selected()?;
    let node = bar.node?;
    if let (Some(before), Some(diff)) = (bar.before, &app.shown.difference) {
        let name = name(bar, app);
        return Some(difference::judgement(&name, (before, bar.samples), diff));
    }
    let number = format!(
        "{}% = {} of {} in {}, last {:.1} s",
        units::percent(bar.samples, base(flame)),
        units::counted(bar.samples, "sample"),
        units::count(base(flame)),
        app.shown.scope,
        app.shown.report.window.seconds(),
    );
    if let Some(Role::Stopped(ending)) = bar.function.as_ref().map(|f| f.role) {
        let why = ending.explain();
        return Some(format!(
            "{number}: here the stack's start is missing: {why}"
        ));
    }
    let grouped = u32::from(flame.groups() != GroupBy::None);
    let others = u64::from(node.depth.saturating_sub(1 + grouped));
    let others = units::counted(others, "frame");
    Some(match (node.depth, flame.direction()) {
        (0, _) => format!("{number}: all of them"),
        _ if matches!(node.kind, NodeKind::Group(_)) => {
            format!("{number}: all that were taken there")
        }
        (_, Direction::TopDown) => format!(
            "{number}: stacks that begin with the {others} above it and then have it; {} end in it",
            units::count(node.own)
        ),
        (_, Direction::BottomUp) => {
            format!("{number}: stacks that end with it and the {others} above it")
        }
    })
}
