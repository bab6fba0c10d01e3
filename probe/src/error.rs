//! What can go wrong before the first sample.

use std::io;

/// Why sampling could not begin: what was attempted, and what the kernel said.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object as a whole, its maps included.
    #[error("cannot load the BPF object: {0}")]
    Load(#[source] aya::EbpfError),
    /// One program of it.
    #[error("the kernel refused the BPF program `{program}`: {reason}")]
    Refused {
        /// Its name in the object.
        program: &'static str,
        /// The last line of the verifier's log, or the error itself.
        reason: String,
    },
    /// The object is another one than this program was built with.
    #[error("the BPF object has no {0}: it does not belong to this build")]
    Foreign(&'static str),
    /// A map that the object should have.
    #[error("cannot open the BPF map {name}: {source}")]
    Map {
        /// Its name in the object.
        name: &'static str,
        /// What the kernel said.
        source: aya::maps::MapError,
    },
    /// The maps that hold unwind tables cannot be mapped here.
    #[error("cannot use the BPF maps for unwind tables: {0}")]
    Tables(#[source] io::Error),
    /// Nobody would be woken when samples fill their ring.
    #[error("cannot wait for the ring of samples: {0}")]
    Ring(#[source] io::Error),
    /// No perf event that ticks.
    #[error("the kernel gives no clock on CPU {cpu}: {source}")]
    PerfEvent {
        /// The CPU.
        cpu: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// What is to be counted besides time is not counted here.
    #[error("cannot count {name}: {source}")]
    Happening {
        /// What it is called.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// `/sys/devices/system/cpu/online` is not as it should be.
    #[error("cannot read which CPUs are online: {0}")]
    Cpus(#[source] io::Error),
    /// Where the kernel says what its tracepoints give.
    #[error("cannot read the kernel's types: {0}")]
    Types(#[source] aya::BtfError),
    /// The target's control group is gone, or out of reach.
    #[error("cannot open the directory of the control group: {0}")]
    Cgroup(#[source] io::Error),
    /// See `Config::calls`.
    #[error("probes of calls were not asked for")]
    NoCalls,
    /// See `Machine::has_probes`.
    #[error("functions and tracepoints cannot be watched on arm64 yet, only sampled")]
    NotOnThisMachine,
    /// Kernels without `bpf_loop` have an object that takes samples of the clock alone.
    #[error(
        "this kernel has no bpf_loop (Linux 5.17 and newer have it): BPF samples the time on CPUs here, and nothing else"
    )]
    NoLoop,
    /// Functions of programs cannot be watched.
    #[error("this kernel has no probes of user code (CONFIG_UPROBE_EVENTS): {0}")]
    Uprobes(#[source] io::Error),
    /// No process of the target is left.
    #[error("what was to be sampled has ended")]
    Ended,
    /// All CPUs that were asked for are offline.
    #[error("no CPU could be sampled")]
    NoCpu,
}

impl Error {
    /// Whether rights are what is missing.
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
