//! How a run ends: exit codes, files, pipes, rights, and what is left behind.

use crate::common;

use common::{
    BURN_FUNCTIONS, BURN_SHARES, PROFTOP, band, burn, burn_str, burning, can_sample, child_of,
    list, number, proftop, reports, run, self_samples, start_sampling, sum, text, wait_for_work,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use test_support::{Process, Scratch, copy_program, skip, wait_for, wait_until};

#[test]
fn the_commands_own_status_is_passed_on() {
    if !can_sample() {
        return;
    }
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", 128 + 11)] {
        let output = run(&mut proftop(&["-b", "--", "sh", "-c", script]));
        assert_eq!(output.status.code(), Some(status), "{script}");
    }
}

#[test]
fn a_command_that_does_not_start_ends_as_env_does() {
    if !can_sample() {
        return;
    }
    for (command, status, words) in [
        ("no-such-command-here", 127, "not found"),
        ("/etc/passwd", 126, "ermission denied"),
        ("/", 126, ""),
    ] {
        let output = run(&mut proftop(&["-b", "--", command]));
        assert_eq!(output.status.code(), Some(status), "{command}");
        assert!(text(&output.stdout).is_empty());
        let stderr = text(&output.stderr);
        assert!(stderr.contains(command), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn a_command_that_does_not_start_costs_no_recording() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    // A command that does not exist, and a file that is no program.
    for (command, status) in [("no-such-command-here", 127), ("/etc/passwd", 126)] {
        for args in [&["record"][..], &["record", "--format", "folded"], &["-b"]] {
            let kept = scratch.write("kept", "an earlier recording");
            let mut again = proftop(&[args, &["-f", "-o"]].concat());
            let output = run(again.arg(&kept).args(["--", command]));
            assert_eq!(output.status.code(), Some(status), "{args:?}");
            assert_eq!(fs::read(&kept).unwrap(), b"an earlier recording");
            fs::remove_file(&kept).unwrap();
            let mut first = proftop(&[args, &["-o"]].concat());
            let output = run(first.arg(&kept).args(["--", command]));
            assert_eq!(output.status.code(), Some(status), "{args:?}");
            assert!(!kept.exists(), "{args:?}");
        }
    }
}

#[test]
fn bad_usage_is_2() {
    for args in [
        &["--no-such-option"][..],
        &["-b", "-F", "0"],
        &["-b", "-F", "ninety"],
        &["-p", "0"],
        &["--comm", "("],
        &["-b", "-p", "1", "--", "true"],
        &["-n", "3"],
        &["frobnicate"],
    ] {
        let output = run(&mut proftop(args));
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stdout).is_empty());
        assert!(text(&output.stderr).starts_with("proftop: "), "{args:?}");
    }
}

#[test]
fn what_does_not_exist_is_1() {
    for args in [["-b", "-p", "4194305"], ["-b", "-t", "4194305"]] {
        let output = run(&mut proftop(&args));
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains("4194305"), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn no_samples_is_5() {
    if !can_sample() {
        return;
    }
    let sleeping = Process::start(Command::new("sleep").arg("30"));
    let pid = sleeping.pid().to_string();
    let output = run(&mut proftop(&[
        "-b", "--format", "json", "-n", "1", "-d", "0.3", "-p", &pid,
    ]));
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(reports(&output.stdout)[0]["samples"], 0);
}

#[test]
fn the_end_of_the_target_is_the_end_of_the_reports() {
    if !can_sample() {
        return;
    }
    let burn = burning(1);
    let pid = burn.pid().to_string();
    let mut command = proftop(&["-b", "--format", "json", "-d", "20", "-p", &pid]);
    let mut child = start_sampling(command.stdout(Stdio::piped()));
    wait_for_work(burn.pid(), Duration::from_millis(300));
    drop(burn);
    let mut said = Vec::new();
    let mut output = child.stdout.take().expect("a pipe");
    output.read_to_end(&mut said).expect("it writes");
    assert_eq!(child.wait().expect("ours").code(), Some(0));
    let reports = reports(&said);
    assert_eq!(reports.last().expect("a report")["target"], "exited");
}

/// Copies of programs that any user may run: the build's folder may be closed to others.
struct Public {
    folder: tempfile::TempDir,
}

impl Public {
    /// Makes the copies. Returns None where rights cannot be given away.
    fn new() -> Option<Self> {
        let has_setpriv = Command::new("setpriv").arg("--version").output().is_ok();
        if !rustix::process::geteuid().is_root() || !has_setpriv {
            skip("needs root and setpriv to give rights away");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        Some(Self { folder })
    }

    fn copy(&self, program: impl AsRef<Path>) -> PathBuf {
        let name = program.as_ref().file_name().expect("a file");
        let copy = self.folder.path().join(name);
        copy_program(&program, &copy);
        copy
    }

    fn as_nobody(&self) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(self.copy(PROFTOP));
        command
    }
}

#[test]
fn without_rights_it_says_what_is_enough() {
    let Some(public) = Public::new() else { return };
    let output = run(public.as_nobody().args(["-b", "-n", "1"]));
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).is_empty());
    let stderr = text(&output.stderr);
    for words in [
        "proftop: cannot sample",
        "you are uid 65534 without CAP_",
        "sudo ",
        "setcap",
        "proftop doctor",
    ] {
        assert!(stderr.contains(words), "{words} in {stderr}");
    }
}

#[test]
fn without_rights_a_command_is_sampled_all_the_same() {
    let Some(public) = Public::new() else { return };
    if probe::features::perf_event_paranoid().is_none_or(|level| level > 2) {
        skip("kernel.perf_event_paranoid above 2 allows it to nobody");
        return;
    }
    let output = run(public
        .as_nobody()
        .args(["-b", "--format", "json", "-F", "199", "-d", "60", "--"])
        .arg(public.copy(burn()))
        .args(["6", "2"]));
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let reports = reports(&output.stdout);
    let (samples, whole) = (sum(&reports, "user_stacks"), sum(&reports, "whole"));
    // This holds even if it got little CPU time. The bands below depend on the number of samples.
    assert!(samples > 50, "{samples} samples");
    assert!(whole * 100 >= samples * 98, "{whole} of {samples} whole");
    let all = samples as f64;
    for (name, share) in BURN_FUNCTIONS.into_iter().zip(BURN_SHARES) {
        let measured = self_samples(&reports, name) as f64 / all;
        // The work of the program's start is in `all` as well.
        let allowed = band(share, all) + 0.03;
        assert!(
            (measured - share).abs() < allowed,
            "{name}: {measured:.3}, not {share} ± {allowed:.3}"
        );
    }
    let notes = list(&reports[0], "notes");
    let says_why = |note: &Value| note.as_str().is_some_and(|note| note.contains("not BPF"));
    assert!(notes.iter().any(says_why), "{notes:?}");
}

#[test]
fn perf_can_be_asked_for() {
    if !can_sample() {
        return;
    }
    // At a high rate: on a busy machine the command gets little of its two seconds.
    let line = "-b -n 1 --format json -F 999 --engine perf --";
    let command = [burn_str(), "2", "2"];
    let words: Vec<&str> = line.split(' ').chain(command).collect();
    let output = run(&mut proftop(&words));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let reports = reports(&output.stdout);
    assert_eq!(reports[0]["engine"], "perf");
    assert!(number(&reports[0], "samples") > 5);
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    if !can_sample() {
        return;
    }
    let _burn = burning(1);
    let script = format!("{{ '{PROFTOP}' -b -d 0.2 -F 499; echo status $? >&2; }} | head -1");
    let output = run(Command::new("sh").args(["-c", &script]));
    assert_eq!(text(&output.stdout).lines().count(), 1);
    assert_eq!(text(&output.stderr), "status 0\n");
}

#[test]
fn a_file_is_written_whole_and_never_over_another() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report");
    let file = path.to_str().expect("UTF-8");
    let _burn = burning(1);
    let args = ["-b", "-n", "1", "-d", "0.3", "-F", "499", "-o", file];
    let output = run(&mut proftop(&args));
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
    let first = fs::read_to_string(&path).expect("written");
    assert!(first.starts_with("# proftop"), "{first}");
    let output = run(&mut proftop(&args));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("exists already"));
    assert_eq!(fs::read_to_string(&path).expect("still there"), first);
    let output = run(proftop(&args).arg("-f"));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn terminating_us_terminates_the_command() {
    if !can_sample() {
        return;
    }
    let mut command = proftop(&["-b", "-d", "600", "--", "sleep", "600"]);
    let mut child = Process::start(command.stdout(Stdio::piped()));
    let sleeping = wait_for("the command runs", || child_of(child.pid(), "sleep"));
    child.signal(Signal::TERM);
    let status = wait_for("proftop ends", || child.try_wait().expect("ours"));
    assert_eq!(status.code(), Some(128 + 15));
    let path = format!("/proc/{sleeping}");
    wait_until("the command ends", || !Path::new(&path).exists());
}
