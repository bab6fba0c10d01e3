//! Draws Health: what is missing and why. The detail line shows the whole sentence of the selected
//! line.

/// The modules that lack something.
mod modules;

use super::{Health, words};
use crate::context::{Context, DetailRoom};
use crate::views::{Canvas, Draw};

use crate::views::health::{Finding, Topic, Value};
use crate::widgets::theme::Theme;
use crate::words::text;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// The title in place of column heads, because these lines have no columns.
const TITLE: &str = " WHAT IS MISSING, AND WHY";

/// From this width on the modules are shown beside the lines.
const WIDTH_WITH_MODULES: u16 = 150;
/// The width of the lines then.
const WIDTH_BESIDE: u16 = 88;

impl Draw for Health {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        render(self, cx, canvas);
    }

    fn detail(&self, cx: &Context<'_>, _: DetailRoom, _: &Theme) -> String {
        let finding = self.lines(cx.shown).into_iter().nth(self.index());
        finding.map_or_else(String::new, |finding| finding.explain)
    }
}

/// Draws the lines and, in a wide terminal, the modules to the right of them.
fn render(health: &Health, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    let (heads, body) = if heads.width < WIDTH_WITH_MODULES {
        (heads, body)
    } else {
        let (heads, beside) = split(heads);
        let (body, below) = split(body);
        modules::render(cx, theme, frame, beside, below);
        for y in heads.y..body.bottom() {
            let buffer = frame.buffer_mut();
            buffer.set_string(heads.right(), y, "│", theme.dim());
        }
        (heads, body)
    };
    let buffer = frame.buffer_mut();
    buffer.set_style(heads, theme.heads());
    buffer.set_stringn(heads.x, heads.y, TITLE, heads.width.into(), theme.heads());
    let lines = health.lines(cx.shown);
    let offset = health.offset();
    let visible = lines.iter().enumerate().skip(offset);
    for ((at, finding), y) in visible.zip(body.y..body.bottom()) {
        let area = Rect::new(body.x, y, body.width, 1);
        render_line(finding, at == health.index(), theme, frame, area);
    }
}

/// Returns the parts to the left and to the right of the vertical rule.
fn split(whole: Rect) -> (Rect, Rect) {
    let left = Rect {
        width: WIDTH_BESIDE,
        ..whole
    };
    let right = Rect {
        x: left.right() + 1,
        width: whole.width - WIDTH_BESIDE - 1,
        ..whole
    };
    (left, right)
}

/// Draws one line. A heading has the color of titles, and a line about something missing stands
/// out.
fn render_line(finding: &Finding, selected: bool, theme: &Theme, frame: &mut Frame, area: Rect) {
    let (line, style) = match finding.topic {
        Topic::Heading(title) => (format!(" {title}"), theme.title()),
        _ => (words::entry(finding), style(finding, theme)),
    };
    let room = usize::from(area.width);
    let buffer = frame.buffer_mut();
    buffer.set_stringn(area.x, area.y, text::cut_end(&line, room), room, style);
    if selected {
        buffer.set_string(area.x, area.y, ">", Style::new());
        buffer.set_style(area, theme.selected());
        frame.set_cursor_position(Position::new(area.x + 1, area.y));
    }
}

/// Returns the color of a line. Lines which say that something is missing stand out.
fn style(finding: &Finding, theme: &Theme) -> Style {
    let missing = match (finding.topic, finding.value) {
        (
            Topic::Lost | Topic::Cut(_) | Topic::LanguageLacks(..) | Topic::Unnamed(_),
            Value::Share(part, _)
            | Value::Time(part, ..)
            | Value::Part(part, ..)
            | Value::Count(part),
        ) => part > 0,
        (Topic::Note(_) | Topic::Machine(_, false), _) => true,
        _ => false,
    };
    if missing {
        theme.warning()
    } else {
        Style::new()
    }
}
