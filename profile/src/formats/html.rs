//! A *flame graph* as one HTML page with search and zoom. The page loads nothing from the network,
//! and its content security policy forbids it to.
//!
//! The boxes are stored as data; the page's script draws the visible ones.

use super::FormatError;
use super::json::Text;
use crate::query::{CallTree, Cancel, Direction, Flame, GroupBy, NodeKind};
use crate::{FrameKind, Role, Selection};
use std::collections::HashMap;
use std::io::Write;

/// Width of the whole graph, in the units of the boxes.
const WIDTH: u32 = 1_000_000;
/// Width below which boxes are left out: a fifty-thousandth of the graph. It limits how far one can
/// zoom in and how many boxes a row has.
const NARROWEST: u32 = 20;
const ROWS_MAX: usize = 512;

const PAGE: &str = include_str!("html/page.html");
const DATA: &str = "/*DATA*/";

/// Writes the flame graph of a selection, grouped by thread or by thread name.
pub fn write(selection: &Selection, by: GroupBy, mut out: impl Write) -> Result<(), FormatError> {
    let tree = selection
        .tree(Direction::TopDown, by, &Cancel::new())
        .expect("nobody cancels it");
    let flame = tree.flame(&tree.root(), WIDTH, NARROWEST, ROWS_MAX);
    let (before, after) = PAGE.split_once(DATA).expect("the page has a place for it");
    out.write_all(before.as_bytes())?;
    write_data(selection, &tree, &flame, &mut out)?;
    out.write_all(after.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes the data of the page as one JSON value: for each row its boxes, `[start,
/// width, samples, number of its name or -1, box above]`, and after the rows the names,
/// each once.
fn write_data(
    selection: &Selection,
    tree: &CallTree,
    flame: &Flame,
    out: &mut impl Write,
) -> Result<(), FormatError> {
    let info = selection.info();
    let title = format!("proftop {} {}", info.scope, info.host.name);
    write!(out, "{{\"title\":{}", Text(title.trim_end()))?;
    write!(out, ",\"unit\":{},\"rows\":[", Text(&info.metric.unit))?;
    let mut numbers: HashMap<NodeKind, usize> = HashMap::new();
    let mut names = Vec::new();
    for (depth, row) in flame.rows.iter().enumerate() {
        write!(out, "{}[", if depth > 0 { ",\n" } else { "" })?;
        for (at, shown) in row.iter().enumerate() {
            let name = shown.node.map(|node| {
                *numbers.entry(node.kind).or_insert_with(|| {
                    names.push(name(tree, node.kind));
                    names.len() - 1
                })
            });
            let name = name.map_or("-1".into(), |name| name.to_string());
            let comma = if at > 0 { "," } else { "" };
            let (start, width, samples) = (shown.start, shown.width, shown.samples);
            write!(
                out,
                "{comma}[{start},{width},{samples},{name},{}]",
                shown.parent
            )?;
        }
        write!(out, "]")?;
    }
    write!(out, "],\"names\":[{}]}}", names.join(",\n"))?;
    Ok(())
}

/// Returns name, module and kind of a box, as shown.
fn name(tree: &CallTree, kind: NodeKind) -> String {
    let name = tree.name(kind);
    let (module, word) = match kind {
        NodeKind::Function { id, inlined } => {
            let function = tree.function(id);
            let word = match function.kind {
                _ if function.role != Role::Function => "other",
                _ if inlined => "inlined",
                FrameKind::Kernel => "kernel",
                FrameKind::Jit => "jit",
                FrameKind::Python => "python",
                FrameKind::User => "user",
            };
            (function.module, word)
        }
        NodeKind::Root | NodeKind::Group(_) => (Default::default(), "other"),
    };
    format!("[{},{},\"{word}\"]", Text(&name), Text(&module))
}
