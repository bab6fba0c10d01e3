//! The flight recorder as a service: `proftop agent`, and its control socket.

use crate::common;

use common::disk::Disk;
use common::{burn, can_sample, proftop, reports, run, sum, text};
use rustix::process::{Signal, Uid};
use serde_json::Value;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use test_support::{Process, Scratch, is_root_or_skip, skip, wait_for, wait_until};

/// Returns the command that starts an agent in a folder.
fn words(folder: &Path) -> Command {
    let mut command = proftop(&[
        "agent",
        "--ring",
        "10s",
        "-F",
        "199",
        "--save-on",
        // No process is called so: a busy machine must not cause a save of its own.
        "process:nobody>99%",
        "-o",
    ]);
    command.arg(folder.join("ring.pft"));
    command.arg("--control").arg(folder.join("control"));
    command.stderr(Stdio::piped());
    command
}

/// Starts an agent in a folder, and waits until it has samples.
fn agent(folder: &Path) -> Process {
    let process = Process::start(words(folder).stderr(Stdio::null()));
    wait_until("samples", || {
        let output = ask(folder, &["status", "--json"]);
        output.status.success() && json(&output)["ring"]["bytes"].as_u64() > Some(0)
    });
    process
}

fn ask(folder: &Path, args: &[&str]) -> Output {
    let mut command = proftop(&["agent"]);
    command
        .args(args)
        .arg("--control")
        .arg(folder.join("control"));
    command.output().expect("it starts")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Runs a command that must end with this code, and returns what it prints.
fn refusal(command: &mut Command, code: i32) -> String {
    let output = run(command);
    assert_eq!(output.status.code(), Some(code));
    text(&output.stderr)
}

fn saved(output: &Output) -> PathBuf {
    assert!(output.status.success(), "{}", text(&output.stderr));
    PathBuf::from(text(&output.stdout).trim_end())
}

#[test]
fn it_says_how_it_is_and_saves_up_to_the_moment_when_it_is_asked() {
    if !can_sample() {
        return;
    }
    let folder = Scratch::new();
    let control = folder.join("control");
    let mut agent = agent(folder.path());
    let socket = fs::symlink_metadata(&control).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    let status = json(&ask(folder.path(), &["status", "--json"]));
    assert_eq!(status["version"], 1);
    assert_eq!(status["pid"], agent.pid());
    assert_eq!(status["rate_hz"], 199);
    assert_eq!(status["saves"]["written"], 0);
    let said = text(&ask(folder.path(), &["status"]).stdout);
    assert!(
        said.contains("at 199 Hz since ") && said.contains("none yet"),
        "{said}"
    );
    // A program that has run for only half a second is in the next file that is saved.
    let burning = Process::start_load(
        Command::new(burn())
            .args(["600", "1"])
            .stdout(Stdio::null()),
    );
    let stat = format!("/proc/{}/stat", burning.pid());
    wait_until("half a second of CPU time", || {
        let stat = fs::read_to_string(&stat).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let utime = fields.split_whitespace().nth(11).unwrap();
        utime.parse::<u64>().unwrap() >= 50
    });
    let path = saved(&ask(folder.path(), &["save", "--note", "slow request"]));
    drop(burning);
    let mut report = proftop(&["report", "--format", "json", "--filter", "comm:burn"]);
    let output = run(report.arg(&path));
    assert!(sum(&reports(&output.stdout), "samples") > 0);
    let why = "saved by a flight recorder: slow request, asked for by uid ";
    assert!(
        text(&output.stdout).contains(why),
        "{}",
        text(&output.stdout)
    );
    let status = json(&ask(folder.path(), &["status", "--json"]));
    assert_eq!(status["saves"]["written"], 1);
    assert_eq!(status["saves"]["last"], path.to_str().unwrap());
    // A second agent takes nothing from the first.
    let other = Scratch::new();
    assert!(refusal(&mut words(folder.path()), 1).contains("another recorder writes to"));
    let mut second = proftop(&["agent", "-o"]);
    second
        .arg(other.join("ring.pft"))
        .arg("--control")
        .arg(&control);
    assert!(refusal(&mut second, 1).contains("another recorder answers there"));
    agent.signal(Signal::TERM);
    agent.wait().unwrap();
    assert!(!control.exists());
    let mut late = proftop(&["agent", "status", "--control"]);
    assert!(refusal(late.arg(&control), 1).contains("no agent answers at"));
}

#[test]
fn killed_it_leaves_a_socket_that_the_next_one_replaces() {
    if !can_sample() {
        return;
    }
    let folder = Scratch::new();
    let mut first = agent(folder.path());
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(folder.join("control").exists());
    let second = agent(folder.path());
    let status = json(&ask(folder.path(), &["status", "--json"]));
    assert_eq!(status["pid"], second.pid());
}

#[test]
fn strangers_are_not_answered() {
    if !is_root_or_skip("becomes another user") {
        return;
    }
    if !can_sample() {
        return;
    }
    let folder = Scratch::new();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let _agent = agent(folder.path());
    let control = folder.join("control");
    // Asks on a thread that becomes another user to the kernel, and ends with that.
    let ask_as_nobody = || {
        let ask = || -> io::Result<String> {
            let nobody = Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(None, nobody, None)?;
            let mut stream = UnixStream::connect(&control)?;
            stream.write_all(b"status\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        std::thread::scope(|scope| scope.spawn(ask).join().unwrap())
    };
    let refused = ask_as_nobody().map_err(|error| error.kind());
    assert_eq!(refused, Err(io::ErrorKind::PermissionDenied));
    // If the file's mode lets others connect, the kernel still says which user it is.
    fs::set_permissions(&control, fs::Permissions::from_mode(0o666)).unwrap();
    let refused = ask_as_nobody().unwrap();
    assert!(refused.contains("only root and"), "{refused}");
}

#[test]
fn what_it_cannot_do_is_refused_in_a_sentence() {
    let folder = Scratch::new();
    let taken = folder.write("taken", "precious");
    for (args, words) in [
        (&["-o", "x.folded"][..], "-o FILE.pft"),
        (&["--ring", "5s"], "10s to 24h"),
        (&["--save-on", "queue>20%"], "as in queue>20ms"),
        (&["--control", ""], "--control"),
        (&["save", "--note", "a\nb"], "one line of 512 bytes"),
        (&["stop"], "unrecognized subcommand"),
    ] {
        let said = refusal(proftop(&["agent"]).args(args), 2);
        assert!(said.contains(words), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let mut record = proftop(&["record", "--control", "x"]);
    assert!(refusal(&mut record, 2).contains("add --ring TIME"));
    if !can_sample() {
        return;
    }
    let mut agent = proftop(&["agent", "-o"]);
    agent
        .arg(folder.join("ring.pft"))
        .arg("--control")
        .arg(&taken);
    assert!(refusal(&mut agent, 1).contains("something else has that name"));
    assert_eq!(fs::read_to_string(&taken).unwrap(), "precious");
    if fs::metadata("/proc/schedstat").is_err() {
        let mut agent = proftop(&["agent", "--save-on", "queue>20ms", "-o"]);
        agent
            .arg(folder.join("ring.pft"))
            .arg("--control")
            .arg(folder.join("control"));
        let said = refusal(&mut agent, 4);
        assert!(said.contains("/proc/schedstat cannot be read"), "{said}");
    }
}

#[test]
fn a_full_disk_is_named_and_what_was_meant_for_it_is_kept() {
    if !can_sample() {
        return;
    }
    let folder = Scratch::new();
    let Some(disk) = Disk::mount(&folder.join("disk"), 4 << 20) else {
        skip("needs the right to mount a small file system");
        return;
    };
    let ring = disk.path().join("ring.pft");
    let _burning = Process::start(
        Command::new(burn())
            .args(["600", "2"])
            .stdout(Stdio::null()),
    );
    let mut agent = agent(disk.path());
    let status = || json(&ask(disk.path(), &["status", "--json"]));
    let filler = disk.path().join("filler");
    fs::write(&filler, vec![0; 8 << 20]).unwrap_err();
    let error = wait_for("the disk to be full", || {
        status()["ring"]["error"].as_str().map(String::from)
    });
    assert!(error.contains("No space left"), "{error}");
    let refused = ask(disk.path(), &["save"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(
        said.contains("nothing was saved") && said.contains("No space left"),
        "{said}"
    );
    let left = fs::read(&ring).map(|bytes| bytes.len()).unwrap_or_default();
    assert!(left > 0, "the ring is gone");
    assert!(run(proftop(&["report"]).arg(&ring)).status.success());
    fs::remove_file(&filler).unwrap();
    wait_until("it is written again", || {
        status()["ring"]["error"].is_null()
    });
    let path = saved(&ask(disk.path(), &["save"]));
    assert!(run(proftop(&["report"]).arg(path)).status.success());
    agent.signal(Signal::TERM);
    agent.wait().unwrap();
}

/// Returns the windows in a spool, the oldest first.
fn windows(spool: &Path) -> Vec<PathBuf> {
    let list = fs::read_dir(spool).unwrap();
    let mut paths: Vec<PathBuf> = list.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "pft"));
    paths.sort_unstable();
    paths
}

/// Returns the number of samples of all these recordings.
fn samples(files: &[PathBuf]) -> u64 {
    let of = |file: &PathBuf| {
        let output = run(proftop(&["report", "--format", "json"]).arg(file));
        assert!(output.status.success(), "{}", text(&output.stderr));
        sum(&reports(&output.stdout), "samples")
    };
    files.iter().map(of).sum()
}

#[test]
fn each_window_is_a_recording_of_its_own_and_what_is_missing_is_told() {
    if !can_sample() {
        return;
    }
    let folder = Scratch::new();
    let spool = folder.join("spool");
    let spooling = || {
        let mut command = words(folder.path());
        command.arg("--spool").arg(&spool);
        command.args(["--spool-window", "2s", "--spool-size", "1M"]);
        Process::start(command.stderr(Stdio::null()))
    };
    let mut load = Command::new(burn());
    let _burning = Process::start(load.args(["600", "2"]).stdout(Stdio::null()));
    let mut first = spooling();
    wait_until("two windows", || {
        spool.exists() && windows(&spool).len() >= 2
    });
    let whole = windows(&spool);
    assert!(samples(&whole) > 0);
    first.kill().unwrap();
    first.wait().unwrap();
    // Whenever the agent was killed, all files are complete.
    samples(&windows(&spool));
    let mut second = spooling();
    wait_until("a window more", || windows(&spool).len() > whole.len() + 1);
    let output = ask(folder.path(), &["status"]);
    let said = text(&output.stdout);
    assert!(said.contains(" removed as it was full, "), "{said}");
    let output = ask(folder.path(), &["status", "--json"]);
    let status = &json(&output)["spool"];
    assert_eq!(status["window_seconds"], 2);
    assert!(status["windows"].as_u64() > Some(2), "{status}");
    // The window that was open when the first agent was killed, and those not written yet.
    let unwritten = status["unwritten"].as_u64().unwrap();
    assert!((1..=5).contains(&unwritten), "{status}");
    second.signal(Signal::TERM);
    second.wait().unwrap();
    let names: Vec<String> = windows(&spool)
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into())
        .collect();
    let numbers = names.iter().map(|it| it[17..27].parse::<u64>().unwrap());
    let numbers: Vec<u64> = numbers.collect();
    assert!(
        names.iter().all(|it| it[..17] == names[0][..17]),
        "{names:?}"
    );
    let missing = numbers[numbers.len() - 1] - numbers.len() as u64;
    assert_eq!(missing, unwritten, "{names:?}");
}

#[test]
fn under_sudo_the_spool_is_the_users() {
    if !can_sample() || !is_root_or_skip("only root can be called by another user") {
        return;
    }
    // No account has this number.
    let uid = 4_242_424;
    let folder = Scratch::new();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let spool = folder.join("spool");
    let mut command = words(folder.path());
    command.arg("--spool").arg(&spool);
    command.args(["--spool-window", "2s"]);
    for variable in ["SUDO_UID", "SUDO_GID"] {
        command.env(variable, uid.to_string());
    }
    let mut agent = Process::start(command.stderr(Stdio::null()));
    wait_until("a window", || spool.exists() && !windows(&spool).is_empty());
    agent.signal(Signal::TERM);
    agent.wait().unwrap();
    for path in [windows(&spool).remove(0), spool.join("spool.json"), spool] {
        let metadata = fs::metadata(&path).unwrap();
        let (owner, mode) = (metadata.uid(), metadata.mode() & 0o077);
        assert_eq!((owner, mode), (uid, 0), "{}", path.display());
    }
}

#[test]
fn in_a_cohort_the_rate_is_the_higher_one() {
    if !can_sample() {
        return;
    }
    // All hosts are in the first cohort. In the second one is one of a million.
    for (share, hz) in [("100%", 299), ("0.000001", 199)] {
        let folder = Scratch::new();
        let spool = folder.join("spool");
        let mut command = words(folder.path());
        command.arg("--spool").arg(&spool);
        command.args(["--spool-window", "2s", "--cohort-rate", "299"]);
        command.args(["--cohort-share", share, "--cohort-period", "10s"]);
        let mut load = Command::new(burn());
        let _burning = Process::start_load(load.args(["600", "2"]).stdout(Stdio::null()));
        let mut agent = Process::start(command.stderr(Stdio::null()));
        let status = wait_for("the rate", || {
            let output = ask(folder.path(), &["status", "--json"]);
            let status = output.status.success().then(|| json(&output))?;
            (status["rate_hz"] == hz).then_some(status)
        });
        let cohort = &status["cohort"];
        assert_eq!(cohort["is_in"], hz == 299, "{status}");
        assert_eq!(cohort["rate_hz"], 299, "{status}");
        assert_eq!(cohort["period_seconds"], 10, "{status}");
        // Windows that are over are not written for five seconds: the fifth from now on begins
        // later.
        let before = spool.exists().then(|| windows(&spool).len());
        let enough = before.unwrap_or(0) + 5;
        wait_until("a window with that rate", || {
            spool.exists() && windows(&spool).len() >= enough
        });
        let newest = windows(&spool).pop().unwrap();
        let output = run(proftop(&["report", "--format", "json"]).arg(newest));
        let report = &reports(&output.stdout)[0];
        assert_eq!(report["rate_hz"], hz, "{report}");
        agent.signal(Signal::TERM);
        agent.wait().unwrap();
    }
}
