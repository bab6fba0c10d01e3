//! The run: what is sampled, for how long, and its state.

use crate::losses::Losses;
use std::sync::Arc;
use std::time::Duration;

/// What is or was sampled, and its state.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Description of what is sampled: `system`, `postgres[4121]`, `3 processes`.
    pub scope: Arc<str>,
    /// Whether there is still something to sample.
    pub target: TargetState,
    /// Whether every specified process was stopped by a signal or a debugger: they use no CPU until
    /// they are continued.
    pub is_stopped: bool,
    /// Time since sampling began; the length of a recording.
    pub elapsed: Duration,
    /// Number of CPUs that were busy in the last second, of those that are sampled.
    pub busy_cpus: f64,
    /// When samples were lost; `None` if only their sum is known.
    pub losses: Option<Arc<Losses>>,
    /// The last lines that the started command printed, if one was started.
    pub command_output: Arc<[String]>,
}

impl Run {
    /// The [`Run::scope`] of a run that samples the whole machine.
    pub const WHOLE_MACHINE: &str = "system";

    /// Whether the whole machine is sampled. A recording that does not say what was sampled, with
    /// an empty [`Run::scope`], counts as one of the whole machine.
    pub fn is_of_whole_machine(&self) -> bool {
        self.scope.is_empty() || *self.scope == *Self::WHOLE_MACHINE
    }
}

/// Whether there is still something to sample.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TargetState {
    /// The engine is loading; nothing is sampled yet.
    #[default]
    Starting,
    /// Samples are taken.
    Running,
    /// Samples were taken earlier; everything has been read.
    Recorded,
    /// The target has ended. Its data is kept.
    Exited {
        /// Which process, and how it ended: `postgres[4121] was killed by SIGSEGV`.
        words: String,
        /// When it ended, on the clock of samples.
        at_ns: u64,
    },
    /// The engine stopped with an error; the text is the whole sentence.
    Failed(String),
}
