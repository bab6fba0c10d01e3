//! A profile that counts several things, be it a file or one of a live run: one view
//! for each.

use profile::{Metric, View};
use std::sync::Arc;

/// One of the things that a file counts.
#[derive(Debug, Clone)]
pub struct Metered {
    /// As the file or the event calls it.
    pub name: Arc<str>,
    /// The profile's stacks, counted in it; `None` while it is being read.
    pub view: Option<View>,
}

impl Metered {
    /// Everything that a view counts, its own metric first; empty where that is one
    /// thing, as nearly always.
    pub fn of_events(view: &View) -> Arc<[Metered]> {
        if view.events().count() == 1 {
            return Arc::default();
        }
        let metered = view.events().map(|(event, metric, _)| Metered {
            name: metric.name.as_str().into(),
            view: view.of_event(event),
        });
        metered.collect()
    }

    /// Everything that a view counts but for one metric, of which nothing is known.
    pub fn without(view: &View, unknown: &Metric) -> Arc<[Metered]> {
        let known = Self::of_events(view);
        let known = known.iter().filter(|metric| *metric.name != *unknown.name);
        known.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Limits, Store};

    #[test]
    fn each_event_of_a_live_run_is_a_metric() {
        let mut store = Store::new(Limits::default());
        assert!(Metered::of_events(&store.view()).is_empty());
        let waiting = Metric {
            name: "offcpu".into(),
            unit: "nanoseconds".into(),
        };
        store.add_event(waiting.clone());
        let metered = Metered::of_events(&store.view());
        let names: Vec<&str> = metered.iter().map(|metered| &*metered.name).collect();
        assert_eq!(names, ["cpu", "offcpu"]);
        assert_eq!(metered[1].view.as_ref().unwrap().info().metric, waiting);
        let known = Metered::without(&store.view(), &waiting);
        let names: Vec<&str> = known.iter().map(|metered| &*metered.name).collect();
        assert_eq!(names, ["cpu"]);
    }
}
