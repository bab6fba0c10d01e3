//! Draws the map of time.
//!
//! ```text
//!        |-60 s         |-45 s         |-30 s         |-15 s              now|
//!   0ms   ░░▒░░░▒░░▒▒░░░▒░░░░▒░██░░▒░░░░▒░░▒░▒░░░▒░░░▒
//! 100     ░▒▒░░▒░░░░▒░░░▒░▒░░░░▓#░▒░░░░▒░▒░░▒░░▒░░░▒░░
//! total  ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▅█▃▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂
//! scale  ░ 1-5  ▒ 6-10  ▓ 11-15  █ more in 100 ms   # half: heap_getnext
//! ```
//!
//! With a row for each thread, rows look like `4131 postgres  ░░▒`. If waiting time is counted,
//! letters show the main state of the thread in each second: `4131 postgres  LLRRRQ`.

use super::{rows, words};
use crate::calendar::{self, SECOND_NS};
use crate::context::{Context, DetailRoom};
use crate::views::{Canvas, Draw};

use crate::knobs::Window;
use crate::views::time::{Spot, Time, TimeAnswer};
use crate::widgets::theme::Theme;
use crate::widgets::trend;
use crate::words::metric::metric_told;
use crate::words::states::{self, LETTERS};
use crate::words::{text, units, waits};
use engine::snapshot::ThreadStates;
use profile::query::{HeatBy, HeatMap, HeatRow};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use std::ops::Range;

/// The shades, from few samples to many.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
/// The same shades in ASCII.
const SHADES_ASCII: [char; 4] = ['.', ':', '=', '@'];

/// The character of a cell in which at least half of the samples contain the followed function.
const FOLLOWED: char = '#';

/// The sign before the new rate, at the time on the axis at which the rate was changed.
const RATE: &str = "'";

/// Distance between two labels of the axis, in cells.
const LABEL_EVERY: u64 = 15;

impl Draw for Time {
    fn draw(&self, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
        render(self, cx, canvas);
    }

    fn detail(&self, cx: &Context<'_>, room: DetailRoom, _: &Theme) -> String {
        words::detail(self, cx, room.line)
    }
}

/// Draws the axis in the line of heads, a line for each row of the map, and three lines below it.
/// The selected cell is drawn last, over its shade.
fn render(time: &Time, cx: &Context<'_>, canvas: Canvas<'_, '_>) {
    let Canvas {
        theme,
        frame,
        heads,
        body,
    } = canvas;
    frame.set_cursor_position(Position::new(body.x, body.y));
    frame.buffer_mut().set_style(heads, theme.heads());
    let shown = time.answer().and_then(|a| Some((a, time.shown_seconds()?)));
    let Some((answer, seconds)) = shown.filter(|(answer, _)| answer.all.max() > 0) else {
        let text = words::why_empty(time, cx);
        let buffer = frame.buffer_mut();
        buffer.set_string(body.x + 2, body.y + 1, text, Style::new());
        return;
    };
    let painter = Painter {
        cx,
        time,
        answer,
        theme,
        seconds,
        scale: Scale::new(
            capacity(time, cx).map(|(samples, _)| samples),
            answer.all.max(),
        ),
        marked: marked(time, cx),
        sides: stretch(time, cx).into_iter().chain(sides(cx)).collect(),
        threads: Vec::new(),
    };
    let painter = Painter {
        threads: painter.threads_of_rows(),
        ..painter
    };
    painter.axis(frame.buffer_mut(), heads);
    for row in 0..answer.all.rows {
        let y = body.y + row as u16;
        if y < body.bottom() {
            painter.row(row, frame.buffer_mut(), Rect::new(body.x, y, body.width, 1));
        }
    }
    let y = (body.y + answer.all.rows as u16).min(body.bottom() - 3);
    painter.foot(frame.buffer_mut(), Rect::new(body.x, y, body.width, 3));
    if let Some(spot) = time.selected()
        && painter.seconds.contains(&spot.second)
    {
        let x = painter.x_of(spot.second, body);
        let here = Position::new(x, body.y + spot.row as u16);
        if body.contains(here) {
            frame.buffer_mut()[here].set_style(theme.selected());
            frame.set_cursor_position(here);
        }
    }
}

/// The meaning of the shades, which are numbered 1 to 4:
/// 1. `Capacity`: the shade is `4 * cell / capacity`, rounded up.
/// 2. `Steps`, if the capacity is not known: the shade is `cell / step`, rounded up.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scale {
    /// The samples of a cell, shown as `█`, if all of its CPUs are busy.
    Capacity { samples: f64 },
    /// The number of samples for each shade: a round number, so that it seldom changes.
    Steps { samples: u64 },
}

impl Scale {
    /// Chooses a scale. `most` is the largest number of samples of any cell.
    fn new(capacity: Option<f64>, most: u64) -> Self {
        match capacity {
            Some(samples) if samples > 0.0 => Scale::Capacity { samples },
            _ => Scale::Steps {
                samples: round_step(most),
            },
        }
    }

    /// Returns the character for a number of samples. Only 0 is blank: a single sample always has
    /// the lightest shade.
    fn shade(self, samples: u64, shades: [char; 4]) -> char {
        let number = match self {
            _ if samples == 0 => return ' ',
            // Samples are taken at random times, so that some cells have a few more than the
            // capacity.
            Scale::Capacity { samples: all } => (samples as f64 * 4.0 / all).ceil() as u64,
            Scale::Steps { samples: step } => samples.div_ceil(step),
        };
        shades[number.clamp(1, 4) as usize - 1]
    }
}

/// Returns the smallest number of 1, 2, 5, 10, 20, 50, … whose fourfold is at least `most`; there
/// are four shades.
fn round_step(most: u64) -> u64 {
    let wanted = most.div_ceil(SHADES.len() as u64).max(1);
    let mut step = 1;
    while step < wanted {
        step = match step.to_string().as_bytes()[0] {
            b'2' => step / 2 * 5,
            _ => step * 2,
        };
    }
    step
}

/// Returns how many samples a cell of the map can have, and what that is in words: the time of one
/// CPU, of one thread, or of all CPUs that the scope can keep busy. Returns `None` if the rate is
/// not known, or if samples do not count CPU time.
fn capacity(time: &Time, cx: &Context<'_>) -> Option<(f64, String)> {
    let rate_hz = time.answer()?.all.rate_hz;
    if rate_hz == 0 || metric_told(cx).is_some() {
        return None;
    }
    let (cpus, words) = match time.by() {
        HeatBy::Cpus => (1, "this CPU".into()),
        HeatBy::Threads => (1, "one CPU".into()),
        HeatBy::Parts => {
            let cpus = words::cpus_of_scope(cx);
            (cpus, units::counted(cpus, "CPU"))
        }
    };
    let seconds = time.row_ns() as f64 / SECOND_NS as f64;
    (cpus > 0).then(|| (f64::from(rate_hz) * seconds * cpus as f64, words))
}

/// What is the same for all parts of the map.
struct Painter<'a> {
    cx: &'a Context<'a>,
    time: &'a Time,
    answer: &'a TimeAnswer,
    theme: &'a Theme,
    /// The seconds on the screen: one column of cells for each.
    seconds: Range<u64>,
    /// The meaning of the shades.
    scale: Scale,
    /// The first and the last cell of the marked stretch. `None` if nothing is marked.
    marked: Option<(Spot, Spot)>,
    /// The stretches that are labelled on the axis: letter, start and end in nanoseconds.
    sides: Vec<(&'static str, u64, u64)>,
    /// The states of each row's thread if waiting time is counted. Empty if rows are not threads.
    threads: Vec<Option<&'a ThreadStates>>,
}

/// Returns the samples of a cell, or `None` outside of the map.
fn cell(map: &HeatMap, second: u64, row: usize) -> Option<u64> {
    let column = second.checked_sub(map.first_second)? as usize;
    (column < map.columns()).then(|| map.cell(column, row))
}

/// Whether there is room for a label, with a blank before and after it.
fn is_free(buffer: &Buffer, x: u16, label: &str, area: Rect) -> bool {
    let end = x + text::width(label) as u16;
    let is_blank = |x: u16| buffer[(x, area.y)].symbol() == " ";
    // The cells before and after the label have to be blank as well.
    let begin = x.saturating_sub(1).max(area.x);
    end <= area.right() && (begin..area.right().min(end + 1)).all(is_blank)
}

impl<'a> Painter<'a> {
    /// Returns the states of the threads of all rows, as the engine knows them.
    fn threads_of_rows(&self) -> Vec<Option<&'a ThreadStates>> {
        let waited = self
            .cx
            .shown
            .waited
            .as_ref()
            .filter(|_| self.cx.counts_time() && self.time.by() == HeatBy::Threads);
        let Some(waited) = waited else {
            return Vec::new();
        };
        let of_row = |row| match self.answer.rows.row(row)? {
            HeatRow::Thread { tid, .. } => waited.threads.iter().find(|thread| thread.tid == tid),
            _ => None,
        };
        (0..self.answer.all.rows).map(of_row).collect()
    }

    /// Returns the main state of a row's thread in a second, as its index among the states.
    fn state(&self, second: u64, row: usize) -> Option<usize> {
        let thread = (*self.threads.get(row)?)?;
        let middle_ns = second * SECOND_NS + SECOND_NS / 2;
        Some(thread.state_at(middle_ns)?.number())
    }

    /// Returns the shades that this terminal can draw.
    fn shades(&self) -> [char; 4] {
        if self.theme.is_ascii() {
            SHADES_ASCII
        } else {
            SHADES
        }
    }

    /// Returns the column of the terminal in which a second on the screen is drawn.
    fn x_of(&self, second: u64, area: Rect) -> u16 {
        area.x + self.time.label() + (second - self.seconds.start) as u16
    }

    /// Draws the axis: labels that say how many seconds ago a column was, counted from the newest
    /// second.
    fn axis(&self, buffer: &mut Buffer, area: Rect) {
        let map = &self.answer.all;
        let last = map.first_second + map.columns() as u64 - 1;
        self.rates(buffer, area);
        self.sides(buffer, area);
        for second in self.seconds.clone() {
            let age = last.saturating_sub(second);
            let x = self.x_of(second, area);
            let label = match age {
                _ if second > last => continue,
                0 => {
                    self.newest(x, buffer, area);
                    continue;
                }
                _ if age.is_multiple_of(LABEL_EVERY) => format!("|-{age} s"),
                _ => continue,
            };
            if is_free(buffer, x, &label, area) {
                buffer.set_string(x, area.y, label, self.theme.heads());
            }
        }
    }

    /// Draws the tick of the newest second, after the time of day if there is room for it.
    fn newest(&self, x: u16, buffer: &mut Buffer, area: Rect) {
        let newest_ns = self.time.newest_ns().unwrap_or_default();
        let ms = (newest_ns / 1_000_000) as i64 + self.answer.epoch_unix_ms;
        let label = match self.answer.epoch_unix_ms {
            0 => "|".to_owned(),
            _ => format!("{} |", calendar::of_day(ms)),
        };
        // The tick is in the column of the second, the time of day before it.
        let start = x.saturating_sub(text::width(&label) as u16 - 1);
        let has_room = start > area.x + self.time.label() && is_free(buffer, start, &label, area);
        let (start, label) = if has_room { (start, &*label) } else { (x, "|") };
        if is_free(buffer, start, label, area) {
            buffer.set_string(start, area.y, label, self.theme.heads());
        }
    }

    /// Draws a tick at each change of the rate, and the new rate if the axis has room for it.
    fn rates(&self, buffer: &mut Buffer, area: Rect) {
        for change in &self.answer.rate_changes {
            let second = change.from_ns / SECOND_NS;
            if !self.seconds.contains(&second) {
                continue;
            }
            let x = self.x_of(second, area);
            let label = format!("{RATE}{} Hz", change.hz);
            let shown = if is_free(buffer, x, &label, area) {
                &*label
            } else {
                RATE
            };
            let room = usize::from(area.right().saturating_sub(x));
            buffer.set_stringn(x, area.y, shown, room, self.theme.heads());
        }
    }

    /// Draws which seconds are compared, a line for each side between two letters: `A──────A`.
    fn sides(&self, buffer: &mut Buffer, area: Rect) {
        for (sign, start_ns, end_ns) in &self.sides {
            let (first, last) = (start_ns / SECOND_NS, end_ns.saturating_sub(1) / SECOND_NS);
            let (first, last) = (first.max(self.seconds.start), last);
            for second in self.seconds.clone().filter(|s| (first..=last).contains(s)) {
                let x = self.x_of(second, area);
                let is_end = second == first || second == last || second + 1 == self.seconds.end;
                let sign = if is_end { sign } else { "─" };
                if x < area.right() && buffer[(x, area.y)].symbol() == " " {
                    buffer.set_string(x, area.y, sign, self.theme.heads());
                }
            }
        }
    }

    /// Draws a row of the map: its label, a character for each second, and the marked part.
    fn row(&self, row: usize, buffer: &mut Buffer, area: Rect) {
        let width = self.time.label();
        let label = rows::label(self.time, row, usize::from(width) - 1);
        buffer.set_string(area.x, area.y, label, self.theme.dim());
        let cells: String = self
            .seconds
            .clone()
            .map(|second| self.sign(second, row))
            .collect();
        let room = usize::from(area.width - width);
        buffer.set_stringn(area.x + width, area.y, cells, room, self.theme.trend());
        for second in self.seconds.clone() {
            let x = self.x_of(second, area);
            if let Some(state) = self.state(second, row).filter(|_| x < area.right()) {
                buffer[(x, area.y)].set_style(self.theme.activity(state));
            }
        }
        if let Some(marked) = self.marked {
            self.mark_row(row, marked, buffer, area);
        }
    }

    /// Returns the character of a cell: the letter of the thread's state, the sign for a followed
    /// function that has at least half of the samples, or its shade. Blank outside of the map.
    fn sign(&self, second: u64, row: usize) -> char {
        // A wait that has not ended has no sample yet, but a state.
        if let Some(letter) = self.state(second, row).and_then(|state| LETTERS.get(state)) {
            return *letter;
        }
        let Some(samples) = cell(&self.answer.all, second, row) else {
            return ' ';
        };
        let own = self
            .answer
            .own
            .as_ref()
            .and_then(|(map, _)| cell(map, second, row))
            .unwrap_or(0);
        if own > 0 && own * 2 >= samples {
            FOLLOWED
        } else {
            self.scale.shade(samples, self.shades())
        }
    }

    /// Draws the marked cells of a row in the colors of a selection.
    fn mark_row(&self, row: usize, (from, to): (Spot, Spot), buffer: &mut Buffer, area: Rect) {
        for second in self.seconds.clone() {
            if (from..=to).contains(&Spot { second, row }) {
                let x = self.x_of(second, area);
                buffer[(x, area.y)].set_style(self.theme.selected());
            }
        }
    }

    /// Draws the lines below the map: (1) the sum of each second, (2) what differs in the marked
    /// time, or the followed function's sum of each second, or since when waits are counted, (3)
    /// the meaning of the shades.
    fn foot(&self, buffer: &mut Buffer, area: Rect) {
        let label = self.time.label();
        let room = usize::from(area.width - label);
        let mut line = |y: u16, head: &str, content: &str, style: Style| {
            buffer.set_string(area.x, area.y + y, head, Style::new());
            let content = text::cut_end(content, room).into_owned();
            buffer.set_stringn(area.x + label, area.y + y, content, room, style);
        };
        let total = self.sums(&self.answer.all);
        let most = total.iter().copied().max().unwrap_or(0);
        line(0, "total", &trend::blocks(&total, most), self.theme.trend());
        if let Some(apart) = words::apart(self.time, room) {
            line(1, "mark", &apart, Style::new());
        } else if let Some((own, _)) = &self.answer.own {
            // On the scale of the totals, so that the two lines can be compared.
            let own = trend::blocks(&self.sums(own), most);
            line(1, "#", &own, self.theme.trend());
        } else if let Some(since) = self.counted_since() {
            line(1, "", &format!("counted since {since}"), Style::new());
        }
        line(2, "scale", &self.legend(most, room), Style::new());
    }

    /// Returns the samples of each second on the screen, all rows together.
    fn sums(&self, map: &HeatMap) -> Vec<u64> {
        let sum = |second| {
            let cells = (0..map.rows).filter_map(|row| cell(map, second, row));
            cells.sum()
        };
        self.seconds.clone().map(sum).collect()
    }

    /// Returns since when waits are counted, if some of the seconds on the screen are before that.
    fn counted_since(&self) -> Option<String> {
        let shown = self.cx.shown;
        let since_ns = shown.waits_since_ns().filter(|_| self.cx.counts_time())?;
        let is_seen = self.seconds.start * SECOND_NS < since_ns;
        waits::since(shown).filter(|_| is_seen)
    }

    /// Returns the text that says what the shades stand for, and how much the highest bar of the
    /// totals is. `total` is the number of samples of the second that has most.
    fn legend(&self, total: u64, room: usize) -> String {
        if !self.threads.is_empty() {
            return states::SHORT_LEGEND.into();
        }
        let shades = self.shades();
        let unit = words::in_unit(self.time, self.cx, self.time.row_ns());
        let ranges: String = match self.scale {
            Scale::Capacity { .. } => (1..)
                .zip(&shades[..3])
                .map(|(number, shade)| format!("{shade} {}%  ", number * 25))
                .collect(),
            Scale::Steps { samples: step } => (1..)
                .zip(&shades[..3])
                .map(|(number, shade)| {
                    let most = number * step;
                    match (unit.beside(most), step) {
                        (Some(_), _) => format!("{shade} to {}  ", unit.labelled(most)),
                        (None, 1) => format!("{shade} {number}  "),
                        (None, _) if self.cx.counts_time() => {
                            format!("{shade} to {}  ", unit.bare(most))
                        }
                        (None, _) => format!("{shade} {}-{most}  ", most - step + 1),
                    }
                })
                .collect(),
        };
        let span = words::span(self.time.row_ns() / 1_000_000);
        let most = match capacity(self.time, self.cx) {
            Some((_, words)) => format!("{} 100% of {words}", shades[3]),
            None => format!("{} more in {span}", shades[3]),
        };
        let second = words::in_unit(self.time, self.cx, SECOND_NS);
        let total = match second.beside(total) {
            Some(words) => format!("; total: █ {words}"),
            None => format!("; total: █ {} a second", unit.bare(total)),
        };
        let mut legend = format!("{ranges}{most}");
        if let Some((_, name)) = &self.answer.own {
            let left = room.saturating_sub(text::width(&legend) + 10);
            if left > 3 {
                legend = format!("{legend}  # half: {}", text::cut_middle(name, left));
            }
        }
        if text::width(&legend) + text::width(&total) <= room {
            legend += &total;
        }
        legend
    }
}

/// Returns letter, start and end of A and B if they are compared. If A comes from another recording
/// it is not on this map, and is left out.
fn sides(cx: &Context<'_>) -> Vec<(&'static str, u64, u64)> {
    let shown = &cx.shown;
    let Some(lacks) = &shown.comparison.lacks else {
        return Vec::new();
    };
    let (a, b) = (lacks.window, shown.report.window);
    // B comes first: seconds that belong to both are drawn as B.
    let mut sides = vec![("B", b.start_ns, b.end_ns)];
    if lacks.is_of_here {
        sides.push(("A", a.start_ns, a.end_ns));
    }
    sides
}

/// Returns the seconds of the marked cells in the form of [`sides`], so that they can be seen
/// without colors, too.
fn stretch(time: &Time, cx: &Context<'_>) -> Option<(&'static str, u64, u64)> {
    let (from, to) = marked(time, cx)?;
    Some(("v", from.second * SECOND_NS, (to.second + 1) * SECOND_NS))
}

/// Returns the marked cells, or else those of the window if it is a fixed time, otherwise `None`.
fn marked(time: &Time, cx: &Context<'_>) -> Option<(Spot, Spot)> {
    let window = match cx.knobs.window {
        Window::Between { start_ns, end_ns } => Some((
            time.spot_of(start_ns, false),
            time.spot_of(end_ns - 1, true),
        )),
        Window::Last(_) | Window::Since { .. } => None,
    };
    time.marked().or(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_round() {
        let steps = [0, 4, 5, 8, 9, 20, 21, 40, 41, 81, 1_000].map(round_step);
        assert_eq!(steps, [1, 1, 2, 2, 5, 5, 10, 10, 20, 50, 500]);
        let scale = Scale::new(None, 20);
        assert_eq!(scale, Scale::Steps { samples: 5 });
        let signs: String = [0, 1, 5, 6, 15, 16, 99]
            .map(|n| scale.shade(n, SHADES))
            .iter()
            .collect();
        assert_eq!(signs, " ░░▒▓██");
        // One CPU for a second at 99 Hz: 99 samples are a full cell, 49 a half one.
        let scale = Scale::new(Some(99.0), 20);
        let signs: String = [0, 1, 24, 25, 49, 74, 75, 99, 104]
            .map(|n| scale.shade(n, SHADES))
            .iter()
            .collect();
        assert_eq!(signs, " ░░▒▒▓███");
    }
}
