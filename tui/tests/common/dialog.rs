//! The dialog of `--plain`, through pipes.

use super::{proftop, text};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use test_support::{DEADLINE, Process, wait_for};

/// A running `proftop --plain`, which answers lines.
pub struct Dialog {
    proftop: Process,
    input: Option<ChildStdin>,
    /// Its lines, which a thread reads, so that no test waits for ever for a missing one.
    output: Receiver<String>,
}

impl Dialog {
    pub fn start(args: &[&str]) -> Self {
        Self::of(proftop(args))
    }

    /// Starts the dialog of a command that [`proftop`] has made.
    pub fn of(mut command: Command) -> Self {
        command.env("TERM", "dumb").env_remove("PROFTOP_PLAIN");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut proftop = Process::start(&mut command);
        let input = proftop.stdin.take();
        let mut printed = BufReader::new(proftop.stdout.take().expect("a pipe"));
        let (line, output) = channel();
        std::thread::spawn(move || {
            loop {
                let mut bytes = Vec::new();
                let read = printed.read_until(b'\n', &mut bytes).expect("it writes");
                if read == 0 || line.send(text(&bytes)).is_err() {
                    return;
                }
            }
        });
        Self {
            proftop,
            input,
            output,
        }
    }

    pub fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("not over");
        writeln!(input, "{line}").expect("it reads");
    }

    /// Reads up to and with a line that contains `marker`, and returns these lines.
    pub fn until(&mut self, marker: &str) -> String {
        let mut all = String::new();
        while !all.contains(marker) {
            let line = self.output.recv_timeout(DEADLINE);
            all += &line.unwrap_or_else(|_| panic!("in vain: {marker} in {all}"));
        }
        all
    }

    /// Returns the answer to a line. A second line, which is no command, marks the answer's end.
    pub fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.say("endofanswer");
        self.until("'endofanswer'")
    }

    /// Sends a line again and again until its answer contains all of `wanted`, and returns that.
    pub fn ask_until(&mut self, line: &str, wanted: &[&str]) -> String {
        wait_for(line, || {
            let answer = self.ask(line);
            let has_all = wanted.iter().all(|word| answer.contains(word));
            has_all.then_some(answer)
        })
    }

    /// Probes a function as soon as there is sampling, and returns the answer.
    pub fn probe(&mut self, function: &str) -> String {
        wait_for("sampling begins", || {
            let answer = self.ask(&format!("probe {function}"));
            (!answer.contains("sampling has not begun")).then_some(answer)
        })
    }

    /// Ends the dialog, and returns the lines that were not read yet.
    pub fn finish(mut self) -> String {
        drop(self.input.take());
        let rest: String = self.output.iter().collect();
        let status = self.proftop.wait().expect("ours");
        assert!(status.success(), "{rest}");
        rest
    }
}
