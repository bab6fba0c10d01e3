//! Frames of the kernel that only run our programs at a tracepoint: they are on top of each stack
//! that is taken there, and tell nothing.

use crate::probes::{RUNNERS_MAX, runner_code};
use profile::{Frame, FrameKind, NewSample};
use std::ops::Range;

/// The code that runs programs at one tracepoint; none where names of the kernel cannot be read,
/// or where nothing is taken at a tracepoint.
#[derive(Default)]
pub struct Runners(Vec<Range<u64>>);

impl Runners {
    /// Of this tracepoint.
    pub fn of(tracepoint: &str) -> Self {
        Self(runner_code(tracepoint))
    }

    /// The sample without the frames up to the last one that is of such code.
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
