//! Requests for a save, by SIGUSR2 or at the control socket. The saved file has all samples up to
//! the moment of the request, with their names.

use crate::commands::record::control::Reply;
use profile::{Cancel, Query, TimeRange, View};

/// How long a save waits for names, and for the names of how much time before the request.
const NAMES_WAIT_NS: u64 = 5_000_000_000;
const NAMED_NS: u64 = 10_000_000_000;

/// How much time after the request the file also has, so that two requests at the same time are
/// served by one file.
const AFTER_NS: u64 = 1_000_000_000;

/// The reason of a save by signal. Signals that arrive before the save is written count as one.
const SIGNAL: &str = "SIGUSR2";

/// A request for a save.
pub struct Ask {
    /// When it arrived, on the clock of samples.
    pub at_ns: u64,
    /// The reason in words, for the saved file.
    pub why: String,
    /// None if no client waits for an answer.
    pub reply: Option<Reply>,
}

impl Ask {
    /// Returns the end of the file that is written after the report up to `until_ns`. It stays near
    /// the moment of the request, even if names were awaited.
    pub fn end_ns(&self, until_ns: u64) -> u64 {
        until_ns.min(self.at_ns.saturating_add(AFTER_NS))
    }

    /// Whether it can be saved after the report up to `until_ns`. The code that ran just before may
    /// be new, with names that are still being looked up.
    fn is_due(&self, view: &View, until_ns: u64) -> bool {
        match until_ns.checked_sub(self.at_ns) {
            Some(waited_ns) => waited_ns >= NAMES_WAIT_NS || is_named(view, self.at_ns),
            None => false,
        }
    }
}

/// Whether all names of the samples before a moment have been looked up.
fn is_named(view: &View, at_ns: u64) -> bool {
    let query = Query {
        window: TimeRange::between(at_ns.saturating_sub(NAMED_NS), at_ns),
        ..Query::default()
    };
    let selection = view.select(&query, &Cancel::new());
    selection.is_ok_and(|selection| selection.completeness().pending == 0)
}

/// The unanswered requests. Their number is small: see `control`.
#[derive(Default)]
pub struct Asks(Vec<Ask>);

impl Asks {
    /// Adds a request by SIGUSR2.
    pub fn add_signal(&mut self, at_ns: u64) {
        if self.0.iter().all(|ask| ask.why != SIGNAL) {
            self.0.push(Ask {
                at_ns,
                why: SIGNAL.into(),
                reply: None,
            });
        }
    }

    /// Adds the request of a user, with a note that may be empty.
    pub fn add(&mut self, at_ns: u64, note: &str, uid: u32, reply: Reply) {
        let by = format!("asked for by uid {uid}");
        let why = if note.is_empty() {
            by
        } else {
            format!("{note}, {by}")
        };
        let reply = Some(reply);
        self.0.push(Ask { at_ns, why, reply });
    }

    /// Removes and returns the requests that can be saved after the report up to `until_ns`. If it
    /// is the last report, these are all requests.
    pub fn take_due(&mut self, view: &View, until_ns: u64, is_last: bool) -> Vec<Ask> {
        let is_due = |ask: &mut Ask| is_last || ask.is_due(view, until_ns);
        self.0.extract_if(.., is_due).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Ending, Frame, FrameKind, Limits, ModuleId, NewSample, ProcessId, Store};

    const SECOND_NS: u64 = 1_000_000_000;

    /// Returns a profile with one sample, whose name is not looked up yet, in the third second.
    fn unnamed() -> Store {
        let mut store = Store::new(Limits::default());
        store.begin(0);
        store.add_sample(NewSample {
            time_ns: 3 * SECOND_NS,
            cpu: 0,
            process: ProcessId(1),
            tid: 7,
            comm: "worker",
            frames: &[Frame {
                module: ModuleId(1),
                address: 0x1000,
                kind: FrameKind::User,
            }],
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 1,
        });
        store
    }

    /// Returns the seconds after whose reports a signal at `at_ns` is due.
    fn due(view: &View, at_ns: u64) -> Vec<u64> {
        let mut asks = Asks::default();
        asks.add_signal(at_ns);
        asks.add_signal(at_ns);
        let seconds = (1..30).flat_map(|second| {
            let taken = asks.take_due(view, second * SECOND_NS, false);
            taken.into_iter().map(move |_| second)
        });
        seconds.collect()
    }

    #[test]
    fn what_is_asked_for_waits_for_its_moment_and_for_names_but_not_for_ever() {
        let store = unnamed();
        let view = store.view();
        assert_eq!(due(&view, 20 * SECOND_NS + 1), [21]);
        assert_eq!(due(&view, 10 * SECOND_NS), [15]);
        let mut asks = Asks::default();
        asks.add_signal(10 * SECOND_NS);
        assert_eq!(asks.take_due(&view, SECOND_NS, true).len(), 1);
    }

    #[test]
    fn a_file_ends_soon_after_it_was_asked_for() {
        let ask = Ask {
            at_ns: 10 * SECOND_NS,
            why: String::new(),
            reply: None,
        };
        assert_eq!(ask.end_ns(10 * SECOND_NS + 5), 10 * SECOND_NS + 5);
        assert_eq!(ask.end_ns(14 * SECOND_NS), 11 * SECOND_NS);
    }
}
