//! The dialog line by line: what a screen reader reads, and a pipe.

use crate::common;

use common::pty::Pty;
use common::{BURN_FUNCTIONS, burn_str, proftop, shared_machine, text};
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use test_support::Process;

const PROMPT: &[u8] = b"proftop> ";

/// What is typed comes back from the terminal; beside it only text does.
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
    // What is typed is there before it is read, and it is waiting long after.
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

/// One whose lines come and go through pipes.
struct Piped {
    proftop: Process,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Piped {
    fn start(args: &[&str]) -> Self {
        let mut command = dumb(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut proftop = Process::start(&mut command);
        let input = proftop.stdin.take();
        let output = proftop.stdout.take().expect("a pipe");
        Self {
            proftop,
            input,
            output: BufReader::new(output),
        }
    }

    fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("not over");
        writeln!(input, "{line}").expect("it reads");
    }

    /// The lines up to one that has it.
    fn until(&mut self, marker: &str) -> String {
        let mut all = String::new();
        while !all.contains(marker) {
            let before = all.len();
            self.output.read_line(&mut all).expect("it writes");
            assert!(all.len() > before, "in vain: {marker} in {all}");
        }
        all
    }

    fn finish(mut self) -> String {
        drop(self.input.take());
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut self.output, &mut rest).expect("it writes");
        assert!(self.proftop.wait().expect("ours").success());
        text(&rest)
    }
}

#[test]
fn a_pipe_asks_as_well_as_a_person() {
    let mut dialog = Piped::start(&["demo", "--plain", "--view", "tree", "--sort", "total"]);
    dialog.say("top 2");
    dialog.say("quit");
    let all = dialog.finish();
    assert!(!all.contains("proftop>") && !all.contains('\x1b'), "{all}");
    assert!(all.contains("__libc_start_main"), "by total: {all}");
}

#[test]
fn a_command_is_watched_line_by_line() {
    let Some(_machine) = shared_machine() else {
        return;
    };
    let mut dialog = Piped::start(&["--plain", "-F", "499", "--", burn_str(), "4", "1"]);
    dialog.say("wait 2s");
    dialog.until("waited");
    dialog.say("top 5");
    let top = dialog.until("more function");
    for name in BURN_FUNCTIONS {
        assert!(top.contains(name), "{name} in {top}");
    }
    dialog.say("window 1s");
    assert!(dialog.until("window is set").contains("win 1s"));
    dialog.say("mark");
    dialog.until("begins now");
    dialog.say("wait 1s");
    dialog.until("waited");
    dialog.say("status");
    let status = dialog.until("order of self");
    assert!(status.contains("since mark"), "{status}");
    // It is said when the command has ended.
    dialog.say("wait 4s");
    dialog.until("EXITED");
    dialog.say("window all");
    dialog.say("threads");
    let threads = dialog.until("burn-");
    assert!(threads.contains(" samples, lost 0"), "{threads}");
    assert!(dialog.finish().contains("proftop: "));
}
