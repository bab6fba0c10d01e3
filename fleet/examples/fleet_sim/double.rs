//! The double of Pyroscope that the tests have: a process that decodes strictly what it gets, and
//! shares nothing with the encoder.

use crate::Sentence;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The Python that has the packages which the double needs; `.ci/fleet` makes one.
const PYTHON: &str = "PROFTOP_FLEET_PYTHON";

/// A server that runs, and ends with this value.
pub struct Double {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub url: String,
}

impl Double {
    /// Starts it; `None` if there is no Python with the packages.
    pub fn start() -> Result<Option<Self>, Sentence> {
        let python = std::env::var(PYTHON).unwrap_or("python3".into());
        let has = Command::new(&python)
            .args(["-c", "import google.protobuf, opentelemetry.proto.profiles"])
            .output();
        if !has.is_ok_and(|it| it.status.success()) {
            return Ok(None);
        }
        let told =
            |error: std::io::Error| format!("the double of Pyroscope does not start: {error}");
        let doubles = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doubles");
        let mut child = Command::new(&python)
            .args(["-B", "simulated.py"])
            .current_dir(doubles)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(told)?;
        let input = child.stdin.take().expect("it has a pipe");
        let output = child.stdout.take().expect("it has a pipe");
        let mut double = Self {
            child,
            input,
            output: BufReader::new(output),
            url: String::new(),
        };
        let port = double.line()?;
        double.url = format!("http://127.0.0.1:{port}");
        Ok(Some(double))
    }

    /// Tells it something. Returns its answer.
    pub fn tell(&mut self, line: &str) -> Result<Value, Sentence> {
        writeln!(self.input, "{line}").map_err(|error| format!("the double is gone: {error}"))?;
        let answer = self.line()?;
        serde_json::from_str(&answer).map_err(|error| format!("{line}: {error}: {answer}"))
    }

    fn line(&mut self) -> Result<String, Sentence> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        read.map_err(|error| format!("the double is gone: {error}"))?;
        if line.is_empty() {
            return Err("the double has ended".into());
        }
        Ok(line.trim_end().into())
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
