//! Where the stack walks of a run stopped before the root: by cause, and by the module of the last
//! frame that was found.

use profile::few;
use profile::{Ending, ModuleId, Stop};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of pairs that are counted; more would be of no use.
const PAIRS_MAX: usize = 4096;
/// Number of pairs that the Health screen shows.
const SHOWN_MAX: usize = 20;

/// Counts of stack walks that stopped early, part of the account of a run and shown on the Health
/// screen.
#[derive(Debug, Default)]
pub struct Stops {
    samples: HashMap<(Ending, Option<ModuleId>), u64>,
}

impl Stops {
    /// Counts a walk, unless it was whole or had no user stack to walk. `module` is that of the
    /// outermost user frame.
    pub fn note(&mut self, cause: Ending, module: Option<ModuleId>) {
        if cause.is_whole() || !cause.is_user_stack() {
            return;
        }
        let key = (cause, module);
        if self.samples.len() < PAIRS_MAX || self.samples.contains_key(&key) {
            *self.samples.entry(key).or_default() += 1;
        }
    }

    /// The most frequent pairs, falling.
    pub fn top(&self, name_of: impl Fn(ModuleId) -> Arc<str>) -> Vec<Stop> {
        let stop = |(&(cause, module), &samples): (&(Ending, Option<ModuleId>), &u64)| Stop {
            cause,
            module: module.map_or_else(|| "-".into(), &name_of),
            samples,
        };
        let mut stops: Vec<Stop> = self.samples.iter().map(stop).collect();
        few::sort_by(&mut stops, |a, b| {
            let order = b.samples.cmp(&a.samples);
            order.then_with(|| (a.cause, &a.module).cmp(&(b.cause, &b.module)))
        });
        stops.truncate(SHOWN_MAX);
        stops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_counted_by_module_and_whole_stacks_are_none() {
        let mut stops = Stops::default();
        for (cause, module) in [
            (Ending::Root, 1),
            (Ending::NoUserStack, 1),
            (Ending::ReadFault, 1),
            (Ending::ReadFault, 2),
            (Ending::ReadFault, 2),
        ] {
            stops.note(cause, Some(ModuleId(module)));
        }
        let top = stops.top(|module| format!("lib{}.so", module.0).into());
        let told: Vec<_> = top
            .iter()
            .map(|stop| (&*stop.module, stop.samples))
            .collect();
        assert_eq!(told, [("lib2.so", 2), ("lib1.so", 1)]);
    }
}
