//! Limits of a process that could be made to work for ever, or to take all memory.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Beyond what the process has when it begins: an xz decoder takes 96 MiB at most.
const MEMORY_BYTES: u64 = 160 << 20;

/// The same of a process that understands files: symbols of the largest programs that are
/// known take a fifth of it for a moment.
const PARSER_MEMORY_BYTES: u64 = 512 << 20;

/// Of a file in memory, and a little: the unpacker itself stops before.
const FILE_BYTES: u64 = 65 << 20;

/// In seconds. Unpacking 64 MiB takes one or two, and twenty times that without
/// optimization.
const CPU: u64 = 30;

/// Of the calling process, which unpacks.
pub fn of_unpacker() {
    set_memory(MEMORY_BYTES);
    set(Resource::Fsize, FILE_BYTES);
    set(Resource::Cpu, CPU);
    set(Resource::Core, 0);
}

/// Of the calling process, which understands files, one after the other: its CPU time has a
/// bound for each ([`crate::files`]).
pub fn of_parser() {
    set_memory(PARSER_MEMORY_BYTES);
    set(Resource::Fsize, FILE_BYTES);
    set(Resource::Core, 0);
}

fn set_memory(bytes: u64) {
    if let Some(begins_with) = address_space() {
        set(Resource::As, begins_with + bytes);
    }
}

fn set(resource: Resource, at_most: u64) {
    let limit = Rlimit {
        current: Some(at_most),
        maximum: Some(at_most),
    };
    _ = setrlimit(resource, limit);
}

/// The first field of proc_pid_statm(5), in bytes.
fn address_space() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
