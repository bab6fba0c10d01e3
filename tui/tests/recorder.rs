//! The flight recorder: `proftop record --ring`.

use crate::common;

use common::{BURN_FUNCTIONS, burn, can_sample, proftop, reports, run, sum, text};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use test_support::{Process, Scratch, wait_for, wait_until};

/// Starts a recorder of ten seconds in a folder, and waits until it has written.
fn recorder(folder: &Scratch, args: &[&str]) -> Process {
    let ring = folder.join("ring.pft");
    let before = fs::metadata(&ring).and_then(|ring| ring.modified()).ok();
    let mut command = proftop(&[
        "record", "--ring", "10s", "-F", "199", "--after", "1s", "-o",
    ]);
    command.arg(&ring).args(args).stderr(Stdio::null());
    let process = Process::start(&mut command);
    wait_until("the ring is written", || {
        let now = fs::metadata(&ring).and_then(|ring| ring.modified()).ok();
        now.is_some() && now != before
    });
    process
}

/// Returns the files that were saved, the oldest first.
fn saves(folder: &Scratch) -> Vec<PathBuf> {
    let list = fs::read_dir(folder.join(".")).unwrap();
    let mut paths: Vec<PathBuf> = list.map(|entry| entry.unwrap().path()).collect();
    let is_ours = |path: &str| path.ends_with("Z.pft") || path.ends_with(".earlier.pft");
    paths.retain(|path| is_ours(&path.to_string_lossy()));
    paths.sort_unstable();
    paths
}

/// Returns the number of samples in a file, and what `report` printed.
fn report(file: &Path, args: &[&str]) -> (u64, String) {
    let mut command = proftop(&["report", "--format", "json"]);
    let output = run(command.args(args).arg(file));
    let out = text(&output.stdout);
    (sum(&reports(&output.stdout), "samples"), out)
}

fn burning() -> Process {
    Process::start(
        Command::new(burn())
            .args(["600", "2"])
            .stdout(Stdio::null()),
    )
}

#[test]
fn what_led_to_a_condition_is_saved_with_its_functions() {
    if !can_sample() {
        return;
    }
    let folder = Scratch::new();
    let mut recorder = recorder(&folder, &["--save-on", "process:burn>10%"]);
    assert_eq!(saves(&folder), Vec::<PathBuf>::new());
    let burning = burning();
    let saved = wait_for("a save", || saves(&folder).pop());
    drop(burning);
    let (samples, out) = report(&saved, &["--filter", "comm:burn"]);
    assert!(samples > 0, "{out}");
    for name in BURN_FUNCTIONS {
        assert!(out.contains(name), "{name} in {out}");
    }
    let why = "saved by a flight recorder: process:burn>10%: burn took ";
    let (_, ring) = report(&folder.join("ring.pft"), &[]);
    assert!(
        ring.contains("a condition was met: process:burn>10%"),
        "{ring}"
    );
    assert!(out.contains(why), "{out}");
    // The end of the recording has fewer samples.
    let (all, _) = report(&saved, &[]);
    let (last, _) = report(&saved, &["--last", "1s"]);
    assert!(0 < last && last < all, "{last} of {all}");
    recorder.signal(Signal::TERM);
    recorder.wait().unwrap();
    // On a busy machine the condition may stop holding for a moment, and be met again.
    assert_eq!(saves(&folder)[0], saved);
}

#[test]
fn lines_are_read_for_what_is_saved() {
    if !can_sample() {
        return;
    }
    let folder = Scratch::new();
    let touched = folder.join("touched");
    let on = format!("file:{}", touched.display());
    let mut recorder = recorder(&folder, &["--save-on", &on, "--comm", "burn"]);
    // A thread of the lowest priority reads the lines: this program must not have a higher one.
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(burn()).args(["600", "2"]);
    let _burning = Process::start_load(command.stdout(Stdio::null()));
    let ring = folder.join("ring.pft");
    wait_until("names", || report(&ring, &[]).1.contains(BURN_FUNCTIONS[0]));
    let exported = folder.join("ring.firefox.json");
    let has_lines = || {
        run(proftop(&["export", "-f"]).arg(&ring).arg(&exported));
        fs::read_to_string(&exported).unwrap().contains("burn.rs")
    };
    assert!(!has_lines());
    // Reading the lines may take longer than the time after a condition.
    wait_until("lines", || {
        fs::write(&touched, "").unwrap();
        has_lines()
    });
    wait_for("a save", || saves(&folder).pop());
    recorder.signal(Signal::TERM);
    recorder.wait().unwrap();
}

#[test]
fn killed_it_leaves_a_whole_file_which_the_next_one_keeps() {
    if !can_sample() {
        return;
    }
    let folder = Scratch::new();
    let ring = folder.join("ring.pft");
    let _burning = burning();
    let mut first = recorder(&folder, &[]);
    wait_until("samples", || report(&ring, &[]).0 > 0);
    first.kill().unwrap();
    first.wait().unwrap();
    let left = fs::read(&ring).unwrap();
    let (samples, _) = report(&ring, &[]);
    assert!(samples > 0);
    let mut second = recorder(&folder, &[]);
    let kept = saves(&folder);
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::read(&kept[0]).unwrap(), left);
    // SIGUSR2 saves what there is.
    second.signal(Signal::USR2);
    let saved = wait_for("a save", || {
        saves(&folder).pop().filter(|path| *path != kept[0])
    });
    let (samples, out) = report(&saved, &[]);
    assert!(
        samples > 0 && out.contains("flight recorder: SIGUSR2"),
        "{out}"
    );
    second.signal(Signal::INT);
    second.wait().unwrap();
    let (_, out) = report(&ring, &[]);
    assert!(!out.contains("was not ended"), "{out}");
}

#[test]
fn a_file_that_is_removed_or_taken_is_noticed() {
    if !can_sample() {
        return;
    }
    let folder = Scratch::new();
    let ring = folder.join("ring.pft");
    let _burning = burning();
    let mut recorder = recorder(&folder, &[]);
    wait_until("samples", || report(&ring, &[]).0 > 0);
    let (before, _) = report(&ring, &[]);
    fs::remove_file(&ring).unwrap();
    wait_until("it is there again", || ring.exists());
    let (after, _) = report(&ring, &[]);
    assert!(after >= before, "{after} of {before}");
    // No other process writes to the ring in the meantime.
    let output = run(proftop(&["record", "--ring", "10s", "-o"]).arg(&ring));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("another recorder writes to"));
    // A file that takes its place is kept.
    let foreign = folder.write("foreign", "whose?");
    fs::rename(&foreign, &ring).unwrap();
    let kept = wait_for("it is put aside", || saves(&folder).pop());
    assert_eq!(fs::read_to_string(&kept).unwrap(), "whose?");
    wait_until("the ring is there again", || report(&ring, &[]).0 > 0);
    // A recording that cannot be saved now is saved later.
    let elsewhere = folder.join("elsewhere");
    let inner = folder.join("inner");
    fs::create_dir(&inner).unwrap();
    recorder.signal(Signal::TERM);
    recorder.wait().unwrap();
    let mut command = proftop(&["record", "--ring", "60s", "-F", "199", "-o"]);
    command.arg(inner.join("ring.pft")).stderr(Stdio::null());
    let mut recorder = Process::start(&mut command);
    wait_until("the ring is written", || inner.join("ring.pft").exists());
    fs::rename(&inner, &elsewhere).unwrap();
    recorder.signal(Signal::USR2);
    std::thread::sleep(std::time::Duration::from_secs(2));
    fs::create_dir(&inner).unwrap();
    let saved = || {
        let mut names = fs::read_dir(&inner)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        names.any(|name| name.to_string_lossy().ends_with("Z.pft"))
    };
    wait_until("a late save", saved);
    recorder.signal(Signal::TERM);
    recorder.wait().unwrap();
}

#[test]
fn what_is_no_recording_stays_as_it_is() {
    let folder = Scratch::new();
    let notes = folder.write("notes.pft", "precious");
    let output = run(proftop(&["record", "--ring", "10s", "-o"]).arg(&notes));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is no recording"));
    assert_eq!(fs::read_to_string(notes).unwrap(), "precious");
}

#[test]
fn only_so_many_saves_are_left() {
    if !can_sample() {
        return;
    }
    let folder = Scratch::new();
    let mut recorder = recorder(&folder, &["--saves", "2"]);
    let mut all: Vec<PathBuf> = Vec::new();
    for _ in 0..3 {
        // Signals within a second make one file.
        let new = wait_for("a save", || {
            recorder.signal(Signal::USR2);
            saves(&folder).into_iter().find(|path| !all.contains(path))
        });
        all.push(new);
    }
    wait_until("the oldest is removed", || saves(&folder).len() == 2);
    assert!(!all[0].exists());
    recorder.signal(Signal::TERM);
    recorder.wait().unwrap();
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (args, words) in [
        (&["--ring", "10s", "-o", "x.folded"][..], "-o FILE.pft"),
        (&["--ring", "10s", "-o", "-"], "-o FILE.pft"),
        (&["--ring", "5s"], "10s to 24h"),
        (&["--ring", "1m", "--save-on", "load>3"], "expected cpu>80%"),
        (&["--ring", "1m", "--ring-size", "4k"], "at least 1M"),
        (&["--save-on", "cpu>80%"], "--ring"),
        (
            &[
                "--ring",
                "1m",
                "--save-on",
                "process>9%",
                "--metric",
                "off-cpu",
            ],
            "--metric on-cpu counts",
        ),
    ] {
        let output = run(proftop(&["record"]).args(args));
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{args:?}");
    }
}
