//! Limits of a process that could be made to work for ever, or to take all memory.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Beyond what the process has when it begins: an xz decoder takes 96 MiB at most.
const MEMORY_BYTES: u64 = 160 << 20;

/// Of a file in memory, and a little: the unpacker itself stops before.
const FILE_BYTES: u64 = 65 << 20;

/// In seconds. Unpacking 64 MiB takes one or two, and twenty times that without
/// optimization.
const CPU: u64 = 30;

/// Of the calling process.
pub fn of_unpacker() {
    let at_most = |bytes| Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    if let Some(begins_with) = address_space() {
        _ = setrlimit(Resource::As, at_most(begins_with + MEMORY_BYTES));
    }
    _ = setrlimit(Resource::Fsize, at_most(FILE_BYTES));
    _ = setrlimit(Resource::Cpu, at_most(CPU));
    _ = setrlimit(Resource::Core, at_most(0));
}

/// The first field of proc_pid_statm(5), in bytes.
fn address_space() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
