//! Time waited as a user sees it: a program with known waits is recorded, and reports on the
//! recording are checked.

use crate::common;

use common::dialog::Dialog;
use common::tmux::Terminal;
use common::{can_sample, list, number, proftop, run, text};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use test_support::{Process, Scratch, skip};

/// Records the program from its beginning to its end. Returns None where that is not possible.
fn recorded(scratch: &Scratch) -> Option<String> {
    let program = common::compiled(scratch.path(), "waits.c", &["-O1", "-g", "-pthread"])?;
    let file = scratch.join("waits.pft").display().to_string();
    let program = program.display().to_string();
    let record = ["record", "--metric", "off-cpu", "-o", &file, "--", &program];
    let output = proftop(&record).output().unwrap();
    if output.status.code() == Some(4) || output.status.code() == Some(125) {
        skip(text(&output.stderr));
        return None;
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(file)
}

pub fn report(file: &str, filter: &str) -> Value {
    let args = ["report", file, "--format", "json", "--filter", filter];
    let output = run(&mut proftop(&args));
    serde_json::from_slice(&output.stdout).expect("one object")
}

pub fn function<'a>(report: &'a Value, name: &str) -> Option<&'a Value> {
    list(report, "functions")
        .iter()
        .find(|function| function["name"] == name)
}

/// Returns how many waits a function has, and the mean and the longest of them, in milliseconds.
#[track_caller]
pub fn waits(report: &Value, name: &str) -> (u64, f64, f64) {
    let function = function(report, name).unwrap_or_else(|| panic!("{name}: {report}"));
    let ms = |field| number(function, field) as f64 / 1e6;
    (
        number(function, "waits"),
        ms("mean_wait_ns"),
        ms("longest_wait_ns"),
    )
}

#[test]
fn waits_are_as_many_and_as_long_as_they_were() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let Some(file) = recorded(&scratch) else {
        return;
    };
    let slept = report(&file, "state:sleep");
    // All long waits record their stack. A thread that is preempted on its way to sleep is in the
    // queue until the timer has ended.
    let (count, mean_ms, longest_ms) = waits(&slept, "twenty_naps_of_30_ms");
    assert!((18..=20).contains(&count), "{count}");
    assert!((29.0..33.0).contains(&mean_ms), "{mean_ms}");
    assert!(longest_ms >= mean_ms, "{longest_ms}");
    let long = function(&slept, "twenty_naps_of_30_ms").unwrap();
    assert_eq!(number(long, "waits_drawn"), count);
    // Some of the short waits record their stack, and stand for the others.
    let short = function(&slept, "three_thousand_short_naps").unwrap();
    let (count, drawn) = (number(short, "waits"), number(short, "waits_drawn"));
    assert!(drawn > 30 && drawn < 3000, "{drawn} of {count}");
    // Five standard deviations of this many random draws.
    let off = count.abs_diff(3000) as f64 / 3000.0;
    assert!(off < 5.0 / (drawn as f64).sqrt(), "{count} by {drawn}");

    let worked = report(&file, "state:net");
    let (count, mean_ms, _) = waits(&worked, "ten_waits_for_work");
    assert!((9..=10).contains(&count), "{count}");
    assert!((39.0..44.0).contains(&mean_ms), "{mean_ms}");

    let locked = report(&file, "state:lock");
    let (count, mean_ms, longest_ms) = waits(&locked, "want_the_lock");
    assert!((1..=8).contains(&count), "{count}");
    assert!(mean_ms <= longest_ms, "{mean_ms} {longest_ms}");
    assert!(function(&locked, "ten_waits_for_work").is_none());

    // The frames between the program's own functions and the wait are folded, and no others.
    let tree = run(&mut proftop(&[
        "report",
        &file,
        "--tree",
        "--filter",
        "state:net",
    ]));
    let tree = text(&tree.stdout);
    assert!(tree.contains("ten_waits_for_work  waits"), "{tree}");
    let args = ["report", &file, "--format", "md", "--filter", "state:lock"];
    let page = run(&mut proftop(&args));
    let page = text(&page.stdout);
    let hot = page
        .lines()
        .find(|line| line.starts_with("Hot path"))
        .unwrap_or_else(|| panic!("{page}"));
    assert!(
        hot.ends_with("`want_the_lock` › `[waiting: lock]`"),
        "{hot}"
    );

    // The time in the queue after the wait is no wait for work.
    let busy = report(&file, "!state:idle !state:queue");
    assert!(function(&busy, "ten_waits_for_work").is_none());
    // A lock is no wait for work.
    let name = "want_the_lock";
    assert!(function(&report(&file, "!state:idle state:lock"), name).is_some());
    let idle = report(&file, "state:idle");
    assert!(function(&idle, "ten_waits_for_work").is_some());
    assert!(function(&idle, "twenty_naps_of_30_ms").is_none());
}

/// Checks that each thread lived all the time: its states add up to the window, less what was
/// not read yet at the end: a quarter of a second, and more on a busy machine.
#[track_caller]
pub fn check_sums(report: &Value) {
    let window_ns = report["window_s"].as_f64().expect("it is a number") * 1e9;
    let threads = list(report, "threads");
    assert!(!threads.is_empty(), "{report}");
    for thread in threads {
        let states = thread["states"].as_object().expect("they are known");
        let sum: f64 = states
            .values()
            .map(|ns| ns.as_f64().expect("nanoseconds"))
            .sum();
        let is_whole = sum < window_ns * 1.01 && sum > window_ns * 0.99 - 1e9;
        assert!(is_whole, "{sum} of {window_ns}: {thread}");
    }
}

/// Starts the program whose threads hold known locks, and waits until they do.
pub fn locks(scratch: &Scratch) -> Option<Process> {
    let program = common::compiled(scratch.path(), "locks.c", &["-O1", "-g", "-pthread"])?;
    let mut locks = Process::start(Command::new(&program).stdout(Stdio::piped()));
    let mut ready = String::new();
    let printed = locks.stdout.take().expect("it is piped");
    BufReader::new(printed).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    Some(locks)
}

#[test]
fn who_has_a_lock_is_told_also_of_waits_that_began_before() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let Some(locks) = locks(&scratch) else {
        return;
    };
    let pid = locks.pid().to_string();
    let args = "-b -n 1 -d 6 --metric off-cpu --format json -p";
    let args: Vec<&str> = args.split(' ').chain([&*pid]).collect();
    let file = scratch.join("locks.pft").display().to_string();
    let to_file = ["record", "--metric", "off-cpu", "-d", "6s", "-o", &file];
    let to_file = [&to_file[..], &["-p", &pid]].concat();
    // Both run at the same time: they watch waits that are not over, which needs no CPU.
    let (output, _) = std::thread::scope(|scope| {
        let recording = scope.spawn(|| run(&mut proftop(&to_file)));
        let output = run(&mut proftop(&args));
        (output, recording.join().expect("it ends"))
    });
    if output.status.code() == Some(4) {
        return skip(text(&output.stderr));
    }
    let told: Value = serde_json::from_slice(&output.stdout).expect("one object");
    check_locks(&told);
    check_who_keeps_waiting(&told, &pid);
    // A recording has all of it as well.
    check_locks(&report(&file, ""));
    let page = run(&mut proftop(&["report", &file, "--format", "md"]));
    let page = text(&page.stdout);
    assert!(page.contains("wait for each other since >"), "{page}");
    let table = run(&mut proftop(&["report", &file]));
    let table = text(&table.stdout);
    assert!(table.contains("# DEADLOCK: "), "{table}");
}

/// Checks a report on the program `locks`.
#[track_caller]
fn check_locks(report: &Value) {
    let threads = list(report, "threads");
    let find = |name: &str| threads.iter().find(|thread| thread["comm"] == name);
    let thread = |name: &str| find(name).unwrap_or_else(|| panic!("{name}: {report}"));
    let has_its_lock = |name: &str, owner: &str| {
        assert_eq!(thread(name)["lock_owner"], thread(owner)["tid"], "{name}");
    };
    has_its_lock("low", "mid");
    has_its_lock("mid", "top");
    has_its_lock("one", "other");
    has_its_lock("other", "one");
    assert!(thread("top")["lock_owner"].is_null());
    check_sums(report);
    // It is known where the threads wait, although none of these waits is over.
    for name in ["low", "mid", "one", "other"] {
        let function = function(report, name).unwrap_or_else(|| panic!("{name}: {report}"));
        assert!(number(function, "total_ns") > 1_000_000_000, "{function}");
        assert_eq!(number(function, "waits"), 0, "{function}");
        assert!(function["mean_wait_ns"].is_null(), "{function}");
    }
    // Nearly all of the time that a thread waited was for the thread that had the lock.
    let held = list(report, "holders")
        .iter()
        .filter(|held| held["waiter"] == thread("waiter")["tid"] && held["state"] == "lock");
    let (its, others): (Vec<&Value>, Vec<&Value>) = held.partition(|held| {
        held["kind"] == "owner" && held["holder_thread"] == thread("holder")["tid"]
    });
    let sum = |held: &[&Value]| held.iter().map(|held| number(held, "ns")).sum::<u64>();
    assert!(sum(&its) > 1_000_000_000, "{report}");
    assert!(sum(&others) * 50 < sum(&its), "{others:?}");
}

/// Checks that the function which keeps others waiting is shown: with each holder, and as a metric.
#[track_caller]
fn check_who_keeps_waiting(report: &Value, pid: &str) {
    let threads = list(report, "threads");
    let holder = threads.iter().find(|thread| thread["comm"] == "holder");
    let holder = &holder.expect("it is there")["tid"];
    let held: Vec<&Value> = list(report, "holders")
        .iter()
        .filter(|held| held["holder_thread"] == *holder)
        .collect();
    assert!(!held.is_empty(), "{report}");
    for held in held {
        assert_eq!(held["holder_function"], "holder", "{held}");
    }
    let args = "-b -n 1 -d 5 --metric kept-waiting --format json --filter state:lock -p";
    let args: Vec<&str> = args.split(' ').chain([pid]).collect();
    let output = run(&mut proftop(&args));
    let kept: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(kept["metric"], "kept-waiting");
    let function = function(&kept, "holder").unwrap_or_else(|| panic!("{kept}"));
    let (its, all) = (number(function, "total_ns"), number(&kept, "samples"));
    assert!(
        its * 100 >= all * 99 && all > 1_000_000_000,
        "{its} of {all}"
    );
    // Each wait lasts for the rest of 40 ms, and recorded the stack of the thread that ended it.
    let (count, mean_ms, _) = waits(&kept, "holder");
    assert!((20..=130).contains(&count), "{count}");
    assert!((30.0..60.0).contains(&mean_ms), "{mean_ms}");
}

/// Returns whether the screen says that there are no waits, because perf events take the samples.
fn is_without_bpf(screen: &str) -> bool {
    let is_without = screen.contains("waits need BPF");
    if is_without {
        skip("BPF cannot be used here");
    }
    is_without
}

#[test]
fn a_key_shows_waits_in_a_run_that_began_without_them() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let (Some(locks), Some(terminal)) = (locks(&scratch), Terminal::open(80, 24)) else {
        return;
    };
    terminal.start(&format!("-p {}", locks.pid()));
    terminal.wait("the header", |screen| {
        screen.contains("LIVE") && screen.contains("locks[")
    });
    terminal.keys(&["c"]);
    let screen = terminal.wait("the lock", |screen| {
        screen.contains("waits need BPF")
            || screen.contains("off-cpu") && screen.contains("[waiting: lock]")
    });
    if is_without_bpf(&screen) {
        return;
    }
    // Threads that waited before are followed as well: the view says which one waits for which.
    terminal.keys(&["5"]);
    terminal.wait("all threads", |screen| {
        ["top", "mid", "low", "one", "other"]
            .iter()
            .all(|name| screen.contains(&format!(" {name} ")))
            && screen.contains("DEADLOCK")
    });
    terminal.keys(&["8"]);
    terminal.wait("since when", |screen| screen.contains("counted since"));
    // The other metrics are there as well, and time on CPUs is still there.
    for metric in ["wall", "kept-waiting", "on-CPU", "off-cpu"] {
        terminal.keys(&["c"]);
        terminal.wait(metric, |screen| {
            let header = screen.lines().nth(1);
            header.is_some_and(|header| header.contains(metric))
        });
    }
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn an_order_shows_waits_and_files_begin_when_they_are_counted() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let Some(locks) = locks(&scratch) else {
        return;
    };
    let pid = locks.pid().to_string();
    let mut dialog = Dialog::start(&["--plain", "-F", "999", "-p", &pid]);
    dialog.ask("window all");
    dialog.ask_until("top 3", &["% self"]);
    let answer = dialog.ask("metric off-cpu");
    if is_without_bpf(&answer) {
        return;
    }
    assert!(answer.contains("counted is off-cpu"), "{answer}");
    // The same command again changes nothing.
    let answer = dialog.ask("metric off-cpu");
    assert!(answer.contains("counted is off-cpu"), "{answer}");
    dialog.ask_until("top 20", &["[waiting: lock]"]);
    dialog.ask_until("threads", &["waiter", "DEADLOCK"]);
    let of = |name: &str| scratch.join(name).display().to_string();
    let (waited, wall, ran) = (of("off-cpu.pft"), of("wall.pft"), of("on-cpu.pft"));
    for (metric, file) in [("off-cpu", &waited), ("wall", &wall), ("on-cpu", &ran)] {
        dialog.ask(&format!("metric {metric}"));
        let answer = dialog.ask(&format!("write {file}"));
        assert!(answer.contains(".pft"), "{answer}");
    }
    let reports = [&waited, &wall, &ran].map(|file| report(file, ""));
    let seconds = |report: &Value| report["window_s"].as_f64().expect("seconds");
    let [waited, wall, ran] = &reports;
    assert_eq!(
        (&waited["metric"], &wall["metric"]),
        (&"off-cpu".into(), &"wall".into())
    );
    // Waits are counted since later than the start of the run, and wall has only that time.
    assert!(seconds(waited) < seconds(ran), "{waited}");
    assert!(seconds(wall) < seconds(ran), "{wall}");
    for report in [waited, wall] {
        check_sums(report);
    }
    for report in &reports {
        let notes = list(report, "notes").iter();
        let late = notes.filter(|note| {
            let note = note.as_str().expect("a sentence");
            note.starts_with("waits were counted from ")
        });
        assert_eq!(late.count(), 1, "{report}");
    }
    // Threads that only wait have waited all of that time.
    let wait_ns = number(waited, "samples") as f64;
    let all_ns = seconds(waited) * 1e9 * 8.0;
    assert!(wait_ns < all_ns * 1.02, "{wait_ns} of {all_ns}");
}
