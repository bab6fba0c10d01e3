//! *Rights*: what the kernel lets this process do, and what is missing for sampling. Nothing is
//! raised or dropped here: see [`confine`](crate::confine).

mod user;
mod user_rights;

use std::fmt;
use std::io;
use std::sync::OnceLock;

pub use user::{InvokingUser, uid_of};
pub(crate) use user_rights::Identity;
pub use user_rights::UserRights;

/// The capabilities that a profiler can use, by their kernel numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Allows to read files and directories of others.
    DacReadSearch = 2,
    /// Allows to inspect processes of others.
    SysPtrace = 19,
    /// On old kernels it includes capabilities that newer kernels have separately.
    SysAdmin = 21,
    /// Allows to lock memory beyond the limit, which maps need before Linux 5.11.
    SysResource = 24,
    /// Allows to see the addresses of the kernel.
    Syslog = 34,
    /// Allows to open perf events of all processes.
    Perfmon = 38,
    /// Allows to load BPF programs.
    Bpf = 39,
    /// Allows to open the files that others have mapped.
    CheckpointRestore = 40,
}

impl Capability {
    /// Every capability that makes a difference here.
    pub const ALL: [Capability; 8] = [
        Capability::DacReadSearch,
        Capability::SysPtrace,
        Capability::SysAdmin,
        Capability::SysResource,
        Capability::Syslog,
        Capability::Perfmon,
        Capability::Bpf,
        Capability::CheckpointRestore,
    ];

    /// Returns the name that the kernel and `setcap` use, for example `CAP_BPF`.
    pub fn name(self) -> &'static str {
        match self {
            Capability::DacReadSearch => "CAP_DAC_READ_SEARCH",
            Capability::SysPtrace => "CAP_SYS_PTRACE",
            Capability::SysAdmin => "CAP_SYS_ADMIN",
            Capability::SysResource => "CAP_SYS_RESOURCE",
            Capability::Syslog => "CAP_SYSLOG",
            Capability::Perfmon => "CAP_PERFMON",
            Capability::Bpf => "CAP_BPF",
            Capability::CheckpointRestore => "CAP_CHECKPOINT_RESTORE",
        }
    }
}

/// A set of capabilities, as the bit mask that the kernel prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Whether the kernel will act as if `capability` were held: `CAP_SYS_ADMIN` still includes the
    /// two that were split off it.
    pub fn allow(self, capability: Capability) -> bool {
        let split_off = matches!(capability, Capability::Bpf | Capability::Perfmon);
        self.has(capability) || (split_off && self.has(Capability::SysAdmin))
    }

    /// Returns the names of the capabilities that make a difference here.
    pub fn names(self) -> Vec<&'static str> {
        let held = Capability::ALL.into_iter();
        held.filter(|capability| self.has(*capability))
            .map(Capability::name)
            .collect()
    }

    /// Whether the capability is in the set.
    pub fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }
}

/// The identity of this process for the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// The effective user of this process.
    pub euid: u32,
    /// The effective capabilities.
    pub effective: Capabilities,
    /// Whether the capabilities are valid only inside a user namespace, for example in a rootless
    /// container. BPF requires them in the initial one.
    pub in_user_namespace: bool,
}

impl Rights {
    /// Returns the rights with which this process was started. Rights that it gives up later are
    /// kept by those of its threads and processes that need them.
    pub fn current() -> io::Result<Rights> {
        static FIRST: OnceLock<Rights> = OnceLock::new();
        if let Some(rights) = FIRST.get() {
            return Ok(*rights);
        }
        let read = Rights::read()?;
        Ok(*FIRST.get_or_init(|| read))
    }

    fn read() -> io::Result<Rights> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        // The file is missing on kernels without user namespaces.
        let uid_map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        Ok(Rights {
            euid: rustix::process::geteuid().as_raw(),
            effective: parse_status(&status).ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    "no CapEff line in /proc/self/status",
                )
            })?,
            in_user_namespace: !maps_every_user(&uid_map),
        })
    }

    /// Whether a capability can be used: it is held, and in the initial user namespace.
    pub fn allow(&self, capability: Capability) -> bool {
        self.effective.allow(capability)
    }

    /// Whether the kernel will allow this process to load the programs and to open the clock.
    pub fn can_sample(&self) -> Result<(), MissingRights> {
        let missing: Vec<_> = [Capability::Bpf, Capability::Perfmon]
            .into_iter()
            .filter(|&capability| !self.allow(capability))
            .collect();
        if missing.is_empty() && !self.in_user_namespace {
            return Ok(());
        }
        Err(MissingRights {
            euid: self.euid,
            missing,
            in_user_namespace: self.in_user_namespace,
        })
    }

    /// Returns sentences about the effects of these rights on samples, for the user.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.allow(Capability::SysPtrace) {
            notes.push(
                "without CAP_SYS_PTRACE programs whose memory may not be read have no names and \
                 no callers, and waits that go on have no stacks"
                    .into(),
            );
        }
        notes
    }
}

/// Why this process may not sample. Displays as `uid 1000 without CAP_BPF+CAP_PERFMON`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRights {
    /// The effective user of this process.
    pub euid: u32,
    /// The missing capabilities; empty if only the user namespace is the reason.
    pub missing: Vec<Capability>,
    /// See [`Rights::in_user_namespace`].
    pub in_user_namespace: bool,
}

impl fmt::Display for MissingRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uid {}", self.euid)?;
        if !self.missing.is_empty() {
            let names: Vec<_> = self.missing.iter().map(|c| c.name()).collect();
            write!(f, " without {}", names.join("+"))?;
        }
        if self.in_user_namespace {
            f.write_str(" inside a user namespace (rootless container)")?;
        }
        Ok(())
    }
}

impl std::error::Error for MissingRights {}

/// Returns the effective capabilities in a `/proc/PID/status`.
pub(crate) fn parse_status(status: &str) -> Option<Capabilities> {
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok().map(Capabilities)
}

/// Whether this is the initial user namespace, which maps all ids onto themselves, in one line.
fn maps_every_user(uid_map: &str) -> bool {
    let fields: Vec<_> = uid_map.split_whitespace().collect();
    fields.is_empty() || fields == ["0", "0", "4294967295"]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(euid: u32, caps: &[Capability]) -> Rights {
        Rights {
            euid,
            effective: Capabilities(caps.iter().map(|&c| 1 << c as u8).sum()),
            in_user_namespace: false,
        }
    }

    #[test]
    fn reads_the_effective_set_among_the_others() {
        let status =
            "Uid:\t0\t0\t0\t0\nCapPrm:\t000001ffffffffff\nCapEff:\t000000c000000000\nCapBnd:\t0\n";
        let effective = parse_status(status).unwrap();
        let held: Vec<_> = Capability::ALL
            .into_iter()
            .filter(|&c| effective.has(c))
            .map(Capability::name)
            .collect();
        assert_eq!(held, ["CAP_PERFMON", "CAP_BPF"]);
        assert_eq!(parse_status("Name:\tx\n"), None);
        assert_eq!(parse_status("CapEff:\tzz\n"), None);
    }

    #[test]
    fn two_capabilities_are_enough_and_admin_stands_for_both() {
        assert!(
            rights(1000, &[Capability::Bpf, Capability::Perfmon])
                .can_sample()
                .is_ok()
        );
        assert!(rights(1000, &[Capability::SysAdmin]).can_sample().is_ok());
    }

    #[test]
    fn says_which_capability_is_missing() {
        let missing = rights(1000, &[]).can_sample().unwrap_err();
        assert_eq!(missing.to_string(), "uid 1000 without CAP_BPF+CAP_PERFMON");
        let missing = rights(0, &[Capability::Bpf]).can_sample().unwrap_err();
        assert_eq!(missing.to_string(), "uid 0 without CAP_PERFMON");
    }

    #[test]
    fn root_of_a_user_namespace_is_not_root() {
        let mut root = rights(0, &[Capability::SysAdmin]);
        root.in_user_namespace = true;
        assert_eq!(
            root.can_sample().unwrap_err().to_string(),
            "uid 0 inside a user namespace (rootless container)"
        );
        assert!(maps_every_user("         0          0 4294967295\n"));
        assert!(!maps_every_user("         0       1000          1\n"));
    }

    #[test]
    fn reads_this_process() {
        let rights = Rights::current().unwrap();
        assert_eq!(rights.euid, rustix::process::geteuid().as_raw());
    }
}
