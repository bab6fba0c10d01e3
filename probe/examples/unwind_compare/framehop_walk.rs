//! The crate framehop as the other unwinder.

use crate::FRAMES_MAX;
use crate::modules::{Framehop, Modules};
use framehop::Unwinder as _;
use framehop::{CacheNative, UnwindRegsNative};
use probe::KeptWalk;
use probe::tables::MappedRange;
use std::collections::HashMap;

/// An unwinder for all processes with the same mappings.
type Unwinders<'a> = HashMap<&'a [MappedRange], Framehop>;

/// Returns the addresses on the stack of each walk, innermost first.
pub fn walks(modules: &Modules, walks: &[KeptWalk]) -> Vec<Vec<u64>> {
    let mut unwinders = Unwinders::new();
    let found = walks.iter().map(|kept| {
        let new = || modules.unwinder_for(&kept.mappings);
        let unwinder = unwinders.entry(&kept.mappings).or_insert_with(new);
        walk(unwinder, kept)
    });
    found.collect()
}

fn walk(unwinder: &Framehop, walk: &KeptWalk) -> Vec<u64> {
    let registers = walk.registers;
    let mut read = |address: u64| {
        let at = address.checked_sub(registers.sp).ok_or(())?;
        walk.stack.word(at).ok_or(())
    };
    // One for each walk: it caches rules by address, whatever the process.
    let mut cache = CacheNative::new();
    let mut frames = unwinder.iter_frames(registers.ip, native(walk), &mut cache, &mut read);
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        found.push(frame.address());
        if found.len() == FRAMES_MAX {
            break;
        }
    }
    found
}

#[cfg(target_arch = "x86_64")]
fn native(walk: &KeptWalk) -> UnwindRegsNative {
    let registers = walk.registers;
    UnwindRegsNative::new(registers.ip, registers.sp, registers.bp)
}

#[cfg(target_arch = "aarch64")]
fn native(walk: &KeptWalk) -> UnwindRegsNative {
    use framehop::aarch64::PtrAuthMask;
    use probe_ebpf::machine::This;
    use probe_ebpf::registers::scratch;
    use probe_ebpf::rule::aarch64::base;
    use probe_ebpf::walk::Machine as _;
    let registers = walk.registers;
    let mask = PtrAuthMask(This::ADDRESS_BITS);
    let link = walk.scratch[scratch(base::X30)];
    UnwindRegsNative::new_with_ptr_auth_mask(mask, link, registers.sp, registers.bp)
}
