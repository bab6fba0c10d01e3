//! `trace`: counts and times calls of functions, if the server may. It runs `proftop trace` as a
//! process of its own, so that its probes are removed whatever happens to the server.

use super::arguments::Arguments;
use crate::words::markdown::{self, Lines};
use crate::words::plain::plain;
use profile::Cancel;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Default and maximum of the seconds to count.
pub const SECONDS: u64 = 10;
pub const SECONDS_MAX: u64 = 60;
/// Time between two checks whether the call was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Maximum number of bytes that are read of each output of the process.
const OUTPUT_MAX: u64 = 256 << 10;

/// Returns the report of `proftop trace`.
pub fn answer(arguments: &Arguments, cancel: &Cancel, tokens_max: usize) -> Result<String, String> {
    let words = words(arguments)?;
    let failed = |error: std::io::Error| format!("cannot start the trace: {error}");
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(words).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut trace = Running(command.spawn().map_err(failed)?);
    let printed = read(trace.0.stdout.take());
    let said = read(trace.0.stderr.take());
    let status = loop {
        match trace.0.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if cancel.is_cancelled() => return Err("cancelled".into()),
            None => thread::sleep(LOOK_EVERY),
        }
    };
    let [printed, said] = [printed, said].map(|text| text.join().unwrap_or_default());
    if printed.is_empty() && !status.success() {
        return Err(said);
    }
    let mut lines = Lines::new(markdown::bytes(tokens_max));
    lines.push("# Calls that were counted\n");
    // Indented lines are code in Markdown: no text can end such a block.
    for line in printed.lines().chain(said.lines()) {
        lines.push(format!("    {}", plain(line)).trim_end());
    }
    Ok(lines.into_text())
}

/// Returns the arguments of `proftop trace`. It is an error if a name could be read as an option.
fn words(arguments: &Arguments) -> Result<Vec<String>, String> {
    let functions = arguments.needed("functions")?;
    if functions.starts_with('-') {
        return Err("`functions` has to be names of functions".into());
    }
    let pid = arguments.id("pid")?.ok_or("`pid` is missing")?;
    let seconds = arguments.number("seconds", 1, SECONDS_MAX)?;
    let mut words = vec![
        "trace".to_owned(),
        format!("--pid={pid}"),
        format!("--duration={}s", seconds.unwrap_or(SECONDS)),
        functions.to_owned(),
    ];
    for (name, option) in [("callers", "--stacks"), ("results", "--ret")] {
        if arguments.flag(name)? {
            words.push(option.to_owned());
        }
    }
    Ok(words)
}

/// Reads the output of a child on a thread of its own, up to [`OUTPUT_MAX`] bytes. After that,
/// writing fails for the child.
fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // If reading fails, only a part of the text is missing.
            _ = pipe.take(OUTPUT_MAX).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A child process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // These calls fail if the child has ended, which is the usual case.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(sent: Value) -> Result<Vec<String>, String> {
        let Value::Object(sent) = sent else {
            unreachable!()
        };
        let known = ["functions", "pid", "seconds", "callers", "results"];
        words(&Arguments::new(sent, &known).unwrap())
    }

    #[test]
    fn no_name_becomes_an_option_or_a_command() {
        for name in ["--", "-o/tmp/x", "--output=/tmp/x"] {
            assert!(
                of(json!({ "functions": name, "pid": 1 })).is_err(),
                "{name}"
            );
        }
        assert!(
            of(json!({ "functions": "f" })).is_err(),
            "a process is needed"
        );
        let words = of(json!({ "functions": "f,g", "pid": 7, "callers": true })).unwrap();
        let expected = ["trace", "--pid=7", "--duration=10s", "f,g", "--stacks"];
        assert_eq!(words, expected);
    }
}
