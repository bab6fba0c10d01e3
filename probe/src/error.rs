//! Errors that occur before the first sample.

use std::io;

/// Why sampling could not begin: what was attempted, and the kernel's error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Loading the whole object, including its maps, failed.
    #[error("cannot load the BPF object: {0}")]
    Load(#[source] aya::EbpfError),
    /// One program of it was refused.
    #[error("the kernel refused the BPF program `{program}`: {reason}")]
    Refused {
        /// Its name in the object.
        program: &'static str,
        /// The last line of the verifier's log, or the error itself.
        reason: String,
    },
    /// The object is from another build than this program.
    #[error("the BPF object has no {0}: it does not belong to this build")]
    Foreign(&'static str),
    /// A map is missing in the object.
    #[error("cannot open the BPF map {name}: {source}")]
    Map {
        /// Its name in the object.
        name: &'static str,
        /// What the kernel said.
        source: aya::maps::MapError,
    },
    /// The maps for unwind tables cannot be mapped into our memory.
    #[error("cannot use the BPF maps for unwind tables: {0}")]
    Tables(#[source] io::Error),
    /// We could not be notified when samples fill their ring.
    #[error("cannot wait for the ring of samples: {0}")]
    Ring(#[source] io::Error),
    /// A sampling clock could not be opened.
    #[error("the kernel gives no clock on CPU {cpu}: {source}")]
    PerfEvent {
        /// The CPU.
        cpu: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The event besides time cannot be counted here.
    #[error("cannot count {name}: {source}")]
    Happening {
        /// What it is called.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// `/sys/devices/system/cpu/online` is not in the expected format.
    #[error("cannot read which CPUs are online: {0}")]
    Cpus(#[source] io::Error),
    /// The kernel's BTF, which describes the arguments of tracepoints, cannot be read.
    #[error("cannot read the kernel's types: {0}")]
    Types(#[source] aya::BtfError),
    /// The target's control group is gone, or inaccessible.
    #[error("cannot open the directory of the control group: {0}")]
    Cgroup(#[source] io::Error),
    /// `Config::calls` is not set.
    #[error("probes of calls were not asked for")]
    NoCalls,
    /// This machine does not support probes: see `Machine::has_probes`.
    #[error("functions and tracepoints cannot be watched on arm64 yet, only sampled")]
    NotOnThisMachine,
    /// Kernels that lack what the usual object needs use one that takes only samples of the clock.
    #[error(
        "waits, calls and other events need BPF as Linux 6.1 has it: on this kernel BPF samples the time on CPUs, and nothing else"
    )]
    OldKernel,
    /// Functions of programs cannot be probed.
    #[error("this kernel has no probes of user code (CONFIG_UPROBE_EVENTS): {0}")]
    Uprobes(#[source] io::Error),
    /// All processes of the target have ended.
    #[error("what was to be sampled has ended")]
    Ended,
    /// All requested CPUs are offline.
    #[error("no CPU could be sampled")]
    NoCpu,
}

impl Error {
    /// Whether the cause is missing rights.
    pub fn is_permission(&self) -> bool {
        let denied =
            |error: &io::Error| matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES));
        if let Error::PerfEvent { source, .. } = self {
            return denied(source);
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if error.downcast_ref::<io::Error>().is_some_and(denied) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}
