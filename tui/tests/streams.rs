//! What happens if standard output or error cannot be written: the disk is full, or the reader
//! has gone.

use crate::common;

use common::{can_sample, proftop, run, text};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use test_support::{Process, Scratch};

const FOLDED: &str = "main;work 30\n";

/// Opens a file on a disk without room.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// Makes a pipe whose reader has gone.
fn unread() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

/// Runs a command to its end with these lines as standard input.
fn typed(command: &mut Command, lines: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    child.wait_with_output().unwrap()
}

#[test]
fn a_message_that_cannot_be_written_changes_no_status() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.folded");
    std::fs::write(&file, FOLDED).unwrap();
    let file = file.to_str().unwrap();
    let cases: [(&[&str], i32); 5] = [
        (&["report", "/nonexistent"], 1),
        (&["--windo"], 2),
        (&["-F", "10000000"], 2),
        (&["open", file], 4),
        // A note says what the format cannot contain; the export itself is done.
        (&["export", file, "-", "--format", "folded"], 0),
    ];
    for (words, code) in cases {
        let mut command = proftop(words);
        let ended = command.stdin(Stdio::null()).stderr(full()).output();
        assert_eq!(ended.unwrap().status.code(), Some(code), "{words:?}");
        let ended = command.stderr(unread()).output();
        assert_eq!(ended.unwrap().status.code(), Some(code), "{words:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.folded");
    std::fs::write(&file, FOLDED).unwrap();
    let plain = ["open", file.to_str().unwrap(), "--plain"];
    let symbolize = ["symbolize", common::PROFTOP, "0x1000"];
    for words in [&plain[..], &symbolize] {
        let ended = typed(proftop(words).stdout(full()), "top\n");
        assert_eq!(ended.status.code(), Some(1), "{words:?}");
        assert_eq!(
            text(&ended.stderr),
            "proftop: failed to write to standard output: No space left on device\n"
        );
        // A reader that has gone wants no more: this is no error.
        let ended = typed(proftop(words).stdout(unread()), "top\n");
        assert_eq!(ended.status.code(), Some(0), "{words:?}");
    }
}

#[test]
fn who_reads_no_samples_is_not_told_that_there_were_none() {
    if !can_sample() {
        return;
    }
    let busy = Process::start_load(Command::new("sh").args(["-c", "while :; do :; done"]));
    let pid = busy.pid().to_string();
    for words in [&["-b", "-p", &pid][..], &["record", "-p", &pid, "-o", "-"]] {
        let ended = run(proftop(words).stdout(unread()));
        assert_eq!(ended.status.code(), Some(0), "{words:?}");
        assert!(!text(&ended.stderr).contains("enough"), "{words:?}");
    }
}

#[test]
fn a_file_that_is_there_is_named_with_a_line_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.folded");
    std::fs::write(&file, FOLDED).unwrap();
    let other = folder.path().join("b.folded");
    std::fs::write(&other, "old").unwrap();
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    let (file, other) = (name(&file), name(&other));
    for words in [
        &["export", &file, &other][..],
        &["merge", &file, "-o", &other],
    ] {
        let ended = run(&mut proftop(words));
        assert_eq!(ended.status.code(), Some(1), "{words:?}");
        let said = text(&ended.stderr);
        let typed = format!("{} -f ", words.join(" "));
        assert!(said.contains(&typed), "{said}");
        let mut again = words.to_vec();
        again.push("-f");
        assert!(run(&mut proftop(&again)).status.success(), "{again:?}");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), FOLDED);
        std::fs::write(&other, "old").unwrap();
    }
}

#[test]
fn standard_output_is_the_commands_where_ours_is_a_file() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    for (args, name) in [(&["record"][..], "a.pft"), (&["-b"], "a.txt")] {
        let file = scratch.join(name);
        let mut command = proftop(&[args, &["-o"]].concat());
        let output = run(command.arg(file).args(["--", "echo", "its own words"]));
        assert_eq!(text(&output.stdout), "its own words\n", "{args:?}");
        let mut command =
            proftop(&[args, &["-o", "/dev/stdout", "--", "echo", "its own words"]].concat());
        let output = run(&mut command);
        assert!(text(&output.stderr).contains("its own words\n"), "{args:?}");
    }
    // `-` is standard output for reports as well, and not a file of that name.
    let mut command = proftop(&["-b", "-n", "1", "-d", "0.2", "-o", "-"]);
    let output = run(command.current_dir(scratch.path()));
    assert!(text(&output.stdout).starts_with("# proftop"));
    assert!(!scratch.join("-").exists());
}
