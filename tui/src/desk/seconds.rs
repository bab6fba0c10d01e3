//! Counts the samples of each of the last *seconds*, independent of the window.

use super::{Answer, Answerable, Ask, Desk, Key};
use crate::calendar::SECOND_NS;
use crate::code::Library;
use engine::snapshot::Snapshot;
use profile::query::HeatRows;
use profile::{Cancel, FunctionId, Query, TimeRange};
use std::sync::Arc;
use std::time::Duration;

/// The number of samples in each of several seconds, and the rate that converts them to CPUs.
#[derive(Debug)]
pub struct Counts {
    pub samples: Vec<u64>,
    /// Samples per second of a busy CPU at the counted rate; 0 if that is not known.
    pub rate_hz: u32,
}

/// Counts the samples in scope, or only those of a function, second by second, oldest first. The
/// last second is the one that contains `end_ns`. Returns `None` if it was cancelled.
pub fn last_seconds<W>(
    ask: &Ask<W>,
    function: Option<FunctionId>,
    end_ns: u64,
    count: usize,
    cancel: &Cancel,
) -> Option<Counts> {
    let query = Query {
        window: TimeRange::last(Duration::from_secs(count as u64), end_ns),
        ..ask.query().clone()
    };
    let selection = ask.view.select(&query, cancel).ok()?;
    let heat = selection.heat(&HeatRows::parts(1), function);
    // Seconds without any sample at the end have no columns in the map.
    let last = end_ns / SECOND_NS;
    let first = (last + 1).saturating_sub(count as u64);
    let mut seconds = vec![0; count];
    for column in 0..heat.columns() {
        let second = heat.first_second + column as u64;
        if let Some(at) = second.checked_sub(first)
            && let Some(cell) = seconds.get_mut(at as usize)
        {
            *cell = heat.cell(column, 0);
        }
    }
    Some(Counts {
        samples: seconds,
        rate_hz: heat.rate_hz,
    })
}

/// Maximum number of whole seconds that are shown.
pub const SECONDS: usize = 60;

/// The samples in scope in the last seconds, for the line below the functions.
#[derive(Debug)]
pub struct SecondsAnswer {
    pub key: Key<()>,
    /// Samples of each whole second, the oldest first.
    pub samples: Vec<u64>,
    /// Samples per second of a busy CPU at the counted rate; 0 if that is not known.
    pub rate_hz: u32,
    /// The end of the last second, on the clock of the samples.
    pub end_ns: u64,
    /// The wall clock in milliseconds when the clock of the samples is 0.
    pub epoch_unix_ms: i64,
}

impl SecondsAnswer {
    /// Counts the seconds. Returns `None` if it was cancelled.
    pub fn new(ask: Ask<()>, cancel: &Cancel) -> Option<Self> {
        let end_ns = ask.view.window(ask.query().window).end_ns;
        // The present second does not have all of its samples yet.
        let counts = last_seconds(&ask, None, end_ns, SECONDS + 1, cancel)?;
        let mut samples = counts.samples;
        samples.pop();
        Some(SecondsAnswer {
            key: ask.key,
            samples,
            rate_hz: counts.rate_hz,
            end_ns: end_ns / SECOND_NS * SECOND_NS,
            epoch_unix_ms: ask.view.info().epoch_unix_ms,
        })
    }
}

/// The state of the line: the newest answer, and the open question.
#[derive(Debug, Default)]
pub struct Seconds {
    desk: Desk<(), SecondsAnswer>,
}

impl Seconds {
    /// Returns the answer on the screen, or `None` before the first answer.
    pub fn answer(&self) -> Option<&SecondsAnswer> {
        self.desk.shown().map(|shown| &**shown)
    }

    /// Returns the question to ask, or `None` if it was asked already.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<Ask<()>> {
        self.desk.ask(snapshot, ())
    }

    /// Takes an answer and shows it at once, because no row can change its place by it.
    pub fn receive(&mut self, answer: Arc<SecondsAnswer>) {
        let key = answer.key;
        if self.desk.receive(&key, (), answer) {
            self.desk.take_waiting();
        }
    }

    /// Frees the answer because the line is not on the screen any more.
    pub fn release(&mut self) {
        self.desk.clear();
    }
}

impl Answerable for Ask<()> {
    fn answer(&self, _: &mut dyn Library, cancel: &Cancel) -> Option<Answer> {
        Some(Answer::new(SecondsAnswer::new(self.clone(), cancel)?))
    }
}
