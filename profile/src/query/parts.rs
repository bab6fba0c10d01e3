//! Self samples of functions in *parts* of the window, which are equally long. How much they vary
//! from part to part tells how far a sum can be trusted.

use super::Selection;
use crate::FunctionId;
use crate::time::{Pause, STAMP_NS, Window};

/// The samples of a selection by part of its window.
pub(crate) struct Parts {
    /// Self samples of all functions together, one number for each part.
    pub(crate) all: Vec<u64>,
    /// Self samples of each function that has some, one function after the other.
    own: Vec<u64>,
    /// Position of a function's numbers in `own`, by its number; [`NO_ROW`] if it has none.
    row_of: Vec<u32>,
}

const NO_ROW: u32 = u32::MAX;

impl Parts {
    /// Returns the self samples of a function, one number for each part; `None` if it has none.
    pub(crate) fn of(&self, function: FunctionId) -> Option<&[u64]> {
        let row = self.row_of.get(function.0 as usize)?;
        let count = self.all.len();
        let own = self.own.get((*row as usize).checked_mul(count)?..)?;
        own.get(..count)
    }
}

impl Selection {
    /// Divides the sampled time into `count` parts. `None` if each would be shorter than
    /// `shortest_ns`, or if all samples are in one part: then they are from a file that does not
    /// store the time of each sample.
    pub(crate) fn parts(&self, count: usize, shortest_ns: u64) -> Option<Parts> {
        let window = self.window();
        let length_ns = window.end_ns.saturating_sub(window.start_ns);
        let sampled_ns = length_ns.saturating_sub(window.paused_ns);
        if sampled_ns / (count as u64).max(1) < shortest_ns.max(1) {
            return None;
        }
        let ends = ends(&window, &self.view().info().pauses, count);
        let leaves = self.leaves();
        let mut all = vec![0; count];
        let mut own: Vec<u64> = Vec::new();
        let mut row_of = vec![NO_ROW; self.view().tables.frames.len()];
        self.visit(self.stamps, |sample| {
            let at_ns = sample.stamp.saturating_mul(STAMP_NS);
            let part = ends
                .partition_point(|end_ns| *end_ns <= at_ns)
                .min(count - 1);
            let function = leaves[sample.stack.0 as usize] as usize;
            if function >= row_of.len() {
                row_of.resize(function + 1, NO_ROW);
            }
            let row = &mut row_of[function];
            if *row == NO_ROW {
                *row = (own.len() / count) as u32;
                own.resize(own.len() + count, 0);
            }
            own[*row as usize * count + part] += sample.weight;
            all[part] += sample.weight;
        });
        let has_times = all.iter().filter(|samples| **samples > 0).count() > 1;
        has_times.then_some(Parts { all, own, row_of })
    }
}

/// Returns the end of each of `count` parts of a window: each part has the same amount of sampled
/// time. The last end is the end of the window.
fn ends(window: &Window, pauses: &[Pause], count: usize) -> Vec<u64> {
    let length_ns = window.end_ns.saturating_sub(window.start_ns);
    let sampled_ns = length_ns.saturating_sub(window.paused_ns);
    let mut pauses = pauses
        .iter()
        .filter(|pause| pause.end_ns > window.start_ns)
        .peekable();
    let (mut at_ns, mut passed_ns) = (window.start_ns, 0);
    (1..=count as u128)
        .map(|part| {
            // At most the time that was sampled.
            let until_ns = (u128::from(sampled_ns) * part / count as u128) as u64;
            while let Some(pause) = pauses.peek() {
                let before_ns = pause.start_ns.saturating_sub(at_ns);
                if passed_ns + before_ns >= until_ns {
                    break;
                }
                passed_ns += before_ns;
                at_ns = at_ns.max(pause.end_ns);
                pauses.next();
            }
            at_ns = at_ns.saturating_add(until_ns - passed_ns);
            passed_ns = until_ns;
            at_ns
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_long_as_each_other_without_pauses() {
        let pause = |start_ns, end_ns| Pause { start_ns, end_ns };
        let window = |paused_ns| Window {
            start_ns: 100,
            end_ns: 200,
            paused_ns,
        };
        assert_eq!(ends(&window(0), &[], 4), [125, 150, 175, 200]);
        // One before the window, one over the end of a part, and one within a part.
        let pauses = [pause(0, 50), pause(110, 150), pause(160, 180)];
        assert_eq!(ends(&window(60), &pauses, 4), [110, 160, 190, 200]);
        // Of a file that says nonsense there are numbers as well.
        let nonsense = [pause(u64::MAX - 1, u64::MAX), pause(0, u64::MAX)];
        for paused_ns in [0, 100, u64::MAX] {
            assert_eq!(ends(&window(paused_ns), &nonsense, 3).len(), 3);
        }
    }
}
