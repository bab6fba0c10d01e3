//! What somebody wants to know who has never seen proftop but knows htop, each
//! with the keys that the key line and the help offer: on PostgreSQL under
//! pgbench, where it is installed, through a line that delays every key.

mod common;

use common::tmux::Terminal;
use common::{Machine, machine};
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use test_support::{Process, skip, wait_until};

/// How long a key takes to get there, and what it changes to get back.
const LINE_DELAY: Duration = Duration::from_millis(150);

/// A database server with two clients, of its own and of no rights.
struct Postgres {
    _clients: Process,
    _server: Process,
    /// Goes last.
    _folder: tempfile::TempDir,
}

impl Postgres {
    /// Nothing where it is not installed, or no rights can be given away.
    fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            skip("PostgreSQL is not installed");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_str().expect("UTF-8").to_owned();
        rustix::fs::chown(folder.path(), Some(rustix::fs::Uid::from_raw(65534)), None).ok()?;
        let run = |name: &str, args: &[&str]| {
            // It refuses to run as root.
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.arg(programs.join(name)).args(args);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.env("PGHOST", &path).current_dir(&path);
            command
        };
        let data = format!("{path}/data");
        let made = run("initdb", &["-D", &data, "-A", "trust", "-U", "test"]).status();
        if !made.is_ok_and(|status| status.success()) {
            skip("PostgreSQL's initdb cannot be run as nobody");
            return None;
        }
        let settings = ["-k", &path, "-c", "listen_addresses=", "-c", "fsync=off"];
        let server = Process::start(run("postgres", &["-D", &data]).args(settings));
        let database = ["-U", "test", "postgres"];
        wait_until("it takes clients", || {
            let ready = run("pg_isready", &["-q", "-U", "test"]).status();
            ready.is_ok_and(|status| status.success())
        });
        let filled = run("pgbench", &["-i", "-q", "-s", "2"])
            .args(database)
            .status();
        assert!(filled.expect("pgbench starts").success());
        let load = ["-n", "-S", "-c", "2", "-j", "2", "-T", "300"];
        let clients = Process::start(run("pgbench", &load).args(database));
        Some(Self {
            _clients: clients,
            _server: server,
            _folder: folder,
        })
    }
}

/// The newest of them.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders.filter(|bin| bin.join("pgbench").exists()).max()
}

struct Newcomer {
    terminal: Terminal,
    _postgres: Postgres,
    /// Where files are written to.
    _folder: tempfile::TempDir,
    _machine: Machine,
}

impl Newcomer {
    fn new() -> Option<Self> {
        let machine = machine()?;
        let terminal = Terminal::open(80, 24)?;
        let postgres = Postgres::start()?;
        let folder = tempfile::tempdir().expect("a folder");
        terminal.type_line(&format!("cd {}", folder.path().display()));
        terminal.start("");
        terminal.wait("samples of it", |screen| {
            screen.contains("postgres") && screen.lines().any(|line| line.starts_with('>'))
        });
        Some(Self {
            terminal,
            _postgres: postgres,
            _folder: folder,
            _machine: machine,
        })
    }

    /// Presses at most so many keys, and waits for what they show.
    fn press(&self, keys: &[&str], most: usize, shows: impl Fn(&str) -> bool) -> String {
        assert!(keys.len() <= most);
        for key in keys {
            std::thread::sleep(LINE_DELAY);
            self.terminal.keys(&[key]);
        }
        std::thread::sleep(LINE_DELAY);
        self.terminal.wait("the answer", shows)
    }

    fn back_to_functions(&self) {
        self.terminal.keys(&["1"]);
        self.terminal.wait_for("[1 Func]");
    }
}

#[test]
fn five_tasks_take_few_keys() {
    let Some(newcomer) = Newcomer::new() else {
        return;
    };
    // Which function burns the most, and who calls it? The first row; Enter.
    newcomer.press(&["Enter"], 6, |screen| {
        let callers = screen.lines().skip_while(|line| !line.contains("CALLERS"));
        screen.contains("CALLEES") && callers.skip(1).any(|line| line.contains('.'))
    });
    newcomer.back_to_functions();

    // Which thread?
    newcomer.press(&["5"], 4, |screen| {
        let selected = screen.lines().find_map(|line| line.strip_prefix('>'));
        let tid = selected.and_then(|row| row.split_whitespace().next());
        screen.contains("[5 Thread]") && tid.is_some_and(|tid| tid.parse::<u32>().is_ok())
    });

    // What was different a moment ago? Time, a mark there, use it; then A is
    // what was before, and the difference is what came since.
    let keys = [
        "6", "Left", "Left", "v", "Right", "Enter", "b", "1", ".", "=",
    ];
    let difference = newcomer.press(&keys, 12, |screen| {
        screen.contains("A ") && screen.contains("\u{394}")
    });
    assert!(difference.contains("[1 Func]"), "{difference}");
    newcomer.press(&["="], 1, |screen| !screen.contains("\u{394}"));

    // A file for the laptop.
    newcomer.press(&["w", "Enter"], 6, |screen| screen.contains("wrote "));

    // Whether the numbers can be trusted, and why.
    newcomer.press(&["8"], 2, |screen| {
        screen.contains("[8 Health]") && screen.contains("lost ") && screen.contains("whole")
    });

    newcomer.terminal.keys(&["q"]);
    newcomer.terminal.wait_for_shell();
}

/// The same without a screen: lines instead of keys.
#[test]
fn the_five_tasks_take_few_lines() {
    let Some(_machine) = machine() else {
        return;
    };
    let Some(_postgres) = Postgres::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let lines = [
        // There has to be some time to compare with.
        "wait 6s",
        // Which function burns the most, and who calls it?
        "top",
        "callers 1",
        // Which thread?
        "threads 1",
        // What was different a moment ago?
        "time",
        "time 2",
        // A file for the laptop.
        "write a.pft",
        // Whether the numbers can be trusted, and why.
        "health",
    ];
    let mut command = common::proftop(&["--plain"]);
    command.current_dir(folder.path()).env_remove("SUDO_UID");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut proftop = Process::start(&mut command);
    let mut input = proftop.stdin.take().expect("a pipe");
    writeln!(input, "{}", lines.join("\n")).expect("it reads");
    drop(input);
    let mut output = proftop.stdout.take().expect("a pipe");
    let mut said = String::new();
    output.read_to_string(&mut said).expect("UTF-8");
    assert!(proftop.wait().expect("ours").success());
    for part in [
        "callers of ",
        "  1  ",
        " CPU  ",
        " UTC: ",
        " against ",
        "wrote ",
        "taken ",
        "lost ",
        "whole ",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    assert!(folder.path().join("a.pft").exists());
    // Each answer began with its base; the goodbye has samples, too.
    let bases = said.lines().filter(|line| line.contains(" samples, lost "));
    assert_eq!(bases.count(), lines.len(), "{said}");
}
