//! Giving up capabilities, of the calling thread alone: threads and processes that it
//! starts have no more than it has.

use rustix::thread::{CapabilitySet, CapabilitySets, capability_is_in_bounding_set};
use std::io;

/// Keeps of the permitted capabilities those of `wanted`, and makes them effective.
///
/// *Ambient* ones, which a service manager gave to be passed on to every program that is
/// started, stay permitted, but are effective no more: an editor of the user has them as
/// before. A thread that starts no programs has none of them after [`drop_ambient`]:
/// nothing brings those back.
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

/// Gives up what programs that the calling thread starts would be given. To be called before
/// [`keep`], which leaves ambient capabilities permitted.
pub fn drop_ambient() {
    // Kernels before 4.3 have none.
    _ = rustix::thread::clear_ambient_capability_set();
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
