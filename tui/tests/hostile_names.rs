//! Names that were chosen to harm a user who looks at them: of a program, its functions, its
//! thread and its arguments, and of files that do not exist. No command prints such a name as it
//! is, neither to standard output nor to standard error.

use crate::common::{can_sample, proftop, run};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use test_support::{Process, Scratch, compile};

/// A name that clears a screen, has a second line, and turns the direction of writing.
const NAME: &str = "ev\x1b[2Jil\nproftop: x\u{202e}\u{9b}2J";

/// Replaces the name `hotAAAAAAAABBB`: it sets the title of a terminal.
const FUNCTION: &str = "ho\x1b]2=hot7\x07\u{202e}";

/// Compiles the program, and renames it and its function. Returns None if that is not possible.
fn hostile_program(scratch: &Scratch) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/hostile.c");
    let plain = scratch.join("plain");
    compile(&source, &plain, ["-g", "-O1"])?;
    let mut bytes = fs::read(&plain).expect("it was compiled");
    let places: Vec<usize> = bytes
        .windows(FUNCTION.len())
        .enumerate()
        .filter(|(_, window)| window == b"hotAAAAAAAABBB")
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + FUNCTION.len()].copy_from_slice(FUNCTION.as_bytes());
    }
    let program = scratch.write(NAME, bytes);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    Some(program)
}

/// Returns the characters that a terminal would act on, or not show. Ends of lines are allowed.
fn harmful(bytes: &[u8]) -> Vec<char> {
    let text = std::str::from_utf8(bytes).expect("output is UTF-8");
    let is_harmful =
        |c: &char| c.is_control() && *c != '\n' || matches!(c, '\u{200b}' | '\u{202e}');
    text.chars().filter(is_harmful).collect()
}

/// Runs a command to its end, and checks that it prints something, and nothing harmful.
#[track_caller]
fn check(command: &mut Command) -> Output {
    let output = run(command);
    assert!(output.stdout.len() + output.stderr.len() > 0);
    for bytes in [&output.stdout, &output.stderr] {
        let shown = String::from_utf8_lossy(bytes);
        assert_eq!(harmful(bytes), [], "{command:?}: {shown:?}");
        // The second line of a name is not printed as a line of its own.
        assert!(!shown.contains("\nproftop: x"), "{command:?}: {shown:?}");
    }
    output
}

/// Runs a command and checks that it has found the function.
#[track_caller]
fn check_named(command: &mut Command) {
    let output = check(command);
    assert!(output.status.success(), "{}", output.status);
    let shown = String::from_utf8_lossy(&output.stdout);
    // This part of its name stays as it is, however the rest is made visible.
    assert!(shown.contains("hot7"), "{command:?}: {shown}");
}

#[test]
fn a_program_with_hostile_names_is_shown_by_every_command() {
    let scratch = Scratch::new();
    if !can_sample() {
        return;
    }
    let Some(program) = hostile_program(&scratch) else {
        return;
    };
    let running = Process::start_load(Command::new(&program).arg(NAME));
    let pid = running.pid().to_string();
    let recording = scratch.join("a.pft");
    let file = recording.to_str().expect("UTF-8");
    let with = |args: &[&str]| proftop(args);

    check(&mut with(&["record", "-d", "2", "-p", &pid, "-o", file]));
    check(&mut with(&["doctor", "-p", &pid]));
    check(&mut with(&["doctor", "-p", &pid, "--json"]));
    for format in ["text", "csv", "json", "md"] {
        let live = ["-b", "-n", "1", "-d", "2", "-p", &pid, "--format", format];
        check_named(&mut with(&live));
        check_named(&mut with(&["report", file, "--format", format]));
    }
    check_named(&mut with(&["report", file, "--tree"]));
    check_named(&mut with(&["report", file, "--peek", "^ho"]));
    for format in ["folded", "speedscope", "trace", "html", "svg"] {
        check_named(&mut with(&["export", file, "-", "--format", format]));
    }
    check_named(&mut with(&["diff", file, file]));
    let other = scratch.join("b.pft");
    let other = other.to_str().expect("UTF-8");
    check(&mut with(&["resolve", file, "-o", other]));
    check(&mut with(&["trace", "^ho", "-p", &pid, "-d", "1"]));
    check(&mut with(&["trace", NAME, "-p", &pid, "-d", "1"]));
}

#[test]
fn hostile_words_of_a_command_line_are_not_said_again_as_they_are() {
    let scratch = Scratch::new();
    let file = scratch.join(NAME);
    let file = file.to_str().expect("UTF-8");
    for args in [
        &["report", file][..],
        &["resolve", file],
        &["diff", file, file],
        &["export", file, file],
        &["symbolize", file, "0x10"],
        &["-b", "-u", NAME],
        &["-b", "-g", NAME],
        &["-b", "--comm", "(\x1b[2J"],
        &["-b", "--filter", "pid:\x1b[2J"],
        &["-b", "--", file],
        &["--\x1b[2J"],
        &["\x1b[2J"],
        &["config", NAME],
    ] {
        let output = check(&mut proftop(args));
        assert!(!output.status.success());
    }
    // Bytes that are no text.
    let mut command = proftop(&["report"]);
    check(command.arg(OsStr::from_bytes(b"/nowhere/\xff\x9b2J")));
}
