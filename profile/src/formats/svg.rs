//! A *flame graph* as one SVG picture. Browsers offer search and zoom, other programs show the
//! picture only. It loads nothing from the network.

use super::FormatError;
use crate::query::{CallTree, Cancel, Direction, FlameBox, GroupBy, NodeKind};
use crate::{FrameKind, Role, Selection, percent};
use std::fmt;
use std::io::Write;

/// Width of the whole graph, in cells.
const CELLS: u32 = 1_000_000;
/// Width below which boxes are left out: a ten-thousandth of the graph. It limits the number of
/// boxes in a row.
const NARROWEST: u32 = 100;
/// Functions in deeper rows are not drawn.
const ROWS_MAX: usize = 512;

/// Width of the picture in pixels.
const WIDTH: f64 = 1200.0;
const ROW: usize = 16;
/// Height of the part above the first row, in pixels.
const HEAD: usize = 40;
/// Approximate width of a letter of the font; names are cut to the width of their boxes by it.
const LETTER: f64 = 7.0;

const SCRIPT: &str = include_str!("svg/script.js");

/// Writes the flame graph of a selection, grouped by thread or by thread name.
///
/// The first row is at the top, and callees lie below their callers.
pub fn write(selection: &Selection, by: GroupBy, mut out: impl Write) -> Result<(), FormatError> {
    let tree = selection
        .tree(Direction::TopDown, by, &Cancel::new())
        .expect("nobody cancels it");
    let flame = tree.flame(&tree.root(), CELLS, NARROWEST, ROWS_MAX);
    let info = selection.info();
    let height = HEAD + (flame.rows.len() + 1) * ROW;
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"monospace\" font-size=\"12\">"
    )?;
    let title = format!("proftop {} {}", info.scope, info.host.name);
    let all = selection.samples();
    writeln!(
        out,
        "<style>.b{{cursor:pointer}}.b text{{pointer-events:none}}.b.found rect{{fill:#e0f}}\
         .b.above{{opacity:.5}}.hidden{{display:none}}#bar text{{cursor:pointer}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"4\" y=\"14\">{}: {all} {}</text>\n\
         <g id=\"bar\"><text id=\"all\" x=\"4\" y=\"32\" class=\"hidden\">[all]</text>\
         <text id=\"find\" x=\"60\" y=\"32\" class=\"hidden\">[search]</text>\
         <text id=\"told\" x=\"140\" y=\"32\"></text></g>\n<g id=\"boxes\">",
        Xml(title.trim_end()),
        Xml(&info.metric.unit)
    )?;
    for (depth, row) in flame.rows.iter().enumerate() {
        for shown in row {
            write_box(&tree, shown, depth, all, &mut out)?;
        }
    }
    // The script contains no names; they are only in the picture.
    writeln!(out, "</g>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>")?;
    out.flush()?;
    Ok(())
}

/// Writes a box as a group of a rectangle and its text. Attributes `data-…` hold its position in
/// [`CELLS`], for zoom and search in the script; the tooltip has the whole name.
fn write_box(
    tree: &CallTree,
    shown: &FlameBox,
    depth: usize,
    all: u64,
    out: &mut impl Write,
) -> Result<(), FormatError> {
    let (name, module, color) = match shown.node {
        Some(node) => told(tree, node.kind),
        None => ("(narrower ones)".into(), String::new(), "#ccc"),
    };
    let scale = WIDTH / f64::from(CELLS);
    let (x, width) = (
        f64::from(shown.start) * scale,
        f64::from(shown.width) * scale,
    );
    let y = HEAD + depth * ROW;
    let letters = (width / LETTER) as usize;
    let text: String = match name.chars().count() {
        len if len <= letters => name.clone(),
        _ if letters < 3 => String::new(),
        _ => name.chars().take(letters - 1).chain(['…']).collect(),
    };
    let share = percent(shown.samples, all);
    let many = if shown.node.is_none() { " many" } else { "" };
    writeln!(
        out,
        "<g class=\"b{many}\" data-x=\"{}\" data-w=\"{}\" data-d=\"{depth}\" data-n=\"{}\">\
         <title>{}{}\n{} samples, {share:.2}%</title>\
         <rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" fill=\"{color}\" \
         stroke=\"#fff\" stroke-width=\".5\"/><text x=\"{:.2}\" y=\"{}\">{}</text></g>",
        shown.start,
        shown.width,
        shown.samples,
        Xml(&name),
        Xml(&module),
        shown.samples,
        ROW - 1,
        x + 3.0,
        y + 12,
        Xml(&text),
    )?;
    Ok(())
}

/// Returns name, module and color of a box.
fn told(tree: &CallTree, kind: NodeKind) -> (String, String, &'static str) {
    let name = tree.name(kind).to_string();
    let NodeKind::Function { id, inlined } = kind else {
        return (name, String::new(), "#ccc");
    };
    let function = tree.function(id);
    let color = match function.kind {
        _ if function.role != Role::Function => "#bbb",
        _ if inlined => "#8cf",
        FrameKind::Kernel => "#c9f",
        FrameKind::Jit | FrameKind::Python => "#9d9",
        FrameKind::User => "#fb7",
    };
    let module = if function.module.is_empty() {
        String::new()
    } else {
        format!(" ({})", function.module)
    };
    (name, module, color)
}

/// A text with all markup escaped. Names come from binaries that are not trusted.
struct Xml<'a>(&'a str);

impl fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // These characters are forbidden in a document, even escaped.
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                    f.write_str("\u{fffd}")?;
                }
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        let name = "a<b>&\"'\u{1b}]]>\u{ffff}";
        let wanted = "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}]]&gt;\u{fffd}";
        assert_eq!(Xml(name).to_string(), wanted);
    }
}
