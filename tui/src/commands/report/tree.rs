//! The call tree as text, callers first.

use crate::views::tree::runs;
use crate::words::metric::{column_head, in_column};
use crate::words::{names, units};
use profile::query::{CallTree, Direction, GroupBy, Node, NodeKind};
use profile::{Cancel, Metric, Role, Selection, percent, percent_digits};
use std::fmt::Write as _;

/// Children with a smaller share of all samples, in percent, are joined in one line.
const SHARE_MIN: f64 = 1.0;
/// Maximum depth of the tree: deeper lines would be indented too far to be read.
const DEPTH_MAX: u32 = 256;

/// Returns the call tree, with one tree for each command name.
pub fn render(selection: &Selection) -> String {
    let tree = selection
        .tree(Direction::TopDown, GroupBy::Comm, &Cancel::new())
        .expect("nobody cancels it");
    let metric = &selection.view().info().metric;
    let width = in_column(metric, selection.samples()).len().max(6);
    let head = column_head(metric);
    let mut printer = Printer {
        tree: &tree,
        samples: selection.samples(),
        metric,
        width,
        out: format!("TOTAL%  SELF% {head:>width$}  CALL TREE\n"),
    };
    printer.children(&tree.root(), 0);
    printer.out
}

/// Writes the tree line by line, depth first.
struct Printer<'a> {
    tree: &'a CallTree,
    samples: u64,
    metric: &'a Metric,
    /// Width of the column of amounts.
    width: usize,
    out: String,
}

impl Printer<'_> {
    /// Writes the lines below a node. Children are sorted by samples, so the small ones are last
    /// and are joined in one line.
    fn children(&mut self, node: &Node, depth: u32) {
        let children = self.tree.children(node);
        let share = |samples| percent(samples, self.samples);
        let shown = children.partition_point(|child| share(child.samples) >= SHARE_MIN);
        for child in &children[..shown] {
            let (name, end) = self.run(child);
            self.line(end.samples, end.own, depth, &name);
            if depth < DEPTH_MAX {
                self.children(&end, depth + 1);
            }
        }
        let rest: u64 = children[shown..].iter().map(|child| child.samples).sum();
        if rest > 0 {
            let count = children.len() - shown;
            let what = format!("{count} more, each below {SHARE_MIN}%");
            self.line(rest, 0, depth, &what);
        }
    }

    /// Joins a chain of frames that begins at `first`, each with only one child, in one line.
    /// Returns the text of the line and the last frame. Frames of a short chain keep a line each.
    fn run(&self, first: &Node) -> (String, Node) {
        let (frames, end) = runs::of_nodes(self.tree, first);
        if !runs::is_long(frames) {
            return (self.name(first.kind), *first);
        }
        let first = self.tree.name(first.kind);
        let between = units::counted(frames as u64 - 1, "frame");
        let last = self.name(end.kind);
        (
            format!("{} > {between} > {last}", names::short(&first)),
            end,
        )
    }

    /// Writes one line: the share of all with callees, the share by itself, the amount, and the
    /// name, indented by two blanks for each level.
    fn line(&mut self, samples: u64, own: u64, depth: u32, name: &str) {
        // For waits, the number of nanoseconds says nothing about how exact the shares are.
        let digits = if self.metric.is_waiting() {
            1
        } else {
            percent_digits(self.samples).max(1)
        };
        let total = percent(samples, self.samples);
        let own = percent(own, self.samples);
        let indent = "  ".repeat(depth as usize);
        let (amount, width) = (in_column(self.metric, samples), self.width);
        writeln!(
            self.out,
            "{total:6.digits$} {own:6.digits$} {amount:>width$}  {indent}{name}"
        )
        .expect("a string takes everything");
    }

    /// Returns a name with its module. Groups, and rows for missing frames, have no module.
    fn name(&self, kind: NodeKind) -> String {
        let name = self.tree.name(kind);
        let NodeKind::Function { id, inlined } = kind else {
            return names::short(&name).into_owned();
        };
        let function = self.tree.function(id);
        let inl = if inlined { " (inl)" } else { "" };
        match function.role {
            Role::Function => {
                let module = names::module(&function.module);
                format!("{}{inl}  {module}", names::short(&name))
            }
            _ => names::short(&name).into_owned(),
        }
    }
}
