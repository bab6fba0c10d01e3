//! Saves that somebody has asked for, by SIGUSR2 or at the control socket: everything up to that
//! moment is to be in the file, and with its names.

use crate::commands::record::control::Reply;
use profile::{Cancel, Query, TimeRange, View};

/// How long names are waited for, and those of how much time before.
const NAMES_WAIT_NS: u64 = 5_000_000_000;
const NAMED_NS: u64 = 10_000_000_000;

/// How much of the time behind is in the file as well, so that what is asked for twice at the same
/// time is one file.
const AFTER_NS: u64 = 1_000_000_000;

/// Two signals are one while the first is not answered.
const SIGNAL: &str = "SIGUSR2";

/// A save that somebody has asked for.
pub struct Ask {
    /// When, on the clock of samples.
    pub at_ns: u64,
    /// Who or what, in words.
    pub why: String,
    /// `None`: nobody waits for an answer.
    pub reply: Option<Reply>,
}

impl Ask {
    /// Where the file ends that is written after the report up to `until_ns`. It is about the
    /// moment of asking, also where names were waited for.
    pub fn end_ns(&self, until_ns: u64) -> u64 {
        until_ns.min(self.at_ns.saturating_add(AFTER_NS))
    }

    /// Whether it can be saved after the report up to `until_ns`. What ran just before may be new,
    /// and its names on their way.
    fn is_due(&self, view: &View, until_ns: u64) -> bool {
        match until_ns.checked_sub(self.at_ns) {
            Some(waited_ns) => waited_ns >= NAMES_WAIT_NS || is_named(view, self.at_ns),
            None => false,
        }
    }
}

/// Whether no name of what ran before a moment is on its way.
fn is_named(view: &View, at_ns: u64) -> bool {
    let query = Query {
        window: TimeRange::between(at_ns.saturating_sub(NAMED_NS), at_ns),
        ..Query::default()
    };
    let selection = view.select(&query, &Cancel::new());
    selection.is_ok_and(|selection| selection.completeness().pending == 0)
}

/// What was asked for and is not answered. Those who wait for an answer are few: see `control`.
#[derive(Default)]
pub struct Asks(Vec<Ask>);

impl Asks {
    /// SIGUSR2 came.
    pub fn add_signal(&mut self, at_ns: u64) {
        if self.0.iter().all(|ask| ask.why != SIGNAL) {
            self.0.push(Ask {
                at_ns,
                why: SIGNAL.into(),
                reply: None,
            });
        }
    }

    /// A user asks, with a note that may be empty.
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

    /// Takes out what can be saved after the report up to `until_ns`: all, if it is the last one.
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

    /// A profile with one sample, whose name nobody has found yet, in the third second.
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

    /// The seconds after whose reports a signal of the tenth second is due.
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
