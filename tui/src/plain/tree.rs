//! The command `tree`: prints the call tree as rows with their levels, because a screen reader does
//! not read indentation.

use super::answer::{Answer, Target, Trouble};
use super::dialog::Dialog;
use crate::views::tree::{TreeAnswer, TreeWanted};
use crate::words::{metric, names, units};
use profile::query::{CallTree, Direction, GroupBy, Node, NodeKind};
use profile::{Metric, Report, Role};

/// Default for the number of levels.
const LEVELS: u32 = 6;
/// Maximum number of levels.
const LEVELS_MAX: u32 = 200;
/// Children with a smaller share of all samples, in percent, are joined in one line.
const SHARE_MIN: f64 = 1.0;
/// Maximum number of rows.
const ROWS_MAX: usize = 60;

/// The arguments of `tree`.
#[derive(Default)]
struct Wanted {
    direction: Direction,
    levels: Option<u32>,
    /// A row number or a name; empty for the whole tree.
    from: String,
}

/// Runs `tree`: prints the call tree, or the part below one row or function. Chains of frames with
/// only one callee become one row.
pub fn tree(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let wanted = Wanted::read(words)?;
    let levels = wanted.levels.unwrap_or(LEVELS);
    let place = place(dialog, &wanted)?;
    let (direction, path, look_for) = match place {
        Some(Target::Node {
            direction, path, ..
        }) => (direction, path, None),
        Some(target) => (wanted.direction, Vec::new(), target.function()),
        None => (wanted.direction, Vec::new(), None),
    };
    let answer = dialog.session.tree(TreeWanted {
        direction,
        group_by: GroupBy::None,
        stretch: None,
        look_for,
    })?;
    let path = answer.way_to_found().map_or(path, <[_]>::to_vec);
    let Some(start) = answer.trees.now.find(&path) else {
        return Err(Trouble::say("that place has no samples any more"));
    };
    let cx = &dialog.session.app.context();
    let (report, counted) = (&*cx.shown.report, metric::metric_told(cx));
    let total = look_for
        .and_then(|id| report.find_function(id))
        .map(|at| report.functions[at].total_samples);
    let mut printer = Printer {
        tree: &answer.trees.now,
        answer: Answer::of(head(&answer, &start, path.len(), total, counted)),
        report,
        counted,
        samples: answer.trees.now.root().samples,
        levels,
        path,
    };
    printer.children(&start, 1);
    Ok(printer.answer)
}

impl Wanted {
    /// Parses `up`, a row or a name, and `depth N` at the end; each may be missing. `up` chooses
    /// the tree of callers.
    fn read(words: &str) -> Result<Self, Trouble> {
        let mut wanted = Wanted::default();
        let mut words = words.split_whitespace().peekable();
        if words.next_if_eq(&"up").is_some() {
            wanted.direction = Direction::BottomUp;
        }
        let mut from: Vec<&str> = Vec::new();
        while let Some(word) = words.next() {
            if word != "depth" {
                from.push(word);
                continue;
            }
            let levels = words.next().and_then(|word| word.parse().ok());
            match levels.filter(|levels| (1..=LEVELS_MAX).contains(levels)) {
                Some(levels) => wanted.levels = Some(levels),
                None => {
                    let what = format!("depth is a number from 1 to {LEVELS_MAX}");
                    return Err(Trouble::usage(what));
                }
            }
        }
        wanted.from = from.join(" ");
        Ok(wanted)
    }
}

/// Returns where the printed tree begins. None means the root.
fn place(dialog: &mut Dialog, wanted: &Wanted) -> Result<Option<Target>, Trouble> {
    if wanted.from.is_empty() {
        return Ok(None);
    }
    if let Ok(number) = wanted.from.parse() {
        let target = dialog.row(number)?.target.clone();
        let is_up = wanted.direction == Direction::BottomUp;
        // A path does not exist in the tree of the other direction: there, the function is
        // searched.
        if matches!(&target, Target::Node { direction, .. } if !is_up || *direction == wanted.direction)
        {
            return Ok(Some(target));
        }
    }
    let function = dialog.function(&wanted.from)?;
    Ok(Some(Target::Function(function)))
}

/// Returns the first line, which says what is printed. `total` is the number of samples of a
/// function that is in several places; `start` is then the place that has most of them.
fn head(
    answer: &TreeAnswer,
    start: &Node,
    depth: usize,
    total: Option<u64>,
    counted: Option<&Metric>,
) -> String {
    let tree = &answer.trees.now;
    let what = match tree.direction() {
        Direction::TopDown => "callees under their callers",
        Direction::BottomUp => "callers under what was on top",
    };
    let name = tree.name(start.kind);
    let name = names::short(&name);
    let samples = metric::counted_by(counted, start.samples);
    let frames = units::counted(depth as u64, "frame");
    match total {
        _ if depth == 0 => format!("call tree, {what}"),
        None => format!("below {name}, {frames} down, {samples}, {what}"),
        Some(total) => format!(
            "below {name} where it is most often, {frames} down: {samples} of its {}, {what}",
            metric::bare_amount_by(counted, total)
        ),
    }
}

/// Writes the rows of the tree, depth first, up to [`ROWS_MAX`].
struct Printer<'a> {
    tree: &'a CallTree,
    answer: Answer,
    report: &'a Report,
    /// The metric; None for time on CPUs.
    counted: Option<&'a Metric>,
    samples: u64,
    /// Maximum number of levels.
    levels: u32,
    /// The path from the root to the present node. Each row keeps it, so that `tree` can continue
    /// there.
    path: Vec<NodeKind>,
}

impl Printer<'_> {
    /// Writes the rows below a node. Children are sorted by samples, so the small ones are last and
    /// are joined in one line.
    fn children(&mut self, node: &Node, level: u32) {
        let children = self.tree.children(node);
        let large = |child: &Node| profile::percent(child.samples, self.samples) >= SHARE_MIN;
        let shown = children.partition_point(large);
        for child in &children[..shown] {
            if self.answer.rows.len() >= ROWS_MAX {
                break;
            }
            let depth = self.path.len();
            let end = self.follow_chain(child);
            self.line(child, &end, self.path.len() - depth, level);
            if level < self.levels {
                self.children(&end, level + 1);
            }
            self.path.truncate(depth);
        }
        let rest: u64 = children[shown..].iter().map(|child| child.samples).sum();
        if rest > 0 && self.answer.rows.len() < ROWS_MAX {
            let share = units::share(self.report, rest, self.samples);
            let count = children.len() - shown;
            let indent = "  ".repeat(level.min(20) as usize);
            let text = format!("level {level}{indent}{share}% in {count} more, each below 1%");
            self.answer.bare_row(&text);
        }
        if level == 1 && self.answer.rows.len() >= ROWS_MAX {
            let text = format!("cut after {ROWS_MAX} rows: tree ROW goes on below one of them");
            self.answer.bare_row(&text);
        }
    }

    /// Walks down while each frame has no samples of its own and only one callee: such a chain is
    /// one row. Returns its last node.
    fn follow_chain(&mut self, node: &Node) -> Node {
        let mut end = *node;
        self.path.push(end.kind);
        while end.own == 0
            && let [only] = self.tree.children(&end)[..]
        {
            end = only;
            self.path.push(end.kind);
        }
        end
    }

    /// Adds the row of a chain of `frames` frames that begins at `first` and ends at `node`.
    fn line(&mut self, first: &Node, node: &Node, frames: usize, level: u32) {
        let (name, module, function) = match node.kind {
            NodeKind::Function { id, .. } => {
                let function = self.tree.function(id);
                let is_one = function.role == Role::Function;
                (function.name, function.module, is_one.then_some(id))
            }
            kind => (self.tree.name(kind), "".into(), None),
        };
        let (name, module) = (names::short(&name), names::module(&module));
        let first = self.tree.name(first.kind);
        let name = match frames {
            0 | 1 => name.to_string(),
            2 => format!("{} > {name}", names::short(&first)),
            _ => {
                format!(
                    "{} > {} > {name}",
                    names::short(&first),
                    units::counted(frames as u64 - 2, "frame")
                )
            }
        };
        let percent = |samples| units::share(self.report, samples, self.samples);
        // The indentation is limited, so that the name stays visible.
        let indent = "  ".repeat(level.min(20) as usize);
        let is_last = level == self.levels && self.tree.has_children(node);
        let text = format!(
            "level {level}{indent}{}% total, {}% self  {name}  {module}{}",
            percent(node.samples),
            percent(node.own),
            if is_last { "  and more below" } else { "" }
        );
        let why = format!(
            "{}% = {} of {} have this path of {}; {} of them end here; 95% band {} pp",
            percent(node.samples),
            metric::bare_amount_by(self.counted, node.samples),
            metric::counted_by(self.counted, self.samples),
            units::counted(u64::from(node.depth), "frame"),
            metric::bare_amount_by(self.counted, node.own),
            units::band_text(self.report, node.samples, self.samples)
        );
        let target = Target::Node {
            direction: self.tree.direction(),
            path: self.path.clone(),
            function,
        };
        self.answer.row(target, text.trim_end(), why);
    }
}
