//! Page faults as the kernel's counters tell of them: compared with what the thread that has them
//! knows of itself.

use probe::{BpfSource, Config, Event, Happening, Source as _};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PAGE: usize = 4096;
const PAGES: usize = 1024;
/// Pieces of memory that are touched page by page, one after the other.
const PIECES: usize = 60;
/// How long samples may take to be delivered after the last page fault.
const LATE: Duration = Duration::from_secs(3);

/// Counts the page faults of a thread, by BPF. Returns an error if they are not about as many as
/// there were.
pub fn check(config: &Config) -> Result<(), String> {
    let config = Config {
        waits: false,
        happening: Happening::parse("page-faults"),
        ..config.clone()
    };
    let mut source = BpfSource::start(&config).map_err(|error| error.to_string())?;
    let is_over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_over);
    let worker = std::thread::spawn(move || {
        let tid = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .cast_unsigned();
        let counted = (0..PIECES)
            .try_for_each(|_| touch())
            .and_then(|()| own_faults());
        told.store(true, Ordering::Relaxed);
        counted.map(|faults| (tid, faults))
    });
    let mut samples = Vec::new();
    let mut take = |source: &mut BpfSource| {
        let batch = source
            .poll(Duration::from_millis(50))
            .map_err(|error| error.to_string())?;
        let faults = batch.samples.into_iter();
        let faults = faults.filter(|sample| sample.event == Event::Happening);
        samples.extend(faults.map(|sample| (sample.tid, sample.weight)));
        Ok::<(), String>(())
    };
    while !is_over.load(Ordering::Relaxed) {
        take(&mut source)?;
    }
    let end = std::time::Instant::now() + LATE;
    while std::time::Instant::now() < end {
        take(&mut source)?;
    }
    let counted = worker.join().map_err(|_| "the thread panicked")?;
    let (tid, faults) = counted.map_err(|error| error.to_string())?;
    let of_thread = samples.iter().filter(|(of, _)| *of == tid);
    let (count, sum) = of_thread.fold((0, 0), |(count, sum), (_, weight)| {
        (count + 1, sum + weight)
    });
    println!("page faults: {sum} by {count} samples, of {faults}");
    // Which samples are drawn is chance: of 30 or more, more than half of all is by far the rule.
    if count < 30 || sum < faults / 2 || sum > faults * 2 {
        return Err("page faults are not as many as there were".into());
    }
    Ok(())
}

/// Touches each page of new memory, and frees it.
fn touch() -> io::Result<()> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    let bytes = PAGES * PAGE;
    // SAFETY: a new mapping, which no other code knows.
    unsafe {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let at = mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE)?;
        for page in (0..bytes).step_by(PAGE) {
            at.cast::<u8>().add(page).write_volatile(1);
        }
        munmap(at, bytes)?;
    }
    Ok(())
}

/// Returns the number of page faults of this thread.
fn own_faults() -> io::Result<u64> {
    // SAFETY: any bytes are a value of the type.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure outlives the call.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((usage.ru_minflt + usage.ru_majflt).cast_unsigned())
}
