//! Giving up capabilities, of the calling thread alone: threads and processes that it
//! starts have no more than it has.

use rustix::thread::{CapabilitySet, CapabilitySets, capability_is_in_bounding_set};
use std::io;

/// Keeps of the capabilities that are allowed those of `wanted`, and makes them count.
///
/// *Ambient* ones, which a service manager gave to be passed on to every program that is
/// started, stay allowed, but count no more: a command of the user has them as before.
pub fn keep(wanted: CapabilitySet) -> io::Result<()> {
    let had = rustix::thread::capabilities(None)?;
    let kept = had.permitted & wanted;
    Ok(rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept | ambient(had.permitted & had.inheritable),
            inheritable: had.inheritable,
        },
    )?)
}

/// Whether this kernel has such a capability, held or not.
pub fn kernel_knows(capability: CapabilitySet) -> bool {
    capability_is_in_bounding_set(capability).is_ok()
}

/// Those of `candidates` that are ambient, which only what is inheritable can be.
fn ambient(candidates: CapabilitySet) -> CapabilitySet {
    let is_ambient = |one: &CapabilitySet| {
        // Kernels before 4.3 have none.
        rustix::thread::capability_is_in_ambient_set(*one).unwrap_or(false)
    };
    candidates.iter().filter(is_ambient).collect()
}
