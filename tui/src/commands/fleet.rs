//! What proftop leaves to another program, `proftop-fleet`. It contains the large dependencies, an
//! SQL engine and TLS, so that proftop has none of them. Under sudo it runs as the user.

/// What an address of `open` leads to.
mod fetched;
mod program;

pub use fetched::{Ending, Fetched, Fetching};

use crate::commands::input;
use crate::failure::{Exit, Failure};
use probe::privilege::UserRights;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Runs `fleet`: replaces this process by proftop-fleet, and returns only if that cannot be started.
pub fn run(words: &[OsString]) -> Failure {
    let program = match program::find() {
        Ok(program) => program,
        Err(failure) => return failure,
    };
    // `exec` would leave the processes that read files for proftop running, without anything to do.
    probe::files::end_readers();
    let mut command = Command::new(&program);
    command.args(words);
    UserRights::current().apply_to(&mut command);
    let error = command.exec();
    let name = input::name(&program);
    Failure::new(
        Exit::CommandNotExecutable,
        format!("cannot run {name}: {error}"),
    )
}
