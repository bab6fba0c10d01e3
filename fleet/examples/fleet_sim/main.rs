//! Measures proftop-fleet with simulated hosts, up to 10,000 of them, and prints what was measured
//! beside what it should be. bench/README.md has results, and what to record before.
//!
//!     cargo build --release -p proftop-fleet --bins --examples
//!     target/release/examples/fleet_sim --work DIR --recorded SPOOL [ROW…]
//!
//! DIR is a new folder for files, which are left there. Push and outage flush a file for each window:
//! with DIR in memory (`/dev/shm`) that is no measurement of a disk. `--small` is for tests: a few hosts, and the
//! recording of `proftop demo` if no other one is given.

mod asking;
mod bytes;
mod cpu;
mod double;
mod hosts;
mod objects;
mod pushing;
mod quality;
mod table;
mod volume;
mod writing;

use clap::{Parser, ValueEnum};
use proftop_fleet::simulate::{Fleet, Recorded, Weighting};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use table::Row;

/// 2026-11-21 09:00 UTC.
const BEGIN_MS: i64 = 1_795_251_600_000;

/// An error, as a sentence.
type Sentence = String;

#[derive(Debug, Parser)]
struct Words {
    /// Spools of `proftop agent`, or recordings, of which hosts have the stacks
    #[arg(long)]
    recorded: Vec<PathBuf>,
    /// A new folder for files
    #[arg(long)]
    work: PathBuf,
    /// A few hosts, for a test
    #[arg(long)]
    small: bool,
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// How many hosts' hour is written; then twice as many, unless --once
    #[arg(long, default_value_t = 50)]
    hosts: u32,
    /// Write that many hosts' hour only, as for a fleet that is written in one go
    #[arg(long)]
    once: bool,
    /// How often each question is asked
    #[arg(long, default_value_t = 200)]
    runs: usize,
    /// How many hosts send to Pyroscope at the same time; each needs two open files (`ulimit -n`)
    #[arg(long, default_value_t = 10_000)]
    pushing: u32,
    /// For how many minutes they do
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// What is measured; all of it if nothing is given
    rows: Vec<What>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Bytes of a host and an hour
    Bytes,
    /// Writing and compacting an hour of many hosts
    Volume,
    /// Questions about what Volume has written
    Queries,
    /// Whether a change is found, and none where there is none
    Quality,
    /// Sending from all hosts to the double of Pyroscope
    Push,
    /// The same when the server was away
    Outage,
    /// Writing files of Parquet from many hosts, into a folder and as objects
    Files,
}

/// What all measurements share.
struct Setup {
    recorded: Recorded,
    work: PathBuf,
    is_small: bool,
    seed: u64,
    hosts: u32,
    is_once: bool,
    runs: usize,
    pushing: u32,
    minutes: u32,
}

impl Setup {
    /// Returns a fleet of hosts with 32 CPUs for an hour, or of smaller ones for a quarter.
    fn fleet(&self) -> Fleet {
        Fleet {
            seed: self.seed,
            cpus: if self.is_small { 2 } else { 32 },
            rate_hz: 19,
            services: 4,
            weighting: Weighting::Zipf,
            begin_ms: BEGIN_MS,
            minutes: if self.is_small { 15 } else { 60 },
            planted: 0.03,
            has_faults: true,
        }
    }

    /// Returns the number of hosts that are simulated in a time that passes faster: fewer, as each has
    /// hours of windows.
    fn some(&self) -> u32 {
        if self.is_small {
            10
        } else {
            (self.pushing / 25).clamp(10, 400)
        }
    }

    /// Returns the program whose questions are asked.
    fn program(&self) -> Result<PathBuf, Sentence> {
        let here = std::env::current_exe().map_err(|error| error.to_string())?;
        let folder = here.parent().and_then(Path::parent);
        let program = folder.map(|it| it.join("proftop-fleet"));
        let program = program.filter(|it| it.exists());
        program.ok_or_else(|| "proftop-fleet is not beside the folder of this program".into())
    }

    /// Runs the program, and returns what it prints.
    fn ask(&self, words: &[&str]) -> Result<Vec<u8>, Sentence> {
        let output = Command::new(self.program()?)
            .args(words)
            .output()
            .map_err(|error| format!("proftop-fleet does not start: {error}"))?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(format!(
                "{words:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            ))
        }
    }
}

fn main() -> ExitCode {
    match run(Words::parse()) {
        Ok(rows) if rows.iter().any(|it| it.is_reached == Some(false)) => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fleet_sim: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(words: Words) -> Result<Vec<Row>, Sentence> {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/demo.pft");
    let places = match &words.recorded[..] {
        [] if words.small => vec![PathBuf::from(demo)],
        [] => return Err("what was recorded is missing: --recorded SPOOL".into()),
        places => places.to_vec(),
    };
    std::fs::create_dir_all(&words.work)
        .map_err(|error| format!("cannot make {}: {error}", words.work.display()))?;
    let setup = Setup {
        recorded: Recorded::read(&places)?,
        work: words.work,
        is_small: words.small,
        seed: words.seed,
        hosts: if words.small { 3 } else { words.hosts },
        is_once: words.once,
        runs: if words.small { 1 } else { words.runs },
        pushing: words.pushing,
        minutes: words.minutes,
    };
    let services = setup.recorded.services.iter();
    let services: Vec<String> = services
        .map(|it| format!("{} ({} stacks)", it.name, it.stacks.len()))
        .collect();
    eprintln!(
        "{} services were recorded: {}",
        services.len(),
        services.join(", ")
    );
    let all = What::value_variants();
    let wanted = if words.rows.is_empty() {
        all
    } else {
        &words.rows
    };
    let mut rows = Vec::new();
    for what in wanted {
        let measured = match what {
            What::Bytes => bytes::measure(&setup)?,
            What::Volume => volume::measure(&setup)?,
            What::Queries => asking::measure(&setup)?,
            What::Quality => quality::measure(&setup)?,
            What::Push => pushing::measure(&setup)?,
            What::Outage => pushing::outage(&setup)?,
            What::Files => objects::measure(&setup)?,
        };
        measured.iter().for_each(|row| eprintln!("{row}"));
        rows.extend(measured);
    }
    table::print(&rows);
    Ok(rows)
}
