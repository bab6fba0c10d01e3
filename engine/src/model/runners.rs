//! Frames of the kernel that only run our programs at a tracepoint: they are on top of each stack
//! that is taken there, and tell nothing.

use crate::probes::{PointCode, RUNNERS_MAX};
use profile::{Ending, Frame, FrameKind, NewSample};
use std::ops::Range;

/// The code that runs programs at one tracepoint; none where names of the kernel cannot be read,
/// or where nothing is taken at a tracepoint.
#[derive(Default)]
pub struct Runners(PointCode);

impl Runners {
    /// Of this tracepoint.
    pub fn of(tracepoint: &str) -> Self {
        Self(PointCode::of(tracepoint))
    }

    /// The sample without the frames up to the last one that is of such code.
    pub fn without<'a>(&self, sample: NewSample<'a>) -> NewSample<'a> {
        let is_runner = |frame: &Frame| is_in(&self.0.runners, frame);
        let kernel = sample.kernel_frames.min(sample.frames.len());
        let first = &sample.frames[..kernel.min(RUNNERS_MAX)];
        let runners = first.iter().rposition(is_runner).map_or(0, |last| last + 1);
        NewSample {
            frames: &sample.frames[runners..],
            kernel_frames: sample.kernel_frames - runners,
            ..sample
        }
    }

    /// The sample without what an interrupt interrupted, if it was taken in one: who ran there has
    /// nothing to do with it.
    pub fn within_interrupt<'a>(&self, sample: NewSample<'a>) -> NewSample<'a> {
        let kernel = sample.kernel_frames.min(sample.frames.len());
        let mut of_kernel = sample.frames[..kernel].iter();
        match of_kernel.position(|frame| is_in(&self.0.interrupts, frame)) {
            None => sample,
            Some(begins) => NewSample {
                frames: &sample.frames[..=begins],
                kernel_frames: begins + 1,
                ending: Ending::NoUserStack,
                ..sample
            },
        }
    }
}

/// Whether a frame is of such code of the kernel.
fn is_in(code: &[Range<u64>], frame: &Frame) -> bool {
    frame.kind == FrameKind::Kernel && code.iter().any(|code| code.contains(&frame.address))
}

#[cfg(test)]
impl From<PointCode> for Runners {
    fn from(code: PointCode) -> Self {
        Self(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{ModuleId, ProcessId};

    #[test]
    fn what_was_interrupted_is_left_out() {
        let code = |start, end| std::iter::once(start..end).collect();
        let runners = Runners(PointCode {
            runners: code(10, 20),
            interrupts: code(50, 60),
        });
        let frame = |address, kind| Frame {
            module: ModuleId(0),
            address,
            kind,
        };
        let frames = [
            frame(12, FrameKind::Kernel),
            frame(40, FrameKind::Kernel),
            frame(55, FrameKind::Kernel),
            frame(70, FrameKind::Kernel),
            frame(55, FrameKind::User),
        ];
        let sample = |frames, kernel_frames| NewSample {
            time_ns: 0,
            cpu: 0,
            process: ProcessId(1),
            tid: 1,
            comm: "app",
            frames,
            kernel_frames,
            ending: Ending::Root,
            weight: 1,
        };
        let cut = runners.within_interrupt(runners.without(sample(&frames, 4)));
        assert_eq!((cut.frames, cut.kernel_frames), (&frames[1..3], 2));
        assert_eq!(cut.ending, Ending::NoUserStack);
        // An address of the program is none of the kernel.
        let whole = runners.within_interrupt(sample(&frames[3..], 1));
        assert_eq!((whole.frames, whole.ending), (&frames[3..], Ending::Root));
    }
}
