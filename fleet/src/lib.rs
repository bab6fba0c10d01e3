//! `proftop-fleet` sends what `proftop agent` has recorded on a machine to a store for the profiles
//! of many machines. It needs only the right to read the agent's spool: sampling and sending are
//! separate programs, so that a server that is slow, unreachable or malicious cannot affect the
//! privileged one.

#![forbid(unsafe_code)]

/// Answers questions about many machines.
mod ask;
mod backoff;
/// Reads and writes a bucket of object storage.
pub mod bucket;
pub mod config;
mod dates;
mod encode;
/// Engines that run SQL.
mod engine;
mod failure;
/// Generates windows of an artificial fleet, for tests and measurements.
pub mod generate;
/// Handles signals.
mod interrupt;
/// Opens in proftop what a server or a folder keeps.
mod open;
mod output;
/// Drops rights before anything is sent.
mod rights;
/// Rows of an engine's answer.
mod rows;
pub mod schedule;
mod ship;
/// Simulates a fleet of hosts with recorded stacks, for measurements.
pub mod simulate;
pub mod sinks;
mod spool;
/// Questions as SQL.
mod sql;
mod state;
mod status;
pub mod window;
mod words;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::path::PathBuf;
use std::process::ExitCode;

/// Send what proftop agents have recorded to where the profiles of many machines are kept
#[derive(Debug, Parser)]
#[command(version, about)]
struct Words {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Send the windows that the agent writes into its spool, to each sink of the configuration
    Ship {
        /// The configuration, a file of TOML; see docs/fleet.md
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// End when everything that is there was sent, with exit code 1 if a sink does not take it
        #[arg(long)]
        once: bool,
        /// Run as root, who should not speak to servers: for containers that have no other user
        #[arg(long)]
        as_root: bool,
    },
    /// Print what was sent to each sink, what waits, and what was lost
    Status {
        /// The configuration, a file of TOML
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Print one JSON object; see docs/fleet.md
        #[arg(long)]
        json: bool,
    },
    /// Open in proftop a profile of what Pyroscope or a folder of Parquet keeps
    Open(open::Open),
    #[command(flatten)]
    Ask(Box<ask::Question>),
}

/// Runs the program: parses its arguments, and returns its exit code.
pub fn main() -> ExitCode {
    let words = Words::parse();
    match run(words.task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("proftop-fleet: {failure}");
            failure.code()
        }
    }
}

fn run(task: Task) -> Result<(), Failure> {
    match task {
        Task::Ship {
            config,
            once,
            as_root,
        } => {
            let config = config::read(&config)?;
            rights::give_up(as_root)?;
            ship::run(&config, once)
        }
        Task::Open(open) => open::run(&open),
        Task::Ask(question) => ask::run(&question),
        Task::Status { config, json } => status::run(&config::read(&config)?, json),
    }
}
