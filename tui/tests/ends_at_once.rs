//! A run ends when it gets a signal, when the reader of its pipe has gone, or when the terminal
//! has gone. Each of these runs would go on for a minute and more; benches measure how fast they
//! end.

use crate::common;

use common::pty::Pty;
use common::wait_for_work;
use common::{PROFTOP, can_sample, number, proftop, reports, run, side_by_side};
use common::{start_sampling, text};
use rustix::process::{Pid, Resource, Signal, WaitId, WaitIdOptions, waitid};
use rustix::thread::CapabilitySet;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;
use test_support::{Process, skip, wait_for, wait_until};

/// The signals that end a run.
const SIGNALS: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::HUP];

fn ended(process: &mut Process) -> ExitStatus {
    let mut status = None;
    wait_until("proftop ends", || {
        status = process.try_wait().expect("ours");
        status.is_some()
    });
    status.expect("ended")
}

#[test]
fn a_signal_ends_reports_with_the_last_one_written() {
    if !can_sample() {
        return;
    }
    let burn = common::burning(1);
    side_by_side(&SIGNALS, |&signal| {
        // On a busy machine, the second that the end may take can be over before the last report is
        // made. The status says so.
        let reports = wait_for("an end in time", || reports_until(signal, burn.pid()));
        assert!(reports.len() > 1, "{signal:?}: the last one is missing");
        assert!(number(&reports[0], "samples") > 0);
    });
}

/// Returns the reports up to a signal that is sent within the second one. Returns None if the
/// time for an orderly end was over.
fn reports_until(signal: Signal, busy: u32) -> Option<Vec<Value>> {
    let mut command = proftop(&["-b", "--format", "json", "-d", "3", "-F", "499"]);
    // Only one program's names are needed: the last report is made sooner.
    command.args(["-p", &busy.to_string()]);
    let mut process = Process::start(command.stdout(Stdio::piped()));
    let mut stdout = BufReader::new(process.stdout.take().expect("a pipe"));
    let mut bytes = Vec::new();
    stdout.read_until(b'\n', &mut bytes).expect("a report");
    // There is something to report of the next three seconds, but not all of it.
    wait_for_work(busy, Duration::from_millis(500));
    process.signal(signal);
    let rest = std::thread::spawn(move || {
        stdout.read_to_end(&mut bytes).expect("read");
        bytes
    });
    let status = ended(&mut process);
    let bytes = rest.join().expect("read");
    if status.code() == Some(128 + signal.as_raw()) {
        return None;
    }
    assert!(status.success(), "{status}");
    Some(reports(&bytes))
}

#[test]
fn a_signal_ends_a_recording_that_is_whole() {
    if !can_sample() {
        return;
    }
    let _burn = common::burning(1);
    let folder = tempfile::tempdir().expect("a folder");
    side_by_side(&SIGNALS, |&signal| {
        let file = folder.path().join(format!("{}.pft", signal.as_raw()));
        let path = file.to_str().expect("UTF-8");
        // As above: on a busy machine the time for an orderly end can be over.
        wait_until("an end in time", || {
            let _ = fs::remove_file(&file);
            let mut process = Process::start(&mut proftop(&["record", "-F", "499", "-o", path]));
            wait_until("samples are written", || {
                fs::metadata(&file).is_ok_and(|file| file.len() > 2_000)
            });
            process.signal(signal);
            assert_eq!(nice_at_the_end(process.pid()), hasty_nice());
            let status = ended(&mut process);
            let is_late = status.code() == Some(128 + signal.as_raw());
            assert!(status.success() || is_late, "{status}");
            !is_late
        });
        let output = run(&mut proftop(&["report", path]));
        assert!(output.status.success());
        let said = text(&output.stderr);
        assert!(!said.contains("cut") && !said.contains("damaged"), "{said}");
    });
}

/// Waits for a child to end, and returns the nice value that its main thread had then.
fn nice_at_the_end(pid: u32) -> i32 {
    let child = Pid::from_raw(pid.cast_signed()).expect("a pid");
    // The child stays a zombie, of which the kernel still tells the nice value.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    wait_until("proftop ends", || {
        waitid(WaitId::Pid(child), options).expect("ours").is_some()
    });
    let fields = common::stat_fields(pid).expect("a zombie");
    // Field 19 of proc_pid_stat(5); the first one here is field 3.
    fields[16].parse().expect("a number")
}

/// Returns the nice value that proftop, started from here, should have when it ends after a signal.
fn hasty_nice() -> i32 {
    let own = rustix::process::getpriority_process(None).expect("ours");
    let capabilities = rustix::thread::capabilities(None).expect("ours");
    // The limit for a nice value of -10 is 30: see getrlimit(2).
    let limit = rustix::process::getrlimit(Resource::Nice).current;
    let may = capabilities.effective.contains(CapabilitySet::SYS_NICE)
        || limit.is_none_or(|limit| limit >= 30);
    if own == 0 && may { -10 } else { own }
}

/// `nohup` and the `&` of scripts ignore signals on purpose.
#[test]
fn a_signal_that_was_ignored_stays_so() {
    if !can_sample() {
        return;
    }
    let script = format!("trap '' HUP INT; exec '{PROFTOP}' -b -d 600");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdout(Stdio::null());
    let mut process = start_sampling(&mut command);
    for signal in [Signal::HUP, Signal::INT] {
        process.signal(signal);
    }
    process.signal(Signal::USR1);
    // The signal without a handler ends it, and not one of the two before.
    assert_eq!(ended(&mut process).signal(), Some(Signal::USR1.as_raw()));
}

#[test]
fn a_closed_pipe_ends_what_has_nothing_to_say_yet() {
    if !can_sample() {
        return;
    }
    for args in [
        &["-b", "-d", "600"][..],
        &["record", "-d", "600", "-o", "-"],
    ] {
        let mut command = proftop(args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = start_sampling(&mut command);
        drop(process.stdout.take());
        let status = ended(&mut process);
        assert!(matches!(status.code(), Some(0 | 5)), "{args:?}: {status}");
    }
}

/// A trace prints what it has found at its end only.
#[test]
fn a_closed_pipe_ends_a_trace() {
    if !can_sample() {
        return;
    }
    let burn = common::burning(1);
    let pid = burn.pid().to_string();
    // It is not called any more: the probe costs nothing, and the trace goes on.
    let mut command = proftop(&["trace", "-p", &pid, "-d", "600", "burn::main"]);
    let mut process = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    drop(process.stdout.take());
    let status = ended(&mut process);
    assert!(matches!(status.code(), Some(0 | 5)), "{status}");
}

/// The reader stops reading, as `less` does on its first page.
#[test]
fn a_reader_that_does_not_read_keeps_nobody() {
    if !can_sample() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        skip("only root is told where a process waits");
        return;
    }
    let _burn = common::burning(1);
    let all = [
        &["-b", "-d", "0.1"][..],
        &["record", "-F", "999", "-o", "-"],
    ];
    side_by_side(&all, |args| {
        let mut command = proftop(args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = start_sampling(&mut command);
        let stdout = process.stdout.as_ref().expect("a pipe");
        // The smallest size of a pipe.
        rustix::pipe::fcntl_setpipe_size(stdout, 4096).expect("ours");
        let waits_in = format!("/proc/{}/wchan", process.pid());
        wait_until("the pipe is full", || {
            fs::read_to_string(&waits_in).is_ok_and(|place| place.contains("pipe_write"))
        });
        process.signal(Signal::TERM);
        let status = ended(&mut process);
        assert_eq!(status.code(), Some(143), "{args:?}");
    });
}

#[test]
fn a_dialog_ends_with_its_reader() {
    let mut command = proftop(&["demo", "--plain"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Process::start(&mut command);
    drop(process.stdout.take());
    // The process gets no command: it ends because its output is not read.
    assert!(ended(&mut process).success());
}

/// There is no hang-up signal, as if another session owned the terminal.
#[test]
fn a_terminal_that_is_gone_ends_every_screen() {
    let all = [&["demo"][..], &["demo", "--plain"], &[], &["--plain"]];
    let can_sample = can_sample();
    for args in all {
        if !can_sample && args.first() != Some(&"demo") {
            continue;
        }
        let mut terminal = Pty::open(100, 30);
        let mut command = Command::new("setsid");
        command.arg(PROFTOP).args(args).stderr(Stdio::null());
        command.env("PROFTOP_CONFIG", "/dev/null");
        command
            .env("XDG_STATE_HOME", "/dev/null")
            .env("TERM", "xterm-256color");
        terminal.attach(&mut command);
        let mut process = Process::from(command.spawn().expect("it starts"));
        terminal.read_until(if args.contains(&"--plain") {
            b"proftop> "
        } else {
            b"SELF%"
        });
        drop(command);
        println!("{args:?}");
        drop(terminal);
        assert!(ended(&mut process).success(), "{args:?}");
    }
}

#[test]
fn a_file_that_never_ends_keeps_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        skip("needs mkfifo");
        return;
    }
    let path = pipe.to_str().expect("UTF-8");
    // The writer of the pipe sends half a recording, and then nothing.
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/demo.pft");
    let half = fs::read(demo).expect("the demo");
    for args in [
        &["report", path][..],
        &["export", path, "/dev/null", "--format", "folded"],
    ] {
        for signal in SIGNALS {
            let mut process = Process::start(proftop(args).stdout(Stdio::null()));
            // Opening waits for the reader: from here on proftop reads.
            let mut writer = fs::OpenOptions::new()
                .write(true)
                .open(&pipe)
                .expect("a reader");
            std::io::Write::write_all(&mut writer, &half[..40_000]).expect("it is read");
            process.signal(signal);
            assert_eq!(ended(&mut process).signal(), Some(signal.as_raw()));
        }
    }
}
