//! Measures the cost of a Python frame in the kernel: a function that calls itself, alternately to
//! two depths, in each version of Python on this machine. See `bench/README.md`.
//!
//!     sudo cargo run -p probe --example python_cost

use probe::{BpfSource, Config, Source as _, Target};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use test_support::{Process, pythons};

const DEPTHS: [usize; 2] = [20, 420];
const ROUNDS: usize = 7;

/// Time until the process is known, and then the time of the measurement.
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (version, python) in pythons() {
        let mut found = DEPTHS.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (depth, costs) in DEPTHS.into_iter().zip(&mut found) {
                costs.extend(cost(&python, depth)?);
            }
        }
        let [shallow, deep] = found.map(|mut costs: Vec<f64>| {
            costs.sort_by(f64::total_cmp);
            costs[costs.len() / 2]
        });
        let frame = (deep - shallow) / (DEPTHS[1] - DEPTHS[0]) as f64;
        println!("{version}: {shallow:.0} and {deep:.0} ns a sample, {frame:.0} ns a frame");
    }
    Ok(())
}

/// Returns the nanoseconds of a sample in the kernel; `None` if there was none.
fn cost(python: &Path, depth: usize) -> Result<Option<f64>, Box<dyn std::error::Error>> {
    let text = format!(
        "def down(n):\n if n: return down(n - 1)\n while True: sum(range(100000))\ndown({depth})"
    );
    let process = Process::start(Command::new(python).args(["-c", &text]));
    let config = Config {
        target: Target {
            pids: vec![process.pid()],
            ..Target::default()
        },
        rate_hz: 997,
        ..Config::default()
    };
    let mut source = BpfSource::start(&config)?;
    let mut until = |end: Instant| {
        loop {
            let counters = source.poll(Duration::from_millis(20))?.counters;
            if Instant::now() > end {
                return Ok::<_, Box<dyn std::error::Error>>((counters.kernel_ns, counters.taken));
            }
        }
    };
    let before = until(Instant::now() + WARM_UP)?;
    let after = until(Instant::now() + MEASURED)?;
    let taken = after.1 - before.1;
    Ok((taken > 0).then(|| (after.0 - before.0) as f64 / taken as f64))
}
