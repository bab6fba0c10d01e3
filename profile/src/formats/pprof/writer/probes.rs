//! Writes the counts of probes, as samples with values of their own.
//!
//! The time of the calls from one place is unknown, only the time of all calls is measured. So the
//! two are written as different samples, and each kind adds up to what was counted:
//!
//! ```text
//! stack                value                          label
//! function             calls, latency of a bucket     latency: the middle of the bucket
//! function < callers   stacks that were taken there
//! ```
//!
//! In samples of the clock these values are 0, and in these samples the values of the clock are 0.

use super::super::field;
use super::super::proto::Message;
use super::{Writer, period_ns};
use crate::Selection;
use std::sync::Arc;

/// Types and units of these values.
const TYPES: [(&str, &str); 3] = [
    ("calls", "count"),
    ("latency", "nanoseconds"),
    ("stacks", "count"),
];

impl Writer<'_> {
    /// Writes the types of these values, if there were probes.
    pub(super) fn add_probe_types(&mut self) {
        if self.view.probes().is_empty() {
            return;
        }
        for (name, unit) in TYPES {
            let message = self.value_type(name, unit);
            self.profile.message(field::profile::SAMPLE_TYPE, &message);
        }
        if self.view.samples() == 0 {
            let latency = self.strings.add("latency");
            self.profile.number(field::profile::DEFAULT_TYPE, latency);
        }
    }

    /// Returns the values that each sample has in addition if there were probes.
    pub(super) fn probe_values(&self, values: &[u64]) -> Vec<u64> {
        if self.view.probes().is_empty() {
            Vec::new()
        } else {
            (0..TYPES.len())
                .map(|at| values.get(at).copied().unwrap_or(0))
                .collect()
        }
    }

    /// Adds the counts of probes in the window of the selection.
    pub(super) fn add_probes(&mut self, selection: &Selection) {
        let log = Arc::clone(self.view.probes());
        for probe in log.probes() {
            let total = probe.total(selection.query().window);
            let own = self.probed_location(&probe.about().name);
            let (latency, unit) = (self.strings.add("latency"), self.strings.add("nanoseconds"));
            let mut timed = 0u64;
            for ((from, below), calls) in &total.buckets {
                let middle = from + below.saturating_sub(*from) / 2;
                timed = timed.saturating_add(*calls);
                let mut label = Message::default();
                label
                    .number(field::label::KEY, latency)
                    .number(field::label::NUMBER, middle)
                    .number(field::label::UNIT, unit);
                let time = middle.saturating_mul(*calls).min(i64::MAX as u64);
                self.add_probe_sample(&[own], &[*calls, time], Some(label));
            }
            // Calls without a known time: still running, or only counted.
            let untimed = total.calls.saturating_sub(timed);
            if untimed > 0 {
                self.add_probe_sample(&[own], &[untimed], None);
            }
            for (stack, count) in &total.callers {
                let mut locations = vec![own];
                for frame in probe.stacks()[*stack as usize].iter() {
                    locations.push(self.probed_location(&log.frame_name(*frame)));
                }
                self.add_probe_sample(&locations, &[0, 0, *count], None);
            }
        }
    }

    fn add_probe_sample(&mut self, locations: &[u64], values: &[u64], label: Option<Message>) {
        // Number of the values of the clock: as many as `add_types` has written.
        let clock = 1 + usize::from(period_ns(&self.info).is_some());
        let mut all = vec![0; clock];
        all.extend(self.probe_values(values));
        let mut sample = Message::default();
        sample
            .numbers(field::sample::LOCATION, locations)
            .numbers(field::sample::VALUE, &all);
        if let Some(label) = label {
            sample.message(field::sample::LABEL, &label);
        }
        self.profile.message(field::profile::SAMPLE, &sample);
    }

    /// Returns the number of the location of a function that is known by name only.
    fn probed_location(&mut self, name: &Arc<str>) -> u64 {
        if let Some((_, location)) = self.probed.get(name) {
            return *location;
        }
        let function = (self.functions.len() + self.probed.len()) as u64 + 1;
        let location = (self.locations.len() + self.probed.len()) as u64 + 1;
        self.probed.insert(Arc::clone(name), (function, location));
        let name = self.strings.add(name);
        let mut described = Message::default();
        described
            .number(field::function::ID, function)
            .number(field::function::NAME, name)
            .number(field::function::SYSTEM_NAME, name);
        self.profile.message(field::profile::FUNCTION, &described);
        let mut line = Message::default();
        line.number(field::line::FUNCTION, function);
        let mut described = Message::default();
        described
            .number(field::location::ID, location)
            .message(field::location::LINE, &line);
        self.profile.message(field::profile::LOCATION, &described);
        location
    }
}
