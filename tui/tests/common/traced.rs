//! Runs `proftop trace` on programs that print what they did.

use super::{proftop, run, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use test_support::{Scratch, compile, is_root_or_skip, run_tool};

/// A program that prints what it did.
pub struct Program {
    _scratch: Scratch,
    path: PathBuf,
}

impl Program {
    /// Compiles a source: Go (`.go`) with `go build`, all else by [`compile`].
    pub fn compile(name: &str, source: &str, flags: &[&str]) -> Option<Program> {
        let scratch = Scratch::new();
        let source = scratch.write(name, source);
        let path = scratch.join("traced");
        if name.ends_with(".go") {
            build_go(&source, &path, flags)?;
        } else {
            compile(&source, &path, flags)?;
        }
        Some(Program {
            _scratch: scratch,
            path,
        })
    }

    pub fn path(&self) -> &str {
        self.path.to_str().expect("a path in UTF-8")
    }
}

/// Returns the number that a program prints for `name`, on the error output shared with proftop.
pub fn own_count(stderr: &str, name: &str) -> u64 {
    let line = stderr.lines().find_map(|line| {
        let (own, number) = line.rsplit_once(' ')?;
        (own == name).then(|| number.parse().ok())?
    });
    line.unwrap_or_else(|| panic!("no {name} in {stderr}"))
}

/// Options that keep probes in place whatever they cost.
pub const NO_LIMITS: [&str; 4] = ["--max-cost", "1000", "--max-hits", "100000000"];

/// Traces a command to its end, and returns the report and what the command printed.
pub fn trace(args: &[&str], command: &[&str]) -> (Value, String) {
    let head = ["trace", "--format", "json", "-d", "60s"];
    let all: Vec<&str> = [&head, &NO_LIMITS[..], args, &["--"], command].concat();
    let output = run(&mut proftop(&all));
    let stderr = text(&output.stderr);
    let report = text(&output.stdout);
    let report = serde_json::from_str(&report);
    (
        report.unwrap_or_else(|error| panic!("{error}: {stderr}")),
        stderr,
    )
}

pub fn probe<'v>(report: &'v Value, function: &str) -> &'v Value {
    let probes = report["probes"].as_array().expect("probes");
    let is_it = |probe: &&Value| {
        let name = probe["function"].as_str().expect("a name");
        name == function || name.starts_with(&format!("{function}("))
    };
    let found = probes.iter().find(is_it);
    found.unwrap_or_else(|| panic!("no {function} in {report}"))
}

/// Returns the pairs of `value` and `count` in a list of values.
pub fn top(values: &Value) -> Vec<(String, u64)> {
    let top = values["top"].as_array().expect("a list");
    top.iter()
        .map(|entry| {
            let value = entry["value"].as_str().expect("text");
            (
                value.to_string(),
                entry["count"].as_u64().expect("a number"),
            )
        })
        .collect()
}

fn build_go(source: &Path, program: &Path, flags: &[&str]) -> Option<()> {
    let mut build = Command::new("go");
    build.arg("build").args(flags).arg("-o").arg(program);
    build.arg(source);
    // Kept from run to run: without it, newer versions of Go build their library again.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-cache");
    build.env("GOCACHE", cache);
    build.env("GO111MODULE", "off");
    run_tool(&mut build).map(|_| ())
}

/// Returns whether a probe can be placed here. Prints why not.
pub fn can_trace() -> bool {
    if !is_root_or_skip("probes need the rights of root") {
        return false;
    }
    let has_uprobes = std::path::Path::new("/sys/bus/event_source/devices/uprobe").exists();
    if !has_uprobes {
        test_support::skip("this kernel has no uprobes");
    }
    has_uprobes
}
