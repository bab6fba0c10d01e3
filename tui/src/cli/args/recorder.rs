//! The arguments of a flight recorder: those of `agent`, and those that `record --ring` shares with
//! it.

use super::{SampleArgs, TargetArgs};
use crate::condition::Condition;
use crate::values;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

// What a flight recorder keeps, and when it saves the ring.
#[derive(Debug, Args)]
pub struct RingArgs {
    /// The bytes that the file of the ring may take, with the one that takes its place when it is
    /// written anew [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = values::ring_size, help_heading = "Flight recorder")]
    pub ring_size: Option<u64>,
    /// Save the ring when cpu>80%, queue>20ms (how long threads wait for a CPU), pressure:cpu>50%
    /// (or io, memory), process>150%, process:NAME>150% or file:PATH, in the last second, or with
    /// for 5s behind; may be given more than once
    #[arg(long = "save-on", value_name = "CONDITION", value_parser = Condition::parse, help_heading = "Flight recorder")]
    pub save_on: Vec<Condition>,
    /// How much of the time after a condition is saved with it [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = values::keep, help_heading = "Flight recorder")]
    pub after: Option<Duration>,
    /// How many saved files there may be beside the ring; of more the oldest are removed
    /// [default: 20]
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = "Flight recorder")]
    pub saves: Option<u32>,
    /// Make a socket at which proftop agent save and proftop agent status are answered, for root
    /// and the own user only [default of agent: control in $RUNTIME_DIRECTORY, else in
    /// /run/proftop]
    #[arg(long, value_name = "PATH", help_heading = "Flight recorder")]
    pub control: Option<PathBuf>,
}

// Arguments of `agent`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Agent {
    #[command(subcommand)]
    pub task: Option<AgentTask>,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sample: SampleArgs,
    /// How much time the ring has at least [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = values::ring, help_heading = "Flight recorder")]
    pub ring: Option<Duration>,
    #[command(flatten)]
    pub ring_args: RingArgs,
    /// Samples per second while this host is in the cohort: a part of all hosts, which are other ones
    /// in each period
    #[arg(long, value_name = "HZ", value_parser = values::rate, help_heading = "Flight recorder")]
    pub cohort_rate: Option<u32>,
    /// The part of all hosts that is in the cohort, as 0.05 or 5% [default: 0.05]
    #[arg(long, value_name = "PART", value_parser = values::share, help_heading = "Flight recorder")]
    pub cohort_share: Option<f64>,
    /// How long the cohort has the same hosts [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = values::cohort_period, help_heading = "Flight recorder")]
    pub cohort_period: Option<Duration>,
    /// The file of the ring, a .pft [default: ring.pft in $STATE_DIRECTORY, else in
    /// /var/lib/proftop]
    #[arg(short, long, value_name = "FILE", help_heading = "Flight recorder")]
    pub output: Option<PathBuf>,
    /// Write each window of time into this folder, as a .pft of its own, for another program to send
    /// to where the profiles of many machines are kept
    #[arg(long, value_name = "DIR", value_parser = values::folder, help_heading = "Flight recorder")]
    pub spool: Option<PathBuf>,
    /// How long a window is [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = values::spool_window, help_heading = "Flight recorder")]
    pub spool_window: Option<Duration>,
    /// The bytes that the windows in the folder may take; of more the oldest are removed
    /// [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = values::ring_size, help_heading = "Flight recorder")]
    pub spool_size: Option<u64>,
}

// Requests to a running agent.
#[derive(Debug, Subcommand)]
pub enum AgentTask {
    /// Have the running agent save what it has, and print where that is
    Save(AgentSave),
    /// Print what the running agent records, since when, and what it costs
    Status(AgentStatus),
}

// Arguments of `agent save`.
#[derive(Debug, Args)]
pub struct AgentSave {
    /// Why: a note for those who read the file
    #[arg(long, value_name = "TEXT", value_parser = values::note)]
    pub note: Option<String>,
    /// The socket of the agent [default: /run/proftop/control]
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
}

// Arguments of `agent status`.
#[derive(Debug, Args)]
pub struct AgentStatus {
    /// Print one JSON object; see docs/recorder.md
    #[arg(long)]
    pub json: bool,
    /// The socket of the agent [default: /run/proftop/control]
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
}
