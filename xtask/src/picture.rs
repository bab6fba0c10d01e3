//! Draws screens of a terminal as one SVG file, in which they are shown one after the other. In
//! viewers without animation only the first one is shown.

use std::fmt::Write as _;
use vt100::Color;

/// Size of a cell, in pixels.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 18.0;
const MARGIN: f32 = 12.0;
/// How many seconds each screen is shown.
const SECONDS: usize = 4;

const INK: &str = "#d0d4dc";
const PAPER: &str = "#14161c";

/// The sixteen named colours of a terminal.
const NAMED: [&str; 16] = [
    "#2b2f3a", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf",
    "#5c6370", "#f08089", "#b5d99c", "#f0d399", "#8cc8ff", "#dd9cf0", "#7fd5e0", "#ffffff",
];

/// The cells of one screen.
pub struct Scene {
    rows: Vec<Vec<Run>>,
    columns: u16,
}

/// Adjacent cells with the same style.
#[derive(PartialEq)]
struct Run {
    column: u16,
    columns: u16,
    text: String,
    look: Look,
}

#[derive(Clone, PartialEq)]
struct Look {
    ink: String,
    paper: Option<String>,
    bold: bool,
    dim: bool,
    underlined: bool,
}

impl Scene {
    /// Makes a scene from text with the terminal's escape sequences for colours, line by line.
    pub fn of_terminal(text: &str, columns: u16, rows: u16) -> Scene {
        let mut terminal = vt100::Parser::new(rows, columns, 0);
        terminal.process(text.trim_end_matches('\n').replace('\n', "\r\n").as_bytes());
        let screen = terminal.screen();
        Scene {
            rows: (0..rows).map(|row| runs(screen, row, columns)).collect(),
            columns,
        }
    }
}

fn runs(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column) else {
            continue;
        };
        let text = match cell.contents() {
            "" => " ",
            text => text,
        };
        let look = look(cell);
        match runs.last_mut() {
            Some(run) if run.look == look => {
                run.columns += 1;
                run.text.push_str(text);
            }
            _ => runs.push(Run {
                column,
                columns: 1,
                text: text.into(),
                look,
            }),
        }
    }
    runs
}

fn look(cell: &vt100::Cell) -> Look {
    let ink = color(cell.fgcolor());
    let paper = color(cell.bgcolor());
    let (ink, paper) = if cell.inverse() {
        (
            paper.unwrap_or_else(|| PAPER.into()),
            Some(ink.unwrap_or_else(|| INK.into())),
        )
    } else {
        (ink.unwrap_or_else(|| INK.into()), paper)
    };
    Look {
        ink,
        paper,
        bold: cell.bold(),
        dim: cell.dim(),
        underlined: cell.underline(),
    }
}

fn color(color: Color) -> Option<String> {
    match color {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Idx(index) if index < 16 => Some(NAMED[usize::from(index)].into()),
        // The cube of 6 x 6 x 6 colours, and the greys after it.
        Color::Idx(index @ 16..=231) => {
            let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
            let n = index - 16;
            let [red, green, blue] = [n / 36, n / 6 % 6, n % 6].map(level);
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        Color::Idx(index) => {
            let grey = 8 + 10 * (index - 232);
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
    }
}

pub fn svg(scenes: &[Scene]) -> String {
    let columns = scenes.iter().map(|scene| scene.columns).max().unwrap_or(0);
    let rows = scenes
        .iter()
        .map(|scene| scene.rows.len())
        .max()
        .unwrap_or(0);
    let width = f32::from(columns) * WIDTH + 2.0 * MARGIN;
    let height = rows as f32 * HEIGHT + 2.0 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\">\n<style>\n\
         text{{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}\n"
    );
    let all = SECONDS * scenes.len();
    let share = 100.0 / scenes.len().max(1) as f32;
    _ = writeln!(
        out,
        "@keyframes turn{{0%{{visibility:visible}}{share:.2}%,100%{{visibility:hidden}}}}"
    );
    for number in 0..scenes.len() {
        let at_first = if number == 0 { "visible" } else { "hidden" };
        let delay = number * SECONDS;
        _ = writeln!(
            out,
            ".s{number}{{visibility:{at_first};animation:turn {all}s step-end {delay}s infinite}}"
        );
    }
    _ = writeln!(
        out,
        "</style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>"
    );
    for (number, scene) in scenes.iter().enumerate() {
        _ = writeln!(out, "<g class=\"s{number}\">");
        for (row, runs) in scene.rows.iter().enumerate() {
            runs.iter().for_each(|run| draw(run, row, &mut out));
        }
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

fn draw(run: &Run, row: usize, out: &mut String) {
    let x = MARGIN + f32::from(run.column) * WIDTH;
    let y = MARGIN + row as f32 * HEIGHT;
    let width = f32::from(run.columns) * WIDTH;
    if let Some(paper) = &run.look.paper {
        _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{paper}\"/>"
        );
    }
    if run.text.trim().is_empty() {
        return;
    }
    let mut style = String::new();
    if run.look.bold {
        style.push_str(" font-weight=\"bold\"");
    }
    if run.look.dim {
        style.push_str(" opacity=\"0.65\"");
    }
    if run.look.underlined {
        style.push_str(" text-decoration=\"underline\"");
    }
    // Columns stay aligned, whatever the font.
    _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{}\" textLength=\"{width:.1}\" \
         lengthAdjust=\"spacingAndGlyphs\"{style}>{}</text>",
        y + HEIGHT - 4.5,
        run.look.ink,
        escape(&run.text)
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_one_look_are_one_run() {
        let scene = Scene::of_terminal("ab\u{1b}[31mcd\u{1b}[0m\nx < y", 8, 2);
        let texts: Vec<&str> = scene.rows[0].iter().map(|run| &*run.text).collect();
        assert_eq!(texts, ["ab", "cd", "    "]);
        assert_eq!(scene.rows[0][1].look.ink, NAMED[1]);
        let svg = svg(&[scene]);
        assert!(svg.contains(">x &lt; y   </text>"), "{svg}");
    }

    #[test]
    fn colours_by_number() {
        assert_eq!(color(Color::Idx(16)).as_deref(), Some("#000000"));
        assert_eq!(color(Color::Idx(231)).as_deref(), Some("#ffffff"));
        assert_eq!(color(Color::Idx(208)).as_deref(), Some("#ff8700"));
        assert_eq!(color(Color::Idx(255)).as_deref(), Some("#eeeeee"));
    }
}
