//! Messages about probes of a recording that are not in place.

use crate::stderr;
use engine::probes::{Probes, Stage};
use std::collections::BTreeMap;
use std::mem::discriminant;

/// The last reported stage of each probe, by its number.
#[derive(Default)]
pub struct Said(BTreeMap<u64, Stage>);

impl Said {
    /// Prints which probes are not in place, and why, each time that this changes.
    pub fn say_new(&mut self, probes: &Probes) {
        for probe in &probes.list {
            let before = self.0.insert(probe.number, probe.stage.clone());
            let is_same = before.is_some_and(|it| discriminant(&it) == discriminant(&probe.stage));
            if is_same {
                continue;
            }
            let name = &probe.name;
            match (&probe.stage, &probe.seen) {
                (Stage::Gone(why), Some(_)) => {
                    stderr::say(format_args!("the probe on {name} was taken away: {why}"));
                }
                (Stage::Gone(why), None) => {
                    stderr::say(format_args!("no probe on {name}: {why}"));
                }
                (Stage::Missing, _) => {
                    stderr::say(format_args!(
                        "no function is called `{name}` in the code that is mapped so far; \
                         looking on"
                    ));
                }
                (Stage::Sought | Stage::InPlace { .. } | Stage::Recorded(_), _) => {}
            }
        }
    }
}
