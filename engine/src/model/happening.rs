//! Events that are counted besides time: one more metric of the store, beside the ticks of the
//! clock. A sample of it stands for all occurrences since the sample before.

use super::runners::Runners;
use crate::settings::Counted;
use probe::{Batch, Happened, Happening};
use profile::{EventId, Metric, NewSample, Store};

/// What was counted.
pub struct Happenings {
    name: String,
    event: EventId,
    /// For a tracepoint, the kernel code that runs programs there: frames of it are on every stack,
    /// and are not informative.
    runners: Runners,
    is_point: bool,
    happened: Happened,
}

impl Happenings {
    /// Sets up the metric; `None` if nothing is counted besides time.
    pub fn new(counted: &Counted, store: &mut Store) -> Option<Self> {
        let happening = counted.happening()?;
        let name = happening.name();
        let event = store.add_event(Metric::happening(&name))?;
        Some(Self {
            name,
            event,
            runners: match happening {
                Happening::Point { name, .. } => Runners::of(name),
                Happening::Counter(_) => Runners::default(),
            },
            is_point: matches!(happening, Happening::Point { .. }),
            happened: Happened::default(),
        })
    }

    /// The event of the store that reports count.
    pub fn event(&self) -> EventId {
        self.event
    }

    /// Adds a sample.
    pub fn add(&self, sample: NewSample<'_>, store: &mut Store) {
        let sample = self.runners.without(sample);
        store.add_sample_of(self.event, sample);
    }

    /// Takes the counters of a batch.
    pub fn add_batch(&mut self, batch: &Batch) {
        self.happened = batch.happened;
    }

    /// A sentence about how often the event happened without a sample, and why.
    pub fn note(&self) -> Option<String> {
        let Happened { times, unseen, .. } = self.happened;
        // Occurrences since the last sample of each CPU are not a loss.
        if unseen.saturating_mul(PARTS_TOLD) <= times {
            return None;
        }
        let share = 100.0 * unseen as f64 / times.max(1) as f64;
        let why = if self.is_point {
            "they came within another one, or the ring buffer was full"
        } else if self.name == "context-switches" {
            // Linux 6.18 counts the switches of the idle task on all CPUs, and samples them on only
            // some.
            "idle CPUs' own switches, of which the kernel samples only a part, and what came \
             too fast or within another sample"
        } else {
            "the kernel stops counting where they come too fast, or within another sample"
        };
        Some(format!(
            "{share:.1}% of all {} gave no sample: {why}",
            self.name
        ))
    }
}

/// Losses below this fraction (1/n) of all occurrences are not reported: shares are less exact than
/// that.
const PARTS_TOLD: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Ending, Frame, FrameKind, Limits, ModuleId, ProcessId};

    #[test]
    fn a_sample_counts_as_often_as_it_happened() {
        let mut store = Store::new(Limits::default());
        assert!(Happenings::new(&Counted::OnCpu, &mut store).is_none());
        let faults = Happening::parse("page-faults").unwrap();
        let mut happenings = Happenings::new(&Counted::Happening(faults), &mut store).unwrap();
        let code = std::iter::once(10..20).collect();
        happenings.runners = Runners::from_code(code);
        store.begin(0);
        store.add_process(ProcessId(1), 100, "app");
        for module in [0, 1] {
            store.add_module(ModuleId(module), "m", "m");
        }
        let frame = |module, address, kind| Frame {
            module: ModuleId(module),
            address,
            kind,
        };
        let frames = [
            frame(0, 30, FrameKind::Kernel),
            frame(0, 15, FrameKind::Kernel),
            frame(0, 40, FrameKind::Kernel),
            frame(1, 15, FrameKind::User),
        ];
        let sample = NewSample {
            time_ns: 5_000_000,
            cpu: 0,
            process: ProcessId(1),
            tid: 100,
            comm: "app",
            frames: &frames,
            kernel_frames: 3,
            ending: Ending::Root,
            weight: 50,
        };
        happenings.add(sample, &mut store);
        assert_eq!(store.view().samples(), 0);
        let view = store.view().of_event(happenings.event()).unwrap();
        assert_eq!(view.info().metric.name, "page-faults");
        let report = view
            .select(&profile::Query::default(), &profile::Cancel::new())
            .unwrap()
            .report();
        assert_eq!(report.samples, 50);
        // The two frames that run programs are removed.
        assert_eq!(report.functions.len(), 2);
        let mut note = |times, unseen| {
            happenings.happened = Happened {
                times,
                unseen,
                samples: 0,
            };
            happenings.note()
        };
        assert_eq!(note(0, 0), None);
        assert_eq!(note(1000, 10), None);
        assert!(
            note(1000, 25)
                .unwrap()
                .starts_with("2.5% of all page-faults")
        );
    }
}
