//! Resource limits of processes that a hostile file could make run for ever, or use all memory.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Memory of an unpacker, in addition to what it has at its start: an xz decoder takes 96 MiB at
/// most.
const MEMORY_BYTES: u64 = 160 << 20;

/// Memory of a parser, in addition to what it has at its start: symbols of the largest known
/// programs take a fifth of it for a moment.
const PARSER_MEMORY_BYTES: u64 = 512 << 20;

/// Memory of a parser that finds code, in addition to what it has at its start: what other parsers
/// may have, and as much debug information as is read to look at code.
const CODE_FINDER_MEMORY_BYTES: u64 = PARSER_MEMORY_BYTES + (2 << 30);

/// Memory of a process that does one command on recordings, in addition to what it has at its start:
/// the samples of a file may take 2 GiB, and what is made of them is in memory as well.
const COMMAND_MEMORY_BYTES: u64 = 8 << 30;

/// Maximum size of the recording that a parser makes of another one.
pub const RECORDING_BYTES: u64 = 1 << 30;

/// Maximum CPU time of such a command in seconds. The largest recordings take one or two minutes.
const COMMAND_CPU: u64 = 1200;

/// Maximum size of a file in memory, slightly more than the unpacker's own limit.
const FILE_BYTES: u64 = 65 << 20;

/// Maximum CPU time in seconds. Unpacking 64 MiB takes one or two, and twenty times that in builds
/// without optimization.
const CPU: u64 = 30;

/// Limits the calling process, an unpacker.
pub fn of_unpacker() {
    set_memory(MEMORY_BYTES);
    set(Resource::Fsize, FILE_BYTES);
    set(Resource::Cpu, CPU);
    set(Resource::Core, 0);
}

/// Limits the calling process, a parser, which parses files one after the other: its CPU time has a
/// limit for each file ([`crate::files`]).
pub fn of_parser() {
    parses_up_to(PARSER_MEMORY_BYTES, FILE_BYTES);
}

/// Limits the calling process, a parser that finds code, in the same way.
pub fn of_code_finder() {
    parses_up_to(CODE_FINDER_MEMORY_BYTES, FILE_BYTES);
}

/// Limits the calling process, which does one command on recordings.
pub fn of_command() {
    set_memory(COMMAND_MEMORY_BYTES);
    set(Resource::Fsize, FILE_BYTES);
    set(Resource::Cpu, COMMAND_CPU);
    set(Resource::Core, 0);
}

/// Limits the calling process, a parser that reads one recording.
pub fn of_recording_reader() {
    parses_up_to(COMMAND_MEMORY_BYTES, RECORDING_BYTES);
}

fn parses_up_to(memory_bytes: u64, file_bytes: u64) {
    set_memory(memory_bytes);
    set(Resource::Fsize, file_bytes);
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

/// Reads the first field of proc_pid_statm(5), converted to bytes.
fn address_space() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
