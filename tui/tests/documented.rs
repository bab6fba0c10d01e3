//! Types every command that README.md, `--help`, the manual and messages name.

use crate::common;

use common::pty::Pty;
use common::{
    PROFTOP, SSH_HERE, burning, can_sample, proftop, run, start_sampling, text, wait_for_work,
};
use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use test_support::{Process, Scratch};

/// A folder in which commands are typed: with the programs that they name, and none of the
/// machine's own services.
struct Desk {
    directory: Scratch,
    /// The process that takes the place of postgres.
    watched: Process,
}

impl Desk {
    fn new() -> Desk {
        let directory = Scratch::new();
        let watched = burning(1);
        let script = |name: &str, body: &str| {
            let path = directory.write(name, format!("#!/bin/sh\n{body}\n"));
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, mode).expect("ours");
        };
        // Like sudo: variables first, then the command.
        script("bin/sudo", r#"exec env "$@""#);
        script("bin/ssh", SSH_HERE);
        for name in ["bin/pidof", "bin/pgrep"] {
            script(name, &format!("echo {}", watched.pid()));
        }
        script(
            "bench",
            "end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do :; done",
        );
        symlink(PROFTOP, directory.join("bin/proftop")).expect("ours");
        Desk { directory, watched }
    }

    fn command(&self, line: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.directory.join("bin");
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("exec {line}")])
            .current_dir(self.directory.path())
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("PROFTOP_CONFIG", "/dev/null")
            .env("XDG_STATE_HOME", "/dev/null")
            .env("TERM", "xterm")
            .stdin(Stdio::null());
        command
    }

    /// Types a line and waits for its end.
    fn type_line(&self, line: &str) {
        println!("$ {line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let has = |word: &str| words.contains(&word);
        if line.contains("nginx.service") {
            // This machine has no such thing; all else is as it is written.
            let output = run(&mut self.command(line));
            assert!(text(&output.stderr).contains("no cgroup"), "{line}");
        } else if has("record") || (has("-b") && !has("-n")) {
            let mut child = start_sampling(self.command(line).stdout(Stdio::null()));
            wait_for_work(self.watched.pid(), Duration::from_secs(1));
            child.interrupt();
            let status = child.wait().expect("ours");
            assert!(matches!(status.code(), Some(0 | 130)), "{line}: {status}");
        } else if has("doctor") || has("-b") || has("report") || has("--plain") {
            let output = run(&mut self.command(line));
            assert_eq!(output.status.code(), Some(0), "{line}");
        } else {
            self.see_screen(line);
        }
    }

    /// Waits for the screen, and quits.
    fn see_screen(&self, line: &str) {
        let mut pty = Pty::open(80, 24);
        let mut command = self.command(line);
        pty.attach(&mut command);
        let mut child = Process::start(&mut command);
        pty.read_until(b"quit");
        pty.press(b"q");
        let status = child.wait().expect("ours");
        assert!(status.success(), "{line}: {status}");
    }
}

/// Returns the commands in the lines of a text. What they do is written behind two blanks.
fn commands(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().map(str::trim);
    let ours = lines.filter(|line| {
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        let line = match line.split_once(' ') {
            Some((variable, rest)) if variable.contains('=') => rest,
            _ => line,
        };
        line == "proftop" || line.starts_with("proftop ")
    });
    ours.map(|line| {
        let command = line.split("  ").next().unwrap_or(line);
        command.trim().to_owned()
    })
}

/// Returns the lines of a text that are marked as code.
fn code(markdown: &str) -> String {
    let lines = markdown.lines().filter(|line| line.starts_with("    "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Returns the lines between two headings.
fn between(text: &str, begin: &str, end: &str) -> String {
    let (_, rest) = text.split_once(begin).expect("it begins");
    let (part, _) = rest.split_once(end).expect("it ends");
    part.replace("\\-", "-").replace("\\&", "")
}

#[test]
fn commands_in_documents_do_what_they_say() {
    if !can_sample() {
        return;
    }
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(readme).expect("it is there");
    let help = text(&run(&mut proftop(&["--help"])).stdout);
    let (examples, _) = help.split_once("Usage:").expect("examples come first");
    let manual = text(&run(&mut proftop(&["man"])).stdout);
    let manual = between(&manual, ".SH EXAMPLES", ".SH ");
    let short = text(&run(&mut proftop(&["-h"])).stdout);
    let (short, _) = short
        .split_once("proftop [top]")
        .expect("usage comes behind");

    let desk = Desk::new();
    let documents = [&code(&readme), examples, &manual, short];
    let mut typed = BTreeSet::new();
    for document in documents {
        let found: Vec<String> = commands(document).collect();
        assert!(found.len() > 3, "{document}");
        for line in found {
            if typed.insert(line.clone()) {
                desk.type_line(&line);
            }
        }
    }
    assert!(desk.watched.pid() > 0);
}

#[test]
fn what_is_said_to_be_enough_is() {
    if !can_sample() {
        return;
    }
    let desk = Desk::new();
    let record = run(&mut desk.command("proftop record -d 1 -o 'a b.pft'"));
    assert!(record.status.success());
    for line in ["proftop", "proftop open 'a b.pft'", "proftop demo"] {
        let output = run(&mut desk.command(line));
        assert_eq!(output.status.code(), Some(4), "{line}");
        let said = text(&output.stderr);
        let enough: Vec<&str> = said
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
            .filter_map(|line| line.split("  ").next())
            .collect();
        assert!(!enough.is_empty(), "{said}");
        for line in enough {
            desk.type_line(line);
        }
    }
}
