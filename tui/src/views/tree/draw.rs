//! Draws the call tree: shares in columns at fixed places, and the indented names beside them.

use crate::action::{Action, FoldAction};
use crate::context::{Context, DetailRoom};
use crate::views::{Canvas, Draw};
use crate::widgets::compared;
use crate::words::compared::judgement;
use crate::words::explain::{self, base_words};
use crate::words::metric::{amount, bare_amount, counted, metric_told};
use crate::words::source;

use crate::geometry::WIDTH_WIDE;
use crate::knobs::Unit;
use crate::views::tree::runs;
use crate::views::tree::{Fold, Joint, SMALL_PERCENT, Tree, TreeRow, Trees, What};
use crate::widgets::table;
use crate::widgets::table::{Column, Row};
use crate::widgets::theme::Theme;
use crate::words::keys::{and, hint, key};
use crate::words::units::Scale;
use crate::words::{absence, names, text, units};
use profile::diff::Sides;
use profile::query::{Direction, GroupBy, NodeKind};
use profile::{Function, Role, RowName};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// The sign in the row in which the last opened hot path ends.
const HOT_END: &str = "◄ hot path";

/// From this width on samples, band and module are shown.
const WIDTH_WITH_COUNTS: u16 = 84;

/// The column of samples, the only one that the tree can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BySamples;

impl Draw for Tree {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        render(self, cx, canvas);
    }

    fn detail(&self, cx: &Context<'_>, room: DetailRoom, theme: &Theme) -> String {
        detail(self, cx, room, theme)
    }

    fn source(&self, _: &Context<'_>) -> Option<(String, String)> {
        let function = self.function(self.selected()?)?;
        source::linked(function.file.as_deref(), function.line)
    }
}

/// Draws the heads and the visible rows, and below them why there are no rows, or how many rows are
/// out of sight.
fn render(tree: &Tree, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    let layout = Layout::new(heads.width, tree, cx, theme);
    table::render_heads(
        &layout.columns,
        (BySamples, table::sort_sign(false, false)),
        theme,
        frame,
        heads,
    );
    let mut line = Rect { height: 1, ..body };
    for row in tree.side().shown() {
        let is_selected = tree.selected().is_some_and(|s| s.path == row.path);
        let cells = layout.row(row, tree, cx, is_selected, theme);
        table::render_row(&layout.columns, &cells, layout.name, theme, frame, line);
        line.y += 1;
    }
    let total = tree.side().rows().len();
    if total == 0 {
        // No row is selected, so nothing else places the cursor.
        frame.set_cursor_position(Position::new(body.x, body.y));
        let room = usize::from(body.width - 2);
        // The tree is counted on another thread, so it may come after the report that has samples.
        let text = if cx.shown.report.samples == 0 {
            "no samples"
        } else {
            "counting…"
        };
        frame
            .buffer_mut()
            .set_stringn(body.x + 2, body.y + 1, text, room, Style::new());
    } else if total > tree.side().shown().len() {
        let above = tree.side().offset();
        let below = total - above - tree.side().shown().len();
        let text = rest(above, below);
        let x = body.x + layout.name_x;
        let room = usize::from(body.right() - x);
        frame
            .buffer_mut()
            .set_stringn(x, line.y, text, room, theme.dim());
    }
}

/// Returns how many rows are out of sight: `12 more rows`, or `40 rows above, 12 below`.
fn rest(above: usize, below: usize) -> String {
    match above {
        0 => units::counted(below as u64, "more row"),
        _ => format!(
            "{} above, {} below",
            units::counted(above as u64, "row"),
            units::count(below as u64)
        ),
    }
}

/// The columns that fit into a terminal of some width.
struct Layout {
    columns: Vec<Column<BySamples>>,
    /// The position of the column with the name.
    name: usize,
    /// The cell at which the name starts.
    name_x: u16,
    /// The width of the name in cells.
    name_width: usize,
    is_wide: bool,
    /// The two sides if trees are compared, otherwise `None`.
    sides: Option<Sides>,
}

/// Returns the head of the column of names: the direction of the tree, and how it is grouped below
/// its root.
fn title(direction: Direction, group_by: GroupBy) -> &'static str {
    match (direction, group_by) {
        (Direction::TopDown, GroupBy::None) => "TOP-DOWN: callees under their caller",
        (Direction::TopDown, GroupBy::Process) => "TOP-DOWN by process: callees under caller",
        (Direction::TopDown, _) => "TOP-DOWN by thread: callees under caller",
        (Direction::BottomUp, GroupBy::None) => "BOTTOM-UP: callers under their callee",
        (Direction::BottomUp, GroupBy::Process) => "BOTTOM-UP by process: callers under callee",
        (Direction::BottomUp, _) => "BOTTOM-UP by thread: callers under callee",
    }
}

/// Returns the cells of a row in the columns of a comparison.
fn compared(row: &TreeRow, sides: &Sides, cx: &Context<'_>, theme: &Theme) -> Vec<(String, Style)> {
    let plain = Style::new();
    if row.gone && row.before.is_none() {
        // The row was last seen when nothing was compared, so its samples in the baseline are not
        // known.
        let nothing = || (String::new(), plain);
        return vec![nothing(), nothing(), ("gone".into(), plain), nothing()];
    }
    // A row without a node in the baseline had no samples there.
    let was = row.before.unwrap_or(0);
    let (samples, now) = if row.gone {
        (0, "gone".into())
    } else {
        (
            row.samples,
            format!("{:.1}", sides.amount(&sides.b, row.samples)),
        )
    };
    vec![
        compared::change_cell(sides.change(was, samples), theme),
        (format!("{:.1}", sides.amount(&sides.a, was)), plain),
        (now, plain),
        (compared::sure_cell(cx, was, samples).into(), plain),
    ]
}

impl Layout {
    /// Returns the columns for a pane of this width in cells:
    ///
    /// | columns | alone | compared with a baseline |
    /// | --- | --- | --- |
    /// | numbers | two shares | change, A, B, whether it is significant |
    /// | band, samples | from [`WIDTH_WITH_COUNTS`] | never: the comparison needs the room |
    /// | name | always | always |
    /// | module | from [`WIDTH_WITH_COUNTS`], wider from [`WIDTH_WIDE`] | likewise |
    fn new(width: u16, tree: &Tree, cx: &Context<'_>, theme: &Theme) -> Self {
        let is_wide = width >= WIDTH_WITH_COUNTS;
        let is_percent = matches!(cx.unit(), Unit::Share | Unit::Machine);
        // Top-down, a node has the samples of everything that it calls, and some of its own.
        // Bottom-up, every sample of a branch is an own sample of the function at its top, so that
        // the first number is a part of that function's self samples; the second is a share of the
        // row above, in any unit.
        let (first, second) = match (tree.direction(), is_percent) {
            (Direction::TopDown, true) => ("TOTAL%", "SELF%"),
            (Direction::TopDown, false) => ("TOTAL", "SELF"),
            (Direction::BottomUp, true) => ("SELF%", "PAR%"),
            (Direction::BottomUp, false) => ("SELF", "PAR%"),
        };
        let title = title(tree.direction(), tree.groups());
        let sides = tree.trees().and_then(Trees::sides).copied();
        let sign = if theme.is_ascii() { "+-" } else { "±" };
        let mut columns = match &sides {
            Some(sides) => vec![
                Column::right(compared::head(sides.have_time(), theme), 9, Some(BySamples)),
                Column::right("A", 8, None),
                Column::right("B", 8, None),
                Column::left("SURE", 4, None),
            ],
            None => vec![
                Column::right(first, 7, Some(BySamples)),
                Column::right(second, 6, None),
            ],
        };
        if is_wide && sides.is_none() {
            columns.push(Column::right(sign, 5, None));
            columns.push(Column::right("SMP", 8, None));
        }
        let name = columns.len();
        let room = table::rest(&columns, width).saturating_sub(1);
        // `room` is for name and module, and is followed by one more blank.
        let name_x = width - room - 1;
        let module = if !is_wide {
            0
        } else if width >= WIDTH_WIDE {
            24
        } else {
            12
        };
        let name_width = room - module - module.min(1);
        columns.push(Column::left(title, name_width, None));
        if is_wide {
            columns.push(Column::left("MODULE", module, None));
        }
        Layout {
            columns,
            name,
            name_x,
            name_width: name_width.into(),
            is_wide,
            sides,
        }
    }

    fn row(
        &self,
        row: &TreeRow,
        tree: &Tree,
        cx: &Context<'_>,
        selected: bool,
        theme: &Theme,
    ) -> Row {
        let plain = Style::new();
        let mut cells = match &self.sides {
            Some(sides) => compared(row, sides, cx, theme),
            None => self.counts(row, tree, cx, theme),
        };
        let function = tree.function(row);
        // The color of the module replaces its column if that has no room.
        let style = match &function {
            _ if tree.is_found(row) => theme.found(),
            Some(function) if !self.is_wide && function.role == Role::Function => {
                theme.module(function.kind)
            }
            Some(_) => plain,
            None => theme.dim(),
        };
        cells.push((self.name_cell(row, tree, cx), style));
        if self.is_wide {
            let module = function.as_ref().filter(|f| f.role == Role::Function);
            let style = module.map_or(plain, |f| theme.module(f.kind));
            cells.push((
                module.map_or_else(String::new, |f| names::module(&f.module).to_owned()),
                style,
            ));
        }
        Row {
            cells,
            selected,
            gone: row.gone,
        }
    }

    /// Returns the cells of a row that is not compared: two shares and, if there is room, the band
    /// and the number of samples.
    fn counts(
        &self,
        row: &TreeRow,
        tree: &Tree,
        cx: &Context<'_>,
        theme: &Theme,
    ) -> Vec<(String, Style)> {
        let plain = Style::new();
        let base = base(tree);
        let scale = Scale::new(cx, base);
        let second = match tree.direction() {
            Direction::TopDown => scale.text(row.own),
            Direction::BottomUp => units::share(&cx.shown.report, row.samples, row.parent_samples),
        };
        let first = if row.gone {
            absence::word(cx).into()
        } else {
            scale.text(row.samples)
        };
        let mut cells = vec![(first, plain), (second, plain)];
        if self.is_wide {
            let band = units::band_text(&cx.shown.report, row.samples, base);
            cells.push((band.trim_start_matches('±').into(), theme.dim()));
            cells.push((bare_amount(cx, row.samples), plain));
        }
        if row.gone {
            // The numbers are those of the last tree that had this row.
            cells[1..].iter_mut().for_each(|(text, _)| text.clear());
        }
        cells
    }

    /// Returns the guides, the sign for open or closed, and the name. If there is not enough room,
    /// the middle of the name and the start of deep guides are left out.
    fn name_cell(&self, row: &TreeRow, tree: &Tree, cx: &Context<'_>) -> String {
        let end = if tree.side().is_hot_end(row) {
            HOT_END
        } else {
            ""
        };
        // Guides take at most half of the cell, so that deep rows have names, too.
        let room = self.name_width;
        let guides = guides(row, room / 2);
        let left = room.saturating_sub(text::width(&guides) + text::width(end) + end.len().min(1));
        let name = fitting_name(row, tree, cx, left);
        match end {
            "" => format!("{guides}{name}"),
            end => format!(
                // The sign is at the right end of the cell.
                "{guides}{name:<pad$}{end}",
                pad = left + 1 - wide_extra(&name)
            ),
        }
    }
}

/// Returns the name of a row in `room` cells. Of a run that does not fit, the last frame is named,
/// because it is the most useful one.
fn fitting_name(row: &TreeRow, tree: &Tree, cx: &Context<'_>, room: usize) -> String {
    let whole = name(row, tree, cx);
    if row.run.is_empty() || text::width(&text::clean(&whole)) <= room {
        return text::cut_middle(&whole, room).into_owned();
    }
    let frames = units::counted(row.run.len() as u64, "frame");
    let last = whole.rsplit(" › ").next().unwrap_or_default();
    let shorter = format!("{frames} › {last}");
    text::cut_middle(&shorter, room).into_owned()
}

/// Returns how many cells a name takes beyond its number of characters, because formatting pads by
/// characters.
fn wide_extra(name: &str) -> usize {
    text::width(name).saturating_sub(name.chars().count())
}

/// Returns the text before a name: a vertical line for each level above that has more rows below,
/// the joint with the parent, and the sign for open or closed.
///
/// ```text
/// ▾ postgres[4121]         the root has neither guides nor a joint
/// ├▾ exec_simple_query     another child of the root follows below
/// │▾ PortalRun             an only child is not indented
/// │├─ ExecScan             a leaf, with a sibling below
/// │└▸ SeqNext              the last child, closed
/// └─ clone3
/// ```
///
/// If the guides are longer than `room`, the outer levels are left out: the inner ones show the
/// parent of the row.
fn guides(row: &TreeRow, room: usize) -> String {
    let sign = match (row.fold, row.joint) {
        (Fold::Open, _) => "▾ ",
        (Fold::Closed, _) => "▸ ",
        (Fold::Leaf, Joint::Middle | Joint::Last) => "─ ",
        (Fold::Leaf, Joint::Root | Joint::Chain { .. }) => "  ",
    };
    let joint = match row.joint {
        Joint::Root => "",
        Joint::Middle => "├",
        Joint::Last => "└",
        Joint::Chain { line: true } => "│",
        Joint::Chain { line: false } => " ",
    };
    let length = row.guides.chars().count();
    if length <= room {
        return format!("{}{joint}{sign}", row.guides);
    }
    let cut: String = row.guides.chars().skip(length - room + 1).collect();
    format!("…{cut}{joint}{sign}")
}

/// Returns the name of a row on the screen.
fn name(row: &TreeRow, tree: &Tree, cx: &Context<'_>) -> String {
    match row.what {
        What::Rest(count) => format!(
            "{} more, each <{SMALL_PERCENT}%",
            units::count(count as u64)
        ),
        What::Place(place) => {
            // A place that exists only in the baseline has its name there.
            let Some(node) = place.now.or(place.before) else {
                return String::new();
            };
            // `before` is `None` if nothing is compared.
            let since = match (row.before, place.now) {
                (Some(_), None) => " (gone in B)",
                (Some(0), Some(_)) => " (new in B)",
                _ => "",
            };
            match node.kind {
                NodeKind::Root => cx.root_words().to_string(),
                NodeKind::Group(_) => format!("{}{since}", tree.name(row).unwrap_or_default()),
                NodeKind::Function { inlined, .. } => {
                    let Some(function) = tree.function(row) else {
                        return String::new();
                    };
                    let inlined = if inlined { " (inl)" } else { "" };
                    // A row for missing frames has a text of its own; no name is looked up for it.
                    let pending = match function.name_state {
                        RowName::Pending if function.role == Role::Function => " ⟳",
                        _ => "",
                    };
                    let name = format!("{}{inlined}", names::short(&function.name));
                    let name = match row.run.first() {
                        Some(first) => {
                            let first = tree
                                .trees()
                                .map(|trees| trees.name(first))
                                .unwrap_or_default();
                            runs::written(&names::short(&first), row.run.len(), &name)
                        }
                        None => name,
                    };
                    format!("{name}{pending}{since}")
                }
            }
        }
    }
}

/// Returns the samples of the whole tree, of which its numbers are shares; 0 before the first tree
/// has come.
fn base(tree: &Tree) -> u64 {
    tree.trees().map_or(0, |trees| trees.now.root().samples)
}

/// Returns the numbers of a row and, if trees are compared, its numbers before.
fn numbers(row: &TreeRow, tree: &Tree, cx: &Context<'_>) -> String {
    let report = &cx.shown.report;
    let base = base(tree);
    let sides = tree.trees().and_then(Trees::sides);
    if row.gone {
        return absence::sentence(cx, row.samples);
    }
    if let (Some(sides), Some(before)) = (sides, row.before) {
        let unit = if sides.have_time() {
            " ms/s"
        } else {
            "% of scope"
        };
        return format!(
            "{} -> {} = {:.1} -> {:.1}{unit}",
            bare_amount(cx, before),
            amount(cx, row.samples),
            sides.amount(&sides.a, before),
            sides.amount(&sides.b, row.samples),
        );
    }
    let share = units::share(report, row.samples, base);
    let share = format!("{share}% of scope = {}", amount(cx, row.samples));
    // The uncertainty comes from the number of waits, not from their time.
    if cx.counts_time() {
        share
    } else {
        format!("{share} {} pp", units::band_text(report, row.samples, base))
    }
}

/// The action that shows the rows which a row sums up.
const OPEN: Action = Action::Fold(FoldAction::Toggle);

/// Returns the detail line: `31.6% of scope = 1,036 smp ±1.6 pp   49.4% of parent   depth
/// 9   postgres`.
fn detail(tree: &Tree, cx: &Context<'_>, room: DetailRoom, theme: &Theme) -> String {
    let width = room.line;
    let Some(row) = tree.selected() else {
        return String::new();
    };
    let mut parts = vec![numbers(row, tree, cx)];
    // Parts are separated by three blanks. The most important part comes first. Each other part is
    // added only if it fits as a whole.
    let used = |parts: &[String]| parts.iter().map(|p| text::width(p) + 3).sum::<usize>();
    let mut more = Vec::new();
    if row.depth > 0 && !row.gone {
        let share = units::share(&cx.shown.report, row.samples, row.parent_samples);
        more.push(format!("{share}% of parent"));
        more.push(format!("depth {}", row.depth));
    }
    if let What::Rest(_) = row.what {
        more.extend(hint(cx, OPEN, "show them"));
    }
    for part in more {
        if used(&parts) + text::width(&part) <= width {
            parts.push(part);
        }
    }
    if let Some(function) = tree.function(row) {
        match function.role {
            Role::Function => {
                let room = width.saturating_sub(used(&parts));
                parts.extend(place(&function, room));
            }
            Role::Stopped(_) => parts.extend(hint(cx, Action::Explain, "why")),
            Role::NoStack | Role::Hidden => {}
        }
    }
    // The whole name comes last, if the row shows only a part of it and there is enough room to
    // show more than the row does.
    let mut names = tree.hidden_names(row);
    names.extend(tree.name(row));
    let name = names.join(" › ");
    let layout = Layout::new(room.view, tree, cx, theme);
    let room = width.saturating_sub(used(&parts));
    let is_cut = layout.name_cell(row, tree, cx).contains('…');
    if (is_cut || !row.run.is_empty()) && room > 12 {
        parts.push(text::cut_middle(&name, room).into_owned());
    }
    parts.join("   ")
}

/// Returns the place of a function, as much as there is room for: `heapam.c:1691   postgres`.
fn place(function: &Function, room: usize) -> Option<String> {
    let module = text::clean(&function.module).into_owned();
    let file = function.file.as_ref().filter(|_| function.line > 0);
    let line = file.map(|file| {
        let short = file.rsplit('/').next().unwrap_or(file);
        format!("{}:{}", text::clean(short), function.line)
    });
    let path = match &*function.module_path {
        "" => None,
        path => Some(text::clean(path).into_owned()),
    };
    let with_line = |place: &String| line.as_ref().map(|line| format!("{line}   {place}"));
    // The forms in order of preference: path and line, short name and line, path, short name.
    let forms = [
        path.as_ref().and_then(with_line),
        with_line(&module),
        path,
        Some(module),
    ];
    forms
        .into_iter()
        .flatten()
        .find(|form| text::width(form) <= room)
}

/// Explains the number of the selected row in one sentence. Returns `None` if there are no rows.
pub fn explain(tree: &Tree, cx: &Context<'_>) -> Option<String> {
    let row = tree.selected()?;
    if row.gone {
        return Some(explain::gone(cx, row.samples, &name(row, tree, cx)));
    }
    // If trees are compared, the question is whether the change may be chance.
    if let (Some(before), Some(diff)) = (row.before, &cx.shown.comparison.functions) {
        let name = name(row, tree, cx);
        return Some(judgement(
            &name,
            (before, row.samples),
            diff.chance(before, row.samples),
            diff,
            metric_told(cx),
        ));
    }
    let base = base(tree);
    let number = format!(
        "{}% = {} of {} in {}",
        units::share(&cx.shown.report, row.samples, base),
        counted(cx, row.samples),
        bare_amount(cx, base),
        base_words(cx)
    );
    let role = tree.function(row).map(|function| function.role);
    Some(match (row.what, role) {
        (_, Some(Role::Stopped(ending))) => {
            format!(
                "{number}: here the stack's start is missing: {}",
                ending.explain()
            )
        }
        (What::Rest(count), _) => {
            let rows = units::counted(count as u64, "row");
            let rows = format!("{number}: {rows} that have less than {SMALL_PERCENT}% of all each");
            let shows = key(cx, OPEN).map(|key| format!("{key} shows them"));
            and(&rows, "; ", [shows])
        }
        (What::Place(_), _) if row.depth > 0 => {
            let grouped = u32::from(tree.groups() != GroupBy::None);
            let callers = u64::from((row.depth - 1).saturating_sub(grouped));
            let callers = units::counted(callers, "caller");
            match tree.direction() {
                _ if row.depth <= grouped => format!("{number}: all that were taken there"),
                Direction::TopDown => format!(
                    "{number}, called by way of the {callers} above; {} of them on top of the stack",
                    units::count(row.own)
                ),
                Direction::BottomUp if row.depth == 1 + grouped => {
                    format!("{number}, on top of the stack, whoever called it")
                }
                Direction::BottomUp => {
                    format!("{number}, on top of the stack by way of these {callers}")
                }
            }
        }
        _ => format!("{number}: all of them"),
    })
}
