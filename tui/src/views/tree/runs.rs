//! A *run* is a row of frames with one child each and no samples of their own: they
//! all have the same numbers, so that the last one stands for all.

use super::trees::Trees;
use profile::query::{Direction, NodeKind, Pair};

/// Fewer are shown one by one.
const FRAMES_MIN: usize = 3;

/// A recursion without an end is told as several runs.
const FRAMES_MAX: usize = 512;

/// Whether a run can begin below such a node. What was on top of the stacks, the first
/// row of a tree of callers, is what one looks for there.
pub fn can_begin_below(above: NodeKind, direction: Direction) -> bool {
    direction == Direction::TopDown || matches!(above, NodeKind::Function { .. })
}

/// The frames of the run that begins at a place, without the last one, and that one;
/// `None` if it is too short.
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
    is_long(frames.len()).then_some((frames, at))
}

/// Whether so many frames above the last one are worth folding.
pub fn is_long(frames: usize) -> bool {
    frames + 1 >= FRAMES_MIN
}

/// A function that no sample ended in, so that only one that it calls can have them.
fn is_one_way(place: &Pair) -> bool {
    let mut sides = [place.now, place.before].into_iter().flatten();
    sides.all(|node| matches!(node.kind, NodeKind::Function { .. }) && node.own == 0)
}

/// How a run is written: `_start › 14 frames › _PyEval_EvalFrameDefault [+]`.
pub fn written(first: &str, frames: usize, last: &str) -> String {
    let between = crate::words::units::counted(frames.saturating_sub(1) as u64, "frame");
    format!("{first} › {between} › {last} [+]")
}
