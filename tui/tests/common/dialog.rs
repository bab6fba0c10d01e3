//! The dialog of `--plain`, through pipes.

use super::{proftop, text};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use test_support::{Process, wait_for};

/// A proftop that answers lines.
pub struct Dialog {
    proftop: Process,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Dialog {
    pub fn start(args: &[&str]) -> Self {
        Self::of(proftop(args))
    }

    /// Of a command that [`proftop`] has made.
    pub fn of(mut command: Command) -> Self {
        command.env("TERM", "dumb").env_remove("PROFTOP_PLAIN");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut proftop = Process::start(&mut command);
        let input = proftop.stdin.take();
        let output = BufReader::new(proftop.stdout.take().expect("a pipe"));
        Self {
            proftop,
            input,
            output,
        }
    }

    /// The answer to a line; a line that is no command marks its end.
    pub fn ask(&mut self, line: &str) -> String {
        let input = self.input.as_mut().expect("not over");
        writeln!(input, "{line}\nendofanswer").expect("it reads");
        let mut all = String::new();
        while !all.contains("'endofanswer'") {
            let before = all.len();
            self.output.read_line(&mut all).expect("it writes");
            assert!(all.len() > before, "it has ended: {all}");
        }
        all
    }

    /// The answer to the order to probe a function, once there is sampling.
    pub fn probe(&mut self, function: &str) -> String {
        wait_for("sampling begins", || {
            let answer = self.ask(&format!("probe {function}"));
            (!answer.contains("sampling has not begun")).then_some(answer)
        })
    }

    pub fn finish(mut self) {
        drop(self.input.take());
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut self.output, &mut rest).expect("it writes");
        let status = self.proftop.wait().expect("ours");
        assert!(status.success(), "{}", text(&rest));
    }
}
