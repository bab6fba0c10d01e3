//! Compares whole stacks, frame by frame, with those that another unwinder finds
//! in the same registers, copied stack and mappings: the crate framehop or GDB,
//! which share nothing with ours but the files.
//!
//! Copies of stacks come from the perf source, which makes one for every sample. Both
//! walks see the same bytes; where they differ, the program prints after which
//! frame, and one of both is wrong there.
//!
//! ```text
//! cargo run --release -p probe --example unwind_compare -- [gdb] 10 COMMAND [ARGUMENT]...
//! ```

mod core_file;
mod framehop_walk;
mod gdb;
mod modules;
mod outcome;

use modules::Modules;
use outcome::Outcomes;
use probe::child::{Streams, hold_command};
use probe::{Config, KeptWalk, PerfSource, Source, Target};
use std::ffi::OsString;
use std::time::{Duration, Instant};

const RATE_HZ: u32 = 199;

/// Maximum number of frames of a stack that are compared.
const FRAMES_MAX: usize = 512;

/// Maximum number of stacks that are compared: their copies are kept until the end.
const WALKS_MAX: usize = 3000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let usage = "usage: unwind_compare [gdb] SECONDS COMMAND [ARGUMENT]...";
    let with_gdb = arguments.next_if(|word| word == "gdb").is_some();
    let seconds = arguments.next().ok_or(usage)?;
    let seconds: u64 = seconds.to_string_lossy().parse()?;
    let program = arguments.next().ok_or(usage)?;
    let time = Duration::from_secs(seconds);
    let (modules, walks) = record(time, program, arguments.collect())?;
    let theirs = if with_gdb {
        gdb::walks(&modules, &walks)?
    } else {
        framehop_walk::walks(&modules, &walks)
    };
    let mut outcomes = Outcomes::default();
    for (walk, theirs) in walks.iter().zip(&theirs) {
        let place = |address| modules.place(&walk.mappings, address);
        outcomes.add(walk, theirs, place);
    }
    print!("{outcomes}");
    Ok(())
}

/// Records walks of ours, with the registers, stacks and mappings that they used.
fn record(
    time: Duration,
    program: OsString,
    arguments: Vec<OsString>,
) -> Result<(Modules, Vec<KeptWalk>), Box<dyn std::error::Error>> {
    let held = hold_command(program, arguments, None, Streams::OutputToStderr)?;
    let config = Config {
        target: Target {
            pids: vec![held.pid()],
            children: true,
            ..Target::default()
        },
        rate_hz: RATE_HZ,
        max_depth: FRAMES_MAX as u32,
        keep_walks: true,
        ..Config::default()
    };
    let mut source = PerfSource::start(&config)?;
    let _running = held.release()?;
    let (mut modules, mut walks) = (Modules::default(), Vec::new());
    let end = Instant::now() + time;
    while Instant::now() < end && walks.len() < WALKS_MAX {
        let batch = source.poll(Duration::from_millis(50))?;
        for module in &batch.modules {
            modules.add(module);
        }
        walks.extend(batch.kept_walks);
        if batch.targets_alive == Some(0) {
            break;
        }
    }
    walks.truncate(WALKS_MAX);
    Ok((modules, walks))
}
