//! The crate framehop as the other unwinder.

use crate::FRAMES_MAX;
use crate::modules::{Code, Modules};
use framehop::Unwinder as _;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use probe::KeptWalk;
use probe::tables::MappedRange;
use std::collections::HashMap;

/// The view of the processes that have the same mappings.
type Unwinders<'a> = HashMap<&'a [MappedRange], UnwinderX86_64<Code>>;

/// Addresses as they are on the stack, innermost first, of each of the walks.
pub fn walks(modules: &Modules, walks: &[KeptWalk]) -> Vec<Vec<u64>> {
    let mut unwinders = Unwinders::new();
    let found = walks.iter().map(|kept| {
        let new = || modules.unwinder_for(&kept.mappings);
        let unwinder = unwinders.entry(&kept.mappings).or_insert_with(new);
        walk(unwinder, kept)
    });
    found.collect()
}

fn walk(unwinder: &UnwinderX86_64<Code>, walk: &KeptWalk) -> Vec<u64> {
    let registers = walk.registers;
    let mut read = |address: u64| {
        let at = address.checked_sub(registers.sp).ok_or(())?;
        walk.stack.word(at).ok_or(())
    };
    // One for each walk: it remembers rules by address, and not whose.
    let mut cache = CacheX86_64::<_>::new();
    let mut frames = unwinder.iter_frames(
        registers.ip,
        UnwindRegsX86_64::new(registers.ip, registers.sp, registers.bp),
        &mut cache,
        &mut read,
    );
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        found.push(frame.address());
        if found.len() == FRAMES_MAX {
            break;
        }
    }
    found
}
