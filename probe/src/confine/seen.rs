//! Reads from the kernel how a process is really confined.

use crate::privilege::{Capabilities, parse_status};
use std::io;

/// How far a process is confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confined {
    /// The user that is checked for access to files.
    pub user: u32,
    /// Its effective capabilities.
    pub capabilities: Capabilities,
    /// Whether system calls are filtered.
    pub is_filtered: bool,
    /// Whether programs that it starts cannot gain rights.
    pub gains_nothing: bool,
}

impl Confined {
    /// Reads the state from `/proc/PID/status`.
    pub fn of(pid: u32) -> io::Result<Confined> {
        Self::read(&std::fs::read_to_string(format!("/proc/{pid}/status"))?)
    }

    fn read(status: &str) -> io::Result<Confined> {
        let missing = || io::Error::new(io::ErrorKind::InvalidData, "no status of a process");
        let effective = parse_status(status).ok_or_else(missing)?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        // Real, effective, saved, and file system user.
        let user = field("Uid:").and_then(|users| users.split_whitespace().nth(3));
        // Kernels without filters do not have these lines.
        let is = |name, value| field(name).is_some_and(|text| text.trim() == value);
        Ok(Confined {
            user: user
                .and_then(|user| user.parse().ok())
                .ok_or_else(missing)?,
            capabilities: effective,
            is_filtered: is("Seccomp:", "2"),
            gains_nothing: is("NoNewPrivs:", "1"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_and_what_is_missing_is_not_confined() {
        let status = "Name:\tx\nUid:\t0\t65534\t0\t65534\nCapEff:\t0000000000080004\n";
        let seen = Confined::read(status).unwrap();
        assert_eq!((seen.user, seen.capabilities.0), (65_534, 1 << 19 | 1 << 2));
        assert!(!seen.is_filtered && !seen.gains_nothing);
        let more = format!("{status}NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n");
        let seen = Confined::read(&more).unwrap();
        assert!(seen.is_filtered && seen.gains_nothing);
        assert!(Confined::read("Name:\tx\n").is_err());
        let ours = Confined::of(std::process::id()).unwrap();
        assert_eq!(ours.user, rustix::process::geteuid().as_raw());
    }
}
