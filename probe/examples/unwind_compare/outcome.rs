//! Counts how two walks of the same stacks differ.

use probe::{Ending, KeptWalk};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Default)]
pub struct Outcomes {
    stacks: u64,
    frames: u64,
    same: u64,
    /// Number of walks that differ, but when ours was made the table of some file was missing.
    before_tables: u64,
    /// Walks of which theirs ended earlier, and both agree until there; by our ending.
    theirs_short: BTreeMap<String, u64>,
    /// Walks of which ours ended earlier, and says why.
    ours_short: BTreeMap<String, u64>,
    /// Walks of which ours says that it reached the root, and theirs continues.
    past_our_root: BTreeMap<String, u64>,
    /// The frame after which walks differ, how often, and an example.
    different: BTreeMap<String, (u64, String)>,
}

impl Outcomes {
    pub fn add(&mut self, walk: &KeptWalk, theirs: &[u64], place: impl Fn(u64) -> String) {
        let ours: Vec<u64> = walk.frames.iter().map(|frame| frame.address()).collect();
        let common = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        self.stacks += 1;
        self.frames += common as u64;
        let is_same = common == ours.len() && common == theirs.len();
        if walk.is_early && !is_same {
            self.before_tables += 1;
            return;
        }
        let last = ours[..common].last().map_or(0, |address| *address);
        let ending = format!("{:?}", walk.ending);
        match (ours.get(common), theirs.get(common)) {
            (None, None) => self.same += 1,
            (Some(_), None) => {
                let key = format!("ours ends as {ending}, theirs after {}", place(last));
                *self.theirs_short.entry(key).or_default() += 1;
            }
            (None, Some(next)) if walk.ending == Ending::Root => {
                let key = format!("after {}: {}", place(last), place(*next));
                *self.past_our_root.entry(key).or_default() += 1;
            }
            (None, Some(next)) => {
                let key = format!("{ending} after {}: {}", place(last), place(*next));
                *self.ours_short.entry(key).or_default() += 1;
            }
            (Some(our), Some(their)) => {
                let example = format!(
                    "ours {} ({ending}, {} frames), theirs {} ({} frames)",
                    place(*our),
                    ours.len(),
                    place(*their),
                    theirs.len()
                );
                let entry = self.different.entry(place(last));
                entry.or_insert((0, example)).0 += 1;
            }
        }
    }
}

impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
        let different: u64 = self.different.values().map(|(count, _)| count).sum();
        writeln!(
            f,
            "stacks {}, frames in common {}: the same {}, before tables {}, theirs shorter {}, \
             ours shorter {}, past our root {}, different {different}",
            self.stacks,
            self.frames,
            self.same,
            self.before_tables,
            sum(&self.theirs_short),
            sum(&self.ours_short),
            sum(&self.past_our_root),
        )?;
        let groups = [
            ("theirs shorter", &self.theirs_short),
            ("ours shorter", &self.ours_short),
            ("past our root", &self.past_our_root),
        ];
        for (name, group) in groups {
            let mut sorted: Vec<_> = group.iter().collect();
            sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            for (what, count) in sorted.into_iter().take(SHOWN) {
                writeln!(f, "  {name} {count}: {what}")?;
            }
        }
        let mut sorted: Vec<_> = self.different.iter().collect();
        sorted.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (after, (count, example)) in sorted.into_iter().take(SHOWN) {
            writeln!(f, "  different {count}: after {after}: {example}")?;
        }
        Ok(())
    }
}

/// Lines of each kind that are printed.
const SHOWN: usize = 12;
