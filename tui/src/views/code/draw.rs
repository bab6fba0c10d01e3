//! Draws the code of one function: its lines and instructions, with the samples of each.

use super::words;
use crate::action::Action;
use crate::context::{Context, DetailRoom};
use crate::views::{Canvas, Draw};
use crate::widgets::compared;

use crate::view_id::ViewId;
use crate::views::code::{Before, Code, CodeAnswer, CodeRow};
use crate::widgets::table;
use crate::widgets::table::{Column, Row};
use crate::widgets::theme::Theme;
use crate::words::units::Scale;
use crate::words::{text, units};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// Arrows beside instructions.
mod jumps;

impl Draw for Code {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        render(self, cx, canvas);
    }

    fn detail(&self, cx: &Context<'_>, room: DetailRoom, _: &Theme) -> String {
        words::detail(self, cx, room.line)
    }

    fn source(&self, _: &Context<'_>) -> Option<(String, String)> {
        words::place(self.answer()?, self.selected()?)
    }
}

fn render(code: &Code, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    let columns = columns(cx, code, theme, heads.width);
    table::render_heads(&columns, ((), ""), theme, frame, heads);
    render_title(cx, code, &columns, theme, frame, heads);
    // This position stays if no row is drawn as selected, which would move the cursor.
    frame.set_cursor_position(Position::new(body.x, body.y));
    let answer = code.answer();
    let Some(answer) = answer.filter(|answer| !answer.code.addresses.is_empty()) else {
        let room = usize::from(body.width - 2);
        let text = text::cut_end(&words::why_empty(code, cx), room).into_owned();
        let buffer = frame.buffer_mut();
        buffer.set_string(body.x + 2, body.y + 1, text, Style::new());
        return;
    };
    let painter = Painter {
        cx,
        code,
        line: code.line_beside(),
        is_beside: cx.is_beside,
        theme,
        answer,
        columns,
    };
    let mut line = Rect { height: 1, ..body };
    for note in code.notes() {
        let room = usize::from(line.width) - 2;
        let note = text::cut_end(note, room);
        let buffer = frame.buffer_mut();
        buffer.set_stringn(line.x + 2, line.y, note, room, theme.warning());
        line.y += 1;
    }
    for ((row, is_selected), gutter) in code.shown().zip(painter.gutters()) {
        painter.row((row, &gutter), is_selected, frame, line);
        line.y += 1;
    }
}

/// Widths in cells of the two columns of numbers.
const SHARE: u16 = 6;
const COUNT: u16 = 7;
/// Width of the column with the line number, or with the offset in the function.
const PLACE: u16 = 7;
/// Width of the bar. In a narrow terminal it is 1.
const BAR: u16 = 4;
/// Width of the column with the change, which replaces the bar if there is a baseline.
const CHANGE: u16 = 9;
/// Position of the column with the code.
const CODE: usize = 4;
/// From this width on the bar has its full width.
const WIDE: u16 = 72;

/// Returns the columns: share, amount, line or offset, bar or change, and the code in the remaining
/// width. [`CODE`] is the position of the last one.
fn columns(cx: &Context<'_>, code: &Code, theme: &Theme, width: u16) -> Vec<Column<()>> {
    let answer = code.answer();
    let before = answer.and_then(|answer| answer.before.as_ref());
    let bar = if width < WIDE { 1 } else { BAR };
    let mut columns = vec![
        Column::right("SELF%", SHARE, None),
        Column::right(Scale::new(cx, 0).amount_head(), COUNT, None),
        Column::right("LINE", PLACE, None),
        match before {
            Some(before) => {
                let head = compared::head(before.sides.have_time(), theme);
                Column::right(head, CHANGE, None)
            }
            None => Column::left("", bar, None),
        },
    ];
    let rest = table::rest(&columns, width).saturating_sub(1);
    columns.push(Column::left("", rest, None));
    columns
}

/// Draws the title: the name of the file, and the layout.
fn render_title(
    cx: &Context<'_>,
    code: &Code,
    columns: &[Column<()>],
    theme: &Theme,
    frame: &mut Frame,
    heads: Rect,
) {
    // The pane with the assembly shows the key for its syntax. The key for the layout is shown in
    // the pane that has the keys.
    let end = if cx.is_beside {
        named(cx, Action::Syntax, code.syntax().name())
    } else {
        named(cx, Action::Layout, code.layout().name())
    };
    let start = heads.right() - columns[CODE].width;
    let room = usize::from(columns[CODE].width).saturating_sub(end.len() + 1);
    let title = if cx.is_beside {
        "ASSEMBLY".into()
    } else {
        text::cut_middle(&words::title(code), room).into_owned()
    };
    let buffer = frame.buffer_mut();
    buffer.set_string(start, heads.y, title, theme.heads());
    let x = heads.right() - end.len() as u16;
    buffer.set_string(x, heads.y, end, theme.heads());
}

/// Returns the key of an action and a name, as `o: asm `, or only the name if the action has no
/// key.
fn named(cx: &Context<'_>, action: Action, name: &str) -> String {
    // The key is looked up for this view, even if the keys go to the pane beside it.
    match cx.keymap.label(action, ViewId::Code) {
        Some(key) => format!("{key}: {name} "),
        None => format!("{name} "),
    }
}

/// What is the same for all rows of one drawing.
struct Painter<'a> {
    cx: &'a Context<'a>,
    code: &'a Code,
    /// In the pane with the instructions: the line that is selected in the source text beside it.
    line: Option<u32>,
    /// Whether this is the pane with the instructions beside the source text.
    is_beside: bool,
    theme: &'a Theme,
    answer: &'a CodeAnswer,
    columns: Vec<Column<()>>,
}

impl Painter<'_> {
    /// Returns the text with the arrows of jumps for each visible row.
    fn gutters(&self) -> Vec<String> {
        let lanes = jumps::lanes(self.code, self.columns[CODE].width.into());
        jumps::gutters(self.code, lanes)
    }

    /// Draws a row. Its numbers are dim if a row above contains them too, because they must not be
    /// added up.
    fn row(
        &self,
        (row, gutter): (&CodeRow, &str),
        is_selected: bool,
        frame: &mut Frame,
        line: Rect,
    ) {
        let samples = row.samples();
        let all = self.answer.samples();
        let plain = Style::new();
        // Most rows have no samples. Empty cells make the others stand out.
        let (share, count) = match samples {
            0 => (String::new(), String::new()),
            _ => {
                let amount = Scale::new(self.cx, all).amount(samples);
                (units::share(&self.cx.shown.report, samples, all), amount)
            }
        };
        let quiet = if row.is_part() {
            self.theme.dim()
        } else {
            plain
        };
        let bar = match &self.answer.before {
            Some(before) => self.change(row, before),
            None if row.is_part() => (String::new(), plain),
            None => {
                let bar = bar(samples, all, self.columns[3].width.into());
                (bar, self.theme.trend())
            }
        };
        let room = usize::from(self.columns[CODE].width) - text::width(gutter);
        let (code, style) = self.code(row, room);
        let style = if self.code.is_found(row) {
            self.theme.found()
        } else {
            style
        };
        let is_of_line = self.line.is_some() && self.code.line_of(row) == self.line;
        let row = Row {
            cells: vec![
                (share, quiet),
                (count, quiet),
                (self.place(row), quiet),
                bar,
                (format!("{gutter}{}", text::cut_end(&code, room)), style),
            ],
            selected: is_selected,
            gone: false,
        };
        table::render_row(&self.columns, &row, CODE, self.theme, frame, line);
        // Marks each instruction of the line that is selected in the source text.
        if is_of_line && !is_selected {
            let buffer = frame.buffer_mut();
            buffer.set_string(line.x, line.y, "▌", self.theme.trend());
        }
    }

    /// Returns the change since the baseline. The cell is empty if there are no samples, neither
    /// before nor now.
    fn change(&self, row: &CodeRow, before: &Before) -> (String, Style) {
        match (before.of(row), row.samples()) {
            (None, _) | (Some(0), 0) => (String::new(), Style::new()),
            (Some(was), now) => compared::change_cell(before.sides.change(was, now), self.theme),
        }
    }

    /// Returns the number of a line, or the offset of an instruction in its function. An
    /// instruction below its line shows the offset at the right end instead, see [`Painter::code`].
    fn place(&self, row: &CodeRow) -> String {
        match row {
            CodeRow::Line { place, .. } => place.line.to_string(),
            CodeRow::Instruction {
                at,
                offset,
                below_line: false,
                ..
            } => words::offset(self.answer, *at, *offset),
            _ => String::new(),
        }
    }

    /// Returns the text of the widest column: the code, or what a row sums up.
    fn code(&self, row: &CodeRow, room: usize) -> (String, Style) {
        let (answer, dim) = (self.answer, self.theme.dim());
        let text = words::row(answer, row, self.code.syntax());
        match row {
            CodeRow::Line { place, .. } => {
                let source = answer.body.text.as_ref();
                let is_there = source.and_then(|text| text.line(place.line)).is_some();
                (text, if is_there { Style::new() } else { dim })
            }
            CodeRow::Instruction {
                at,
                offset,
                below_line: true,
                ..
            } => {
                let place = words::offset(answer, *at, *offset);
                let room = room.saturating_sub(place.len() + 3);
                let code = text::cut_end(&text, room);
                let gap = room.saturating_sub(text::width(&code));
                (format!("│ {code}{} {place}", " ".repeat(gap)), dim)
            }
            CodeRow::Instruction { .. } if self.is_beside => {
                let line = self
                    .code
                    .line_of(row)
                    .map(|line| line.to_string())
                    .unwrap_or_default();
                let room = room.saturating_sub(line.len() + 1);
                let code = text::cut_end(&text, room);
                let gap = room.saturating_sub(text::width(&code));
                (format!("{code}{} {line}", " ".repeat(gap)), Style::new())
            }
            CodeRow::Instruction { .. } => (text, Style::new()),
            CodeRow::Gap(_) => (format!("│ {text}"), dim),
            CodeRow::Call { .. } => (format!("    → {text}"), dim),
            CodeRow::Piece(_) => (text, self.theme.title()),
            _ => (text, dim),
        }
    }
}

/// Returns a bar of half cells for a share of all samples of the function. It is empty if the share
/// is less than half a cell.
fn bar(samples: u64, all: u64, width: usize) -> String {
    let halves = samples * 2 * width as u64 / all.max(1);
    let full = "█".repeat((halves / 2) as usize);
    match halves {
        0 => String::new(),
        _ if halves % 2 == 1 => full + "▌",
        _ => full,
    }
}
