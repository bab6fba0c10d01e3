//! The dialog line by line, for screen readers and pipes.

use crate::common;

use common::dialog::Dialog;
use common::pty::Pty;
use common::{BURN_FUNCTIONS, burn_str, can_sample, proftop};
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use test_support::Process;

const PROMPT: &[u8] = b"proftop> ";

/// Fails if there is anything but text beside what was typed, which the terminal echoes.
fn assert_plain(bytes: &[u8]) {
    let is_text = |byte: &u8| matches!(byte, b'\n' | b'\r' | b' '..=b'~');
    assert!(bytes.iter().all(is_text), "{}", bytes.escape_ascii());
}

fn dumb(args: &[&str]) -> Command {
    let mut command = proftop(args);
    command.env("TERM", "dumb").env_remove("PROFTOP_PLAIN");
    command
}

#[test]
fn a_dumb_terminal_gets_text_and_nothing_else() {
    let mut terminal = Pty::open(80, 24);
    let mut command = dumb(&["demo", "--plain"]);
    terminal.attach(&mut command);
    let mut proftop = Process::start(&mut command);
    let greeting = terminal.read_until(PROMPT);
    assert_plain(&greeting);
    assert!(String::from_utf8_lossy(&greeting).contains("help lists the commands"));
    for (line, marker) in [
        ("top 3", "_raw_spin_unlock_irqrestore"),
        ("callers 1", "sock_def_readable"),
        ("tree depth 2", "level 2"),
        ("time", " UTC"),
        ("nonsense", "there is no command 'nonsense'"),
    ] {
        terminal.press(format!("{line}\n").as_bytes());
        let answer = terminal.read_until(PROMPT);
        assert_plain(&answer);
        assert!(String::from_utf8_lossy(&answer).contains(marker), "{line}");
    }
    // The end of input.
    terminal.press(b"\x04");
    terminal.read_until(b"proftop: 4,473 samples in demo.pft");
    assert!(proftop.wait().expect("ours").success());
}

#[test]
fn an_interrupt_stops_an_answer_and_then_the_program() {
    let mut terminal = Pty::open(80, 24);
    let mut command = dumb(&["demo"]);
    command.env("PROFTOP_PLAIN", "1");
    terminal.attach(&mut command);
    let mut proftop = Process::start(&mut command);
    terminal.read_until(PROMPT);
    terminal.press(b"wait 1h\n");
    // The typed line is echoed before proftop reads it, and proftop waits long after that.
    terminal.read_until(b"wait 1h\r\n");
    std::thread::sleep(std::time::Duration::from_secs(1));
    proftop.signal(Signal::INT);
    terminal.read_until(b"stopped\r\nproftop> ");
    terminal.press(b"top 1\n");
    terminal.read_until(PROMPT);
    proftop.signal(Signal::INT);
    let status = proftop.wait().expect("ours");
    assert_eq!(status.code().or(status.signal()), Some(130));
}

#[test]
fn a_pipe_asks_as_well_as_a_person() {
    let mut dialog = Dialog::start(&["demo", "--plain", "--view", "tree", "--sort", "total"]);
    dialog.say("top 2");
    dialog.say("quit");
    let all = dialog.finish();
    assert!(!all.contains("proftop>") && !all.contains('\x1b'), "{all}");
    assert!(all.contains("__libc_start_main"), "by total: {all}");
}

#[test]
fn a_command_is_watched_line_by_line() {
    if !can_sample() {
        return;
    }
    let mut dialog = Dialog::start(&["--plain", "-F", "499", "--", burn_str(), "4", "1"]);
    dialog.say("wait 2s");
    dialog.until("waited");
    dialog.ask_until("top 5", &BURN_FUNCTIONS);
    dialog.say("window 1s");
    assert!(dialog.until("window is set").contains("win 1s"));
    dialog.say("mark");
    dialog.until("begins now");
    dialog.say("wait 1s");
    dialog.until("waited");
    dialog.say("status");
    let status = dialog.until("order of self");
    assert!(status.contains("since mark"), "{status}");
    // proftop says so when the command has ended.
    dialog.say("wait 4s");
    dialog.until("EXITED");
    dialog.say("window all");
    dialog.ask_until("threads", &["burn-", " samples, lost 0"]);
    assert!(dialog.finish().contains("proftop: "));
}
