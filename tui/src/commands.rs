//! What each subcommand does, and what has to be true before sampling starts.

mod batch;
mod diff;
pub mod doctor;
mod export;
mod open_file;
mod output;
mod record;
mod report;
mod run_command;
mod sampling;
mod symbolize;
mod top;

use crate::cli::{CommandLine, Config, Mode, Request};
use crate::failure::rights::{Invocation, cannot_sample};
use crate::failure::{Exit, Failure};
use crate::target::Target;
use probe::child::{HeldCommand, Streams, hold_command};
use probe::features;
use probe::privilege::{InvokingUser, Rights};
use std::io::{self, Write};

pub fn run(request: Request) -> Result<Exit, Failure> {
    match request {
        Request::Print(text) => print(&text),
        Request::Doctor(config) => doctor::run(&config),
        Request::Symbolize(config) => symbolize::run(&config),
        Request::Report(config) => report::run(&config),
        Request::Diff(config) => diff::run(&config),
        Request::Export(config) => export::run(&config),
        Request::Top(config) => {
            // Rights first: who lacks them needs to know that, screen or not.
            let subject = prepare(&config)?;
            if config.mode == Mode::Screen {
                top::check_terminal()?;
            }
            match &config.mode {
                Mode::Screen => top::run(&config, subject),
                Mode::Batch(mode) => batch::run(&config, subject, mode),
                Mode::Record(mode) => record::run(&config, subject, mode),
            }
        }
    }
}

/// What a run samples, once it is known to be possible.
#[derive(Debug)]
pub enum Subject {
    Existing(Target),
    /// Started and waiting. Release it when the sampler watches its pid.
    Command(Target, HeldCommand),
}

/// Every check that can fail before the screen opens, in the order in which a
/// user wants to hear: the words, the target, then the rights.
pub fn prepare(config: &Config) -> Result<Subject, Failure> {
    check_rate(config.sample.rate_hz, features::max_sample_rate())?;
    let target = Target::resolve(&config.target)?;
    let rights = Rights::current()
        .map_err(|error| Failure::failed(format!("failed to read `/proc/self/status`: {error}")))?;
    rights.can_sample().map_err(|missing| {
        let paranoid = features::perf_event_paranoid();
        cannot_sample(&missing, paranoid, &Invocation::current())
    })?;
    check_namespaces(&target)?;
    match &config.command {
        None => Ok(Subject::Existing(target)),
        Some(command) => {
            let held = hold(command, &config.mode)?;
            let program = command.program.to_string_lossy();
            let target = Target::of_command(held.pid(), &program, &config.target);
            Ok(Subject::Command(target, held))
        }
    }
}

fn hold(command: &CommandLine, mode: &Mode) -> Result<HeldCommand, Failure> {
    let user = InvokingUser::under_sudo();
    let streams = match mode {
        Mode::Screen => Streams::Captured,
        Mode::Batch(_) | Mode::Record(_) => Streams::OutputToStderr,
    };
    let (program, args) = (command.program.clone(), command.args.clone());
    Ok(hold_command(program, args, user.as_ref(), streams)?)
}

fn check_rate(rate_hz: u32, max: Option<u32>) -> Result<(), Failure> {
    match max {
        Some(max) if rate_hz > max => Err(Failure::new(
            Exit::NotPossible,
            format!("cannot sample at {rate_hz} Hz: the kernel allows {max} Hz"),
        )
        .detail(format!("kernel.perf_event_max_sample_rate = {max}"))
        .remedy(format!("proftop -F {max}"), "as fast as it allows")
        .remedy(
            format!("sudo sysctl kernel.perf_event_max_sample_rate={rate_hz}"),
            "until the next boot",
        )),
        _ => Ok(()),
    }
}

/// The kernel side sees the host's numbers; in a namespace with numbers of its
/// own every name would be that of somebody else.
fn check_namespaces(target: &Target) -> Result<(), Failure> {
    if !features::in_host_pid_namespace() {
        return Err(Failure::new(
            Exit::NotPossible,
            "cannot sample: this container has a pid namespace of its own",
        )
        .detail("pids in here are not those that the kernel's samples carry")
        .remedy("docker run --pid=host …", "starts it in the host's"));
    }
    if target.cgroup.is_some() && !features::in_host_cgroup_namespace() {
        return Err(Failure::new(
            Exit::NotPossible,
            "cannot use -g: this container has a cgroup namespace of its own",
        )
        .remedy("docker run --cgroupns=host …", "starts it in the host's"));
    }
    Ok(())
}

/// A reader that has had enough is no failure.
pub fn print(text: &str) -> Result<Exit, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(format!(
            "failed to write to standard output: {error}"
        ))),
        _ => Ok(Exit::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_above_the_kernels_names_the_setting() {
        let failure = check_rate(999, Some(500)).unwrap_err();
        assert_eq!(failure.exit, Exit::NotPossible);
        let text = failure.to_string();
        assert!(
            text.contains("kernel.perf_event_max_sample_rate = 500"),
            "{text}"
        );
        assert!(text.contains("proftop -F 500"), "{text}");
        assert!(check_rate(500, Some(500)).is_ok());
        assert!(check_rate(500, None).is_ok());
    }
}
