//! Finds the mappings of a process with the trampolines of `-X perf`: each mapping without a file
//! that a stack leads through is examined.

use crate::mappings::{Backing, Mappings};
use probe_ebpf::UserFrame;
use std::collections::HashMap;
use symbolize::python::Trampoline;

/// Maximum number of remembered mappings of one process. CPython makes one for some thousand
/// functions; other generators of code (numba) may make many.
const MAPPINGS_MAX: usize = 256;

/// When a mapping without trampolines is examined again: it may have been empty.
const AGAIN_NS: u64 = 2_000_000_000;

/// The state of the mappings of one process, by their starts.
#[derive(Debug, Default)]
pub struct Trampolines(HashMap<u64, Known>);

#[derive(Debug, Clone, Copy)]
enum Known {
    /// Its code is being read, or was read and has none: not requested again before that time.
    Not {
        again_ns: u64,
    },
    Are(Trampoline),
}

/// The mappings that a stack leads through.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// Starts of mappings whose code is to be read.
    pub wanted: Vec<u64>,
    /// Starts of mappings that are known to have trampolines, but are not marked.
    pub unmarked: Vec<(u64, Trampoline)>,
}

impl Trampolines {
    /// Examines the frames of a stack.
    pub fn inspect(&mut self, frames: &[UserFrame], mappings: &Mappings, now_ns: u64) -> Inspected {
        let mut met = Inspected::default();
        for frame in frames {
            let mapping = mappings.find(frame.address_for_lookup());
            let Some(mapping) = mapping.filter(|it| it.backing == Backing::Anonymous) else {
                continue;
            };
            match self.0.get(&mapping.start) {
                Some(Known::Are(trampoline)) => {
                    if !met
                        .unmarked
                        .iter()
                        .any(|(start, _)| *start == mapping.start)
                    {
                        met.unmarked.push((mapping.start, *trampoline));
                    }
                }
                Some(Known::Not { again_ns }) if now_ns < *again_ns => {}
                known => {
                    if known.is_some() || self.0.len() < MAPPINGS_MAX {
                        let again_ns = now_ns + AGAIN_NS;
                        self.0.insert(mapping.start, Known::Not { again_ns });
                        met.wanted.push(mapping.start);
                    }
                }
            }
        }
        met
    }

    /// Stores the result for a mapping whose code was read: it has these trampolines.
    pub fn set(&mut self, start: u64, trampoline: Trampoline) {
        if let Some(known) = self.0.get_mut(&start) {
            *known = Known::Are(trampoline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mappings::Mapping;

    fn trampoline() -> Trampoline {
        let one = b"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3\0\0\0\0\0";
        Trampoline::recognize(&one.repeat(3)).unwrap()
    }

    #[test]
    fn a_mapping_is_read_once_and_marked_whenever_it_is_not() {
        let mut mappings = Mappings::default();
        mappings.insert(Mapping {
            start: 0x10000,
            end: 0x20000,
            file_offset: 0x10000,
            backing: Backing::Anonymous,
        });
        let mut known = Trampolines::default();
        let frames = [
            UserFrame::exact(0x10004),
            UserFrame::return_address(0x10016),
        ];
        let met = known.inspect(&frames, &mappings, 0);
        assert_eq!((met.wanted, met.unmarked), (vec![0x10000], vec![]));
        assert_eq!(known.inspect(&frames, &mappings, 1), Inspected::default());
        let again = known.inspect(&frames, &mappings, AGAIN_NS);
        assert_eq!(again.wanted, [0x10000], "it was empty");
        known.set(0x10000, trampoline());
        let met = known.inspect(&frames, &mappings, 3);
        assert_eq!(met.unmarked, [(0x10000, trampoline())]);
        known.set(0x90000, trampoline());
        assert_eq!(known.0.len(), 1, "nobody asked for that one");
    }
}
