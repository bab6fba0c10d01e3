//! `fleet`: replaces this process by another program, `proftop-fleet`. It contains the large
//! dependencies, an SQL engine and TLS, so that proftop has none of them.

use crate::failure::{Exit, Failure};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "proftop-fleet";

/// Replaces this process by proftop-fleet, and returns only if that cannot be started. The program
/// beside proftop is tried before that in PATH: it was installed together with proftop, in the same
/// version.
pub fn run(words: &[OsString]) -> Failure {
    let beside = beside();
    let programs = beside.iter().map(|path| path.as_os_str());
    for program in programs.chain([OsStr::new(PROGRAM)]) {
        // `exec` would leave the processes that read files for proftop running, without anything to
        // do.
        probe::files::end_readers();
        let error = Command::new(program).args(words).exec();
        if error.kind() != io::ErrorKind::NotFound {
            let exit = Exit::CommandNotExecutable;
            let program = symbolize::sanitize(program.as_encoded_bytes()).into_owned();
            return Failure::new(exit, format!("cannot run {program}: {error}"));
        }
    }
    let message = "proftop-fleet is neither beside proftop nor in a folder of PATH";
    Failure::new(Exit::CommandNotFound, message)
        .detail("it is a program of its own, with an SQL engine that proftop does not need")
        .remedy(
            "cargo build --release -p proftop-fleet",
            "in a copy of the repository; then copy target/release/proftop-fleet beside proftop",
        )
}

/// Returns the path that proftop-fleet has beside this program. None if our own path is not known.
fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.join(PROGRAM))
}
