//! Measures the start of proftop. With `PROFTOP_TRACE_START=1` the times are printed at the end.

use crate::stderr;
use engine::snapshot::Snapshot;
use std::sync::OnceLock;
use std::time::Instant;

static PROCESS_START: OnceLock<Instant> = OnceLock::new();

/// Records the present time as the start of the process. `main` calls it first.
pub fn process_begins() {
    PROCESS_START.get_or_init(Instant::now);
}

/// The times of the events that a user waits for at the start.
#[derive(Debug, Default)]
pub struct StartTrace {
    pub first_paint: Option<Instant>,
    pub first_samples: Option<Instant>,
    pub first_names: Option<Instant>,
}

impl StartTrace {
    /// Creates a trace in which nothing has happened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the present time for what appears in this snapshot for the first time.
    pub fn look(&mut self, snapshot: &Snapshot) {
        if snapshot.report.samples > 0 {
            self.first_samples.get_or_insert_with(Instant::now);
        }
        if snapshot.report.completeness.named > 0 {
            self.first_names.get_or_insert_with(Instant::now);
        }
    }

    /// Prints the times to standard error if the variable is 1.
    pub fn print(&self) {
        if std::env::var_os("PROFTOP_TRACE_START").is_none_or(|value| value != "1") {
            return;
        }
        let Some(start) = PROCESS_START.get() else {
            return;
        };
        for (what, when) in [
            ("paint", self.first_paint),
            ("samples", self.first_samples),
            ("names", self.first_names),
        ] {
            if let Some(when) = when {
                let took = when.duration_since(*start);
                stderr::say(format_args!(
                    "first {what} after {:.1} ms",
                    took.as_secs_f64() * 1e3
                ));
            }
        }
    }
}
