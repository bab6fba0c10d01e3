//! The programs without `bpf_loop`, which are for kernels before Linux 6.1, in this machine's
//! kernel. Needs rights; a test that lacks them prints that and is skipped.
#![cfg(target_arch = "x86_64")]

#[expect(dead_code, reason = "the other tests use the rest of it")]
mod burn;
mod common;

use common::{Seen, alone, only, unless_forbidden};
use probe::{BpfSource, Config, Ending, Error, Frame, Happening, Sample, Source, Target};
use std::collections::{BTreeSet, HashMap};
use std::process::{Command, Stdio};
use std::time::Duration;
use test_support::{skip, wait_for, wait_until};

fn myself() -> Config {
    Config {
        target: only(std::process::id()),
        rate_hz: 997,
        without_loop: true,
        ..Config::default()
    }
}

/// Starts a source; `None`, with a message, if rights are missing.
fn start(config: &Config) -> Option<BpfSource> {
    unless_forbidden(BpfSource::start(config), "needs CAP_BPF and CAP_PERFMON")
}

fn burning(seen: &Seen) -> impl Iterator<Item = &Sample> {
    let samples = seen.samples.iter();
    samples.filter(|sample| &*sample.comm == burn::THREAD_NAME)
}

#[test]
fn there_is_little_to_verify() {
    let _alone = alone();
    let Some(source) = start(&Config {
        calls: true,
        target: Target {
            children: true,
            ..only(1)
        },
        ..myself()
    }) else {
        return;
    };
    let verified = source.verified_instructions();
    println!("verified instructions: {verified:?}");
    assert_eq!(verified.len(), 3);
    for (program, instructions) in verified {
        // 0 if the kernel does not report it (before 5.16).
        let is_little = *instructions < BpfSource::VERIFIED_MAX;
        assert!(is_little, "{program}: {instructions}");
    }
}

/// Features that these programs lack are refused by name, and everything else still works.
#[test]
fn what_takes_a_loop_says_so() {
    let _alone = alone();
    let config = Config {
        calls: true,
        ..myself()
    };
    let Some(mut source) = start(&config) else {
        return;
    };
    let notes = source.info().notes;
    let is_told = |note: &String| note.contains("Linux 6.1") && note.contains("--engine perf");
    assert!(notes.len() == 1 && is_told(&notes[0]), "{notes:?}");
    assert!(matches!(source.take_calls(), Err(Error::OldKernel)));
    let refused = source.count_waits().unwrap_err();
    assert!(refused.contains("Linux 6.1"), "{refused}");
    drop(source);
    let with_waits = Config {
        waits: true,
        ..myself()
    };
    let with_faults = Config {
        happening: Happening::parse("page-faults"),
        ..myself()
    };
    for config in [with_waits, with_faults] {
        let refused = BpfSource::start(&config).map(drop);
        assert!(matches!(refused, Err(Error::OldKernel)), "{refused:?}");
    }
}

#[test]
fn a_stack_is_the_same_in_bpf_and_from_a_copy() {
    let _alone = alone();
    let Some(mut source) = start(&Config {
        target: Target {
            children: true,
            ..only(std::process::id())
        },
        check_walks: true,
        rate_hz: 249,
        ..myself()
    }) else {
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

/// Compares the stacks of a program that both walks find at the same time, except for the place in
/// the innermost function.
#[test]
fn both_walks_find_the_same_stacks() {
    let _alone = alone();
    let walks = [false, true].map(|without_loop| Config {
        without_loop,
        ..myself()
    });
    let [Some(mut usual), Some(mut without_loop)] = [start(&walks[0]), start(&walks[1])] else {
        return;
    };
    let threads = burn::Threads::start(2);
    let mut seen = [Seen::default(), Seen::default()];
    wait_until("samples of both", || {
        seen[0].take(&mut usual);
        seen[1].take(&mut without_loop);
        seen.iter().all(|seen| burning(seen).count() >= 2_000)
    });
    drop(threads);
    let [usual, without_loop] = seen.each_ref().map(|seen| stacks(&mut burning(seen)));
    println!("{} stacks", usual.len());
    assert!(usual.len() >= burn::FUNCTIONS.len());
    assert_eq!(usual, without_loop);
}

/// Returns the callers in all whole stacks of user code that occurred often enough to occur again.
fn stacks(samples: &mut dyn Iterator<Item = &Sample>) -> BTreeSet<Vec<u64>> {
    let mut counts: HashMap<Vec<u64>, u32> = HashMap::new();
    for sample in samples {
        let is_plain = sample.kernel_frames == 0 && !sample.tables_late;
        if is_plain && sample.ending == Ending::Root {
            let callers = sample.frames.iter().skip(1);
            let callers = callers.map(|frame: &Frame| frame.address).collect();
            *counts.entry(callers).or_default() += 1;
        }
    }
    let often = counts.into_iter().filter(|(_, count)| *count >= 40);
    often.map(|(stack, _)| stack).collect()
}

/// Until the tables are loaded, stacks are copied. These programs do not know where a stack ends,
/// so that each copy has 240 KiB. A CPU may copy 60 MiB a second: enough for all stacks at the usual
/// rate, and at 997 Hz only if loading took less than a quarter of a second.
#[test]
fn deep_stacks_are_whole() {
    let _alone = alone();
    let config = Config {
        rate_hz: 99,
        ..myself()
    };
    let Some(mut source) = start(&config) else {
        return;
    };
    let threads = burn::Threads::start_deep(2);
    let seen = Seen::samples(&mut source, 800);
    drop(threads);
    let all = burning(&seen).count();
    let (whole, cut): (Vec<_>, Vec<_>) =
        burning(&seen).partition(|sample| sample.ending == Ending::Root);
    let why = cut.iter().map(|sample| (sample.ending, sample.tables_late));
    assert!(
        whole.len() * 100 >= all * 98,
        "{} of {all} are whole, the others ended by {:?}",
        whole.len(),
        why.collect::<Vec<_>>()
    );
    let deepest = burning(&seen).map(|sample| sample.frames.len()).max();
    assert!(deepest > Some(burn::DEPTH as usize), "{deepest:?}");
    assert_eq!(seen.counters.lost, 0);
}

/// A thread that is in the kernel has its user stack as well: its registers are found without a
/// helper for that. If the kernel saves more behind them than kernels before 5.17 did
/// (`CONFIG_X86_FRED`, Linux 6.9), they are not at the expected place, and the sample has no user
/// stack.
#[test]
fn kernel_samples_carry_both_stacks() {
    let _alone = alone();
    let Some(mut source) = start(&myself()) else {
        return;
    };
    let threads = burn::Threads::start_reading();
    let in_kernel = |seen: &Seen| {
        let all = seen.samples.iter().filter(|s| s.kernel_frames > 0);
        let both = all.clone().filter(|s| s.frames.len() > s.kernel_frames);
        (all.count(), both.count())
    };
    let seen = Seen::until(&mut source, "samples in the kernel", |seen| {
        in_kernel(seen).0 > 100
    });
    drop(threads);
    let (all, both) = in_kernel(&seen);
    if both == 0 && probe::features::kernel_is_at_least((6, 9)) {
        skip("this kernel has something behind the registers of a thread (CONFIG_X86_FRED)");
        return;
    }
    assert_eq!(both, all);
}
