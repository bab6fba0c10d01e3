//! Compares whole stacks, frame by frame, with those that another unwinder finds
//! in the same registers, copied stack and mappings: the crate framehop, which
//! shares nothing with ours but the files.
//!
//! Copies of stacks come from the perf source, so that every sample is one. Both
//! walks see the same bytes; where they differ the program says after which
//! frame, and one of both is wrong there.
//!
//! ```text
//! cargo run --release -p probe --example unwind_compare -- 10 COMMAND [ARGUMENT]...
//! ```

mod modules;
mod outcome;

use framehop::Unwinder as _;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use modules::{Code, Modules};
use outcome::Outcomes;
use probe::child::{Streams, hold_command};
use probe::{Config, KeptWalk, PerfSource, Source, Target};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const RATE_HZ: u32 = 199;

/// Frames of a stack that are compared.
const FRAMES_MAX: usize = 512;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = "usage: unwind_compare SECONDS COMMAND [ARGUMENT]...";
    let seconds = arguments.next().ok_or(usage)?;
    let seconds: u64 = seconds.to_string_lossy().parse()?;
    let program = arguments.next().ok_or(usage)?;
    let held = hold_command(program, arguments.collect(), None, Streams::OutputToStderr)?;
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
    let mut comparison = Comparison::default();
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        let batch = source.poll(Duration::from_millis(50))?;
        for module in &batch.modules {
            comparison.modules.meet(module);
        }
        for walk in &batch.kept_walks {
            comparison.compare(walk);
        }
        if batch.targets_alive == Some(0) {
            break;
        }
    }
    print!("{}", comparison.outcomes);
    Ok(())
}

/// The other unwinder's view of the processes that have the same mappings.
type Unwinders = HashMap<Vec<probe::tables::MappedRange>, UnwinderX86_64<Code>>;

#[derive(Default)]
struct Comparison {
    modules: Modules,
    unwinders: Unwinders,
    outcomes: Outcomes,
}

impl Comparison {
    fn compare(&mut self, walk: &KeptWalk) {
        if !self.unwinders.contains_key(&walk.mappings) {
            let unwinder = self.modules.unwinder_for(&walk.mappings);
            self.unwinders.insert(walk.mappings.clone(), unwinder);
        }
        let theirs = other_walk(&self.unwinders[&walk.mappings], walk);
        let place = |address| self.modules.place(&walk.mappings, address);
        self.outcomes.add(walk, &theirs, place);
    }
}

/// Addresses as they are on the stack, innermost first.
fn other_walk(unwinder: &UnwinderX86_64<Code>, walk: &KeptWalk) -> Vec<u64> {
    let registers = walk.registers;
    let mut read = |address: u64| {
        let at = address.checked_sub(registers.sp).ok_or(())?;
        walk.stack.word(at).ok_or(())
    };
    // One for each walk: it remembers rules by address, and not whose.
    let mut cache = CacheX86_64::<_>::new();
    let mut frames = unwinder.iter_frames(
        registers.ip,
        UnwindRegsX86_64::new(registers.ip, registers.sp, registers.bp),
        &mut cache,
        &mut read,
    );
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        found.push(frame.address());
        if found.len() == FRAMES_MAX {
            break;
        }
    }
    found
}
