//! Writes the files of simulated hosts with the writer of the sink `parquet`.

use crate::{Sentence, cpu};
use proftop_fleet::generate::write_file;
use proftop_fleet::simulate::{SimulatedHost, Simulation};
use proftop_fleet::sinks::parquet::{Known, Target};
use std::ops::{AddAssign, Range};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Minutes in a file, as with `roll = "15m"`.
const MINUTES: usize = 15;

/// Number of threads that write.
const THREADS: usize = 2;

/// What was written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    pub hosts: u32,
    pub rows: u64,
    pub samples: u64,
    pub bytes: u64,
    /// CPU time of making windows, and of the writer.
    pub making: Duration,
    pub writing: Duration,
    /// Wall time of everything.
    pub wall: Duration,
}

impl AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.hosts += other.hosts;
        self.rows += other.rows;
        self.samples += other.samples;
        self.bytes += other.bytes;
        self.making += other.making;
        self.writing += other.writing;
    }
}

/// Writes all windows of some hosts into a folder.
pub fn write(simulation: &Simulation, dir: &Path, hosts: Range<u32>) -> Result<Written, Sentence> {
    let begun = Instant::now();
    let to = &Target::Folder(dir.into());
    let next = AtomicU32::new(hosts.start);
    let all = Mutex::new(Ok(Written::default()));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= hosts.end {
                        return;
                    }
                    let written = match simulation.host(number) {
                        Some(mut host) => write_host(simulation, &mut host, to),
                        None => Ok(Written::default()),
                    };
                    let mut all = all.lock().expect("no thread panics");
                    match (&mut *all, written) {
                        (Ok(all), Ok(written)) => *all += written,
                        (all @ Ok(_), Err(why)) => *all = Err(why),
                        (Err(_), _) => return,
                    }
                }
            });
        }
    });
    let mut all = all.into_inner().expect("no thread panics")?;
    all.wall = begun.elapsed();
    Ok(all)
}

fn write_host(
    simulation: &Simulation,
    host: &mut SimulatedHost,
    to: &Target,
) -> Result<Written, Sentence> {
    let mut written = Written {
        hosts: 1,
        ..Written::default()
    };
    let mut known = Known::default();
    let minutes: Vec<u32> = (0..simulation.fleet.minutes).collect();
    for quarter in minutes.chunks(MINUTES) {
        let begun = cpu::of_thread();
        let windows: Vec<_> = quarter.iter().map(|it| host.window(*it)).collect();
        let made = cpu::of_thread();
        let bytes = write_file(&windows, to, &mut known);
        written.bytes += bytes.map_err(|error| format!("{error:?}"))?;
        let done = cpu::of_thread();
        written.making += made.saturating_sub(begun);
        written.writing += done.saturating_sub(made);
        for window in &windows {
            let services = window.services.iter();
            written.rows += services.map(|it| it.samples.len() as u64).sum::<u64>();
            written.samples += window.total();
        }
    }
    Ok(written)
}
