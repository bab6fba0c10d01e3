//! `fleet`: another program, `proftop-fleet`, takes the place of this one. What is heavy, an SQL engine
//! and TLS, is there, so that proftop has none of it.

use crate::failure::{Exit, Failure};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "proftop-fleet";

/// Runs it in the place of this process, and returns only if it cannot be started. The one beside proftop
/// is taken first: both were installed together, in the same version.
pub fn run(words: &[OsString]) -> Failure {
    let beside = beside();
    let programs = beside.iter().map(|path| path.as_os_str());
    for program in programs.chain([OsStr::new(PROGRAM)]) {
        // Processes that read files for proftop would be left alone with nobody who asks them.
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

/// Where it would be beside this program; `None` if that cannot be told.
fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.join(PROGRAM))
}
