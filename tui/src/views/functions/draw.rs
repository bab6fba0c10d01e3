//! The functions: self and total share, the last ten seconds, name and module.

use crate::app::App;
use crate::geometry::WIDTH_WIDE;
use crate::lists::table::{Item as _, Line};
use crate::screen::loading;
use crate::views::functions::FunctionColumn;
use crate::widgets::rest::Rest;
use crate::widgets::table::{Column, Row};
use crate::widgets::theme::Theme;
use crate::widgets::{table, trend};
use crate::words::units;
use crate::words::units::Scale;
use engine::snapshot::TargetState;
use profile::{FunctionRow, Report, RowName, TREND_LEN};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// Narrower, the name needs the room more than the trend.
pub const WIDTH_WITH_TREND: u16 = 72;

/// Wider, there is room for the band and the samples as well.
const WIDTH_WITH_COUNTS: u16 = 96;

pub fn render(app: &App, theme: &Theme, frame: &mut Frame, heads: Rect, body: Rect) {
    let scale = Scale::new(app, app.shown.report.samples);
    let layout = Layout::new(
        heads.width,
        theme,
        scale.head("SELF%", "SELF"),
        scale.head("TOTAL%", "TOTAL"),
    );
    let functions = &app.views.functions;
    let report = &app.shown.report;
    let sorted = (functions.column(), functions.is_rising());
    table::render_heads(&layout.columns, sorted, theme, frame, heads);
    let trend_max = trend_max(report);
    let mut line = Rect { height: 1, ..body };
    for row in functions.lines(report) {
        let row = layout.row(&row, report, &scale, trend_max, theme);
        table::render_row(&layout.columns, &row, layout.name, theme, frame, line);
        line.y += 1;
    }
    if let Some(rest) = Rest::of(functions, report) {
        let text = rest.sentence("self");
        let x = body.x + layout.name_x;
        let room = usize::from(body.right() - x);
        frame
            .buffer_mut()
            .set_stringn(x, line.y, text, room, theme.dim());
        line.y += 1;
    }
    let free = Rect {
        height: body.bottom().saturating_sub(line.y),
        ..line
    };
    if functions.len() == 0 {
        frame.set_cursor_position(Position::new(body.x, body.y));
        render_empty(app, frame, free);
    }
    loading::render(app, theme, frame, free);
}

pub fn head_at(width: u16, theme: &Theme, x: u16) -> Option<usize> {
    let column = table::column_at(&Layout::usual(width, theme).columns, width, x)?;
    FunctionRow::COLUMNS.iter().position(|each| *each == column)
}

/// The columns of one width of terminal.
struct Layout {
    columns: Vec<Column<FunctionColumn>>,
    /// Which column is the name, and where it starts.
    name: usize,
    name_x: u16,
    has_trend: bool,
    has_counts: bool,
    is_wide: bool,
    name_width: usize,
}

impl Layout {
    /// Where the columns are, whatever they count in.
    fn usual(width: u16, theme: &Theme) -> Self {
        Self::new(width, theme, "SELF%", "TOTAL%")
    }

    fn new(width: u16, theme: &Theme, own: &'static str, total: &'static str) -> Self {
        use FunctionColumn::{Module, Name, SelfSamples, TotalSamples};
        let is_wide = width >= WIDTH_WIDE;
        let has_counts = width >= WIDTH_WITH_COUNTS;
        let has_trend = width >= WIDTH_WITH_TREND;
        let mut columns = vec![Column::right(own, 6, Some(SelfSamples))];
        if has_counts {
            let sign = if theme.is_ascii() { "+-" } else { "±" };
            columns.push(Column::right(sign, 5, None));
        }
        columns.push(Column::right(total, 7, Some(TotalSamples)));
        if has_counts {
            columns.push(Column::right("SMP", 8, None));
        }
        if has_trend {
            columns.push(Column::right("LAST 10s", TREND_LEN as u16 + 1, None));
        }
        let name = columns.len();
        let name_x = width - table::rest(&columns, width);
        let address = if is_wide { 12 } else { 0 };
        // Name and module: each with the cell after it.
        let room = table::rest(&columns, width).saturating_sub(2 + address + address.min(1));
        let module = (room * 3 / 10).clamp(12, 28);
        columns.push(Column::left("FUNCTION", room - module, Some(Name)));
        columns.push(Column::left("MODULE", module, Some(Module)));
        if is_wide {
            columns.push(Column::left("ADDRESS", address, None));
        }
        Layout {
            columns,
            name,
            name_x,
            has_trend,
            has_counts,
            is_wide,
            name_width: usize::from(room - module),
        }
    }

    fn row(
        &self,
        line: &Line<'_, FunctionRow>,
        report: &Report,
        scale: &Scale,
        trend_max: u32,
        theme: &Theme,
    ) -> Row {
        let function = line.row;
        let plain = Style::new();
        let share = |samples| scale.text(samples);
        let own = if line.gone {
            "gone".into()
        } else {
            share(function.self_samples)
        };
        let mut cells = vec![(own, plain)];
        if self.has_counts {
            let band = units::band_text(report, function.self_samples, report.samples);
            cells.push((band.trim_start_matches('±').into(), theme.dim()));
        }
        cells.push((share(function.total_samples), plain));
        if self.has_counts {
            cells.push((units::count(function.self_samples), plain));
        }
        if self.has_trend {
            cells.push((trend::blocks(&function.trend, trend_max), theme.trend()));
        }
        let style = if line.found { theme.found() } else { plain };
        cells.push((name(function), style));
        cells.push((function.module.to_string(), theme.module(function.kind)));
        if self.is_wide {
            cells.push((format!("+{:#x}", function.address), theme.dim()));
        }
        Row {
            cells,
            selected: line.selected,
            gone: line.gone,
        }
    }
}

/// Whether a function's name is cut in a terminal of that width.
pub fn is_cut(function: &FunctionRow, width: u16, theme: &Theme) -> bool {
    crate::words::text::width(&name(function)) > Layout::usual(width, theme).name_width
}

fn name(function: &FunctionRow) -> String {
    match function.name_state {
        RowName::Pending => format!("{} ⟳", function.name),
        RowName::Named | RowName::Unnamed(_) => function.name.to_string(),
    }
}

fn trend_max(report: &Report) -> u32 {
    let counts = report.functions.iter().flat_map(|row| row.trend);
    counts.max().unwrap_or(0)
}

fn render_empty(app: &App, frame: &mut Frame, area: Rect) {
    let text = match app.shown.target {
        TargetState::Starting => "starting…",
        TargetState::Running if app.shown.recording.is_some() => "reading…",
        TargetState::Running => "waiting for the first samples…",
        TargetState::Recorded | TargetState::Exited(_) | TargetState::Failed(_) => "no samples",
    };
    let room = usize::from(area.width.saturating_sub(2));
    if area.height > 1 {
        let buffer = frame.buffer_mut();
        buffer.set_stringn(area.x + 2, area.y + 1, text, room, Style::new());
    }
}
