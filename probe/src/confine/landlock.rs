//! Forbids all files: a Landlock domain without a rule. The kernel then refuses to open, create,
//! remove and execute anything that has a path (Linux 5.13), since 6.7 every TCP connection, and since
//! 6.12 to signal processes outside of the domain and to connect to their abstract Unix sockets.

use std::io;

/// `LANDLOCK_CREATE_RULESET_VERSION` of uapi/linux/landlock.h.
const VERSION: u32 = 1;

/// `struct landlock_ruleset_attr`, up to version 6.
#[repr(C)]
struct Handled {
    files: u64,
    network: u64,
    /// What does not reach beyond the domain.
    scoped: u64,
}

/// `LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET` and `LANDLOCK_SCOPE_SIGNAL`.
const SCOPES: u64 = 0b11;

/// Number of file access rights, by version.
const FILES: [u32; 5] = [13, 14, 15, 15, 16];

/// Applies it to the calling thread, for good. An error if the kernel has no Landlock.
pub fn deny_all() -> io::Result<()> {
    let version = version()?;
    let known = version.clamp(1, FILES.len());
    let handled = Handled {
        files: (1 << FILES[known - 1]) - 1,
        network: if version >= 4 { 0b11 } else { 0 },
        scoped: if version >= 6 { SCOPES } else { 0 },
    };
    // Older kernels do not have the last fields.
    let size = match version {
        ..4 => 8,
        4..6 => 16,
        6.. => 24,
    };
    // SAFETY: the kernel only reads `handled`, as many bytes as the size says, and only during
    // the call.
    let rules = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::from_ref(&handled),
            size,
            0,
        )
    };
    if rules < 0 {
        return Err(io::Error::last_os_error());
    }
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: a descriptor and no memory.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) };
    let result = match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: it was opened above, and nobody else has it.
    unsafe { libc::close(rules as i32) };
    result
}

/// Returns the version of Landlock in the kernel. An error if the kernel has no Landlock.
fn version() -> io::Result<usize> {
    // SAFETY: with this flag it takes no memory.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<Handled>(),
            0,
            VERSION,
        )
    };
    usize::try_from(version).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_with_a_path_can_be_opened_and_what_is_open_can_be_read() {
        let run = || -> io::Result<()> {
            let mut own = std::fs::File::open("/proc/self/exe")?;
            deny_all()?;
            let refused = std::fs::File::open("/etc/passwd").err();
            assert_eq!(
                refused.map(|e| e.kind()),
                Some(io::ErrorKind::PermissionDenied)
            );
            io::Read::read_exact(&mut own, &mut [0; 4])?;
            // `kill -0` of a process outside of the domain, since Linux 6.12.
            let parent = rustix::process::getppid().expect("one");
            let refused = rustix::process::test_kill_process(parent).is_err();
            let has_scopes = version()? >= 6;
            assert!(refused || !has_scopes, "a signal has left the domain");
            Ok(())
        };
        match std::thread::spawn(run).join().expect("no panic") {
            Ok(()) => {}
            Err(error) => test_support::skip(format!("no Landlock here: {error}")),
        }
    }
}
