//! The texts of the flame graph: its title, its bars, and the selected frame.

use crate::action::Action;
use crate::calendar::SECOND_NS;
use crate::context::Context;
use crate::views::flame::{Bar, Flame, Gone};
use crate::views::tree::{Stretch, runs};
use crate::words::compared::judgement;
use crate::words::explain::base_words;
use crate::words::keys::{and, hint};
use crate::words::metric::{amount, bare_amount, counted, metric_told};
use crate::words::units::Scale;
use crate::words::{names, text, units};
use profile::Role;
use profile::query::{Direction, GroupBy, NodeKind};
use std::iter;

/// Minimum number of cells for a long name.
const NAME_MIN: usize = 24;

/// Returns how many samples the whole graph has, zoomed or not; 0 without a tree.
pub fn base(flame: &Flame) -> u64 {
    flame.tree().map_or(0, |tree| tree.root().samples)
}

/// Returns the line above the graph: its direction, or its stretch of time and what that is
/// compared with, and its grouping.
pub fn title(flame: &Flame, cx: &Context<'_>) -> String {
    if let (Some(stretch), Some(sides)) = (flame.stretch(), flame.sides()) {
        let what = match stretch {
            Stretch::Window => "of the window".into(),
            Stretch::Between(start, end) if end - start == SECOND_NS => "of this second".into(),
            Stretch::Between(start, end) => format!("of these {:.2} s", (end - start) as f64 / 1e9),
        };
        let rest = match sides.a.samples {
            0 => "there is no other time to compare it with".into(),
            samples => format!(
                "against the rest of the time: {:.0} s, {}",
                sides.a.seconds,
                counted(cx, samples)
            ),
        };
        return format!("FLAME GRAPH {what}{}, {rest}", grouped(flame.groups()));
    }
    let title = match flame.direction() {
        Direction::TopDown => "TOP-DOWN: callees below their caller",
        Direction::BottomUp => "BOTTOM-UP: callers below their callee",
    };
    format!("{title}{}", grouped(flame.groups()))
}

/// Returns the words for a grouping, which follow a title.
pub fn grouped(group_by: GroupBy) -> &'static str {
    match group_by {
        GroupBy::None => "",
        GroupBy::Comm => ", by name of thread",
        GroupBy::Process => ", by process",
        GroupBy::Thread => ", by thread",
    }
}

/// Returns the name of a bar on the screen.
pub fn name(bar: &Bar, cx: &Context<'_>) -> String {
    match bar.node.map(|node| node.kind) {
        Some(NodeKind::Root) => cx.root_words().to_string(),
        _ if !bar.run.is_empty() => {
            let first = names::short(&bar.run[0].name).into_owned();
            runs::written(&first, bar.run.len(), &names::short(&bar.name))
        }
        Some(NodeKind::Function { inlined: true, .. }) => {
            format!("{} (inl)", names::short(&bar.name))
        }
        _ => names::short(&bar.name).into_owned(),
    }
}

/// Returns the name of the bar's innermost frame, the most useful one if the names of a folded run
/// do not fit.
pub fn last_name(bar: &Bar, cx: &Context<'_>) -> String {
    if bar.run.is_empty() {
        name(bar, cx)
    } else {
        names::short(&bar.name).into_owned()
    }
}

/// Whether the change of a bar is statistically significant; see [`Flame::is_sure`].
pub fn is_sure(bar: &Bar, flame: &Flame, cx: &Context<'_>) -> bool {
    flame.is_sure(bar, cx.shown.comparison.functions.as_deref())
}

/// Returns the texts that the right end of a bar can have, the longest first: its number or, if
/// trees are compared, by how much it changed.
pub fn numbers(bar: &Bar, flame: &Flame, cx: &Context<'_>) -> Vec<String> {
    let (Some(sides), Some(before)) = (flame.sides(), bar.before) else {
        let scale = Scale::new(cx, base(flame));
        // The number with its label first, then without it.
        let text = scale.beside(bar.samples).map(|_| scale.text(bar.samples));
        return iter::once(scale.labelled(bar.samples))
            .chain(text)
            .collect();
    };
    let share = format!(
        "{}%",
        units::share(&cx.shown.report, bar.samples, base(flame))
    );
    let is_sure = is_sure(bar, flame, cx);
    // A stretch of time is compared with the rest: both shares are shown, but only if they differ
    // significantly.
    if flame.stretch().is_some() {
        let rest = units::percent(before, sides.a.samples);
        return if is_sure {
            vec![format!("{share} (rest {rest}%)"), share]
        } else {
            vec![share]
        };
    }
    // Against a baseline: by how many percent the amount has changed. `~` means that the change may
    // be chance.
    vec![match sides.amount(&sides.a, before) {
        _ if !is_sure => "~".into(),
        0.0 => "new".into(),
        was => {
            let percent = flame.change(bar) * 100.0 / was;
            format!("{percent:+.0}%")
        }
    }]
}

/// Returns the frames that exist only in the baseline: `gone in B: GetOldSnapshot 44.0, f 3.1
/// ms/s`.
pub fn gone(flame: &Flame, width: usize) -> Option<String> {
    let sides = flame.sides()?;
    let first = flame.gone().first()?;
    let unit = if sides.have_time() { "ms/s" } else { "pp" };
    let where_ = match flame.stretch() {
        Some(_) => "not in it",
        None => "gone in B",
    };
    let amount = |gone: &Gone| sides.amount(&sides.a, gone.samples);
    // The largest frame is always named. Others are named as long as the text stays within half of
    // the width; 30 cells are reserved for the words around the names.
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
    Some(format!("{where_}: {names} {unit}{more}"))
}

/// Returns the sentence that says why there are no bars: no samples, no answer yet, or none below
/// the zoomed frame.
pub fn why_empty(flame: &Flame, cx: &Context<'_>) -> String {
    match flame.tree() {
        _ if cx.shown.report.samples == 0 => "no samples".into(),
        None => "counting…".into(),
        Some(tree) if tree.root().samples == 0 => "no samples in it".into(),
        Some(_) => {
            let empty = "no samples in what is zoomed into, in this window";
            and(empty, "; ", [hint(cx, Action::Back, "out")])
        }
    }
}

/// Returns the detail line: `heap_hot_search_buffer  31.6% of scope ±1.6 pp  1,036 smp  49.4% of
/// parent`.
pub fn detail(flame: &Flame, cx: &Context<'_>, width: usize) -> String {
    let Some(bar) = flame.selected() else {
        return String::new();
    };
    let base = base(flame);
    // The selected frame has no visible bar: the line says why.
    if let Some((name, is_here)) = flame.hidden() {
        let why = if is_here {
            let zoom = hint(cx, Action::Zoom, "zoom in on it");
            and("too narrow here", "; ", [zoom])
        } else {
            "gone from the window".into()
        };
        let room = width.saturating_sub(why.len() + 2);
        return format!("{}: {why}", text::cut_middle(&name, room));
    }
    let percent = |part| units::share(&cx.shown.report, part, base);
    // The numbers: (1) of a stretch against the rest, (2) against a baseline, (3) without
    // comparison.
    let mut parts = match (flame.sides(), bar.before) {
        (Some(sides), Some(before)) if flame.stretch().is_some() => vec![
            format!("{}% of this time", percent(bar.samples)),
            format!("{}% of the rest", units::percent(before, sides.a.samples)),
            amount(cx, bar.samples),
        ],
        (Some(sides), Some(before)) => vec![
            format!(
                "{:.1} -> {:.1}{}",
                sides.amount(&sides.a, before),
                sides.amount(&sides.b, bar.samples),
                if sides.have_time() {
                    " ms/s"
                } else {
                    "% of scope"
                },
            ),
            format!("{} -> {}", bare_amount(cx, before), amount(cx, bar.samples)),
        ],
        _ => {
            let band = if cx.counts_time() {
                String::new()
            } else {
                let band = units::band_text(&cx.shown.report, bar.samples, base);
                format!(" {band} pp")
            };
            let share = format!("{}% of scope{band}", percent(bar.samples));
            let samples = amount(cx, bar.samples);
            let beside = Scale::new(cx, base).beside(bar.samples);
            [share, samples].into_iter().chain(beside).collect()
        }
    };
    let name = match bar.node.map(|node| node.kind) {
        Some(NodeKind::Function { .. }) => {
            let run = bar.run.iter().map(|frame| &*frame.name);
            let names: Vec<&str> = run.chain([&*bar.name]).collect();
            text::clean(&names.join(" › ")).into_owned()
        }
        _ => text::clean(&name(bar, cx)).into_owned(),
    };
    // The name comes first on the line and is shortened last: the numbers leave it the cells that
    // it needs, up to `NAME_MIN`. The other parts are added by importance, each only if it fits as
    // a whole.
    let room = width.saturating_sub(text::width(&name).min(NAME_MIN));
    let mut add = |part: String| {
        let used: usize = parts.iter().map(|part| text::width(part) + 2).sum();
        if used + part.len() + 2 <= room {
            parts.push(part);
        }
    };
    if let Some(parent) = flame.parent() {
        let share = units::share(&cx.shown.report, bar.samples, parent.samples);
        add(format!("{share}% of parent"));
    }
    // Bottom-up, all samples of a bar are own samples of the function at which its branch starts.
    if let Some(node) = bar.node
        && flame.direction() == Direction::TopDown
    {
        add(format!("self {}%", percent(node.own)));
    }
    if let Some(function) = bar.function.as_ref().filter(|f| !f.module.is_empty()) {
        add(text::clean(&function.module).into_owned());
    }
    if let Some(function) = &bar.function
        && let Some(source) = crate::words::source::source(function.file.as_deref(), function.line)
    {
        add(source);
    }
    let numbers = parts.join("  ");
    let name = text::cut_middle(&name, width.saturating_sub(text::width(&numbers) + 2));
    format!("{name}  {numbers}")
}

/// Explains the number of the selected frame in one sentence. Returns `None` if none is selected.
pub fn explain(flame: &Flame, cx: &Context<'_>) -> Option<String> {
    let bar = flame.selected()?;
    let node = bar.node?;
    if let (Some(before), Some(sides), Some(_)) = (bar.before, flame.sides(), flame.stretch()) {
        let judged = if is_sure(bar, flame, cx) {
            "surely another share"
        } else {
            "the same share, or by chance another"
        };
        return Some(format!(
            "{}: {}% = {} of {} in this time, {}% = {} of {} in all the rest that is kept: {judged}",
            names::brief(&name(bar, cx)),
            units::share(&cx.shown.report, bar.samples, base(flame)),
            bare_amount(cx, bar.samples),
            bare_amount(cx, base(flame)),
            units::percent(before, sides.a.samples),
            bare_amount(cx, before),
            bare_amount(cx, sides.a.samples),
        ));
    }
    if let (Some(before), Some(diff)) = (bar.before, &cx.shown.comparison.functions) {
        let name = name(bar, cx);
        return Some(judgement(
            &name,
            (before, bar.samples),
            diff.chance(before, bar.samples),
            diff,
            metric_told(cx),
        ));
    }
    let number = format!(
        "{}% = {} of {} in {}",
        units::share(&cx.shown.report, bar.samples, base(flame)),
        counted(cx, bar.samples),
        bare_amount(cx, base(flame)),
        base_words(cx),
    );
    if let Some(Role::Stopped(ending)) = bar.function.as_ref().map(|f| f.role) {
        let why = ending.explain();
        return Some(format!(
            "{number}: here the stack's start is missing: {why}"
        ));
    }
    // The depth of a node counts the root and, if there is one, the bar of its group, which are not
    // frames of the stack.
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
