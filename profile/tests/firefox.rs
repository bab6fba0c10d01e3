//! Checks that the Firefox Profiler reads our files correctly. Its makers' command-line tool is the
//! viewer's own code without a browser: it upgrades a file to its newest version and counts. If the
//! tool is missing, the test says so and is skipped.

use crate::common::{Given, select, store};
use profile::Selection;
use profile::formats::Format;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use test_support::{Process, Scratch, wait_until};

/// The tool's server, which has read a file and answers queries about it.
struct Viewer {
    script: PathBuf,
    folder: Scratch,
    _server: Process,
}

impl Viewer {
    /// Starts the server with a file written from a selection; `None`, with a message, if that is
    /// not possible.
    fn open(selection: &Selection) -> Option<Viewer> {
        let Some(package) = std::env::var_os("PROFTOP_FIREFOX").map(PathBuf::from) else {
            test_support::skip(
                "Firefox JSON against the Firefox Profiler: PROFTOP_FIREFOX names no folder of its package",
            );
            return None;
        };
        let folder = Scratch::new();
        let mut file = Vec::new();
        Format::Firefox.write(selection, &mut file).unwrap();
        let path = folder.write("written.json", file);
        let script = package.join("dist/profiler-cli.js");
        let mut server = node(&script, folder.path());
        server.arg("--daemon").arg(&path).args(["--session", "x"]);
        server.stdout(Stdio::null()).stderr(Stdio::null());
        let server = match Process::try_start(&mut server) {
            Ok(server) => server,
            Err(error) => {
                test_support::skip(format_args!(
                    "Firefox JSON against the Firefox Profiler: node: {error}"
                ));
                return None;
            }
        };
        let viewer = Viewer {
            script,
            folder,
            _server: server,
        };
        viewer.await_ready();
        Some(viewer)
    }

    /// Waits until the server has read the file. It answers as soon as it has started, but says
    /// that it is still reading. A client that connects before it listens takes it for dead, and
    /// kills it.
    fn await_ready(&self) {
        wait_until("the viewer listens", || {
            let is_told = self.folder.join("x.json").exists();
            is_told && UnixStream::connect(self.folder.join("x.sock")).is_ok()
        });
        wait_until("the viewer has read the file", || {
            let output = self.run(&["thread", "list", "--json"]);
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(!told.contains("load failed"), "{told}");
            output.status.success()
        });
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = node(&self.script, self.folder.path());
        command.args(words).args(["--session", "x"]);
        command.output().unwrap()
    }

    fn ask(&self, words: &[&str]) -> Value {
        let output = self.run(words);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {told}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Returns self and total by name and library, over all threads.
    fn functions(&self) -> BTreeMap<(String, String), (u64, u64)> {
        let mut sums = BTreeMap::new();
        let threads = self.ask(&["thread", "list", "--limit", "0", "--json"]);
        for thread in threads["threads"].as_array().unwrap() {
            let handle = thread["threadHandle"].as_str().unwrap();
            let asked = ["thread", "functions", "--thread", handle, "--limit", "0"];
            let rows = self.ask(&[&asked[..], &["--include-idle", "--json"]].concat());
            let mut seen = Vec::new();
            for row in rows["functions"].as_array().unwrap() {
                let text = |key: &str| row[key].as_str().unwrap_or_default().to_string();
                let count = |key: &str| row[key].as_u64().unwrap();
                let key = (text("name"), text("library"));
                assert!(!seen.contains(&key), "{key:?} has two rows");
                seen.push(key.clone());
                let sum: &mut (u64, u64) = sums.entry(key).or_default();
                sum.0 += count("selfSamples");
                sum.1 += count("totalSamples");
            }
        }
        sums
    }
}

fn node(script: &Path, folder: &Path) -> Command {
    let mut command = Command::new("node");
    command
        .arg(script)
        // The tool keeps its sockets there, and requests no names from servers.
        .env("PROFILER_CLI_SESSION_DIR", folder)
        .env("PROFILER_CLI_NO_SYMBOLICATE", "1")
        .env("HOME", folder);
    command
}

fn given(count: u64) -> Vec<Given> {
    let sample = |n: u64| {
        let stack = vec![n % 17, 20 + n % 9, 33, n % 4];
        let ending = usize::from(n.is_multiple_of(7));
        (stack, n as u32 % 5, ending, 1 + n % 3)
    };
    (0..count).map(sample).collect()
}

/// Returns self and total of the selection's functions, under the viewer's names for them.
fn ours(selection: &Selection) -> BTreeMap<(String, String), (u64, u64)> {
    let mut sums = BTreeMap::new();
    for row in selection.functions() {
        let name = match row.name_state {
            profile::RowName::Named => row.name.to_string(),
            _ => format!("{:#x}", row.address),
        };
        let key = (name, row.module.to_string());
        let sum: &mut (u64, u64) = sums.entry(key).or_default();
        sum.0 += row.self_samples;
        sum.1 += row.total_samples;
    }
    sums
}

#[test]
fn the_viewer_counts_as_we_do() {
    let store = store(&given(300));
    for filter in ["", "hide:middle"] {
        let selection = select(&store, filter);
        let Some(viewer) = Viewer::open(&selection) else {
            return;
        };
        let (theirs, ours) = (viewer.functions(), ours(&selection));
        assert!(ours.len() > 20, "{ours:?}");
        assert_eq!(theirs, ours);
    }
}
