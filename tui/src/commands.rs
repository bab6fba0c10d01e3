//! The subcommands, and the checks before sampling starts.

mod agent;
mod apart;
mod batch;
mod bpf_or_perf;
mod complaints;
mod configuration;
mod diff;
pub mod doctor;
mod documents;
mod export;
mod fleet;
mod headless;
mod input;
mod live;
mod machines;
mod mcp;
mod merge;
mod open;
mod open_file;
mod pft_sink;
mod reach;
mod record;
mod recorded;
mod recording_order;
mod report;
mod resolve;
mod run_command;
mod sampling;
mod symbolize;
mod top;
mod trace;

#[cfg(test)]
pub use open::demo_snapshot;
pub use recording_order::answer as read_recording;

use crate::cli::{BatchConfig, CommandLine, Config, Mode, RecordConfig, Request};
use crate::config::Complaint;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::stderr;
use crate::target::Target;
use bpf_or_perf::Sampler;
use probe::child::{HeldCommand, Streams, hold_command};
use probe::confine::{self, Duty};
use probe::features;
use probe::files::Opening;
use probe::privilege::InvokingUser;
use reach::probe_target;
use std::io::{self, Write};

/// Carries out a request, and returns the exit status. `main` prints the failure.
pub fn run(request: Request) -> Result<Exit, Failure> {
    match &request {
        // A command of the user is started before rights are dropped: see `confine::process`. So is
        // proftop-fleet, which replaces this process and confines itself.
        Request::Top(_) | Request::Fleet(_) => {}
        Request::Report(_) | Request::Export(_) | Request::Merge(_) | Request::Resolve(_) => {
            confine::process_that_relays(false);
        }
        Request::Diff(_) => confine::process_that_relays(true),
        _ => confine::process(),
    }
    if matches!(request, Request::Open(_) | Request::Machines(_)) {
        // These take no samples.
        confine::thread(Duty::Showing);
    }
    match request {
        Request::Completions(shell) => print(&documents::completions(shell)),
        Request::Manual => print(&documents::manual()),
        Request::Print(text) => print(&text),
        Request::Doctor(config) => doctor::run(&config),
        Request::AskAgent(ask) => agent::run(&ask),
        Request::Symbolize(config) => symbolize::run(&config),
        Request::Report(config) => report::run(&config),
        Request::Diff(config) => diff::run(&config),
        Request::Open(config) => {
            complain(&config.look.complaints);
            open::run(&config)
        }
        Request::Machines(config) => {
            complain(&config.look.complaints);
            machines::run(&config)
        }
        Request::Export(config) => export::run(&config),
        Request::Mcp(config) => mcp::run(&config),
        Request::Fleet(words) => Err(fleet::run(&words)),
        Request::Merge(config) => merge::run(&config),
        Request::Resolve(config) => resolve::run(&config),
        Request::Configuration(task) => configuration::run(task),
        Request::Top(config) => {
            complain(&config.look.complaints);
            // Rights are checked first: a user who lacks them has to learn that, even without a
            // terminal to draw on.
            let subject = prepare(&config)?;
            confine::process();
            if config.mode == Mode::Screen && !config.look.plain {
                top::check_terminal(&top::Remedies::Live)?;
            }
            match &config.mode {
                Mode::Screen => top::run(&config, subject),
                Mode::Batch(mode) => batch::run(&config, subject, mode),
                Mode::Record(mode) => record::run(&config, subject, mode),
                Mode::Trace(mode) => trace::run(&config, subject, mode),
            }
        }
    }
}

/// Gives up all rights but those of the user, for good. Called before a file is read whose author may
/// be hostile and chose every byte of it.
fn become_user(opening: Opening) -> Result<(), Failure> {
    let become_user = probe::files::become_user(opening);
    become_user.map_err(|error| Failure::failed(format!("cannot give up rights: {error}")))
}

/// Creates the event loop of the main thread.
fn event_loop() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the event loop: {error}")))
}

/// Prints the mistakes in the configuration before anything is drawn, so that they can be read
/// after the screen is left.
fn complain(complaints: &[Complaint]) {
    for complaint in complaints {
        stderr::say(complaint);
    }
}

/// The target of a run and the way to sample it, after the checks.
#[derive(Debug)]
pub struct Subject {
    pub target: Target,
    pub sampler: Sampler,
    /// The user's command: its process exists, and waits before it executes the program. Release it
    /// as soon as the sampler watches its pid.
    pub held: Option<HeldCommand>,
}

/// Makes all checks that can fail before the screen opens. The order decides which failure the user
/// reads first: on the command line, then on the target, then on rights.
pub fn prepare(config: &Config) -> Result<Subject, Failure> {
    check_rate(config.sample.rate_hz, features::max_sample_rate())?;
    check_cohort(&config.mode, features::max_sample_rate())?;
    let target = Target::resolve(&config.target)?;
    let mut asked = probe_target(&target);
    if config.command.is_some() {
        // The command will be a child of this process, with the same owner.
        asked.pids = vec![std::process::id()];
    }
    let sampler = Sampler::choose(config.sample.engine, &asked)?;
    sampler.check_counted(&config.sample.counted)?;
    let Some(command) = &config.command else {
        return Ok(Subject {
            target,
            sampler,
            held: None,
        });
    };
    let held = hold(command, &config.mode)?;
    let program = command.program.to_string_lossy();
    Ok(Subject {
        target: target.of_command(held.pid(), &program, &config.target),
        sampler,
        held: Some(held),
    })
}

fn hold(command: &CommandLine, mode: &Mode) -> Result<HeldCommand, Failure> {
    let user = InvokingUser::current();
    let streams = match mode {
        Mode::Screen => Streams::Captured,
        Mode::Batch(BatchConfig { file, .. }) | Mode::Record(RecordConfig { file, .. })
            if !output::is_stdout(file.as_deref()) =>
        {
            Streams::Shared
        }
        Mode::Batch(_) | Mode::Record(_) | Mode::Trace(_) => Streams::OutputToStderr,
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

/// Returns an error if the rate of a cohort is above what the kernel allows.
fn check_cohort(mode: &Mode, max: Option<u32>) -> Result<(), Failure> {
    let Mode::Record(record) = mode else {
        return Ok(());
    };
    let cohort = record.ring.as_ref().and_then(|ring| ring.cohort);
    match (cohort, max) {
        (Some(cohort), Some(max)) if cohort.rate_hz > max => Err(Failure::new(
            Exit::NotPossible,
            format!(
                "cannot sample at {} Hz in a cohort: the kernel allows {max} Hz",
                cohort.rate_hz
            ),
        )
        .detail(format!("kernel.perf_event_max_sample_rate = {max}"))),
        _ => Ok(()),
    }
}

/// Writes text to standard output. If the reader closes it early, as `head` does, that is no
/// failure.
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
