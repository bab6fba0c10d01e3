//! Types every command of proftop in docs/ as it is written, but for a shorter time, and with
//! processes, a user and a CPU that this machine has.

use crate::common;

use common::pty::Pty;
use common::{PROFTOP, SSH_HERE, can_sample, run, side_by_side, start_sampling, text};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use test_support::{Process, Scratch, compile, wait_until};

/// Takes the place of the programs of the pages: works until it is killed, or for two seconds.
const SERVER: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define SEEN __attribute__((noinline, noclone))
static volatile unsigned long sink;
SEEN unsigned long ExecScan(unsigned long rows) {
    for (unsigned long i = 0; i < rows; i++) sink += i * sink + 1;
    return sink;
}
SEEN unsigned long ExecutorRun(unsigned long rows) { return ExecScan(rows) + 1; }
SEEN long parse(const char *text, long length) {
    char *copy = malloc(length + 1);
    memcpy(copy, text, length);
    long hash = copy[length / 2];
    free(copy);
    return hash;
}
int main(int count, char **arguments) {
    time_t end = time(NULL) + (count > 1 ? atol(arguments[1]) : 2);
    while (time(NULL) < end) {
        sink += ExecutorRun(2000000) + parse("a request", 9);
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    return 0;
}
"#;

/// A folder in which commands are typed, with the files that the pages name.
struct Desk {
    directory: Scratch,
    server: Process,
    /// Takes the place of the service.
    agent: Process,
}

impl Desk {
    /// Makes the folder. Returns None where no program can be compiled.
    fn new() -> Option<Desk> {
        let directory = Scratch::new();
        let source = directory.write("server.c", SERVER);
        compile(&source, &directory.join("server"), ["-O1", "-g"])?;
        let orders = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tour/orders.c");
        compile(
            &orders,
            &directory.join("orders"),
            ["-O2", "-g", "-pthread"],
        )?;
        directory.write("crash.log", "#0 0x1200\n#1 0x1300\n");
        for (name, body) in [
            ("sudo", r#"exec env "$@""#),
            ("make", "exec ./server"),
            ("bench", "exec ./server"),
            (
                "pidof",
                "[ $1 = orders ] && exec cat orders.pid; echo $SERVER",
            ),
            ("pgrep", "echo $SERVER"),
            ("ssh", SSH_HERE),
        ] {
            let script = directory.write(format!("bin/{name}"), format!("#!/bin/sh\n{body}\n"));
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(script, mode).expect("ours");
        }
        for (target, name) in [(PROFTOP, "bin/proftop"), ("bin/bench", "bench")] {
            symlink(target, directory.join(name)).expect("ours");
        }
        std::fs::create_dir(directory.join("build")).expect("ours");
        let server = Process::start_load(Command::new(directory.join("server")).arg("3600"));
        let mut agent = Command::new(PROFTOP);
        agent.args([
            "agent",
            "--ring",
            "10s",
            "-o",
            "agent.pft",
            "--control",
            "control",
        ]);
        let agent = Process::start(agent.current_dir(directory.path()).stderr(Stdio::null()));
        wait_until("the agent", || directory.join("control").exists());
        let desk = Desk {
            directory,
            server,
            agent,
        };
        desk.record("proftop record -d 1s -p 4121 -o before.pft");
        for file in ["after.pft", "a.pft", "b.pft", "ring.pft"] {
            std::fs::copy(desk.directory.join("before.pft"), desk.directory.join(file))
                .expect("it was recorded");
        }
        desk.record("proftop record -d 1s -p 4121 -o waits.pft --metric off-cpu");
        Some(desk)
    }

    /// Returns the line as it is typed on this machine.
    fn here(&self, line: &str) -> String {
        let pid = self.server.pid().to_string();
        let mut line = line.replace("/var/lib/proftop/ring.pft", "ring.pft");
        for question in ["agent save", "agent status"] {
            line = line.replace(question, &format!("{question} --control control"));
        }
        for number in ["4121", "1234", "PID"] {
            line = line.replace(number, &pid);
        }
        for long in ["-d 60s", "-d 30s", "-d 10s", "-d 5s"] {
            line = line.replace(long, "-d 1s");
        }
        // A user and a CPU that every machine has.
        let line = line
            .replace("-u www-data -C 0-3", "-u root -C 0")
            .replace("-d 10 ", "-d 1 ");
        // On the pages proftop is in another folder than here.
        let line = line.replace("/opt/proftop", "");
        line.replace("@30s", "@1s")
    }

    fn command(&self, line: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.directory.join("bin");
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("exec {line}")])
            .current_dir(self.directory.path())
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("SERVER", self.server.pid().to_string())
            .env("PROFTOP_CONFIG", self.directory.join("config.toml"))
            .env("XDG_STATE_HOME", "/dev/null")
            .env("TERM", "xterm")
            .stdin(Stdio::null());
        command
    }

    /// Starts the service of the tour.
    fn start_orders(&self) -> Process {
        let mut command = Command::new(self.directory.join("orders"));
        let orders = Process::start_load(command.current_dir(self.directory.path()));
        self.directory.write("orders.pid", orders.pid().to_string());
        orders
    }

    /// Types a line that records a file, again and again until there is a sample in it: other lines
    /// read the file, and some say no more than that it is empty. The programs that are recorded have
    /// the lowest priority, and may get no CPU time for a second.
    fn record(&self, line: &str) {
        wait_until(line, || {
            self.remove_output(line);
            self.succeed(line, &[0]) == 0
        });
    }

    /// Removes the output file of a line: it may be there from another line, and proftop does not
    /// overwrite it.
    fn remove_output(&self, line: &str) {
        let mut words = line.split_whitespace();
        if words.any(|word| word == "-o") {
            let name = words.next().expect("the name of a file");
            let _ = std::fs::remove_file(self.directory.join(name));
        }
    }

    /// Types a line that may end with one of these statuses, or with 5, which says that there was
    /// no sample. Returns the status.
    fn succeed(&self, line: &str, statuses: &[i32]) -> i32 {
        let output = run(&mut self.command(&self.here(line)));
        let status = output.status.code();
        let right = status.filter(|status| *status == 5 || statuses.contains(status));
        right.unwrap_or_else(|| panic!("{line}: {status:?}: {}", text(&output.stderr)))
    }

    /// Types a line of a page and waits for its end.
    fn type_line(&self, line: &str) {
        println!("$ {line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let has = |word: &str| words.contains(&word);
        // The service of the tour runs while proftop looks at it.
        let _orders = line.contains("pidof orders").then(|| self.start_orders());
        self.remove_output(line);
        let is_of_machine = line.contains("nginx.service") || line.contains("usdt:postgresql");
        if is_of_machine {
            // The machine does not have these; all else is as it is written.
            let output = run(&mut self.command(&self.here(line)));
            let said = text(&output.stderr);
            let is_it = said.contains("no cgroup") || said.contains("query__start");
            assert!(is_it && !output.status.success(), "{line}: {said}");
        } else if has("record") && !has("-d") {
            self.interrupt(line);
        } else if has("record") {
            self.record(line);
        } else if is_screen(&words) {
            self.see_screen(line);
        } else if ["--filter", "--peek", "--fail-over"].into_iter().any(has) {
            // No process is named nginx here, and no function memcpy; and a limit may be exceeded.
            self.succeed(line, &[0, 3]);
        } else {
            self.succeed(line, &[0]);
        }
    }

    fn interrupt(&self, line: &str) {
        let mut command = self.command(&self.here(line));
        let mut child = start_sampling(command.stdout(Stdio::null()));
        child.interrupt();
        let status = child.wait().expect("ours");
        assert!(
            matches!(status.code(), Some(0 | 5 | 130)),
            "{line}: {status}"
        );
        // Other lines read the file, and this one may end before the first sample.
        self.record("proftop record -d 1s -p 4121 -o ring.pft");
    }

    /// Waits for the screen, and quits.
    fn see_screen(&self, line: &str) {
        let mut pty = Pty::open(80, 24);
        let mut command = self.command(&self.here(line));
        pty.attach(&mut command);
        let mut child = Process::start(&mut command);
        pty.read_until(b"quit");
        pty.press(b"q");
        let status = child.wait().expect("ours");
        assert!(status.success(), "{line}: {status}");
    }
}

/// Returns whether a command opens the screen.
fn is_screen(words: &[&str]) -> bool {
    let own = words.iter().take_while(|word| **word != "--");
    let own: Vec<&str> = own.copied().filter(|word| *word != "sudo").collect();
    let ends = ["-b", "--plain"];
    match own.get(1) {
        Some(&("open" | "demo")) | None => true,
        Some(first) => first.starts_with('-') && !own.iter().any(|word| ends.contains(word)),
    }
}

/// Returns the commands in the lines of a page that are marked as code. What they do is written
/// behind two blanks.
fn commands(page: &str) -> impl Iterator<Item = &str> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("    "));
    lines.filter_map(|line| {
        let command = line.split("  ").next().unwrap_or(line).trim();
        let ours = command.strip_prefix("sudo ").unwrap_or(command);
        (ours == "proftop" || ours.starts_with("proftop ")).then_some(command)
    })
}

/// Returns the commands of each page that are on no page before it.
fn commands_by_page() -> Vec<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut pages: Vec<_> = std::fs::read_dir(folder)
        .expect("it is there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "md"))
        .collect();
    pages.sort();
    let mut seen = BTreeSet::new();
    let mut new_commands = |page| {
        let words = std::fs::read_to_string(page).expect("a text");
        commands(&words)
            .filter(|line| seen.insert((*line).to_owned()))
            .map(str::to_owned)
            .collect()
    };
    pages.iter().map(&mut new_commands).collect()
}

/// Divides the pages among `count` desks, so that each desk has about as many commands. The
/// commands of a page stay together, in their order: some read what others have written.
fn divide(mut pages: Vec<Vec<String>>, count: usize) -> Vec<Vec<String>> {
    pages.sort_by_key(|page| Reverse(page.len()));
    let mut desks = vec![Vec::new(); count];
    for page in pages {
        let shortest = desks.iter_mut().min_by_key(|desk| desk.len());
        shortest.expect("one at least").extend(page);
    }
    desks
}

#[test]
fn commands_of_the_pages_do_what_they_say() {
    if !can_sample() {
        return;
    }
    let pages = commands_by_page();
    let typed: usize = pages.iter().map(Vec::len).sum();
    assert!(typed > 60, "{pages:?}");
    side_by_side(&divide(pages, 3), |lines| {
        let Some(desk) = Desk::new() else {
            return;
        };
        for line in lines {
            desk.type_line(line);
        }
        let Desk { mut agent, .. } = desk;
        agent.interrupt();
        assert!(agent.wait().expect("ours").success());
    });
}
