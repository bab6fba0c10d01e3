//! The real object in the real kernel, sampling this test process and
//! others. Needs rights; a test that lacks them prints that and is skipped.

mod burn;
mod common;

use common::{Burnt, Seen, TwoUsers, alone, assert_only_on, on_one_cpu, only, unless_forbidden};
use probe::call::AttachError;
use probe::call_orders::{Orders, POINTS_MAX};
use probe::{BpfSource, Config, Ending, Happening, ModuleKind, Sample, Source as _, Target};
use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use symbolize::{ElfSymbols, FileOffset};
use test_support::{Process, Scratch, compile, run_tool, skip, wait_for, wait_until};

/// Starts a source; `None`, with a message, if rights are missing.
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

/// Checks the number of samples against time and rate: within five standard deviations of a
/// random count, and two percent for time that only one of the clocks counts.
#[track_caller]
fn assert_near(burnt: &Burnt, rate_hz: u32) {
    let expected = burnt.seconds * f64::from(rate_hz);
    let band = 5.0 * expected.sqrt() + 0.02 * expected;
    let (all, in_user) = (burnt.samples, burnt.in_user);
    assert!(
        all > expected - band && in_user < expected + band,
        "{all} samples, {in_user} not in the kernel: not {expected:.0} ± {band:.0}"
    );
}

/// Returns the functions of this test program on a sample's stack, innermost first.
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
        calls: true,
        waits: true,
        happening: Happening::parse("page-faults"),
        ..Config::default()
    };
    let Some(mut source) = start(&config) else {
        return;
    };
    // If the kernel has refused the programs, the error says why.
    let mut calls = source.take_calls().unwrap();
    let orders = Orders::default();
    for _ in 0..POINTS_MAX {
        let (number, cost_ns) = calls.place_point("sched_process_exec", &orders).unwrap();
        let instructions = calls.verified_instructions(number);
        println!("tracepoint {number}: {instructions} instructions, {cost_ns} ns");
        assert!(
            instructions < BpfSource::VERIFIED_MAX,
            "{number}: {instructions}"
        );
    }
    let refused = calls.place_point("sched_process_exec", &orders);
    assert!(
        matches!(refused, Err(AttachError::TooManyPoints)),
        "{refused:?}"
    );
    drop(calls);
    println!(
        "verified instructions: {:?}",
        source.verified_instructions()
    );
    assert_eq!(source.info().notes, [""; 0]);
    assert_eq!(source.verified_instructions().len(), 11);
    let mut verified = source.verified_instructions().to_vec();
    drop(source);
    let of_point = Config {
        happening: Happening::parse("tracepoint:sched:sched_process_exec"),
        ..Config::default()
    };
    let source = start(&of_point).expect("it started before");
    let is_new = |(program, _): &&(&str, u32)| *program == "happening_point";
    verified.extend(source.verified_instructions().iter().find(is_new));
    assert_eq!(verified.len(), 12);
    for (program, instructions) in verified {
        // 0 if the kernel does not report it (before 5.16).
        assert!(
            instructions < BpfSource::VERIFIED_MAX,
            "{program}: {instructions}"
        );
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
    // Enough for the band, however busy the machine is.
    let seen = Seen::samples(&mut source, 2_000);
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
        // Five standard deviations, which chance exceeds once in a million runs, and the cost of
        // the loops around the work.
        let band = 5.0 * (share * (1.0 - share) / all).sqrt() + 0.01;
        assert!(
            (measured - share).abs() < band,
            "{name}: {measured:.3}, not {share} ± {band:.3}"
        );
    }
}

/// Returns the samples of the threads that work.
fn burning(seen: &Seen) -> impl Iterator<Item = &Sample> {
    seen.samples
        .iter()
        .filter(|sample| &*sample.comm == burn::THREAD_NAME)
}

/// Asserts that nearly all stacks of the threads that work are whole.
#[track_caller]
fn assert_whole(seen: &Seen) {
    let all = burning(seen).count();
    let cut: Vec<Ending> = burning(seen)
        .map(|sample| sample.ending)
        .filter(|ending| *ending != Ending::Root)
        .collect();
    println!("{} of {all} whole", all - cut.len());
    assert!((all - cut.len()) * 100 >= all * 98, "of {all}: {cut:?}");
}

/// Rust's standard library and libc keep no frame pointers, and this program
/// does not either; its tables are not read yet when the first samples come.
#[test]
fn stacks_without_frame_pointers_are_whole() {
    let _alone = alone();
    let Some(mut source) = start(&myself(199)) else {
        return;
    };
    let threads = burn::Threads::start_deep(2);
    let seen = Seen::samples(&mut source, 800);
    drop(threads);
    assert_whole(&seen);
    let deepest = burning(&seen).map(|s| s.frames.len()).max().unwrap_or(0);
    println!("the deepest has {deepest} frames");
    assert!(deepest > burn::DEPTH as usize, "{deepest} frames");
}

/// This includes the moment in which a handler has returned, and the kernel restores the registers.
#[test]
fn stacks_are_whole_while_signals_are_handled() {
    let _alone = alone();
    let Some(mut source) = start(&myself(997)) else {
        return;
    };
    let threads = burn::Threads::start_signalled();
    let seen = Seen::until(&mut source, "samples of signals", |seen| {
        burning(seen).count() >= 800
    });
    drop(threads);
    assert_whole(&seen);
}

#[test]
fn kernel_samples_carry_both_stacks() {
    let _alone = alone();
    let Some(mut source) = start(&myself(999)) else {
        return;
    };
    let threads = burn::Threads::start_reading();
    let is_enough = |seen: &Seen| {
        let in_kernel = seen.samples.iter().filter(|s| s.kernel_frames > 0);
        in_kernel.count() > 100
    };
    let seen = Seen::until(&mut source, "samples in the kernel", is_enough);
    drop(threads);
    let in_kernel: Vec<_> = seen
        .samples
        .iter()
        .filter(|s| s.kernel_frames > 0)
        .collect();
    let with_both = in_kernel
        .iter()
        .filter(|s| s.frames.len() > s.kernel_frames)
        .count();
    assert_eq!(with_both, in_kernel.len());
}

#[test]
fn samples_are_busy_time_times_rate() {
    let _alone = alone();
    let Some(mut source) = start(&myself(1_999)) else {
        return;
    };
    let threads = burn::Threads::start(2);
    let burnt = Burnt::of(&mut source, &threads, 3.0);
    drop(threads);
    assert_near(&burnt, 1_999);
    assert_eq!(burnt.lost, 0);
}

#[test]
fn a_rate_that_is_changed_counts_from_then_on() {
    let _alone = alone();
    let Some(mut source) = start(&myself(499)) else {
        return;
    };
    let threads = burn::Threads::start(2);
    Seen::samples(&mut source, 20);
    for rate_hz in [1_999, 99] {
        source.set_rate(rate_hz).unwrap();
        assert_eq!(source.info().rate_hz, rate_hz);
        assert_near(&Burnt::of(&mut source, &threads, 2.0), rate_hz);
    }
    drop(threads);
}

#[test]
fn short_lived_processes_are_all_known() {
    let _alone = alone();
    // All processes are sampled: this build could not read a higher rate if others leave it little
    // time.
    let Some(mut source) = start(&Config {
        rate_hz: 399,
        ..Config::default()
    }) else {
        return;
    };
    let mut seen = Seen::default();
    let mut started = 0;
    wait_until("samples of short-lived processes", || {
        for _ in 0..4 {
            let child = Command::new("true").stdin(Stdio::null()).status();
            child.unwrap();
            started += 1;
        }
        seen.take(&mut source);
        seen.samples.iter().filter(|s| &*s.comm == "true").count() >= 100
    });
    let of_children: Vec<_> = seen.samples.iter().filter(|s| &*s.comm == "true").collect();
    println!("{} samples of {started} processes", of_children.len());
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
    // If this process had no time to read them, the kernel dropped events, and reported how many.
    let events_lost = seen.counters.events_lost;
    assert!(
        lost * 50 <= of_children.len() || events_lost > 0,
        "{lost} of {} not placed",
        of_children.len()
    );
}

#[test]
fn the_filter_lets_only_targets_pass() {
    let _alone = alone();
    let other = Process::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let Some(mut source) = start(&Config {
        target: only(other.pid()),
        rate_hz: 499,
        ..Config::default()
    }) else {
        return;
    };
    // This process runs as well.
    let seen = Seen::until(&mut source, "samples, and others filtered out", |seen| {
        seen.samples.len() > 100 && seen.counters.filtered > 0
    });
    assert!(
        seen.samples
            .iter()
            .all(|sample| seen.pid_of(sample) == other.pid())
    );
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
    let _fitting = Process::start(Command::new("sh").args(["-c", burn]));
    // This process runs as well.
    let seen = Seen::until(&mut source, "samples, and others filtered out", |seen| {
        seen.samples.len() > 100 && seen.counters.filtered > 0
    });
    assert!(seen.samples.iter().all(|sample| &*sample.comm == "sh"));
}

#[test]
fn the_end_of_all_targets_is_seen() {
    let _alone = alone();
    let target = Process::start(Command::new("sleep").arg("60"));
    let source = start(&Config {
        target: only(target.pid()),
        ..Config::default()
    });
    drop(target);
    let Some(mut source) = source else { return };
    Seen::until(&mut source, "the end of all targets", |seen| {
        seen.targets_alive == Some(0)
    });
}

#[test]
fn children_of_targets_are_targets_from_their_first_instruction() {
    let _alone = alone();
    // The shell waits for a line; then a child of a child burns.
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

/// A program without unwind information, which uses the frame pointer for something else: it can
/// only be walked by `.debug_frame`, which is compressed, and in another file.
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

/// Compiles it, and moves its debug information to a file beside it; `None`, with a message, if
/// that is not possible.
fn stripped_program(scratch: &Scratch) -> Option<PathBuf> {
    let objcopy = |args: &[&str]| {
        let mut objcopy = Command::new("objcopy");
        run_tool(objcopy.args(args).current_dir(scratch.path()))
    };
    let program = scratch.join("work");
    compile(&scratch.write("work.c", WITHOUT_TABLES), &program, FLAGS)?;
    objcopy(&["--only-keep-debug", "work", "work.debug"])?;
    objcopy(&["--strip-all", "--add-gnu-debuglink=work.debug", "work"])?;
    Some(program)
}

#[test]
fn stacks_are_walked_by_separate_debug_information() {
    let _alone = alone();
    let scratch = Scratch::new();
    let Some(program) = stripped_program(&scratch) else {
        return;
    };
    let child = Process::start(&mut Command::new(program));
    let source = start(&Config {
        target: only(child.pid()),
        rate_hz: 199,
        ..Config::default()
    });
    if let Some(mut source) = source {
        let seen = Seen::samples(&mut source, 200);
        let samples = seen.samples.iter();
        let whole = samples
            .filter(|sample| sample.ending == Ending::Root)
            .count();
        let all = seen.samples.len();
        assert!(whole * 10 >= all * 9, "{whole} of {all} whole");
    }
}

/// Goroutines that call themselves, with their stacks in front of a large heap.
const GOROUTINES: &str = r#"package main

import "runtime"

var heap = make([]byte, 64<<20)

//go:noinline
func down(depth int) int {
	if depth > 0 {
		return down(depth-1) + 1
	}
	sum := 0
	for i := 0; i < 1<<20; i++ {
		sum += int(heap[i])
	}
	return sum
}

func main() {
	for n := 0; n < runtime.NumCPU(); n++ {
		go func() {
			for {
				down(8)
			}
		}()
	}
	select {}
}
"#;

/// A new process is walked from copies of its stacks.
#[test]
fn first_stacks_of_goroutines_are_copied_without_the_heap_behind_them() {
    let _alone = alone();
    let scratch = Scratch::new();
    let (source_file, program) = (scratch.write("work.go", GOROUTINES), scratch.join("work"));
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(source_file);
    // Kept from run to run: without it, newer versions compile their library again.
    build.env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go-cache"));
    build.env("GO111MODULE", "off");
    if run_tool(&mut build).is_none() {
        return;
    }
    let source = start(&Config {
        rate_hz: 997,
        keep_walks: true,
        ..Config::default()
    });
    let Some(mut source) = source else {
        return;
    };
    /// The address range where Go's heap begins.
    const HEAP: std::ops::Range<u64> = 0xc0_0000_0000..0xc1_0000_0000;
    let mut walks = Vec::new();
    wait_until("stacks of goroutines", || {
        let child = Process::start(&mut Command::new(&program));
        for _ in 0..20 {
            let batch = source.poll(Duration::from_millis(20)).unwrap();
            let kept = batch.kept_walks.into_iter();
            walks.extend(
                kept.filter(|walk| walk.pid == child.pid() && HEAP.contains(&walk.registers.sp)),
            );
        }
        walks.len() >= 20
    });
    // For some the end of the stack is not known, and as much is copied as is possible. Seen once
    // in a few hundred stacks; the likely cause, which is not proven: between two goroutines a
    // thread has the stack of one, while the runtime says that it runs the other.
    let large = walks.iter().filter(|walk| walk.stack.size() > 32 << 10);
    let (large, all) = (large.count(), walks.len());
    assert!(large * 10 <= all, "{large} of {all} are large");
    let whole = walks
        .iter()
        .filter(|walk| walk.ending == Ending::Root)
        .count();
    assert!(whole * 10 >= all * 9, "{whole} of {all} whole");
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
    // The kernel frees programs a moment after their last descriptor is closed.
    let left = || {
        let loaded = aya::programs::loaded_programs().filter_map(Result::ok);
        loaded
            .filter(|program| ours.contains(&program.id()))
            .count()
    };
    wait_until("all programs are gone", || left() == 0);
}

/// Returns the numbers of the BPF programs that this process holds, as others may run
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

/// Caches, windows of memory and the short cuts in front of them must not change a stack:
/// each one is walked again from a copy, without any of them, while processes
/// that share the CPUs start and end.
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
    let walks = wait_for("300 stacks that were walked twice", || {
        let mut shell = Command::new("sh");
        _ = shell.args(["-c", "ls /"]).stdout(Stdio::null()).status();
        let walks = source.poll(Duration::from_millis(20)).unwrap().walks;
        (walks.same >= 300).then_some(walks)
    });
    drop(threads);
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
    let seen = Seen::samples(&mut source, 100);
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
    let seen = Seen::samples(&mut source, 100);
    assert_only_on(cpu, &seen);
}

/// From the point of no return on there is no user stack, and the ending says so. Before, the
/// old program still has its stack.
#[test]
fn in_the_midst_of_exec_there_is_no_stack() {
    let _alone = alone();
    let kernel = symbolize::kernel::KernelSymbols::load();
    if kernel.is_hidden() {
        skip("the kernel hides its addresses");
        return;
    }
    let Some(mut source) = start(&Config {
        rate_hz: 1999,
        ..Config::default()
    }) else {
        return;
    };
    let shell = Process::start(Command::new("sh").args(["-c", "while :; do /bin/true; done"]));
    let is_in = |sample: &Sample, function: &str| {
        let frames = &sample.frames[..sample.kernel_frames];
        let mut names = frames.iter().filter_map(|f| kernel.find(f.address).ok());
        names.any(|symbol| symbol.name == function)
    };
    let in_exec = |seen: &Seen| -> Vec<Sample> {
        let of_loop = seen
            .samples
            .iter()
            .filter(|s| ["sh", "true"].contains(&&*s.comm));
        of_loop
            .filter(|s| is_in(s, "begin_new_exec"))
            .cloned()
            .collect()
    };
    let seen = Seen::until(&mut source, "samples in exec", |seen| {
        seen.samples.len() > 20_000 || in_exec(seen).len() > 50
    });
    drop(shell);
    let samples = in_exec(&seen);
    println!("{} samples in exec", samples.len());
    let is_exec = |sample: &&Sample| sample.ending == Ending::Exec;
    assert!(samples.iter().any(|sample| is_exec(&sample)));
    for sample in samples {
        assert_ne!(sample.ending, Ending::ReadFault);
        assert!(!is_exec(&&sample) || sample.frames.len() == sample.kernel_frames);
    }
}
