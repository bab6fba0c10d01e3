//! `open pyroscope+https://…`, `open parquet+DIR` and `open parquet+s3://…`: proftop-fleet fetches the profile and writes it
//! to its standard output, from which we read it as from any other pipe. So proftop itself speaks to
//! no network, and reads no Parquet.
//!
//! ```text
//! proftop open ADDRESS -- OPTIONS
//!   └─ proftop-fleet open ADDRESS --output=- OPTIONS      as the user, without a terminal
//!        standard output: the profile, in a format that proftop reads
//!        standard error, exit status: why there is none
//! ```

use super::program;
use crate::cli::FleetAddress;
use crate::commands::complaints::Complaints;
use crate::commands::input;
use crate::failure::{Exit, Failure};
use probe::helper::Helper;
use rustix::process::Signal;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStdout, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for the end of proftop-fleet after the end of what it has written.
const END_WAIT: Duration = Duration::from_secs(5);

/// The exit status by which proftop-fleet says that it does not understand what was typed.
const USAGE: i32 = 2;

/// A running proftop-fleet. Dropping this ends it.
#[derive(Debug)]
pub struct Fetching(Arc<Helper>);

impl Drop for Fetching {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The profile that a proftop-fleet writes.
#[derive(Debug)]
pub struct Fetched(ChildStdout);

/// The end of a proftop-fleet, which tells why there is no profile.
#[derive(Debug)]
pub struct Ending {
    helper: Arc<Helper>,
    complaints: Complaints,
    program: String,
}

impl Fetching {
    /// Starts proftop-fleet for an address. To be called on the main thread.
    pub fn start(address: &FleetAddress) -> Result<(Fetching, Fetched, Ending), Failure> {
        let program = program::find().map_err(|failure| Failure {
            exit: Exit::NotPossible,
            ..failure
        })?;
        let name = input::name(&program);
        let mut command = Command::new(program);
        // The address comes first: an option whose value is missing must not take it for that.
        command.args(["open", &address.address, "--output=-"]);
        command.args(&address.options);
        let cannot = |error: io::Error| {
            Failure::new(Exit::NotPossible, format!("cannot run {name}: {error}"))
        };
        let (helper, output, errors) = Helper::start(command).map_err(cannot)?;
        let helper = Arc::new(helper);
        let fetching = Fetching(Arc::clone(&helper));
        let complaints = Complaints::read(errors, "proftop-fleet: ")
            .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        let ending = Ending {
            helper,
            complaints,
            program: name,
        };
        Ok((fetching, Fetched(output), ending))
    }
}

impl Read for Fetched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Ending {
    /// Returns why proftop-fleet has failed. None if it has not, or if it goes on although it has
    /// written everything. To be called when its output is read or dropped.
    pub fn failure(&self) -> Option<Failure> {
        match self.helper.wait(END_WAIT) {
            Ok(None) => None,
            Ok(Some(status)) if status.success() || is_by_us(status) => None,
            Ok(Some(status)) => Some(told(&self.program, status, &self.complaints.all())),
            Err(error) => Some(Failure::failed(format!(
                "cannot wait for {}: {error}",
                self.program
            ))),
        }
    }

    /// Adds to a failure about an unknown format which program has written it.
    pub fn of_other_version(&self, failure: Failure) -> Failure {
        failure.detail(format!(
            "{} has written it: install both in the same version",
            self.program
        ))
    }
}

/// Whether it has ended because we have stopped reading: what it wrote could not be read. If it is a
/// script, its shell tells the signal by its status.
fn is_by_us(status: ExitStatus) -> bool {
    let signal = Signal::PIPE.as_raw();
    status.signal() == Some(signal) || status.code() == Some(128 + signal)
}

/// Returns the failure of a proftop-fleet that has ended like this.
fn told(program: &str, status: ExitStatus, complaints: &[String]) -> Failure {
    let Some(first) = complaints.first() else {
        return Failure::failed(format!("{program} ended without a word: {status}"));
    };
    let Some(code) = status.code() else {
        return Failure::failed(format!("{program} ended early: {status}")).detail(first);
    };
    let exit = match code {
        USAGE => Exit::Usage,
        _ => Exit::Failed,
    };
    // Its parser of command lines explains itself on further lines, with words of its own.
    match first.strip_prefix("error: ") {
        Some(why) => Failure::new(
            exit,
            format!("{program} does not take the options behind the --: {why}"),
        ),
        None => Failure::new(exit, first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_sentence_and_status_are_passed_on() {
        let told = |raw, complaints: &[&str]| {
            let complaints: Vec<String> = complaints.iter().map(|it| (*it).into()).collect();
            let failure = told(
                "/usr/bin/proftop-fleet",
                ExitStatus::from_raw(raw),
                &complaints,
            );
            (failure.exit.code(), failure.message)
        };
        let (code, message) = told(0x100, &["Pyroscope at https://p: 401", "more"]);
        assert_eq!((code, &*message), (1, "Pyroscope at https://p: 401"));
        let (code, message) = told(0x200, &["error: unexpected argument '--x' found", "Usage"]);
        assert_eq!(code, 2);
        assert!(
            message.ends_with("take the options behind the --: unexpected argument '--x' found")
        );
        let (code, message) = told(0x300, &[]);
        assert_eq!(code, 1);
        assert!(
            message.ends_with("ended without a word: exit status: 3"),
            "{message}"
        );
        let (code, message) = told(9, &["panicked"]);
        assert_eq!(code, 1);
        assert!(message.contains("ended early: signal: 9"), "{message}");
    }
}
