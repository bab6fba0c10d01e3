//! Draws the functions: self and total share, the last ten seconds, name and module.

use super::{Functions, difference};
use crate::action::Action;
use crate::context::{Context, DetailRoom};
use crate::geometry::{WIDTH_WIDE, WIDTH_WITH_MODULE};
use crate::lists::table::{Item as _, Line, Table};
use crate::views::functions::FunctionColumn;
use crate::views::{Canvas, Draw};
use crate::widgets::rest::Rest;
use crate::widgets::table::{Column, Row};
use crate::widgets::theme::Theme;
use crate::widgets::{loading, table, trend};
use crate::words::keys::hint;
use crate::words::metric::{amount, bare_amount, metric_told};
use crate::words::units::Scale;
use crate::words::unnamed::why_unnamed;
use crate::words::{absence, names, skid, source, text, units, waits};
use engine::snapshot::TargetState;
use profile::{FrameKind, FunctionRow, Report, RowName, TREND_LEN, Waits};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// From this width on the trend is shown; in a narrower terminal the name needs the room.
pub const WIDTH_WITH_TREND: u16 = 72;

/// From this width on the band and the number of samples are shown as well.
const WIDTH_WITH_COUNTS: u16 = 96;

impl Draw for Functions {
    // The difference from a baseline is a list of its own, with other columns and another order.
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        match cx.difference() {
            Some(diff) => difference::draw::render(&self.difference, diff, canvas),
            None => render(&self.table, cx, canvas),
        }
    }

    fn head_at(&self, cx: &Context<'_>, width: u16, theme: &Theme, x: u16) -> Option<usize> {
        if cx.difference().is_some() {
            return None;
        }
        head_at(cx, width, theme, x)
    }

    fn detail(&self, cx: &Context<'_>, room: DetailRoom, theme: &Theme) -> String {
        if let Some(diff) = cx.difference() {
            return difference::draw::detail(&self.difference, diff, metric_told(cx));
        }
        match self.table.selected(&cx.shown.report) {
            Some(selected) => line(&selected, cx, room, theme),
            None => String::new(),
        }
    }

    fn source(&self, cx: &Context<'_>) -> Option<(String, String)> {
        if cx.difference().is_some() {
            return None;
        }
        let row = self.table.selected(&cx.shown.report)?.row;
        source::linked(row.file.as_deref(), row.line)
    }
}

/// Draws the heads and the rows, and below them the sum of the rows out of sight, why there are no
/// rows, and which files are being loaded.
fn render(functions: &Table<FunctionRow>, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    let scale = Scale::new(cx, cx.shown.report.samples);
    let heads_of = (scale.head("SELF%", "SELF"), scale.head("TOTAL%", "TOTAL"));
    let has_languages = has_languages(&cx.shown.report);
    let layout = Layout::new(
        heads.width,
        theme,
        heads_of,
        cx.counts_time(),
        has_languages,
    );
    // The word for a row without samples depends on what is counted. The columns do not.
    let layout = Layout {
        gone: absence::word(cx),
        ..layout
    };
    let report = &cx.shown.report;
    let sign = table::sort_sign(functions.is_rising(), cx.is_order_held);
    let sorted = (functions.column(), sign);
    table::render_heads(&layout.columns, sorted, theme, frame, heads);
    let trend_max = report.peak_of_functions();
    let mut line = Rect { height: 1, ..body };
    for row in functions.lines(report) {
        let row = layout.row(&row, report, &scale, trend_max, theme);
        table::render_row(&layout.columns, &row, layout.name, theme, frame, line);
        line.y += 1;
    }
    if let Some(rest) = Rest::of(functions, report) {
        let text = rest.sentence(&scale, "self");
        let x = body.x + layout.name_x;
        let room = usize::from(body.right() - x);
        frame
            .buffer_mut()
            .set_stringn(x, line.y, text::cut_end(&text, room), room, theme.dim());
        line.y += 1;
    }
    let free = Rect {
        height: body.bottom().saturating_sub(line.y),
        ..line
    };
    if functions.len() == 0 {
        frame.set_cursor_position(Position::new(body.x, body.y));
        render_empty(cx, frame, free);
    }
    loading::render(cx, theme, frame, free);
}

/// Whether some function is written in a language whose runtime runs beside native code. Only then
/// the column of languages is useful.
fn has_languages(report: &Report) -> bool {
    report
        .functions
        .iter()
        .any(|function| function.kind == FrameKind::Python)
}

/// Returns the column whose head is at a cell, as an index into the table's columns. Returns `None`
/// between columns, and for columns that cannot be sorted by.
fn head_at(cx: &Context<'_>, width: u16, theme: &Theme, x: u16) -> Option<usize> {
    let layout = Layout::usual(cx, width, theme);
    let column = table::column_at(&layout.columns, width, x)?;
    FunctionRow::COLUMNS.iter().position(|each| *each == column)
}

/// The columns that fit into a terminal of some width.
struct Layout {
    columns: Vec<Column<FunctionColumn>>,
    /// The position of the column with the name.
    name: usize,
    /// The cell at which the name starts.
    name_x: u16,
    has_trend: bool,
    has_counts: bool,
    has_waits: bool,
    has_language: bool,
    has_module: bool,
    /// The word in place of the numbers of a row without samples.
    gone: &'static str,
    /// Whether there is room for addresses.
    is_wide: bool,
    /// The width of a name in cells. [`is_cut`] compares names with it.
    name_width: usize,
}

impl Layout {
    /// Returns the layout with the usual heads. The columns are at the same places in any unit.
    fn usual(cx: &Context<'_>, width: u16, theme: &Theme) -> Self {
        let heads = ("SELF%", "TOTAL%");
        Self::new(
            width,
            theme,
            heads,
            cx.counts_time(),
            has_languages(&cx.shown.report),
        )
    }

    /// Returns the columns for a width in cells. `own` and `total` are the heads of the two shares,
    /// which depend on the unit. If waiting time is counted, the number of waits and their lengths
    /// replace the columns about samples. Columns by the width from which on they are shown:
    ///
    /// | from | column |
    /// | --- | --- |
    /// | any | self, total, name |
    /// | [`WIDTH_WITH_TREND`] | the last ten seconds as blocks; or waits, mean, longest |
    /// | [`WIDTH_WITH_MODULE`] | module: three tenths of the names' room, 12 to 28 cells |
    /// | [`WIDTH_WITH_COUNTS`] | band of the self share, number of self samples; or the blocks |
    /// | [`WIDTH_WITH_COUNTS`] | language, if there is one whose runtime runs beside native code |
    /// | [`WIDTH_WIDE`] | address |
    fn new(
        width: u16,
        theme: &Theme,
        (own, total): (&'static str, &'static str),
        is_waiting: bool,
        has_languages: bool,
    ) -> Self {
        use FunctionColumn::{Module, Name, SelfSamples, TotalSamples};
        let is_wide = width >= WIDTH_WIDE;
        let has_counts = width >= WIDTH_WITH_COUNTS && !is_waiting;
        let has_waits = width >= WIDTH_WITH_TREND && is_waiting;
        let has_trend = if is_waiting {
            width >= WIDTH_WITH_COUNTS
        } else {
            width >= WIDTH_WITH_TREND
        };
        let mut columns = vec![Column::right(own, 6, Some(SelfSamples))];
        if has_counts {
            let sign = if theme.is_ascii() { "+-" } else { "±" };
            columns.push(Column::right(sign, 5, None));
        }
        columns.push(Column::right(total, 7, Some(TotalSamples)));
        if has_counts {
            columns.push(Column::right("SMP", 8, None));
        }
        if has_waits {
            columns.push(Column::right("WAITS", 7, None));
            columns.push(Column::right("MEAN", 6, None));
            columns.push(Column::right("LONGEST", 7, None));
        }
        if has_trend {
            columns.push(Column::right("LAST 10s", TREND_LEN as u16 + 1, None));
        }
        let has_language = width >= WIDTH_WITH_COUNTS && has_languages;
        if has_language {
            columns.push(Column::left("LANG", 4, None));
        }
        let name = columns.len();
        let name_x = width - table::rest(&columns, width);
        let address = if is_wide { 12 } else { 0 };
        // Both the name and the module are followed by one more cell.
        let room = table::rest(&columns, width).saturating_sub(2 + address + address.min(1));
        let has_module = width >= WIDTH_WITH_MODULE;
        let module = if has_module {
            (room * 3 / 10).clamp(12, 28).min(room)
        } else {
            // The name also gets the cell that would separate the two columns.
            0
        };
        columns.push(Column::left("FUNCTION", room - module, Some(Name)));
        if has_module {
            columns.push(Column::left("MODULE", module, Some(Module)));
        }
        if is_wide {
            columns.push(Column::left("ADDRESS", address, None));
        }
        Layout {
            columns,
            name,
            name_x,
            has_trend,
            has_counts,
            has_waits,
            has_language,
            has_module,
            gone: "gone",
            is_wide,
            name_width: usize::from(room - module),
        }
    }

    fn row(
        &self,
        line: &Line<'_, FunctionRow>,
        report: &Report,
        scale: &Scale,
        trend_max: u64,
        theme: &Theme,
    ) -> Row {
        let function = line.row;
        let plain = Style::new();
        let share = |samples| scale.text(samples);
        let own = if line.gone {
            self.gone.into()
        } else {
            share(function.self_samples)
        };
        let mut cells = vec![(own, plain)];
        if self.has_counts {
            let band = scale.band(report, function.self_samples);
            cells.push((band, theme.dim()));
        }
        cells.push((share(function.total_samples), plain));
        if self.has_counts {
            cells.push((units::count(function.self_samples), plain));
        }
        if self.has_waits {
            cells.extend(wait_cells(function.waits.as_ref()).map(|text| (text, plain)));
        }
        if self.has_trend {
            cells.push((trend::blocks(&function.trend, trend_max), theme.trend()));
        }
        if line.gone {
            // The numbers are those of the last report that had this row.
            cells[1..].iter_mut().for_each(|(text, _)| text.clear());
        }
        if self.has_language {
            let language = names::language(function.kind);
            cells.push((language.into(), theme.module(function.kind)));
        }
        let style = if line.found { theme.found() } else { plain };
        cells.push((name(function), style));
        if self.has_module {
            let module = names::module(&function.module).to_owned();
            cells.push((module, theme.module(function.kind)));
        }
        if self.is_wide {
            let address = match function.kind {
                FrameKind::Python => String::new(),
                _ => format!("+{:#x}", function.address),
            };
            cells.push((address, theme.dim()));
        }
        Row {
            cells,
            selected: line.selected,
            gone: line.gone,
        }
    }
}

/// Returns the number of waits, their mean and the longest; dashes if there are none.
fn wait_cells(waits: Option<&Waits>) -> [String; 3] {
    match waits {
        Some(waits) => [
            waits::number(waits),
            waits::mean(waits),
            waits::longest(waits, units::nanoseconds),
        ],
        None => ["-", "-", "-"].map(String::from),
    }
}

/// Whether the name of a function is shortened or cut in a terminal of this width.
fn is_cut(cx: &Context<'_>, function: &FunctionRow, width: u16, theme: &Theme) -> bool {
    let shown = name(function);
    let is_folded = names::is_folded(&function.name);
    is_folded || text::width(&shown) > Layout::usual(cx, width, theme).name_width
}

/// Returns the name for its column: with `⟳` while it is looked up, and with the number of its
/// addresses if the row stands for code without a map of names.
fn name(function: &FunctionRow) -> String {
    match function.name_state {
        RowName::Pending => format!("{} ⟳", names::short(&function.name)),
        _ if function.addresses > 0 => {
            let addresses = units::count(function.addresses.into());
            format!("{} +{addresses}", names::short(&function.name))
        }
        RowName::Named | RowName::Unnamed(_) => names::short(&function.name).into_owned(),
    }
}

/// Draws the sentence that says why there are no rows: no samples have come yet, or none are left.
/// It is on the second line, and left out if there is only one line.
fn render_empty(cx: &Context<'_>, frame: &mut Frame, area: Rect) {
    let text = match cx.shown.run.target {
        TargetState::Starting => "starting…",
        TargetState::Running if cx.shown.source.recording.is_some() => "reading…",
        // The state line above says why there are none.
        TargetState::Running if cx.shown.health.taken_run > 0 => "no samples",
        TargetState::Running => "waiting for the first samples…",
        TargetState::Recorded | TargetState::Exited { .. } | TargetState::Failed(_) => "no samples",
    };
    let room = usize::from(area.width.saturating_sub(2));
    if area.height > 1 {
        let buffer = frame.buffer_mut();
        buffer.set_stringn(area.x + 2, area.y + 1, text, room, Style::new());
    }
}

/// Room for the numbers of a function in the detail line.
const NUMBERS_WIDTH: usize = 48;

/// Returns the detail line: `233 smp self ±0.9 pp / 1,036 total ±1.6
/// pp   /usr/bin/postgres+0x8f2c0`.
fn line(
    selected: &Line<'_, FunctionRow>,
    cx: &Context<'_>,
    room: DetailRoom,
    theme: &Theme,
) -> String {
    let DetailRoom { line: width, view } = room;
    let function = selected.row;
    let base = cx.shown.report.samples;
    let (own, total) = (function.self_samples, function.total_samples);
    // The parts by importance, because the end is cut: the whole name if the row shows only a part
    // of it, numbers, why there is no name, the source line, the place in the file.
    let mut parts = Vec::new();
    let name = is_cut(cx, function, view, theme).then(|| text::clean(&function.name).into_owned());
    // A name that fills the whole line follows the numbers.
    let (name, long_name) = match name {
        Some(name) if text::width(&name) + NUMBERS_WIDTH > width => (None, Some(name)),
        name => (name, None),
    };
    parts.extend(name);
    if skid::is_likely(function) {
        parts.extend(hint(cx, Action::Explain, "clock artefact"));
    }
    parts.push(match &function.waits {
        _ if selected.gone => absence::sentence(cx, total),
        // The number of waits already tells how much chance is involved.
        Some(waits) => format!(
            "{} self / {} total in {}",
            amount(cx, own),
            amount(cx, total),
            waits::brief(waits)
        ),
        None => format!(
            "{} self {} pp / {} total {} pp",
            amount(cx, own),
            units::band_text(&cx.shown.report, own, base),
            bare_amount(cx, total),
            units::band_text(&cx.shown.report, total, base)
        ),
    });
    parts.extend(long_name);
    match function.name_state {
        RowName::Named => {}
        RowName::Pending => parts.push("name on its way".into()),
        RowName::Unnamed(reason) => parts.push(format!(
            "no name: {}",
            why_unnamed(reason).trim_end_matches('.')
        )),
    }
    let used = |parts: &[String]| parts.iter().map(|p| text::width(p) + 3).sum::<usize>();
    let room = width.saturating_sub(used(&parts));
    let source = source::source(function.file.as_deref(), function.line);
    parts.extend(source.filter(|place| text::width(place) <= room));
    let room = width.saturating_sub(used(&parts));
    // Addresses of the kernel are those of the running machine, others are offsets in a file.
    let offset = match function.kind {
        FrameKind::Kernel => format!(" at {:#x}", function.address),
        // Python functions have no fixed address.
        FrameKind::Python => String::new(),
        _ => format!("+{:#x}", function.address),
    };
    let path = if function.module_path.is_empty() {
        &function.module
    } else {
        &function.module_path
    };
    // The path of the module if it fits, else its short name, else no place.
    let places = [
        format!("{}{offset}", text::clean(path)),
        format!("{}{offset}", text::clean(&function.module)),
    ];
    parts.extend(places.into_iter().find(|place| text::width(place) <= room));
    parts.join("   ")
}
