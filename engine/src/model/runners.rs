//! Kernel frames that only run our programs at a tracepoint: they are on top of each stack that is
//! taken there, and are not informative.

use crate::probes::{RUNNERS_MAX, runner_code};
use profile::{Frame, FrameKind, NewSample};
use std::ops::Range;

/// The code that runs programs at one tracepoint; empty if the kernel's names cannot be read, or if
/// no tracepoint is used.
#[derive(Default)]
pub struct Runners(Vec<Range<u64>>);

impl Runners {
    /// Finds the code for this tracepoint.
    pub fn of(tracepoint: &str) -> Self {
        Self(runner_code(tracepoint))
    }

    /// Returns the sample without the frames up to the last one in such code.
    pub fn without<'a>(&self, sample: NewSample<'a>) -> NewSample<'a> {
        let is_runner = |frame: &Frame| {
            frame.kind == FrameKind::Kernel
                && self.0.iter().any(|code| code.contains(&frame.address))
        };
        let kernel = sample.kernel_frames.min(sample.frames.len());
        let first = &sample.frames[..kernel.min(RUNNERS_MAX)];
        let runners = first.iter().rposition(is_runner).map_or(0, |last| last + 1);
        NewSample {
            frames: &sample.frames[runners..],
            kernel_frames: sample.kernel_frames - runners,
            ..sample
        }
    }

    #[cfg(test)]
    pub fn from_code(code: Vec<Range<u64>>) -> Self {
        Self(code)
    }
}
