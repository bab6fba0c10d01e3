//! A self-test for kernels other than this one: samples its own threads, which
//! work at the bottom of a deep recursion, and prints what came of it. Ends with
//! 1 if something is wrong. Built static it runs as the only program of a
//! virtual machine:
//!
//! ```text
//! RUSTFLAGS='-C target-feature=+crt-static' cargo build --release -p probe \
//!     --target x86_64-unknown-linux-gnu --example selftest
//! ```

use probe::{BpfSource, Config, Ending, Source, Target};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const DEPTH: u32 = 100;
const TIME: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let config = Config {
        target: Target {
            pids: vec![std::process::id()],
            ..Target::default()
        },
        rate_hz: 199,
        ..Config::default()
    };
    let mut source = match BpfSource::start(&config) {
        Ok(source) => source,
        Err(error) => {
            println!("FAILED: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("notes: {:?}", source.info().notes);
    println!("verified: {:?}", source.verified_instructions());
    for _ in 0..2 {
        std::thread::spawn(|| {
            loop {
                black_box(descend(DEPTH));
            }
        });
    }
    let mut endings: BTreeMap<String, u64> = BTreeMap::new();
    let (mut samples, mut frames, mut lost) = (0, 0, 0);
    let end = Instant::now() + TIME;
    while Instant::now() < end {
        let batch = match source.poll(Duration::from_millis(50)) {
            Ok(batch) => batch,
            Err(error) => {
                println!("FAILED: {error}");
                return ExitCode::FAILURE;
            }
        };
        for sample in &batch.samples {
            samples += 1;
            frames += sample.frames.len();
            *endings.entry(format!("{:?}", sample.ending)).or_default() += 1;
        }
        lost = batch.counters.lost;
    }
    let whole = endings
        .get(&format!("{:?}", Ending::Root))
        .copied()
        .unwrap_or(0);
    println!("samples {samples} frames {frames} lost {lost} endings {endings:?}");
    let over = source
        .verified_instructions()
        .iter()
        .any(|(_, instructions)| *instructions >= 20_000);
    if samples == 0 || lost > 0 || whole * 100 < samples * 99 || over {
        println!("FAILED: too few samples, too few whole stacks, or too much to verify");
        return ExitCode::FAILURE;
    }
    println!("ok");
    ExitCode::SUCCESS
}

#[inline(never)]
fn descend(left: u32) -> u64 {
    if left == 0 {
        return (0..20_000u64).fold(1, |state, step| black_box(state ^ step.rotate_left(7)));
    }
    // Not a tail call: the frame must stay.
    black_box(descend(left - 1)).wrapping_add(1)
}
