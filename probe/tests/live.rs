//! The real object in the real kernel, sampling this very test process and
//! others. Needs the rights to; says so where they are missing.

mod burn;
mod common;

use common::{Seen, TwoUsers, alone, assert_only_on, on_one_cpu, only, skipped, unless_forbidden};
use probe::{BpfSource, Config, Ending, ModuleKind, Sample, Source as _, Target, WalkCheck};
use std::collections::HashMap;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use symbolize::{ElfSymbols, FileOffset};

/// A running source, or nothing where the rights are missing.
fn start(config: &Config) -> Option<BpfSource> {
    let needs = "needs CAP_BPF and CAP_PERFMON";
    unless_forbidden(BpfSource::start(config), needs)
}

fn myself(rate_hz: u32) -> Config {
    Config {
        target: only(std::process::id()),
        rate_hz,
        ..Config::default()
    }
}

fn watch(source: &mut BpfSource, time: Duration) -> Seen {
    let mut seen = Seen::default();
    let end = Instant::now() + time;
    while Instant::now() < end {
        seen.take(source);
    }
    seen
}

/// The functions of this test program on a sample's stack, innermost first.
fn own_names(seen: &Seen, symbols: &ElfSymbols, sample: &Sample) -> Vec<String> {
    let own = std::env::current_exe().unwrap();
    let is_own = |module: u32| matches!(&seen.modules[&module], ModuleKind::File { path, .. } if *path == own);
    sample
        .frames
        .iter()
        .filter(|frame| is_own(frame.module.0))
        .filter_map(|frame| symbols.find(FileOffset(frame.address)).ok())
        .map(|symbol| symbolize::demangle(symbol.name).short().into_owned())
        .collect()
}

#[test]
fn the_verifier_has_little_to_do() {
    let _alone = alone();
    let config = Config {
        target: Target {
            children: true,
            ..only(1)
        },
        ..Config::default()
    };
    let Some(source) = start(&config) else { return };
    println!(
        "verified instructions: {:?}",
        source.verified_instructions()
    );
    assert_eq!(source.verified_instructions().len(), 3);
    for (program, instructions) in source.verified_instructions() {
        // 0: this kernel does not tell (before 5.16).
        assert!(*instructions < 20_000, "{program}: {instructions}");
    }
}

#[test]
fn shares_are_those_of_the_work() {
    let _alone = alone();
    let Some(mut source) = start(&myself(499)) else {
        return;
    };
    let symbols = ElfSymbols::read(&File::open("/proc/self/exe").unwrap()).unwrap();
    let threads = burn::Threads::start(2);
    // Enough for the band, however busy the machine is with other things.
    let mut seen = Seen::default();
    let end = Instant::now() + Duration::from_secs(30);
    while seen.samples.len() < 2_000 && Instant::now() < end {
        seen.take(&mut source);
    }
    drop(threads);
    assert_eq!(seen.counters.lost, 0);
    let mut counts: HashMap<&str, f64> = HashMap::new();
    let mut tids: HashMap<u32, u64> = HashMap::new();
    for sample in seen
        .samples
        .iter()
        .filter(|sample| &*sample.comm == burn::THREAD_NAME)
    {
        let names = own_names(&seen, &symbols, sample);
        let which = burn::FUNCTIONS
            .iter()
            .find(|name| names.iter().any(|n| n.contains(**name)));
        if let Some(which) = which {
            *counts.entry(which).or_default() += 1.0;
            *tids.entry(sample.tid).or_default() += 1;
        }
    }
    let all: f64 = counts.values().sum();
    assert!(all > 1_000.0, "{all} samples in the burning functions");
    assert_eq!(tids.len(), 2, "both threads are seen");
    for (name, share) in burn::FUNCTIONS.into_iter().zip(burn::SHARES) {
        let measured = counts.get(name).copied().unwrap_or(0.0) / all;
        // Three standard deviations, and what the loops around the work cost.
        let band = 3.0 * (share * (1.0 - share) / all).sqrt() + 0.01;
        assert!(
            (measured - share).abs() < band,
            "{name}: {measured:.3}, not {share} ± {band:.3}"
        );
    }
}

/// Rust's standard library and libc keep no frame pointers, nor does this
/// program; and its tables are not in place when the first samples come.
#[test]
fn stacks_without_frame_pointers_are_whole() {
    let _alone = alone();
    let Some(mut source) = start(&myself(199)) else {
        return;
    };
    let threads = burn::Threads::start_deep(2);
    let mut seen = Seen::default();
    let end = Instant::now() + Duration::from_secs(30);
    while seen.samples.len() < 800 && Instant::now() < end {
        seen.take(&mut source);
    }
    drop(threads);
    let burning = || {
        seen.samples
            .iter()
            .filter(|s| &*s.comm == burn::THREAD_NAME)
    };
    let all = burning().count();
    let whole = burning().filter(|s| s.ending == Ending::Root).count();
    let deepest = burning().map(|s| s.frames.len()).max().unwrap_or(0);
    println!("{whole} of {all} whole, the deepest has {deepest} frames");
    assert!(whole * 100 >= all * 98, "{whole} of {all} whole");
    assert!(deepest > burn::DEPTH as usize, "{deepest} frames");
}

#[test]
fn kernel_samples_carry_both_stacks() {
    let _alone = alone();
    let Some(mut source) = start(&myself(999)) else {
        return;
    };
    let threads = burn::Threads::start_reading();
    let seen = watch(&mut source, Duration::from_secs(1));
    drop(threads);
    let in_kernel: Vec<_> = seen
        .samples
        .iter()
        .filter(|s| s.kernel_frames > 0)
        .collect();
    assert!(
        in_kernel.len() > 100,
        "{} samples in the kernel",
        in_kernel.len()
    );
    let with_both = in_kernel
        .iter()
        .filter(|s| s.frames.len() > s.kernel_frames)
        .count();
    assert_eq!(with_both, in_kernel.len());
}

#[test]
fn samples_are_busy_time_times_rate() {
    let _alone = alone();
    let Some(mut source) = start(&myself(999)) else {
        return;
    };
    let threads = burn::Threads::start(2);
    let before = burn::cpu_seconds();
    let first = watch(&mut source, Duration::from_millis(1));
    let seen = watch(&mut source, Duration::from_secs(3));
    let busy = burn::cpu_seconds() - before;
    drop(threads);
    let taken = (seen.counters.taken - first.counters.taken) as f64;
    let expected = busy * 999.0;
    println!(
        "{taken} samples in {busy:.2} CPU seconds: {:.3} of expected",
        taken / expected
    );
    assert!(
        (taken / expected - 1.0).abs() < 0.05,
        "{taken} of {expected}"
    );
    assert_eq!(seen.counters.lost, 0);
}

#[test]
fn a_rate_that_is_changed_counts_from_then_on() {
    let _alone = alone();
    let Some(mut source) = start(&myself(199)) else {
        return;
    };
    let threads = burn::Threads::start(2);
    watch(&mut source, Duration::from_millis(200));
    for rate_hz in [999, 49] {
        let from_ns = source.set_rate(rate_hz).unwrap();
        let before = burn::cpu_seconds();
        assert_eq!(source.info().rate_hz, rate_hz);
        let seen = watch(&mut source, Duration::from_secs(3));
        let busy = burn::cpu_seconds() - before;
        let taken = seen.samples.iter().filter(|s| s.time_ns > from_ns).count() as f64;
        let ratio = taken / (busy * f64::from(rate_hz));
        assert!((0.9..1.1).contains(&ratio), "{ratio} of expected");
    }
    drop(threads);
}

#[test]
fn short_lived_processes_are_all_known() {
    let _alone = alone();
    let Some(mut source) = start(&Config {
        rate_hz: 999,
        ..Config::default()
    }) else {
        return;
    };
    let mut seen = Seen::default();
    let end = Instant::now() + Duration::from_secs(2);
    let mut started = 0;
    while Instant::now() < end {
        let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
        child.wait().unwrap();
        started += 1;
        seen.take(&mut source);
    }
    seen.take(&mut source);
    let of_children: Vec<_> = seen.samples.iter().filter(|s| &*s.comm == "true").collect();
    println!("{} samples of {started} processes", of_children.len());
    assert!(!of_children.is_empty());
    for sample in &seen.samples {
        assert!(!sample.comm.is_empty());
        assert!(seen.pid_of(sample) != 0);
        for frame in &sample.frames {
            assert!(
                seen.modules.contains_key(&frame.module.0),
                "told before it is used"
            );
        }
    }
    let unmapped = |sample: &&&Sample| sample.ending == Ending::NoMapping;
    let lost = of_children.iter().filter(unmapped).count();
    assert!(
        lost * 50 <= of_children.len(),
        "{lost} of {} not placed",
        of_children.len()
    );
}

#[test]
fn the_filter_lets_only_targets_pass() {
    let _alone = alone();
    let mut other = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let source = start(&Config {
        target: only(other.id()),
        rate_hz: 499,
        ..Config::default()
    });
    let seen = source.map(|mut source| watch(&mut source, Duration::from_secs(1)));
    other.kill().unwrap();
    other.wait().unwrap();
    let Some(seen) = seen else { return };
    assert!(!seen.samples.is_empty());
    assert!(
        seen.samples
            .iter()
            .all(|sample| seen.pid_of(sample) == other.id())
    );
    assert!(seen.counters.filtered > 0, "we ran as well");
}

#[test]
fn only_fitting_names_are_sampled() {
    let _alone = alone();
    let pattern = regex::bytes::Regex::new("^sh$").unwrap();
    let target = Target {
        comm: Some(pattern),
        ..Target::default()
    };
    let Some(mut source) = start(&Config {
        target,
        rate_hz: 499,
        ..Config::default()
    }) else {
        return;
    };
    let burn = "while :; do :; done";
    let mut fitting = Command::new("sh").args(["-c", burn]).spawn().unwrap();
    let seen = watch(&mut source, Duration::from_millis(700));
    fitting.kill().unwrap();
    fitting.wait().unwrap();
    assert!(!seen.samples.is_empty());
    assert!(seen.samples.iter().all(|sample| &*sample.comm == "sh"));
    assert!(seen.counters.filtered > 0, "we ran as well");
}

#[test]
fn the_end_of_all_targets_is_seen() {
    let _alone = alone();
    let mut target = Command::new("sleep").arg("60").spawn().unwrap();
    let source = start(&Config {
        target: only(target.id()),
        ..Config::default()
    });
    target.kill().unwrap();
    target.wait().unwrap();
    let Some(mut source) = source else { return };
    let seen = watch(&mut source, Duration::from_millis(300));
    assert_eq!(seen.targets_alive, Some(0));
}

#[test]
fn children_of_targets_are_targets_from_their_first_instruction() {
    let _alone = alone();
    // Waits for a line, then burns in a child of a child.
    let script = "read go; sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'";
    let mut parent = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let target = Target {
        children: true,
        ..only(parent.id())
    };
    let source = start(&Config {
        target,
        rate_hz: 999,
        ..Config::default()
    });
    use std::io::Write as _;
    parent.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let Some(mut source) = source else {
        parent.wait().unwrap();
        return;
    };
    let mut seen = Seen::default();
    while parent.try_wait().unwrap().is_none() {
        seen.take(&mut source);
    }
    seen.take(&mut source);
    let of_child = seen
        .samples
        .iter()
        .filter(|s| seen.pid_of(s) != parent.id())
        .count();
    assert!(of_child > 10, "{of_child} samples of children");
}

/// Without unwind information, and with the frame pointer in use for something else:
/// what there is to walk by is in `.debug_frame`, packed, in another file.
const WITHOUT_TABLES: &str = "
volatile unsigned sum;
static __attribute__((noinline)) void leaf(unsigned n) { while (n--) sum += n; }
static __attribute__((noinline)) void middle(unsigned n) {
    __asm__ volatile(\"mov $1, %%ebp\" ::: \"rbp\");
    leaf(n);
    sum++;
}
int main(void) { for (;;) middle(1000000); }
";

const FLAGS: [&str; 7] = [
    "-O2",
    "-g",
    "-gz",
    "-fomit-frame-pointer",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-Wl,--build-id=none",
];

#[test]
fn stacks_are_walked_by_separate_debug_information() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let run = |command: &str, args: &[&str]| {
        let status = Command::new(command)
            .args(args)
            .current_dir(&directory)
            .status();
        status.is_ok_and(|status| status.success())
    };
    std::fs::write(directory.path().join("work.c"), WITHOUT_TABLES).unwrap();
    let link = ["--strip-all", "--add-gnu-debuglink=work.debug", "work"];
    let is_built = run("cc", &[&FLAGS[..], &["-o", "work", "work.c"]].concat())
        && run("objcopy", &["--only-keep-debug", "work", "work.debug"])
        && run("objcopy", &link);
    if !is_built {
        return skipped("no C compiler, or no binutils");
    }
    let mut child = Command::new(directory.path().join("work")).spawn().unwrap();
    let source = start(&Config {
        target: only(child.id()),
        rate_hz: 199,
        ..Config::default()
    });
    if let Some(mut source) = source {
        let seen = watch(&mut source, Duration::from_secs(2));
        let samples = seen.samples.iter();
        let whole = samples
            .filter(|sample| sample.ending == Ending::Root)
            .count();
        let all = seen.samples.len();
        assert!(all > 20 && whole * 10 >= all * 9, "{whole} of {all} whole");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn nothing_stays_behind() {
    let _alone = alone();
    let Some(source) = start(&Config::default()) else {
        return;
    };
    let ours = own_programs();
    assert!(!ours.is_empty());
    drop(source);
    // The kernel frees them a moment after their last descriptor is closed.
    let end = Instant::now() + Duration::from_secs(5);
    let left = || {
        let loaded = aya::programs::loaded_programs().filter_map(Result::ok);
        loaded
            .filter(|program| ours.contains(&program.id()))
            .count()
    };
    while left() > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(left(), 0);
}

/// The numbers of the BPF programs that this process holds: others may run
/// proftop at the same time.
fn own_programs() -> Vec<u32> {
    std::fs::read_dir("/proc/self/fdinfo")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .filter_map(|info| {
            let line = info
                .lines()
                .find_map(|line| line.strip_prefix("prog_id:"))?;
            line.trim().parse().ok()
        })
        .collect()
}

/// Caches, windows of memory and the short cuts in front of them must not show:
/// each stack is walked again from a copy, by none of them, while processes
/// that share the CPUs come and go.
#[test]
fn a_stack_is_the_same_by_short_cuts_and_without() {
    let _alone = alone();
    let config = Config {
        target: Target {
            children: true,
            ..only(std::process::id())
        },
        check_walks: true,
        ..myself(249)
    };
    let Some(mut source) = start(&config) else {
        return;
    };
    let threads = burn::Threads::start(2);
    let mut walks = WalkCheck::default();
    let end = Instant::now() + Duration::from_secs(60);
    while walks.same < 300 && Instant::now() < end {
        let mut shell = Command::new("sh");
        _ = shell.args(["-c", "ls /"]).stdout(Stdio::null()).status();
        walks = source.poll(Duration::from_millis(20)).unwrap().walks;
    }
    drop(threads);
    assert!(walks.same >= 300, "{walks:?}");
    assert_eq!(walks.different, 0, "{:?}", walks.examples);
}

#[test]
fn only_what_users_started_is_sampled() {
    let _alone = alone();
    let Some(users) = TwoUsers::start() else {
        return;
    };
    let Some(mut source) = start(&Config {
        target: users.target(),
        rate_hz: 199,
        ..Config::default()
    }) else {
        return;
    };
    let seen = Seen::until(&mut source, |seen| seen.samples.len() > 100);
    users.assert_only_theirs(&seen);
}

#[test]
fn only_those_cpus_are_sampled() {
    let _alone = alone();
    let (target, cpu) = on_one_cpu();
    let Some(mut source) = start(&Config {
        target,
        rate_hz: 199,
        ..Config::default()
    }) else {
        return;
    };
    let _threads = burn::Threads::start(2 * probe::cpus::online().unwrap().len());
    let seen = Seen::until(&mut source, |seen| seen.samples.len() > 100);
    assert_only_on(cpu, &seen);
}

/// From the point of no return on there is no user stack, and that says so. Before, the
/// old program has its stack still.
#[test]
fn in_the_midst_of_exec_there_is_no_stack() {
    let _alone = alone();
    let kernel = symbolize::kernel::KernelSymbols::load();
    if kernel.is_hidden() {
        skipped("the kernel hides its addresses");
        return;
    }
    let Some(mut source) = start(&Config {
        rate_hz: 1999,
        ..Config::default()
    }) else {
        return;
    };
    let mut shell = Command::new("sh")
        .args(["-c", "while :; do /bin/true; done"])
        .spawn()
        .unwrap();
    let is_in = |sample: &Sample, function: &str| {
        let frames = &sample.frames[..sample.kernel_frames];
        let mut names = frames.iter().filter_map(|f| kernel.find(f.address).ok());
        names.any(|symbol| symbol.name == function)
    };
    let in_exec = |seen: &Seen| -> Vec<Sample> {
        let of_loop = { seen.samples.iter() }.filter(|s| ["sh", "true"].contains(&&*s.comm));
        of_loop
            .filter(|s| is_in(s, "begin_new_exec"))
            .cloned()
            .collect()
    };
    let seen = Seen::until(&mut source, |seen| {
        seen.samples.len() > 20_000 || in_exec(seen).len() > 50
    });
    shell.kill().unwrap();
    shell.wait().unwrap();
    let samples = in_exec(&seen);
    println!("{} samples in exec", samples.len());
    let is_exec = |sample: &&Sample| sample.ending == Ending::Exec;
    assert!(samples.iter().any(|sample| is_exec(&sample)));
    for sample in samples {
        assert_ne!(sample.ending, Ending::ReadFault);
        assert!(!is_exec(&&sample) || sample.frames.len() == sample.kernel_frames);
    }
}
