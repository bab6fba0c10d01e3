//! Stacks of calls that do not reach their thread's first function. In a log each ends with a frame
//! that says why, so that files and reports contain the reason.

use crate::alike::how_it_ended;
use profile::Ending;
use profile::probes::{CallTally, ProbeFrame, ProbeLog, ProbeRecord};

/// A frame of a stack: the number of its module, and its address there.
pub type FrameKey = (u32, u64);

/// The number of the module for such frames: no file has it, as modules are numbered from 0.
const KEY: u32 = u32::MAX;
/// The name of that module in a log.
const MODULE: &str = "[cut]";

/// Returns why the stack of a call is cut; `None` if it is whole, or if there was none to walk.
pub fn cut_of(sample: &probe::Sample) -> Option<Ending> {
    let ending = how_it_ended(sample);
    (ending.is_user_stack() && !ending.is_whole()).then_some(ending)
}

/// Number of counted stacks that are cut.
pub fn cut_stacks(log: &ProbeLog, record: &ProbeRecord, tally: &CallTally) -> u64 {
    let is_cut = |stack: u32| {
        let last = record.stacks().get(stack as usize)?.last()?;
        let frame = log.frames().get(*last as usize)?;
        Some(&*frame.module == MODULE)
    };
    let cut = tally
        .callers
        .iter()
        .filter(|(stack, _)| is_cut(**stack) == Some(true));
    cut.map(|(_, count)| count).sum()
}

/// Returns the key of the last frame of a cut stack.
pub(super) fn key(ending: Ending) -> FrameKey {
    (KEY, ending.number().into())
}

/// Returns the last frame of a cut stack; `None` for any other key.
pub(super) fn frame(key: FrameKey) -> Option<ProbeFrame> {
    let number = u8::try_from(key.1).ok().filter(|_| key.0 == KEY)?;
    let why = Ending::of_number(number)?.label().replace('_', " ");
    Some(ProbeFrame {
        module: MODULE.into(),
        address: key.1,
        name: Some(format!("[cut: {why}]").into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_cut_stack_says_why() {
        let frame = frame(key(Ending::TablesLate)).expect("a frame");
        assert_eq!(frame.name.as_deref(), Some("[cut: tables late]"));
        assert_eq!(super::frame((7, Ending::TablesLate.number().into())), None);
        assert_eq!(super::frame((KEY, 200)), None);
    }
}
