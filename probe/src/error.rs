//! What can go wrong before the first sample.

use std::io;

/// Why sampling could not begin: what was attempted, and what the kernel said.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot load the BPF object: {0}")]
    Load(#[source] aya::EbpfError),
    #[error("the kernel refused the BPF program `{program}`: {reason}")]
    Refused {
        program: &'static str,
        /// The last line of the verifier's log, or the error itself.
        reason: String,
    },
    #[error("the BPF object has no {0}: it does not belong to this build")]
    Foreign(&'static str),
    #[error("cannot open the BPF map {name}: {source}")]
    Map {
        name: &'static str,
        source: aya::maps::MapError,
    },
    #[error("cannot use the BPF maps for unwind tables: {0}")]
    Tables(#[source] io::Error),
    #[error("perf_event_open for CPU {cpu} failed: {source}")]
    PerfEvent { cpu: u32, source: io::Error },
    #[error("cannot read which CPUs are online: {0}")]
    Cpus(#[source] io::Error),
    #[error("cannot open the directory of the control group: {0}")]
    Cgroup(#[source] io::Error),
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
