//! A *run* is a chain of frames with one child each and without own samples. They all have the same
//! numbers, so that one row, that of the last frame, can stand for all.

use super::trees::Trees;
use profile::query::{CallTree, Direction, Node, NodeKind, Pair};

/// A chain with fewer frames is shown frame by frame.
const FRAMES_MIN: usize = 3;

/// A longer chain, such as a deep recursion, is divided into several runs.
const FRAMES_MAX: usize = 512;

/// Whether a run may start below a node. In a tree of callers, the functions below the root were on
/// top of the stacks. Users look for these, so they are never folded.
pub fn can_begin_below(above: NodeKind, direction: Direction) -> bool {
    direction == Direction::TopDown || matches!(above, NodeKind::Function { .. })
}

/// Returns the frames of the run that starts at a place, without the last one, and the last one.
/// Returns `None` if the run is too short to be folded.
pub fn run(trees: &Trees, first: &Pair) -> Option<(Vec<Pair>, Pair)> {
    let mut frames = Vec::new();
    let mut at = *first;
    while frames.len() < FRAMES_MAX && is_one_way(&at) {
        let [only] = trees.children(&at)[..] else {
            break;
        };
        frames.push(at);
        at = only;
    }
    frames.push(at);
    let kind = |place: &Pair| place.now.or(place.before).map(|node| node.kind);
    let kinds: Vec<NodeKind> = frames.iter().filter_map(kind).collect();
    frames.truncate(length(&trees.now, &kinds));
    let last = frames.pop()?;
    is_long(frames.len()).then_some((frames, last))
}

/// Returns how many frames of a chain form the run, including the last one. It is all of them or,
/// if waiting time is counted, those up to the program's own function that is nearest to the wait,
/// so that this function has a row.
fn length(tree: &CallTree, chain: &[NodeKind]) -> usize {
    let is_own = |kind: &NodeKind| tree.waits_in_own_code(*kind);
    let own = match tree.direction() {
        Direction::TopDown => chain.iter().rposition(is_own),
        Direction::BottomUp => chain.iter().position(is_own),
    };
    own.map_or(chain.len(), |at| at + 1)
}

/// Returns how many frames the run that starts at a node has above its last one, and the last one.
/// The run may be too short to be folded.
pub fn of_nodes(tree: &CallTree, first: &Node) -> (usize, Node) {
    let mut chain = vec![*first];
    while let Some(end) = chain.last()
        && matches!(end.kind, NodeKind::Function { .. })
        && end.own == 0
        && let [only] = tree.children(end)[..]
    {
        chain.push(only);
    }
    let kinds: Vec<NodeKind> = chain.iter().map(|node| node.kind).collect();
    let above = length(tree, &kinds) - 1;
    (above, chain[above])
}

/// Whether a run with this many frames above its last one is long enough to be folded.
pub fn is_long(frames: usize) -> bool {
    frames + 1 >= FRAMES_MIN
}

/// Whether a place is a function in which no sample ended, neither now nor in the tree compared
/// with: all of its samples are in the functions that it calls.
fn is_one_way(place: &Pair) -> bool {
    let mut sides = [place.now, place.before].into_iter().flatten();
    sides.all(|node| matches!(node.kind, NodeKind::Function { .. }) && node.own == 0)
}

/// Returns the text of a run: `_start › 14 frames › _PyEval_EvalFrameDefault [+]`.
pub fn written(first: &str, frames: usize, last: &str) -> String {
    let between = crate::words::units::counted(frames.saturating_sub(1) as u64, "frame");
    format!("{first} › {between} › {last} [+]")
}
