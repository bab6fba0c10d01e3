//! The bpf(2) system call, for commands that aya does not offer.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};

/// Attach type of programs for breakpoints at several places at once, as in uapi/linux/bpf.h.
pub const UPROBE_MULTI: u32 = 48;

/// Runs a command, and returns its result: a descriptor, or 0.
///
/// # Safety
///
/// `attributes` must be laid out as the command's arm of `union bpf_attr`
/// (uapi/linux/bpf.h), and addresses in it be those of memory that lives during the
/// call and has room for as much as it says.
pub unsafe fn bpf<T>(command: u32, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the kernel reads and writes during the call only: the attributes, whose
    // size it is told, and what they point to, which the caller answers for.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attributes),
            size_of::<T>(),
        )
    };
    match i32::try_from(result) {
        Ok(result @ 0..) => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs a command whose result is a descriptor.
///
/// # Safety
///
/// As for [`bpf`].
pub unsafe fn descriptor<T>(command: u32, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller answers for the attributes.
    let answer = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just made it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(answer) })
}
