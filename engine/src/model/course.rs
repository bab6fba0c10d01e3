//! The course of a run: when it began, up to when its samples have arrived, and how it ends.

use crate::process_end::{self, Watched};
use crate::snapshot::TargetState;
use probe::Batch;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of lines of the started command's output that are kept.
const OUTPUT_LINES_MAX: usize = 1000;

/// How long a run that the user has ended waits for the sampler's last batch.
const LAST_BATCH_WAIT: Duration = Duration::from_millis(200);

/// The state of the target and of the run.
#[derive(Default)]
pub struct Course {
    target: TargetState,
    /// The target, if it is one process: its exit status is read from it.
    watched: Option<Watched>,
    /// The end of the target. It takes effect when the samples up to then have arrived.
    end: Option<End>,
    /// Since when the user, who ended the run, is waiting; `None`: the run continues.
    finishing_since: Option<Instant>,
    /// Whether everything has been read that happened until then, as far as it was waited for.
    is_finished: bool,
    /// The last lines that the started command printed.
    output: VecDeque<String>,
    /// When sampling began, on the clock of the samples.
    begin_ns: u64,
    /// Samples up to this time have arrived.
    complete_until_ns: u64,
    /// Whether there are any samples.
    has_samples: bool,
}

/// The end of a target.
struct End {
    at_ns: u64,
    /// The sentence about the end, if the front end gave one; `None`: the exit status is read.
    words: Option<String>,
}

impl Course {
    /// The course of a run that samples these processes, or the whole machine if the list is empty.
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

    /// Records the beginning of sampling, on the clock of the samples.
    pub fn begin(&mut self, at_ns: u64) {
        self.target = TargetState::Running;
        self.begin_ns = at_ns;
    }

    /// Records that the source has stopped by itself, and why.
    pub fn fail(&mut self, sentence: String) {
        self.target = TargetState::Failed(sentence);
    }

    /// Records the end of the target, described by `words`.
    pub fn end(&mut self, words: String, at_ns: u64) {
        self.end = Some(End {
            at_ns,
            words: Some(words),
        });
    }

    /// Ends the run with the next batch, which the sampler was asked for.
    pub fn finish(&mut self) {
        self.finishing_since.get_or_insert_with(Instant::now);
    }

    /// Whether there are any samples.
    pub fn has_samples(&self) -> bool {
        self.has_samples
    }

    /// Whether the user has ended the run ([`Course::finish`]).
    pub fn is_finishing(&self) -> bool {
        self.finishing_since.is_some()
    }

    /// Appends output of the started command; only the newest lines are kept.
    pub fn add_output(&mut self, lines: Vec<String>) {
        self.output.extend(lines);
        let surplus = self.output.len().saturating_sub(OUTPUT_LINES_MAX);
        self.output.drain(..surplus);
    }

    /// Advances the time up to which samples have arrived. Once the target has ended the time
    /// stands still, so that its last samples stay in the window.
    pub fn advance(&mut self, batch: &Batch) {
        self.has_samples |= !batch.samples.is_empty();
        if self.target != TargetState::Running || self.is_finished {
            return;
        }
        self.complete_until_ns = batch.complete_until_ns;
        self.is_finished = self.is_finishing();
        if batch.targets_alive == Some(0) && self.end.is_none() {
            // Earlier samples may still arrive: the end takes effect when everything up to now has
            // arrived.
            self.end = Some(End {
                at_ns: probe::now_ns(),
                words: None,
            });
        }
    }

    /// Records the end of the target, `scope`, once all its samples have arrived, and the end of the
    /// run if the last batch did not come in time.
    pub fn notice_end(&mut self, scope: &str) {
        self.is_finished |= self
            .finishing_since
            .is_some_and(|since| since.elapsed() >= LAST_BATCH_WAIT);
        let has_ended = matches!(self.target, TargetState::Exited { .. });
        let is_in = |end: &mut End| end.at_ns <= self.complete_until_ns;
        if let Some(end) = self.end.take_if(|end| has_ended || is_in(end))
            && self.failure().is_none()
        {
            let status = self.watched.as_ref().and_then(Watched::status);
            let words = end.words.unwrap_or_else(|| match status {
                Some(status) => process_end::words(scope, status),
                None => format!("{scope} ended"),
            });
            let at_ns = end.at_ns;
            self.target = TargetState::Exited { words, at_ns };
        }
    }

    /// Whether no more samples will come. The target of a run that is interrupted continues.
    pub fn is_over(&self) -> bool {
        self.is_finished || !matches!(self.target, TargetState::Starting | TargetState::Running)
    }

    /// Why the source stopped by itself; `None` if it did not.
    pub fn failure(&self) -> Option<&str> {
        match &self.target {
            TargetState::Failed(sentence) => Some(sentence),
            _ => None,
        }
    }

    /// The state of the target.
    pub fn target(&self) -> &TargetState {
        &self.target
    }

    /// The last lines that the started command printed, the oldest first.
    pub fn output(&self) -> impl Iterator<Item = &String> {
        self.output.iter()
    }

    /// When sampling began, on the clock of the samples; 0 before.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// Time up to which all samples have arrived, on the clock of the samples.
    pub fn complete_until_ns(&self) -> u64 {
        self.complete_until_ns
    }

    /// Duration of the run so far, as far as its samples have arrived.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.complete_until_ns.saturating_sub(self.begin_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(complete_until_ns: u64) -> Batch {
        Batch {
            complete_until_ns,
            ..Batch::default()
        }
    }

    #[test]
    fn a_run_that_the_user_ends_has_one_more_batch() {
        let mut course = Course::of(&[]);
        course.begin(1);
        course.advance(&batch(10));
        course.finish();
        course.notice_end("all");
        assert!(course.is_finishing() && !course.is_over());
        course.advance(&batch(20));
        assert!(course.is_over());
        // What comes after that is not of the run.
        course.advance(&batch(30));
        assert_eq!(course.complete_until_ns(), 20);
    }

    #[test]
    fn a_batch_that_does_not_come_holds_no_end_up() {
        let mut course = Course::of(&[]);
        course.begin(1);
        course.finish();
        course.finishing_since = course.finishing_since.map(|since| since - LAST_BATCH_WAIT);
        course.notice_end("all");
        assert!(course.is_over());
    }
}
