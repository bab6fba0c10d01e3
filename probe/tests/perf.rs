//! The source without BPF, in the real kernel: it must give the same as the source with BPF,
//! also without rights.

#[allow(dead_code, reason = "the other tests use the rest of it")]
mod burn;
mod common;

use common::{Burnt, Seen, TwoUsers, alone, assert_only_on, on_one_cpu, only, unless_forbidden};
use probe::{Config, Ending, PerfSource, Source, Target};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Starts a source; `None`, with a message, if not even that is allowed.
fn start(target: Target, rate_hz: u32) -> Option<PerfSource> {
    let config = Config {
        target,
        rate_hz,
        ..Config::default()
    };
    let needs = "kernel.perf_event_paranoid forbids it";
    unless_forbidden(PerfSource::start(&config), needs)
}

/// This program keeps no frame pointers, and its tables are not read yet when
/// the first samples come.
#[test]
fn stacks_are_whole_and_threads_have_their_names() {
    let _alone = alone();
    let Some(mut source) = start(only(std::process::id()), 199) else {
        return;
    };
    let threads = burn::Threads::start_deep(2);
    let seen = Seen::samples(&mut source, 800);
    drop(threads);
    let burning = || {
        seen.samples
            .iter()
            .filter(|sample| &*sample.comm == burn::THREAD_NAME)
    };
    let all = burning().count();
    let whole = burning()
        .filter(|sample| sample.ending == Ending::Root)
        .count();
    let deepest = burning().map(|sample| sample.frames.len()).max();
    assert!(all > 200, "{all} samples of burning threads");
    assert!(whole * 100 >= all * 98, "{whole} of {all} whole");
    assert!(deepest > Some(burn::DEPTH as usize), "{deepest:?} frames");
    let tids: BTreeSet<u32> = burning().map(|sample| sample.tid).collect();
    assert_eq!(tids.len(), 2, "both threads are seen");
}

#[test]
fn samples_are_busy_time_times_rate() {
    let _alone = alone();
    let Some(mut source) = start(only(std::process::id()), 499) else {
        return;
    };
    let threads = burn::Threads::start(2);
    Seen::samples(&mut source, 20);
    let burnt = Burnt::of(&mut source, &threads, 3.0);
    drop(threads);
    assert_near(&burnt, 499);
    // Some samples are lost if other programs keep this one from reading; these are counted.
    let (lost, samples) = (burnt.lost as f64, burnt.samples);
    assert!(lost * 50.0 < samples, "{lost} lost");
}

/// Checks the number of samples. Without the right to see the kernel, ticks in it are missing.
#[track_caller]
fn assert_near(burnt: &Burnt, rate_hz: u32) {
    let expected = burnt.seconds * f64::from(rate_hz);
    let [all, in_user] = [burnt.samples, burnt.in_user].map(|count| count / expected);
    let told = format!("{all} of expected, {in_user} not in the kernel");
    assert!(all > 0.85 && in_user < 1.05, "{told}, {} lost", burnt.lost);
}

#[test]
fn the_rate_of_single_threads_stays_and_that_of_all_changes() {
    let _alone = alone();
    let Some(mut source) = start(only(std::process::id()), 49) else {
        return;
    };
    assert!(source.info().rate_is_fixed.is_some());
    assert!(source.set_rate(199).is_err());
    let Some(mut source) = start(Target::default(), 49) else {
        return;
    };
    let threads = burn::Threads::start(2);
    // By then mapped files have their tables, and all processes are known.
    Seen::samples(&mut source, 100);
    source.set_rate(499).unwrap();
    let burnt = Burnt::of(&mut source, &threads, 3.0);
    drop(threads);
    assert_near(&burnt, 499);
}

#[test]
fn what_a_target_starts_is_a_target_and_nobody_else() {
    let _alone = alone();
    // The shell waits, then starts another program, which works.
    let script = "sleep 0.3; sha256sum /dev/zero & echo $!; wait";
    let mut shell = Command::new("sh")
        .args(["-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let target = Target {
        children: true,
        ..only(shell.id())
    };
    let Some(mut source) = start(target, 199) else {
        shell.kill().unwrap();
        shell.wait().unwrap();
        return;
    };
    let seen = Seen::samples(&mut source, 200);
    let names: BTreeSet<&str> = seen.samples.iter().map(|sample| &*sample.comm).collect();
    let whole = seen
        .samples
        .iter()
        .filter(|sample| sample.ending == Ending::Root)
        .count();
    let worker = seen
        .pids
        .values()
        .copied()
        .find(|pid| *pid != shell.id())
        .expect("the child is told of");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(worker.cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    shell.wait().unwrap();
    assert!(names.contains("sha256sum"), "{names:?}");
    assert!(
        names
            .iter()
            .all(|name| ["sh", "sleep", "sha256sum"].contains(name)),
        "{names:?}"
    );
    assert!(whole * 100 >= seen.samples.len() * 95, "{whole} whole");
    Seen::until(&mut source, "the end of all targets", |seen| {
        seen.targets_alive == Some(0)
    });
    // The events of threads that have ended are always ready: that must not become a busy loop.
    let begun = Instant::now();
    for _ in 0..10 {
        source.poll(Duration::from_millis(20)).unwrap();
    }
    assert!(begun.elapsed() >= Duration::from_millis(150));
}

#[test]
fn only_what_users_started_is_sampled() {
    let _alone = alone();
    let Some(users) = TwoUsers::start() else {
        return;
    };
    let Some(mut source) = start(users.target(), 199) else {
        return;
    };
    let seen = Seen::samples(&mut source, 100);
    users.assert_only_theirs(&seen);
}

#[test]
fn only_those_cpus_are_sampled() {
    let _alone = alone();
    let (target, cpu) = on_one_cpu();
    let Some(mut source) = start(target, 199) else {
        return;
    };
    let _threads = burn::Threads::start(2 * probe::cpus::online().unwrap().len());
    let seen = Seen::samples(&mut source, 100);
    assert_only_on(cpu, &seen);
}
