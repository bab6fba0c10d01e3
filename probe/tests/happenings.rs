//! Events that are counted besides time, compared with what a program did and what the kernel
//! counted.

#![allow(dead_code, reason = "the other tests use the rest of what is shared")]

mod burn;
mod common;

use common::{Seen, alone, only, unless_forbidden};
use probe::{BpfSource, Config, Ending, Event, Happened, Happening, Sample, Source as _, now_ns};
use rustix::thread::gettid;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use test_support::wait_for;

/// What samples say about one thread.
struct Told {
    /// Number of occurrences by its samples.
    times: f64,
    /// How far that may be from the truth by chance.
    band: f64,
    samples: usize,
    /// Number of samples from the first one with a whole stack on.
    since_whole: usize,
    /// Number of whole stacks among them.
    whole: usize,
    /// The counts of all threads of the machine.
    happened: Happened,
}

/// Samples while `work` runs on a thread of its own and returns the number of occurrences there. The
/// flag that `work` gets becomes true when a sample of its thread has a whole stack: from then on the
/// unwind tables of this process are in place. Returns None if rights are missing.
fn count(
    name: &str,
    work: impl FnOnce(&AtomicBool) -> u64 + Send + 'static,
) -> Option<(Told, u64)> {
    let config = Config {
        target: only(std::process::id()),
        rate_hz: 49,
        happening: Some(Happening::parse(name).unwrap()),
        ..Config::default()
    };
    let mut source = unless_forbidden(BpfSource::start(&config), "BPF")?;
    assert_eq!(source.info().notes, [""; 0]);
    let is_whole = Arc::new(AtomicBool::new(false));
    let told_to_worker = Arc::clone(&is_whole);
    let worker: JoinHandle<(u32, u64)> = std::thread::spawn(move || {
        let tid = gettid().as_raw_nonzero().get() as u32;
        (tid, work(&told_to_worker))
    });
    let mut seen = Seen::default();
    wait_for("the end of the work", || {
        seen.take(&mut source);
        let is_it = |sample: &Sample| sample.event == Event::Happening && has_whole_stack(sample);
        is_whole.fetch_or(seen.samples.iter().any(is_it), Ordering::Relaxed);
        worker.is_finished().then_some(())
    });
    let (tid, truth) = worker.join().unwrap();
    let to_ns = now_ns();
    let mut happened = Happened::default();
    wait_for("all samples up to then", || {
        let batch = source.poll(Duration::from_millis(20)).unwrap();
        seen.samples.extend(batch.samples);
        happened = batch.happened;
        (batch.complete_until_ns >= to_ns).then_some(())
    });
    assert_eq!(seen.counters.lost, 0);
    let of_thread = seen
        .samples
        .iter()
        .filter(|sample| sample.event == Event::Happening && sample.tid == tid);
    let weights: Vec<f64> = of_thread
        .clone()
        .map(|sample| sample.weight as f64)
        .collect();
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    let most = weights.iter().copied().fold(0.0, f64::max);
    let since_whole: Vec<&Sample> = of_thread
        .skip_while(|sample| !has_whole_stack(sample))
        .collect();
    let whole = since_whole.iter().filter(|sample| has_whole_stack(sample));
    let told = Told {
        times: weights.iter().sum(),
        // Occurrences since the last sample of a CPU count for the next one, whichever thread gives
        // it.
        band: 4.0 * squares.sqrt() + 2.0 * most,
        samples: weights.len(),
        since_whole: since_whole.len(),
        whole: whole.count(),
        happened,
    };
    println!(
        "{name}: {} ± {:.0} by {} samples, {} whole of {}; truth {truth}; {:?}",
        told.times, told.band, told.samples, told.whole, told.since_whole, told.happened
    );
    Some((told, truth))
}

/// Checks that the samples give the number of occurrences, except for chance. `unseen_share`: the
/// largest share of all occurrences that may have given no sample.
#[track_caller]
fn check(told: &Told, truth: u64, unseen_share: f64) {
    let truth = truth as f64;
    assert!(told.samples >= 100, "{} samples", told.samples);
    assert!(
        (told.times - truth).abs() <= told.band + truth / 50.0,
        "{} ± {} of {truth}",
        told.times,
        told.band
    );
    // The band is not so wide that every number would be right.
    assert!(told.band < truth / 2.0, "{} of {truth}", told.band);
    assert!(told.happened.times as f64 >= truth, "{:?}", told.happened);
    assert!(
        told.happened.unseen as f64 <= unseen_share * told.happened.times as f64,
        "{:?}",
        told.happened
    );
    let Told {
        whole, since_whole, ..
    } = told;
    assert!(
        *since_whole >= 100 && whole * 10 >= since_whole * 8,
        "{whole} whole of {since_whole}"
    );
}

/// Whether a stack is whole, and known to be: by frame pointers one may look whole before the unwind
/// tables are in place.
fn has_whole_stack(sample: &Sample) -> bool {
    sample.ending == Ending::Root && !sample.tables_late
}

fn field_of_status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn page_faults_are_as_many_as_the_kernel_counts() {
    let _alone = alone();
    let work = |_: &AtomicBool| {
        const PAGES: usize = 8192;
        let of_thread = || {
            // SAFETY: any bytes are a value of the type.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: the structure outlives the call.
            let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
            assert_eq!(result, 0);
            (usage.ru_minflt + usage.ru_majflt).cast_unsigned()
        };
        let before = of_thread();
        for _ in 0..96 {
            touch(PAGES * 4096);
        }
        of_thread() - before
    };
    if let Some((told, truth)) = count("page-faults", work) {
        assert!(truth >= 96 * 8192, "{truth}");
        check(&told, truth, 0.1);
    }
}

/// Touches each page of new memory, and frees it.
fn touch(bytes: usize) {
    // SAFETY: a new mapping, which no other code knows.
    unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(at, libc::MAP_FAILED);
        libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE);
        for page in (0..bytes).step_by(4096) {
            at.cast::<u8>().add(page).write_volatile(1);
        }
        libc::munmap(at, bytes);
    }
}

#[test]
fn switches_are_as_many_as_the_kernel_counts() {
    let _alone = alone();
    let work = |_: &AtomicBool| {
        let (mut from, mut to) = std::io::pipe().unwrap();
        let (mut back, mut forth) = std::io::pipe().unwrap();
        let other = std::thread::spawn(move || {
            let mut byte = [0];
            while from.read(&mut byte).unwrap() == 1 {
                forth.write_all(&byte).unwrap();
            }
        });
        let switches = || field_of_status("voluntary_ctxt") + field_of_status("nonvoluntary_ctxt");
        let before = switches();
        let mut byte = [1];
        for _ in 0..300_000 {
            to.write_all(&byte).unwrap();
            back.read_exact(&mut byte).unwrap();
        }
        let switched = switches() - before;
        drop(to);
        other.join().unwrap();
        switched
    };
    if let Some((told, truth)) = count("context-switches", work) {
        // If both threads have a CPU of their own, every second switch is from an idle task. The
        // kernel counts the switches of some CPUs' idle tasks, but never samples them (`perf
        // record` has none either), and they belong to no thread.
        check(&told, truth, 0.6);
    }
}

#[test]
fn migrations_are_as_many_as_there_were() {
    let _alone = alone();
    let online: Vec<u32> = probe::cpus::online().unwrap().into_iter().collect();
    if online.len() < 2 {
        test_support::skip("one CPU");
        return;
    }
    let moves = 20_000;
    let work = move |_: &AtomicBool| {
        for turn in 0..moves {
            let mut set = rustix::thread::CpuSet::new();
            set.set(online[turn % online.len()] as usize);
            rustix::thread::sched_setaffinity(None, &set).unwrap();
        }
        moves as u64
    };
    if let Some((told, truth)) = count("cpu-migrations", work) {
        check(&told, truth, 0.1);
    }
}

#[test]
fn passes_of_a_tracepoint_are_as_many_as_there_were() {
    let _alone = alone();
    // SAFETY: a call without arguments.
    let call = || unsafe { libc::syscall(libc::SYS_getppid) };
    let work = move |is_whole: &AtomicBool| {
        let mut calls = 0;
        // The stacks of a new process are cut until its tables are read.
        while !is_whole.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
            call();
            // The sleep is a call as well.
            calls += 2;
        }
        for turn in 0..200_000 {
            if turn % 4_000 == 0 {
                std::thread::sleep(Duration::from_millis(50));
                calls += 1;
            }
            call();
            calls += 1;
        }
        calls
    };
    if let Some((told, truth)) = count("tracepoint:raw_syscalls:sys_enter", work) {
        check(&told, truth, 0.1);
    }
}
