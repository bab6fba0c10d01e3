//! Questions of a user who has never seen proftop but knows htop, each answered with the keys
//! that the key line and the help show: on PostgreSQL under pgbench, where it is installed,
//! through a line that delays every key.

use crate::common;

use common::can_sample;
use common::dialog::Dialog;
use common::postgres::Postgres;
use common::tmux::Terminal;
use std::time::Duration;
use test_support::wait_until;

/// How long a key takes to proftop, and its effect on the way back.
const LINE_DELAY: Duration = Duration::from_millis(150);

struct Newcomer {
    terminal: Terminal,
    _postgres: Postgres,
    /// The folder to which files are written.
    _folder: tempfile::TempDir,
}

impl Newcomer {
    fn new() -> Option<Self> {
        if !can_sample() {
            return None;
        }
        let terminal = Terminal::open(80, 24)?;
        let postgres = Postgres::start()?;
        let folder = tempfile::tempdir().expect("a folder");
        terminal.type_line(&format!("cd {}", folder.path().display()));
        // Other programs of the machine would be in the first rows.
        terminal.start(&format!("-p {}", postgres.pid()));
        terminal.wait("samples of it", |screen| {
            screen.contains("postgres") && screen.lines().any(|line| line.starts_with('>'))
        });
        Some(Self {
            terminal,
            _postgres: postgres,
            _folder: folder,
        })
    }

    /// Presses keys, at most this many, and waits for what they show.
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
        let mut callers = callers.skip(1).take_while(|line| !line.trim().is_empty());
        // Each row ends with its number of samples.
        let is_row = |line: &str| line.trim_end().ends_with(|c: char| c.is_ascii_digit());
        screen.contains("CALLEES") && callers.any(is_row)
    });
    newcomer.back_to_functions();

    // Which thread?
    newcomer.press(&["5"], 4, |screen| {
        let selected = screen.lines().find_map(|line| line.strip_prefix('>'));
        let tid = selected.and_then(|row| row.split_whitespace().next());
        screen.contains("[5 Thread]") && tid.is_some_and(|tid| tid.parse::<u32>().is_ok())
    });

    // What was different a moment ago? The time view, a mark from its beginning to its end, use it:
    // A is what was before, and the difference is what came after. There must be a before: on a
    // machine with more to do the program may not run at all for a second.
    let keys = ["6", "Home", "v", "End", "Enter", "b", "1", ".", "="];
    newcomer.terminal.wait("five seconds", |screen| {
        let time = screen.lines().next().and_then(|it| it.split_once("LIVE "));
        time.is_some_and(|(_, time)| &time[.."00:00:05".len()] >= "00:00:05")
    });
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

/// The same questions without a screen: lines instead of keys.
#[test]
fn the_five_tasks_take_few_lines() {
    if !can_sample() {
        return;
    }
    let Some(_postgres) = Postgres::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = common::proftop(&["--plain"]);
    command.current_dir(folder.path()).env_remove("SUDO_UID");
    let mut dialog = Dialog::of(command);
    // There must be some time to compare with: each second has a row.
    wait_until("seconds with samples", || {
        dialog.ask("wait 3s");
        dialog.ask("time").contains("\n  5  ")
    });
    let lines = [
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
    let said = lines.map(|line| dialog.ask(line)).concat();
    dialog.finish();
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
    // Each answer begins with its base.
    let bases = said.lines().filter(|line| line.contains(" samples, lost "));
    assert_eq!(bases.count(), lines.len(), "{said}");
}
