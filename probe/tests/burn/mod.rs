//! Work of a known distribution: three functions with 60, 30 and 10 percent.

use std::hint::black_box;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub const FUNCTIONS: [&str; 3] = ["burn_sixty", "burn_thirty", "burn_ten"];
pub const SHARES: [f64; 3] = [0.6, 0.3, 0.1];
pub const THREAD_NAME: &str = "burning";

/// Number of steps for ten percent of the work: enough for the cost of calls not to matter.
const STEPS: u64 = 2_000;

/// Threads that work until they are dropped.
pub struct Threads {
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    pub fn start(count: usize) -> Self {
        Self::run(count, || {
            burn_sixty();
            burn_thirty();
            burn_ten();
        })
    }

    /// Starts threads that work at the bottom of a deep recursion.
    pub fn start_deep(count: usize) -> Self {
        Self::run(count, || _ = black_box(descend(DEPTH)))
    }

    /// Starts one thread that is nearly always in the kernel.
    pub fn start_reading() -> Self {
        Self::run(1, || {
            let mut zeros = vec![0; 1 << 20];
            std::fs::File::open("/dev/zero")
                .unwrap()
                .read_exact(&mut zeros)
                .unwrap();
            black_box(&zeros);
        })
    }

    /// Starts one thread that only handles signals, which it sends to itself.
    pub fn start_signalled() -> Self {
        extern "C" fn nothing(_: libc::c_int) {}
        let handler: extern "C" fn(libc::c_int) = nothing;
        // SAFETY: the handler does nothing, and no other code uses this signal here.
        unsafe { libc::signal(libc::SIGUSR2, handler as libc::sighandler_t) };
        Self::run(1, || {
            // SAFETY: the signal has a handler.
            unsafe { libc::raise(libc::SIGUSR2) };
        })
    }

    fn run(count: usize, work: fn()) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let handles = (0..count)
            .map(|_| {
                let stop = stop.clone();
                let body = move || {
                    while !stop.load(Ordering::Relaxed) {
                        work();
                    }
                };
                std::thread::Builder::new()
                    .name(THREAD_NAME.into())
                    .spawn(body)
                    .unwrap()
            })
            .collect();
        Self { stop, handles }
    }
}

impl Threads {
    pub fn tids(&self) -> Vec<u32> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let burning = tasks.map(|task| task.unwrap().path()).filter(|task| {
            // Other threads may end meanwhile.
            let comm = std::fs::read_to_string(task.join("comm"));
            comm.is_ok_and(|comm| comm.trim_end() == THREAD_NAME)
        });
        let tid = |task: PathBuf| task.file_name()?.to_str()?.parse().ok();
        burning.map(|task| tid(task).unwrap()).collect()
    }

    /// Returns the CPU time that they have used, accurate to some milliseconds: the first field of
    /// `schedstat`.
    pub fn cpu_seconds(&self) -> f64 {
        let nanoseconds = self.tids().into_iter().map(|tid| {
            let path = format!("/proc/self/task/{tid}/schedstat");
            let text = std::fs::read_to_string(path).unwrap();
            text.split(' ').next().unwrap().parse::<u64>().unwrap()
        });
        nanoseconds.sum::<u64>() as f64 / 1e9
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for handle in self.handles.drain(..) {
            handle.join().unwrap();
        }
    }
}

/// Number of calls until the work of [`Threads::start_deep`] begins.
pub const DEPTH: u32 = 120;

#[inline(never)]
fn descend(left: u32) -> u64 {
    if left == 0 {
        return work(10 * STEPS, 0x1234_5604);
    }
    // Not a tail call: the frame must stay.
    black_box(descend(left - 1)).wrapping_add(1)
}

#[inline(never)]
fn burn_sixty() -> u64 {
    // Not a tail call: the frame must stay.
    black_box(work(6 * STEPS, 0x1234_5601)).wrapping_add(1)
}

#[inline(never)]
fn burn_thirty() -> u64 {
    // Not a tail call: the frame must stay.
    black_box(work(3 * STEPS, 0x1234_5602)).wrapping_add(1)
}

#[inline(never)]
fn burn_ten() -> u64 {
    // Not a tail call: the frame must stay.
    black_box(work(STEPS, 0x1234_5603)).wrapping_add(1)
}

/// One loop for all functions: its speed depends on its position in memory, and copies of it took
/// up to twice as long in one function as in another.
#[inline(never)]
fn work(steps: u64, seed: u64) -> u64 {
    let (mut state, mut left) = (seed, steps);
    while left > 0 {
        state = black_box(state ^ (state << 13) ^ (state >> 7));
        left -= 1;
    }
    state
}
