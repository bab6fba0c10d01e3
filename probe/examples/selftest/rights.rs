//! Samples as a user other than root who has the capabilities that BPF needs. Kernels before 5.11
//! want CAP_SYS_RESOURCE as well, because maps count as locked memory there. Root of a container
//! may not have it; the first program of a virtual machine has all capabilities.

use super::own_machine;
use probe::{BpfSource, Config, Source as _, Target};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::CapabilitySet;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use test_support::become_other_user;

/// The argument that makes this program sample as it was started.
pub const SAMPLE: &str = "sample";

/// The capabilities without which BPF cannot sample. Those of docs/security.md for files and names
/// are left out.
const NEEDED: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);
/// Memory that processes may lock on these kernels, if nobody has changed it.
const LOCKED_BYTES: u64 = 64 << 10;
/// The exit status if BPF is refused.
const REFUSED: u8 = 3;
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Checks with which capabilities the kernel lets that user sample by BPF.
pub fn check() -> Result<(), String> {
    if !own_machine::is_ours() {
        return Ok(());
    }
    // Kernels of Debian begin with 3, where CAP_PERFMON is not enough (docs/install.md).
    let paranoid = std::fs::write("/proc/sys/kernel/perf_event_paranoid", "2");
    paranoid.map_err(|error| format!("perf_event_paranoid cannot be set: {error}"))?;
    let counts_maps = own_machine::release() < (5, 11);
    let without = if counts_maps { REFUSED } else { 0 };
    let both = NEEDED.union(CapabilitySet::SYS_RESOURCE);
    for (capabilities, expected) in [(both, 0), (NEEDED, without)] {
        let mut command = Command::new("/proc/self/exe");
        command.arg(SAMPLE);
        // SAFETY: between fork and exec there are system calls only.
        unsafe { command.pre_exec(move || become_user(capabilities)) };
        let status = command.status().map_err(|error| error.to_string())?;
        println!("a user with {capabilities:?}: {status}");
        if status.code() != Some(expected.into()) {
            return Err(format!("expected was the status {expected}"));
        }
    }
    Ok(())
}

/// Makes the calling process one of that user, with the usual limit of locked memory.
fn become_user(capabilities: CapabilitySet) -> io::Result<()> {
    let locked = Rlimit {
        current: Some(LOCKED_BYTES),
        maximum: Some(LOCKED_BYTES),
    };
    setrlimit(Resource::Memlock, locked)?;
    become_other_user(capabilities)
}

/// Samples this process by BPF until there is a sample.
pub fn sample() -> ExitCode {
    std::thread::spawn(|| {
        loop {
            std::hint::spin_loop();
        }
    });
    let config = Config {
        target: Target {
            pids: vec![std::process::id()],
            ..Target::default()
        },
        ..Config::default()
    };
    let mut source = match BpfSource::start(&config) {
        Ok(source) => source,
        Err(error) => {
            println!("refused: {error}");
            return ExitCode::from(REFUSED);
        }
    };
    let begun = Instant::now();
    while begun.elapsed() < WAIT_MAX {
        match source.poll(Duration::from_millis(100)) {
            Ok(batch) if batch.samples.is_empty() => {}
            Ok(_) => return ExitCode::SUCCESS,
            Err(error) => {
                println!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("there are no samples");
    ExitCode::FAILURE
}
