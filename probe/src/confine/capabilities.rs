//! Gives up capabilities of the calling thread alone; threads and processes that it starts later
//! inherit the result.

use rustix::thread::{CapabilitySet, CapabilitySets, capability_is_in_bounding_set};
use std::io;

/// Keeps those permitted capabilities that are in `wanted`, and makes them effective.
///
/// *Ambient* capabilities, which a service manager grants to every started program, stay permitted,
/// but are no longer effective: an editor of the user has them as before. A thread that starts no
/// programs loses them by [`drop_ambient`]: nothing brings them back.
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

/// Drops the capabilities that programs started by the calling thread would get. Must be called
/// before [`keep`], which leaves ambient capabilities permitted.
pub fn drop_ambient() {
    // Kernels before 4.3 do not have them.
    _ = rustix::thread::clear_ambient_capability_set();
}

/// Whether this kernel has such a capability, whether we hold it or not.
pub fn kernel_knows(capability: CapabilitySet) -> bool {
    capability_is_in_bounding_set(capability).is_ok()
}

/// Returns the capabilities in `candidates` that are ambient.
fn ambient(candidates: CapabilitySet) -> CapabilitySet {
    let is_ambient = |one: &CapabilitySet| {
        // Kernels before 4.3 do not have them.
        rustix::thread::capability_is_in_ambient_set(*one).unwrap_or(false)
    };
    candidates.iter().filter(is_ambient).collect()
}
