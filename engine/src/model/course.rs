//! The course of a run: when it began, how far its samples have come in, and how it
//! ends.

use crate::ending::{self, Watched};
use crate::snapshot::TargetState;
use probe::Batch;
use std::collections::VecDeque;
use std::time::Duration;

/// Lines of the started command's output that are kept.
const OUTPUT_LINES_MAX: usize = 1000;

/// What the target does while the run goes on.
#[derive(Default)]
pub struct Course {
    target: TargetState,
    /// The target, if it is one process: it is asked how it ended.
    watched: Option<Watched>,
    /// The end of the target: it counts once the samples up to then have come in.
    end: Option<End>,
    /// Somebody ended the run, and waits.
    is_finishing: bool,
    /// The last lines that the started command printed.
    output: VecDeque<String>,
    /// When sampling began.
    begin_ns: u64,
    /// Samples up to here have come in.
    complete_until_ns: u64,
    /// Whether any have.
    has_samples: bool,
}

/// The end of a target.
struct End {
    at_ns: u64,
    /// The sentence about the end, if the front end gave one; None: the target is asked.
    words: Option<String>,
}

impl Course {
    /// The course of a run that samples these processes, or the whole machine if there are
    /// none.
    pub fn of(pids: &[u32]) -> Self {
        let watched = match pids {
            [pid] => Watched::new(*pid),
            _ => None,
        };
        Self {
            watched,
            ..Self::default()
        }
    }

    /// Sampling has begun, at that time on the clock of samples.
    pub fn begin(&mut self, at_ns: u64) {
        self.target = TargetState::Running;
        self.begin_ns = at_ns;
    }

    /// The source has stopped by itself; the sentence says why.
    pub fn fail(&mut self, sentence: String) {
        self.target = TargetState::Failed(sentence);
    }

    /// The target has ended, in these words.
    pub fn end(&mut self, words: String, at_ns: u64) {
        self.end = Some(End {
            at_ns,
            words: Some(words),
        });
    }

    /// The run is to end now.
    pub fn finish(&mut self) {
        self.is_finishing = true;
    }

    /// Whether any samples have come in.
    pub fn has_samples(&self) -> bool {
        self.has_samples
    }

    pub fn is_finishing(&self) -> bool {
        self.is_finishing
    }

    /// Keeps what the started command printed, as far as there is room: the newest
    /// lines.
    pub fn add_output(&mut self, lines: Vec<String>) {
        self.output.extend(lines);
        let surplus = self.output.len().saturating_sub(OUTPUT_LINES_MAX);
        self.output.drain(..surplus);
    }

    /// Notes how far samples have come in. Once the target is gone time stands still,
    /// so that what it did last stays in the window.
    pub fn advance(&mut self, batch: &Batch) {
        self.has_samples |= !batch.samples.is_empty();
        if self.target != TargetState::Running || self.is_finishing {
            return;
        }
        self.complete_until_ns = batch.complete_until_ns;
        if batch.targets_alive == Some(0) && self.end.is_none() {
            // Samples from before may still be on their way: it has ended
            // when everything up to now has come in.
            self.end = Some(End {
                at_ns: probe::now_ns(),
                words: None,
            });
        }
    }

    /// Ends the target, `scope`, once all its samples have come in.
    pub fn notice_end(&mut self, scope: &str) {
        let has_ended = matches!(self.target, TargetState::Exited { .. });
        let is_in = |end: &mut End| end.at_ns <= self.complete_until_ns;
        if let Some(end) = self.end.take_if(|end| has_ended || is_in(end))
            && self.failure().is_none()
        {
            let status = self.watched.as_ref().and_then(Watched::status);
            let words = end.words.unwrap_or_else(|| match status {
                Some(status) => ending::words(scope, status),
                None => format!("{scope} ended"),
            });
            let at_ns = end.at_ns;
            self.target = TargetState::Exited { words, at_ns };
        }
    }

    /// Whether what has come in is all there will be. The target of a run that
    /// is interrupted goes on.
    pub fn is_over(&self) -> bool {
        self.is_finishing || !matches!(self.target, TargetState::Starting | TargetState::Running)
    }

    /// Why the source stopped, if it did by itself.
    pub fn failure(&self) -> Option<&str> {
        match &self.target {
            TargetState::Failed(sentence) => Some(sentence),
            _ => None,
        }
    }

    pub fn target(&self) -> &TargetState {
        &self.target
    }

    pub fn output(&self) -> impl Iterator<Item = &String> {
        self.output.iter()
    }

    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    pub fn complete_until_ns(&self) -> u64 {
        self.complete_until_ns
    }

    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.complete_until_ns.saturating_sub(self.begin_ns))
    }
}
