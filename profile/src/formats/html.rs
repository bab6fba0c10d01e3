//! A *flame graph* as one HTML page with search and zoom. It asks no network
//! for anything, and its content security policy would not let it.
//!
//! The boxes are data, and the page's script draws those that can be seen.

use super::FormatError;
use super::json::Text;
use crate::query::{CallTree, Cancel, Direction, Flame, GroupBy, NodeKind};
use crate::{FrameKind, Role, Selection};
use std::collections::HashMap;
use std::io::Write;

/// What everything together is wide.
const WIDTH: u32 = 1_000_000;
/// A fifty-thousandth: zooming goes no further, and a row has no more boxes.
const NARROWEST: u32 = 20;
const ROWS_MAX: usize = 512;

const PAGE: &str = include_str!("html/page.html");
const DATA: &str = "/*DATA*/";

/// Writes the flame graph of a selection, under the threads or their names.
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

/// Name, module and kind.
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
