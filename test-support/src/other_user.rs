//! A user other than root, who may have some of root's capabilities.

use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::io;

/// The number of that user. No account has it.
pub const OTHER_USER: u32 = 4_242_424;

/// Makes the calling process one of that user, with these capabilities, which a program that it
/// executes keeps. There are system calls only, so that it may be called between fork and exec.
pub fn become_other_user(capabilities: CapabilitySet) -> io::Result<()> {
    rustix::thread::set_keep_capabilities(true)?;
    rustix::thread::set_thread_groups(&[])?;
    let (user, group) = (Uid::from_raw(OTHER_USER), Gid::from_raw(OTHER_USER));
    rustix::thread::set_thread_res_gid(group, group, group)?;
    rustix::thread::set_thread_res_uid(user, user, user)?;
    let sets = CapabilitySets {
        effective: capabilities,
        permitted: capabilities,
        inheritable: capabilities,
    };
    rustix::thread::set_capabilities(None, sets)?;
    for capability in capabilities.iter() {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}
