//! Compares two walks of one stack.

use crate::decode::RawSample;
use crate::native::Walked;
use crate::sample::WalkCheck;
use probe_ebpf::{Ending, UserFrame};

/// Maximum number of differences that are described in words.
const EXAMPLES_MAX: usize = 8;

/// Compares the frames of a sample's own walk with those of another one of its copied stack, and
/// counts the result.
pub fn compare(raw: &RawSample, again: &Walked, walks: &mut WalkCheck) {
    // At the end of the copy, or at a word outside of it, the second walk stops earlier than the
    // first.
    let is_short = matches!(
        again.ending,
        Ending::CopyCut | Ending::StackSwitch | Ending::ReadFault
    );
    // A new mapping was not in BPF's list yet.
    let is_early = matches!(raw.ending, Ending::Remapped | Ending::NoMapping);
    let is_as_far = is_short && raw.user.starts_with(&again.frames)
        || is_early && again.frames.starts_with(&raw.user);
    if raw.user == again.frames && raw.ending == again.ending {
        walks.same += 1;
    } else if is_as_far {
        walks.same_as_far += 1;
    } else {
        walks.different += 1;
        if walks.examples.len() < EXAMPLES_MAX {
            walks.examples.push(describe(raw, again));
        }
    }
}

fn describe(raw: &RawSample, again: &Walked) -> String {
    let pairs = raw.user.iter().zip(&again.frames);
    let common = pairs.take_while(|(a, b)| a == b).count();
    let next = |frames: &[UserFrame]| {
        let frame = frames.get(common);
        frame.map_or("the end".into(), |frame| format!("{:#x}", frame.address()))
    };
    let last = raw.user.get(common.wrapping_sub(1));
    format!(
        "pid {}: after {common} frames (the last {:#x}) {} of {} frames, {:?}; from the copy {} of {}, {:?}",
        raw.tgid,
        last.map_or(0, |frame| frame.address()),
        next(&raw.user),
        raw.user.len(),
        raw.ending,
        next(&again.frames),
        again.frames.len(),
        again.ending
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(frames: &[u64], ending: Ending) -> RawSample {
        let user = frames.iter().map(|ip| UserFrame::return_address(*ip));
        RawSample {
            event: crate::events::Event::Tick,
            weight: 1,
            time_ns: 0,
            cgroup_id: 0,
            stopped_at: 0,
            tgid: 1,
            tid: 1,
            cpu: 0,
            ending,
            comm: [0; 16],
            kernel: Vec::new(),
            user: user.collect(),
            python: Default::default(),
            stack_follows: true,
            is_checked: true,
            wait: None,
        }
    }

    #[track_caller]
    fn check(again: (&[u64], Ending), expected: (u64, u64, u64)) {
        let raw = sample(&[1, 2, 3], Ending::Root);
        let walked = Walked {
            frames: sample(again.0, again.1).user,
            starts: Vec::new(),
            ending: again.1,
            stopped_at: 0,
        };
        let mut walks = WalkCheck::default();
        compare(&raw, &walked, &mut walks);
        assert_eq!((walks.same, walks.same_as_far, walks.different), expected);
        assert_eq!(walks.examples.len() as u64, walks.different);
    }

    #[test]
    fn the_same_or_shorter_or_different() {
        check((&[1, 2, 3], Ending::Root), (1, 0, 0));
        check((&[1, 2], Ending::CopyCut), (0, 1, 0));
        check((&[1, 4], Ending::CopyCut), (0, 0, 1));
        check((&[1, 2], Ending::Root), (0, 0, 1));
        check((&[1, 2, 4], Ending::Root), (0, 0, 1));
        check((&[1, 2, 3], Ending::TooDeep), (0, 0, 1));
    }
}
