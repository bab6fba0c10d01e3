//! Draws the page of one function: its callers, itself, its callees, its heaviest stack, and when
//! it ran.

use super::words;
use crate::action::Action;
use crate::calendar;
use crate::context::{Context, DetailRoom};
use crate::views::{Canvas, Draw};
use crate::widgets::compared;
use crate::words::source;

use crate::view_id::ViewId;
use crate::views::page::{Before, Page, PageAnswer, PageRow, SECONDS};
use crate::widgets::table::{Column, Row};
use crate::widgets::theme::Theme;
use crate::widgets::{table, trend};
use crate::words::units::Scale;
use crate::words::{absence, keys, names, text, units};
use profile::query::{FunctionPage, Neighbour, NeighbourKind};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};

impl Draw for Page {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        render(self, cx, canvas);
    }

    fn detail(&self, cx: &Context<'_>, room: DetailRoom, _: &Theme) -> String {
        words::detail(self, cx, room.line)
    }

    fn source(&self, _: &Context<'_>) -> Option<(String, String)> {
        let function = self.selected_function()?;
        source::linked(function.file.as_deref(), function.line)
    }
}

fn render(page: &Page, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    // Beside another view, the cursor belongs to the selected row of that view.
    if !cx.is_beside {
        frame.set_cursor_position(Position::new(body.x, body.y));
    }
    let painter = Painter {
        cx,
        page,
        theme,
        layout: Layout::new(heads.width),
        is_beside: cx.is_beside && !cx.has_keys,
    };
    painter.render(frame, heads, body);
}

/// From this width on the peak of the seconds is described in words.
const WIDTH_WITH_PEAK: u16 = 60;

/// From this width on the words include the time of day of the peak.
const WIDTH_WITH_CLOCK: u16 = 75;

/// The columns that fit into a terminal of some width. From the left: share, bar or change, name,
/// module, amount.
struct Layout {
    bar: u16,
    name: u16,
    module: u16,
}

const SHARE: u16 = 6;
const COUNT: u16 = 9;
/// The position of the column with the name.
const NAME: usize = 2;

impl Layout {
    fn new(width: u16) -> Self {
        let bar = match width {
            0..72 => 8,
            72..120 => 16,
            _ => 30,
        };
        let module = if width < 72 { 0 } else { width / 6 };
        // Each column is followed by one blank cell. The other 2 are the margin and the cell after
        // the name.
        let fixed = [SHARE, bar, COUNT, module]
            .iter()
            .map(|w| w + 1)
            .sum::<u16>();
        Layout {
            bar,
            module,
            name: width.saturating_sub(fixed + 2),
        }
    }

    fn columns(
        &self,
        name: &'static str,
        bar: &'static str,
        count: &'static str,
    ) -> Vec<Column<()>> {
        let mut columns = vec![
            Column::right("OF IT%", SHARE, None),
            Column::left(bar, self.bar, None),
            Column::left(name, self.name, None),
        ];
        if self.module > 0 {
            columns.push(Column::left("MODULE", self.module, None));
        }
        columns.push(Column::right(count, COUNT, None));
        columns
    }
}

/// What is the same for all rows of a page.
struct Painter<'a> {
    cx: &'a Context<'a>,
    page: &'a Page,
    theme: &'a Theme,
    layout: Layout,
    /// Whether the page is beside another view that has the keys. Then no row of the page is drawn
    /// as selected.
    is_beside: bool,
}

impl<'a> Painter<'a> {
    fn render(&self, frame: &mut Frame, heads: Rect, body: Rect) {
        let columns = self.columns("CALLERS");
        table::render_heads(&columns, ((), ""), self.theme, frame, heads);
        if self.found().is_none() {
            let back = if self.is_beside {
                String::new()
            } else {
                keys::and("", "; ", [keys::hint(self.cx, Action::Back, "back")])
            };
            let text = words::why_empty(self.cx, self.page, &back);
            let room = usize::from(body.width - 2);
            let text = text::cut_end(&text, room).into_owned();
            let buffer = frame.buffer_mut();
            buffer.set_string(body.x + 2, body.y + 1, text, Style::new());
            return;
        }
        let mut line = Rect { height: 1, ..body };
        for (row, is_selected) in self.page.shown() {
            self.row(row, is_selected && !self.is_beside, frame, line);
            line.y += 1;
        }
    }

    /// Returns the answer and the page in it. Returns `None` before the first answer, and if no
    /// sample in the window contains the function.
    fn found(&self) -> Option<(&'a PageAnswer, &'a FunctionPage)> {
        let answer = self.page.answer()?;
        Some((answer, answer.page.as_ref()?))
    }

    /// Returns the columns, with a title for the column of names. The page has them twice, for
    /// callers and for callees.
    fn columns(&self, name: &'static str) -> Vec<Column<()>> {
        let count = self.scale().amount_head();
        self.layout.columns(name, self.bar_head(), count)
    }

    fn scale(&self) -> Scale {
        Scale::new(self.cx, self.all())
    }

    /// Returns the head of the second column: none for bars, the unit for changes.
    fn bar_head(&self) -> &'static str {
        self.before().map_or("", |before| {
            compared::head(before.sides.have_time(), self.theme)
        })
    }

    fn before(&self) -> Option<&'a Before> {
        self.page.answer()?.before.as_ref()
    }

    /// Draws the sentence about callers or callees that exist only in the baseline.
    fn gone(&self, gone: &[(String, u64)], frame: &mut Frame, line: Rect) {
        let Some(before) = self.before() else {
            return;
        };
        let text = compared::gone(gone, &before.sides).unwrap_or_default();
        let room = usize::from(line.width) - 2;
        let text = text::cut_end(&text, room).into_owned();
        let buffer = frame.buffer_mut();
        buffer.set_string(line.x + 2, line.y, text, self.theme.falling());
    }

    /// Returns how many samples have the function on the stack.
    fn all(&self) -> u64 {
        self.found()
            .map_or(0, |(_, found)| found.function.total_samples)
    }

    /// Draws one row of the page of any kind.
    fn row(&self, row: &PageRow, is_selected: bool, frame: &mut Frame, line: Rect) {
        match row {
            PageRow::Caller(neighbour) | PageRow::Callee(neighbour) => {
                let name = words::neighbour(neighbour.kind, self.page);
                let style = if self.page.is_found(row) {
                    self.theme.found()
                } else {
                    Style::new()
                };
                let is_caller = matches!(row, PageRow::Caller(_));
                let before = self.before().map(|before| {
                    if is_caller {
                        before.callers.of(neighbour.kind)
                    } else {
                        before.callees.of(neighbour.kind)
                    }
                });
                self.cells((neighbour, before), name, style, is_selected, frame, line);
            }
            PageRow::Gone(gone) => self.gone(gone, frame, line),
            PageRow::MoreCallers(count, samples, is_open)
            | PageRow::MoreCallees(count, samples, is_open) => {
                let count = units::count(*count as u64);
                let name = if *is_open {
                    self.with_key(&format!("▾ the last {count}"), "as one row")
                } else {
                    self.with_key(&format!("▸ {count} more"), "show")
                };
                // Only the samples are drawn. `Own` is a kind without a module.
                let sum = Neighbour {
                    kind: NeighbourKind::Own,
                    samples: *samples,
                };
                self.cells(
                    (&sum, None),
                    name,
                    self.theme.dim(),
                    is_selected,
                    frame,
                    line,
                );
            }
            PageRow::Function => self.function(is_selected, frame, line),
            PageRow::Callees => {
                let columns = self.columns("CALLEES");
                table::render_heads(&columns, ((), ""), self.theme, frame, line);
            }
            PageRow::Stack => self.stack_head(frame, line),
            PageRow::StackLine(stack) => {
                let room = usize::from(line.width) - 2;
                let buffer = frame.buffer_mut();
                let stack = text::cut_end(stack, room);
                buffer.set_stringn(line.x + 2, line.y, stack, room, Style::new());
            }
            PageRow::Seconds => self.seconds(frame, line),
            PageRow::Blank => {}
        }
    }

    /// Draws a row of callers or callees. Their shares are those of the samples that have the
    /// function on the stack. `before` is the number of samples in the baseline, and `None` if
    /// nothing is compared, or for the row that sums up others.
    fn cells(
        &self,
        (neighbour, before): (&Neighbour, Option<u64>),
        name: String,
        style: Style,
        is_selected: bool,
        frame: &mut Frame,
        line: Rect,
    ) {
        let plain = Style::new();
        let all = self.all();
        let is_gone = neighbour.samples == 0;
        let share = if is_gone {
            absence::word(self.cx).into()
        } else {
            units::share(&self.cx.shown.report, neighbour.samples, all)
        };
        let bar = bar(neighbour.samples, all, self.layout.bar.into());
        let change = self.before().zip(before).map(|(sides, before)| {
            let change = sides.sides.change(before, neighbour.samples);
            compared::change_cell(change, self.theme)
        });
        // In a comparison the change replaces the bar.
        let beside = change.unwrap_or((bar, self.theme.trend()));
        let mut cells = vec![(share, plain), beside, (name, style)];
        if self.layout.module > 0 {
            let function = match neighbour.kind {
                NeighbourKind::Function(id) => self.page.named(id),
                _ => None,
            };
            cells.push(match function {
                Some(f) => (
                    names::module(&f.module).to_owned(),
                    self.theme.module(f.kind),
                ),
                None => (String::new(), plain),
            });
        }
        cells.push((self.scale().amount(neighbour.samples), plain));
        let row = Row {
            cells,
            selected: is_selected,
            gone: is_gone,
        };
        let columns = self.columns("");
        table::render_row(&columns, &row, NAME, self.theme, frame, line);
    }

    /// Draws the function itself between its callers and its callees. This line does not belong to
    /// a table, so its selection is drawn here.
    fn function(&self, is_selected: bool, frame: &mut Frame, line: Rect) {
        let Some((answer, found)) = self.found() else {
            return;
        };
        let buffer = frame.buffer_mut();
        let text = words::title(self.cx, answer, found, usize::from(line.width) - 2);
        let room = usize::from(line.width) - 1;
        let bold = Style::new().add_modifier(Modifier::BOLD);
        buffer.set_stringn(line.x + 1, line.y, text, room, bold);
        if is_selected {
            buffer.set_string(line.x, line.y, ">", Style::new());
            buffer.set_style(line, self.theme.selected());
            frame.set_cursor_position(Position::new(line.x + 1, line.y));
        }
    }

    /// Draws the head of the heaviest stack: its share of the function's samples and its number of
    /// frames. If the page has the keys, also the key that copies the stack.
    fn stack_head(&self, frame: &mut Frame, line: Rect) {
        let Some((_, found)) = self.found() else {
            return;
        };
        let buffer = frame.buffer_mut();
        buffer.set_style(line, self.theme.heads());
        let share = units::share(&self.cx.shown.report, found.heaviest_samples, self.all());
        let frames = units::counted(found.heaviest.len() as u64, "frame");
        let text = format!("{share:>6} HEAVIEST STACK   {frames}");
        buffer.set_stringn(
            line.x + 1,
            line.y,
            text,
            usize::from(line.width) - 1,
            self.theme.heads(),
        );
        if self.is_beside {
            return;
        }
        let copy = self.cx.keymap.label(Action::CopyStack, ViewId::Page);
        let copy = copy.map_or_else(String::new, |key| format!("{key}: copy"));
        buffer.set_string(
            line.right() - 1 - copy.len() as u16,
            line.y,
            copy,
            self.theme.heads(),
        );
    }

    /// Returns a text followed by the key that follows a row, and words for what that does.
    fn with_key(&self, text: &str, words: &str) -> String {
        let key = self.cx.keymap.label(Action::Follow, ViewId::Page);
        keys::and(text, "; ", [key.map(|key| format!("{key}: {words}"))])
    }

    /// Returns the time of day of a second, given by its distance in seconds from the end of the
    /// window. Returns `None` if the time of day of the samples is unknown.
    fn clock_of(&self, before: usize) -> Option<String> {
        let shown = self.cx.shown;
        let epoch_ms = shown.view.as_ref()?.info().epoch_unix_ms;
        let end_ms = (shown.report.window.end_ns / 1_000_000) as i64 + epoch_ms;
        (epoch_ms != 0).then(|| calendar::of_day(end_ms - before as i64 * 1_000))
    }

    /// Draws the last seconds as blocks, on a scale of their own. If there is not enough room for
    /// [`SECONDS`], the oldest are left out.
    fn seconds(&self, frame: &mut Frame, line: Rect) {
        let Some((answer, _)) = self.found() else {
            return;
        };
        let (peak, when) = peak(&answer.seconds);
        let end = match peak {
            _ if line.width < WIDTH_WITH_PEAK => String::new(),
            0 => String::new(),
            _ => match self
                .clock_of(when)
                .filter(|_| line.width >= WIDTH_WITH_CLOCK)
            {
                Some(clock) => format!("  peak {clock}, {when} s before the end"),
                None => format!("  peak {when} s before the end"),
            },
        };
        let room = usize::from(line.width).saturating_sub(11 + end.len());
        // Seconds before the start of the run are not drawn.
        let passed = self.cx.shown.run.elapsed.as_secs_f64().ceil() as usize;
        let seconds = &answer.seconds[SECONDS - room.min(SECONDS).min(passed.max(1))..];
        let head = format!(" LAST {}s ", seconds.len());
        let buffer = frame.buffer_mut();
        buffer.set_string(line.x, line.y, &head, Style::new());
        let max = seconds.iter().copied().max().unwrap_or(0);
        let blocks = trend::blocks(seconds, max);
        let x = line.x + head.len() as u16;
        let (x, _) = buffer.set_stringn(x, line.y, blocks, room, self.theme.trend());
        // The peak is described only if its block is drawn.
        if seconds.len() > when {
            let left = usize::from(line.right() - x);
            buffer.set_stringn(x, line.y, end, left, Style::new());
        }
    }
}

/// Returns the most samples of a second, and the distance of that second from the newest. Of
/// several equal seconds it is the newest.
fn peak(seconds: &[u64]) -> (u64, usize) {
    let newest_first = seconds.iter().rev().copied().enumerate();
    let most = newest_first.max_by_key(|(when, samples)| (*samples, std::cmp::Reverse(*when)));
    most.map_or((0, 0), |(when, samples)| (samples, when))
}

/// Returns a bar of half cells for a share of all. A row with any samples gets at least half a
/// cell.
fn bar(samples: u64, all: u64, width: usize) -> String {
    let halves = samples * 2 * width as u64 / all.max(1);
    let full = "▇".repeat((halves / 2) as usize);
    match halves {
        0 if samples > 0 => "▌".into(),
        _ if halves % 2 == 1 => full + "▌",
        _ => full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_shares() {
        assert_eq!(bar(1, 2, 8), "▇▇▇▇");
        assert_eq!(bar(1, 1_000, 8), "▌");
        assert_eq!(bar(9, 9, 4), "▇▇▇▇");
        assert_eq!(bar(0, 9, 4), "");
        assert_eq!(bar(5, 0, 0), "▌");
    }

    #[test]
    fn the_newest_of_equal_peaks_counts() {
        assert_eq!(peak(&[1, 7, 7, 2]), (7, 1));
        assert_eq!(peak(&[]), (0, 0));
    }
}
