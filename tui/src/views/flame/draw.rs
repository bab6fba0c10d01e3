//! The flame graph, root on top.
//!
//! ```text
//! PostgresMain › exec_simple_query › PortalRun                         zoom 88.7%
//! |ExecScan                                                                88.7%|
//! |IndexNext                                    64.0%|SeqNext    21.5%|
//! |heap_hot_search_buffer  |_bt_compare      |inde…|  |heap_getnext  |
//! color: module ■postgres ■libc.so.6 ■[kernel] ■other   · = frames < 3 cells
//! ```

use super::words;
use crate::context::{Context, DetailRoom};
use crate::views::{Canvas, Draw};
use crate::widgets::compared;
use crate::words::source;

use crate::geometry::WIDTH_WIDE;
use crate::views::flame::{Bar, Flame, Spot};
use crate::widgets::theme::{Theme, Tint};
use crate::words::{text, units};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};

use super::tints::Tints;

/// The width in cells of the map that shows which part of the whole graph is visible.
const MAP_CELLS: u64 = 40;

impl Draw for Flame {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        render(self, cx, canvas);
    }

    fn detail(&self, cx: &Context<'_>, room: DetailRoom, _: &Theme) -> String {
        words::detail(self, cx, room.line)
    }

    fn source(&self, _: &Context<'_>) -> Option<(String, String)> {
        let function = self.selected()?.function.as_ref()?;
        source::linked(function.file.as_deref(), function.line)
    }
}

/// Draws the line above the graph, the path to the zoomed frame if there is room for it, the bars
/// row by row from the root, and the legend in the last line.
fn render(flame: &Flame, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    if flame.has_path() {
        let path = Rect { height: 1, ..body };
        render_map(cx, flame, theme, frame.buffer_mut(), heads);
        render_path(cx, flame, theme, frame.buffer_mut(), path);
    } else {
        render_heads(cx, flame, theme, frame.buffer_mut(), heads);
    }
    let top = body.y + u16::from(flame.has_path());
    frame.set_cursor_position(Position::new(body.x, body.y));
    if flame.selected().is_none() {
        let room = usize::from(body.width - 2);
        let text = words::why_empty(flame, cx);
        let buffer = frame.buffer_mut();
        buffer.set_stringn(body.x + 2, body.y + 1, text, room, Style::new());
        return;
    }
    let tints = Tints::new(flame, cx);
    for (y, (row, bars)) in (top..body.bottom()).zip(flame.shown()) {
        let painter = Painter {
            cx,
            flame,
            theme,
            tints: &tints,
            area: Rect::new(body.x, y, body.width, 1),
        };
        for (number, bar) in bars.iter().enumerate() {
            let spot = Spot { row, bar: number };
            // A bar ends at the border of the next one; the last bar before a gap draws its own.
            let is_last = bars
                .get(number + 1)
                .is_none_or(|next| next.start > bar.end());
            let is_selected = spot == flame.selected_spot();
            painter.bar(bar, is_selected, is_last, frame.buffer_mut());
            if is_selected {
                // The cursor is on the first letter of the name.
                let x = (body.x + bar.start + 1).min(body.right() - 1);
                frame.set_cursor_position(Position::new(x, y));
            }
        }
    }
    let legend = Rect::new(body.x, body.bottom() - 1, body.width, 1);
    render_legend(flame, theme, frame.buffer_mut(), legend);
}

/// What is the same for all bars of a row.
struct Painter<'a> {
    cx: &'a Context<'a>,
    flame: &'a Flame,
    theme: &'a Theme,
    tints: &'a Tints,
    area: Rect,
}

impl Painter<'_> {
    /// Draws a bar. Dots stand for frames that are too narrow for bars of their own.
    fn bar(&self, bar: &Bar, is_selected: bool, is_last: bool, buffer: &mut Buffer) {
        let (x, y) = (self.area.x + bar.start, self.area.y);
        let width = usize::from(bar.width);
        if bar.node.is_none() {
            buffer.set_stringn(x, y, "·".repeat(width), width, self.theme.dim());
            return;
        }
        // The color of a match covers the color of the bar, and that of the selection covers both.
        let mut style = self.theme.flame(self.tints.of(bar, self.flame, self.cx));
        if self.flame.is_found(bar) {
            style = style.patch(self.theme.found());
        }
        if is_selected {
            style = style.patch(self.theme.selected());
        }
        let border = if is_selected { ">" } else { "|" };
        let room = width - 1 - usize::from(is_last);
        let text = format!("{border}{}", self.label(bar, room));
        buffer.set_stringn(x, y, &text, width, style);
        if is_last {
            buffer.set_stringn(x + bar.width - 1, y, "|", 1, style);
        }
    }

    /// Returns the sign that says whether a bar has grown or shrunk, empty unless the change is
    /// statistically significant.
    fn sign(&self, bar: &Bar) -> String {
        if words::is_sure(bar, self.flame, self.cx) {
            format!("{} ", compared::sign(self.flame.change(bar), self.theme).0)
        } else {
            String::new()
        }
    }

    /// Returns the text of a bar: its name and, if there is room, its share at the right end.
    fn label(&self, bar: &Bar, room: usize) -> String {
        let name = format!("{}{}", self.sign(bar), words::name(bar, self.cx));
        let clean = text::clean(&name);
        let left = room.saturating_sub(text::width(&clean) + 1);
        let mut numbers = words::numbers(bar, self.flame, self.cx).into_iter();
        // The longest number beside which the whole name fits. If there is none, the name gets all
        // of the room.
        let (name, share) = match numbers.find(|number| number.len() <= left) {
            Some(share) => (clean.into_owned(), share),
            None => {
                let last = words::last_name(bar, self.cx);
                let name = format!("{}{last}", self.sign(bar));
                (text::short_name(&name, room), String::new())
            }
        };
        let gap = room.saturating_sub(text::width(&name) + share.len());
        format!("{name}{}{share}", " ".repeat(gap))
    }
}

/// Draws the line above the graph: the title or, if the graph is zoomed, the names above the zoomed
/// frame and its share.
fn render_heads(cx: &Context<'_>, flame: &Flame, theme: &Theme, buffer: &mut Buffer, area: Rect) {
    buffer.set_style(area, theme.heads());
    let room = usize::from(area.width);
    if !flame.is_zoomed() {
        let text = words::title(flame, cx);
        buffer.set_stringn(area.x + 1, area.y, text, room - 1, theme.heads());
        return;
    }
    let (begin, samples) = flame.zoomed_part().unwrap_or_default();
    let all = words::base(flame);
    let mut right = format!("zoom {}%", units::share(&cx.shown.report, samples, all));
    if area.width >= WIDTH_WIDE {
        right = format!("|{}|  {right}", map(MAP_CELLS, begin, samples, all));
    }
    let left = room - text::width(&right) - 3;
    let names: Vec<String> = flame
        .ancestors()
        .iter()
        .map(|name| text::clean(name).into_owned())
        .collect();
    let mut path = names.join(" › ");
    // The nearest ancestors are the most useful ones: if there is no room for all, the outermost
    // are left out.
    for skip in 1..=names.len() {
        if text::width(&path) <= left {
            break;
        }
        path = format!("… › {}", names[skip..].join(" › "));
    }
    let path = text::cut_end(&path, left);
    buffer.set_stringn(area.x + 1, area.y, path, left, theme.heads());
    let x = area.right() - 1 - text::width(&right) as u16;
    buffer.set_string(x, area.y, right, theme.heads());
}

/// Draws a map of the whole graph in which the visible part stands out.
fn render_map(cx: &Context<'_>, flame: &Flame, theme: &Theme, buffer: &mut Buffer, area: Rect) {
    buffer.set_style(area, theme.heads());
    let (begin, samples) = flame.zoomed_part().unwrap_or_default();
    let all = words::base(flame);
    let right = format!("|  zoom {}%", units::share(&cx.shown.report, samples, all));
    let left = " map |";
    let room = usize::from(area.width).saturating_sub(left.len() + right.len() + 1);
    let map = map(room as u64, begin, samples, all);
    let line = format!("{left}{map}{right}");
    buffer.set_stringn(area.x, area.y, line, area.width.into(), theme.heads());
}

/// Returns a map with `cells` cells for `all` samples, in which the cells of the `samples` samples
/// from `begin` on are full. At least one cell is full.
fn map(cells: u64, begin: u64, samples: u64, all: u64) -> String {
    let cell =
        |sample: u64| (u128::from(sample) * u128::from(cells) / u128::from(all.max(1))) as u64;
    let (from, to) = (cell(begin), cell(begin + samples).max(cell(begin) + 1));
    let sign = |at| {
        if (from..to).contains(&at) {
            '█'
        } else {
            '░'
        }
    };
    (0..cells).map(sign).collect()
}

/// The separator between the names of the path.
const BETWEEN: &str = " › ";

/// Returns the frames above the zoomed one, the root first, each with its number for
/// [`Flame::zoom_to_ancestor`], the column in which its name starts, and the name. If they do not
/// all fit, the first ones are left out, because the nearest ones are the most useful.
fn path(cx: &Context<'_>, flame: &Flame, width: u16) -> Vec<(usize, u16, String)> {
    let root = text::clean(&cx.root_words()).into_owned();
    let below = flame.ancestors();
    let below = below.iter().map(|name| text::clean(name).into_owned());
    let names: Vec<String> = [root].into_iter().chain(below).collect();
    let needed = |name: &String| text::width(name) + text::width(BETWEEN);
    let mut used: usize = names.iter().map(needed).sum::<usize>() + 1;
    let skipped = names
        .iter()
        .take_while(|name| {
            let is_too_much = used > usize::from(width);
            used -= if is_too_much { needed(name) } else { 0 };
            is_too_much
        })
        .count();
    let mut x = 1;
    let numbered = names.into_iter().enumerate().skip(skipped);
    numbered
        .map(|(number, name)| {
            let start = x;
            x += needed(&name) as u16;
            (number, start, name)
        })
        .collect()
}

/// Returns the number of the ancestor whose name is drawn in column `x`, if any.
pub fn ancestor_at(flame: &Flame, cx: &Context<'_>, width: u16, x: u16) -> Option<usize> {
    let path = path(cx, flame, width);
    let holds = |(_, start, name): &&(usize, u16, String)| {
        (*start..*start + text::width(name) as u16).contains(&x)
    };
    path.iter().find(holds).map(|(number, ..)| *number)
}

/// Draws the path to the zoomed frame. [`ancestor_at`] finds the names at the same places.
fn render_path(cx: &Context<'_>, flame: &Flame, theme: &Theme, buffer: &mut Buffer, line: Rect) {
    for (_, start, name) in path(cx, flame, line.width) {
        let room = usize::from(line.width.saturating_sub(start));
        let text = format!("{name}{BETWEEN}");
        buffer.set_stringn(line.x + start, line.y, text, room, theme.dim());
    }
}

fn render_legend(flame: &Flame, theme: &Theme, buffer: &mut Buffer, area: Rect) {
    let mut x = area.x;
    let mut add = |content: &str, style: Style| {
        let room = usize::from(area.right().saturating_sub(x));
        if text::width(content) <= room {
            (x, _) = buffer.set_stringn(x, area.y, content, room, style);
        }
    };
    let below = flame.rows_below();
    match (flame.offset(), below) {
        (0, 0) => {}
        (above, below) => add(
            &format!("{above} rows above, {below} below   "),
            theme.title(),
        ),
    }
    if flame.sides().is_some() {
        // Frames that are gone have no bar, so this line names them, before it explains the signs.
        let gone = words::gone(flame, usize::from(area.width));
        let gone = gone.map(|gone| text::cut_end(&gone, usize::from(area.width) / 2).into_owned());
        if let Some(gone) = gone {
            add(&gone, theme.falling());
            add("   ", Style::new());
        }
        let signs = match flame.stretch() {
            Some(_) => "▲ ▼ surely more, less than in the rest of the time",
            None => "width: B  ▲ ▼ surely more, less  ~ chance",
        };
        add(signs, Style::new());
        return;
    }
    add("· = frames < 3 cells merged   ", Style::new());
    if theme.has_colors() {
        let other = [(Tint::Kernel, "[kernel]"), (Tint::Other, "other")];
        for (tint, module) in flame.legend().chain(other) {
            let style = theme.flame(tint).remove_modifier(Modifier::all());
            add(&format!("■{}", text::cut_end(module, 18)), style);
            add(" ", Style::new());
        }
    }
}
