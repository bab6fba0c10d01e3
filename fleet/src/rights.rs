//! Drops all capabilities before anything is sent, permanently.

use crate::failure::Failure;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Drops all capabilities. Returns an error for root, who has rights without them, unless
/// `as_root`.
pub fn give_up(as_root: bool) -> Result<(), Failure> {
    if rustix::process::geteuid().is_root() && !as_root {
        return Err(Failure::usage(
            "this program speaks to servers and needs no rights: start it as a user of its own who may \
             read the spool, or with --as-root",
        ));
    }
    let failed =
        |error: rustix::io::Errno| Failure::failed(format!("cannot give up rights: {error}"));
    rustix::thread::set_no_new_privs(true).map_err(failed)?;
    if as_root {
        return Ok(());
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(failed)
}
