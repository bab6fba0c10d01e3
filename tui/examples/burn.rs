//! Burns CPU time in a known split: of all work 60 parts in a hundred are
//! `burn_sixty`'s, 30 `burn_thirty`'s and 10 `burn_ten`'s, on two threads,
//! `burn-even` and `burn-odd`.
//!
//! ```text
//! burn [SECONDS [THREADS]]
//! ```
//!
//! At the end it prints how many rounds of the work were done per second, which
//! is what a profiler may cost.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// Steps of one part. A round of ten parts takes some 50 µs: far below the time
/// between two samples, so that they cannot keep step with it.
const STEPS: u64 = 2_000;

/// Rounds between two looks at the clock.
const ROUNDS: u64 = 20;

const THREAD_NAMES: [&str; 2] = ["burn-even", "burn-odd"];

fn main() {
    let mut args = std::env::args().skip(1);
    let seconds: f64 = args
        .next()
        .map_or(10.0, |arg| arg.parse().expect("seconds"));
    let threads: usize = args.next().map_or(2, |arg| arg.parse().expect("threads"));
    let time = Duration::from_secs_f64(seconds);
    let burning: Vec<_> = THREAD_NAMES
        .iter()
        .cycle()
        .take(threads)
        .map(|name| {
            let builder = thread::Builder::new().name((*name).into());
            builder.spawn(move || burn(time)).expect("a thread")
        })
        .collect();
    let rounds: u64 = burning
        .into_iter()
        .map(|thread| thread.join().expect("burning cannot fail"))
        .sum();
    println!("{:.0} rounds/s", rounds as f64 / seconds);
}

fn burn(time: Duration) -> u64 {
    let start = Instant::now();
    let mut rounds = 0;
    while start.elapsed() < time {
        for _ in 0..ROUNDS {
            black_box(burn_sixty() ^ burn_thirty() ^ burn_ten());
        }
        rounds += ROUNDS;
    }
    rounds
}

/// No function, so that the work is the caller's own, also to those who see
/// inlined functions. Each step waits for the last (xorshift), so its time does
/// not depend on where the loop happens to lie.
macro_rules! work {
    ($steps:expr, $seed:expr) => {{
        let (mut state, mut left) = (black_box($seed), $steps);
        while left > 0 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            left -= 1;
        }
        black_box(state)
    }};
}

#[inline(never)]
fn burn_sixty() -> u64 {
    work!(6 * STEPS, 0x1234_5601u64)
}

#[inline(never)]
fn burn_thirty() -> u64 {
    work!(3 * STEPS, 0x1234_5602u64)
}

#[inline(never)]
fn burn_ten() -> u64 {
    work!(STEPS, 0x1234_5603u64)
}
