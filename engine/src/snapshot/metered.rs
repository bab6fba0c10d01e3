//! A file or a live run that counts several metrics: one view for each.

use profile::{Metric, View};
use std::sync::Arc;

/// One of the metrics.
#[derive(Debug, Clone)]
pub struct Metered {
    /// Name of the metric in the file, or of the event.
    pub name: Arc<str>,
    /// The profile's stacks, counted by it; `None` while it is being read.
    pub view: Option<View>,
}

impl Metered {
    /// All metrics of a view, its own first; empty if there is only one, as usual.
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

    /// All metrics of a view except one, which has no data.
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
