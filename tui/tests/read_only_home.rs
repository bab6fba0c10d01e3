//! A home directory to which nothing can be written: everything works that writes no file of the
//! user, and what should write one says in one sentence that it cannot.

use crate::common;

use common::disk::Disk;
use common::pty::Pty;
use common::{can_sample, has_whole_stacks, proftop, reports_until, run, side_by_side, sum, text};
use std::process::Command;
use test_support::{Process, Scratch, cases, skip};

/// What is done there.
#[derive(Clone, Copy)]
enum Work {
    Batch,
    Screen,
    Symbolize,
    Record(&'static str),
}

const ALL: [Work; 5] = [
    Work::Batch,
    Work::Screen,
    Work::Symbolize,
    Work::Record("a.pft"),
    Work::Record("a.folded"),
];

#[test]
fn a_home_that_is_read_only_keeps_nothing_from_working() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let burn = common::burning(1);
    let pid = burn.pid().to_string();
    let rounds: Vec<Work> = (0..cases(1)).flat_map(|_| ALL).collect();
    let Some(disk) = Disk::mount(&scratch.join("home"), 1 << 20) else {
        return skip("needs root to mount a small file system");
    };
    disk.make_read_only();
    side_by_side(&rounds, |work| match work {
        Work::Batch => {
            let args = ["-b", "--format", "json", "-d", "1", "-p", &pid];
            let mut command = at_home(&disk, &args);
            let reports = reports_until(&mut command, "whole stacks", has_whole_stacks);
            assert_eq!(sum(&reports, "lost"), 0);
        }
        Work::Screen => {
            let mut terminal = Pty::open(80, 24);
            let mut command = at_home(&disk, &["-p", &pid]);
            terminal.attach(&mut command);
            let mut screen = Process::start(&mut command);
            terminal.read_until(b"burn");
            // The order is kept for the next time, elsewhere.
            terminal.press(b"sq");
            terminal.read_until(b" lost");
            assert!(screen.wait().expect("ours").success());
        }
        Work::Symbolize => {
            let burn = common::burn_str();
            let output = run(at_home(&disk, &["symbolize", burn]).args(["0x40", "0x41"]));
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        Work::Record(file) => {
            let output = run(&mut at_home(
                &disk,
                &["record", "-d", "1s", "-p", &pid, "-o", file],
            ));
            assert_eq!(output.status.code(), Some(1));
            let said = text(&output.stderr);
            let sentence = format!("proftop: cannot write {file}: Read-only file system\n");
            assert_eq!(said, sentence);
        }
    });
}

/// Returns a command whose user has that home directory, and is there.
fn at_home(disk: &Disk, args: &[&str]) -> Command {
    let mut command = proftop(args);
    command.env("HOME", disk.path()).current_dir(disk.path());
    command.env("PROFTOP_CACHE", disk.path().join("cache"));
    for variable in [
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "PROFTOP_CONFIG",
    ] {
        command.env_remove(variable);
    }
    command
}
