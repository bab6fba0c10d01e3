//! The screen, in a real terminal.

use crate::common;

use common::pty::Pty;
use common::tmux::Terminal;
use common::{BURN_FUNCTIONS, BURN_SHARES, BURN_THREADS, band, burn_str, burning, can_sample};
use common::{PROFTOP, proftop, run, text};
use std::fs;
use std::process::{Command, Stdio};
use test_support::{Process, copy_program, skip, wait_for, wait_until};

/// Opens a terminal. Returns None where nothing can be sampled, or no terminal can be had.
fn terminal(width: u16, height: u16) -> Option<Terminal> {
    can_sample().then(|| Terminal::open(width, height))?
}

/// Returns the number of samples in the header.
fn samples(screen: &str) -> Option<u64> {
    let header = screen.lines().nth(2)?;
    let (count, rest) = header.split_once(' ')?;
    let is_count =
        rest.starts_with("samples") || rest.starts_with("sample ") || rest.starts_with("smp");
    is_count.then(|| count.replace(',', "").parse().ok())?
}

/// Returns the self percentage in the row of a function.
fn percent(screen: &str, name: &str) -> Option<f64> {
    let row = screen.lines().find(|line| line.contains(name))?;
    let first = row.trim_start_matches('>').split_whitespace().next()?;
    first.parse().ok()
}

fn selected(screen: &str) -> Option<&str> {
    screen.lines().find(|line| line.starts_with('>'))
}

/// Returns the line of the selected row.
fn selected_line(screen: &str) -> Option<String> {
    screen
        .lines()
        .position(|line| line.starts_with('>'))
        .map(|line| line.to_string())
}

#[test]
fn rows_show_the_split_of_the_work() {
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    // Where other programs keep the CPUs busy, the usual window of ten seconds may never have as
    // many samples as this test waits for.
    terminal.start(&format!("--window 5m -F 499 -- {} 60", burn_str()));
    let screen = terminal.wait("a thousand samples", |screen| {
        samples(screen) > Some(1_500) && percent(screen, BURN_FUNCTIONS[2]).is_some()
    });
    // Some of the time is not the work's: the loader's, and on a busy machine the kernel's.
    let percents = BURN_FUNCTIONS.map(|name| percent(&screen, name).expect("a row"));
    let of_work: f64 = percents.iter().sum();
    assert!(of_work > 60.0, "{percents:?}");
    let all = samples(&screen).expect("a count") as f64 * of_work / 100.0;
    for ((name, share), percent) in BURN_FUNCTIONS.into_iter().zip(BURN_SHARES).zip(percents) {
        let measured = percent / of_work;
        let band = band(share, all);
        assert!(
            (measured - share).abs() < band,
            "{name}: {measured} ± {band}"
        );
    }
    // The output of the command does not get onto the screen.
    assert!(!screen.contains("rounds/s"));
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn keys_do_what_they_say() {
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    let burn = burning(2);
    terminal.start(&format!("-F 499 -p {}", burn.pid()));
    terminal.wait_for(BURN_FUNCTIONS[0]);

    terminal.keys(&["4"]);
    terminal.wait("the process", |screen| {
        screen.contains("[4 Proc]") && selected(screen).is_some_and(|row| row.contains(" burn "))
    });
    terminal.keys(&["5"]);
    terminal.wait("both threads", |screen| {
        screen.contains("[5 Thread]") && BURN_THREADS.iter().all(|name| screen.contains(name))
    });
    terminal.keys(&["8"]);
    terminal.wait("the health", |screen| {
        screen.contains("[8 Health]") && screen.contains("SAMPLES")
    });
    terminal.keys(&["?"]);
    terminal.wait_for("Help: Health");
    terminal.keys(&["Escape"]);
    terminal.wait_for("[8 Health]");
    terminal.keys(&["1"]);
    terminal.wait_for("[1 Func]");

    // The find prompt highlights matches, counts them, and selects one.
    terminal.keys(&["/"]);
    terminal.keys(&["t", "h", "i", "r", "t", "y"]);
    terminal.wait("the share", |screen| {
        screen.contains("% of scope itself in 1 function")
    });
    terminal.keys(&["Enter"]);
    terminal.wait("a selected match", |screen| {
        selected(screen).is_some_and(|row| row.contains(BURN_FUNCTIONS[1]))
    });
    // The hardware cursor is on the selected row, for screen readers.
    wait_until("the cursor is on the selected row", || {
        let line = selected_line(&terminal.screen());
        Some(terminal.property("#{cursor_y}")) == line
    });

    // Sorted by another column, the same function is still selected.
    terminal.keys(&["s"]);
    terminal.wait_for("TOTAL%▼");
    terminal.wait("the same selection", |screen| {
        selected(screen).is_some_and(|row| row.contains(BURN_FUNCTIONS[1]))
    });

    terminal.keys(&["Space"]);
    let frozen = terminal.wait_for("FROZEN");
    let before = samples(&frozen);
    terminal.wait("newer samples", |screen| {
        screen.contains("newer samples wait")
    });
    assert_eq!(samples(&terminal.screen()), before);
    terminal.keys(&["Space"]);
    terminal.wait("live again", |screen| {
        screen.contains("LIVE") && !screen.contains("FROZEN") && samples(screen) != before
    });
    terminal.keys(&["q"]);
    let shell = terminal.wait_for_shell();
    assert!(shell.contains(" lost"), "a last line says what was seen");
    assert!(
        shell.contains(&format!("samples of burn[{}]", burn.pid())),
        "{shell}"
    );
}

#[test]
fn any_size_will_do() {
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    let burn = burning(2);
    terminal.start(&format!("-F 499 -p {}", burn.pid()));
    terminal.wait_for(BURN_FUNCTIONS[0]);
    for (width, height) in [
        (160, 45),
        (40, 10),
        (20, 5),
        (60, 16),
        (79, 23),
        (1, 1),
        (80, 24),
    ] {
        terminal.resize(width, height);
    }
    terminal.resize(160, 45);
    terminal.wait("a wide screen", |screen| {
        screen
            .lines()
            .next()
            .is_some_and(|line| line.trim_end().len() > 100)
            && screen.contains(BURN_FUNCTIONS[0])
    });
    // The smallest screen, and one line less than that.
    terminal.resize(40, 8);
    terminal.wait_for("SELF%");
    terminal.resize(60, 7);
    terminal.wait("one line", |screen| {
        screen.contains(" smp") && !screen.contains("SELF%")
    });
    terminal.resize(20, 5);
    terminal.wait_for("too small: need 40x8");
    terminal.resize(80, 24);
    terminal.wait("the screen of before", |screen| {
        screen.contains(BURN_FUNCTIONS[0])
            && screen.contains("[1 Func]")
            && !screen.contains("need")
    });
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn a_killed_target_leaves_its_data() {
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    let burn = burning(1);
    let scope = format!("burn[{}]", burn.pid());
    terminal.start(&format!("--window 5m -F 499 -p {}", burn.pid()));
    terminal.wait("samples", |screen| samples(screen) > Some(200));
    drop(burn);
    let screen = terminal.wait_for("Data kept");
    assert!(screen.contains(&format!("EXITED {scope}")), "{screen}");
    assert!(screen.contains(BURN_FUNCTIONS[0]), "{screen}");
    assert!(samples(&screen) > Some(200), "{screen}");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn what_the_command_prints_is_kept_off_the_screen() {
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    let script = "echo to stdout; echo to stderr >&2; cat; while :; do :; done";
    terminal.start(&format!("-- sh -c '{script}'"));
    let screen = terminal.wait("samples", |screen| samples(screen) > Some(20));
    assert!(!screen.contains("to stdout") && !screen.contains("to stderr"));
    terminal.keys(&["O"]);
    let screen = terminal.wait_for("to stderr");
    assert!(screen.contains("to stdout"), "{screen}");
    terminal.keys(&["q"]);
    terminal.wait_for("[1 Func]");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

/// Returns the pid of the proftop that runs in the terminal.
fn pid_in(terminal: &Terminal) -> rustix::process::Pid {
    let shell = terminal.property("#{pane_pid}");
    let children = format!("/proc/{shell}/task/{shell}/children");
    let mut found = None;
    wait_until("proftop runs", || {
        let children = fs::read_to_string(&children).expect("the shell lives");
        found = children
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok());
        found.is_some()
    });
    rustix::process::Pid::from_raw(found.expect("found")).expect("a pid")
}

#[test]
fn signals_find_the_terminal_as_it_was() {
    use rustix::process::{Signal, kill_process};
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        terminal.clear();
        terminal.start("");
        kill_process(pid_in(&terminal), signal).expect("it runs");
        terminal.wait_for_shell();
        terminal.type_line("echo status $?.");
        terminal.wait_for(&format!("status {status}."));
    }
    // The modes of the terminal: typed text is echoed, and read line by line.
    terminal.type_line("clear; stty -a");
    // The last of the modes, so that all others are there.
    let modes = terminal.wait("the modes", |screen| screen.contains("extproc"));
    for mode in ["icanon ", "isig ", "echo ", "opost "] {
        assert!(
            modes.contains(mode) && !modes.contains(&format!("-{mode}")),
            "{mode}"
        );
    }
}

#[test]
fn it_can_be_stopped_and_continued() {
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    let burn = burning(1);
    terminal.start(&format!("-F 499 -p {}", burn.pid()));
    terminal.wait_for(BURN_FUNCTIONS[0]);
    for _ in 0..2 {
        terminal.keys(&["C-z"]);
        terminal.wait_for_shell();
        terminal.type_line("fg");
        terminal.wait("the screen again", |screen| {
            screen.starts_with("proftop ") && screen.contains(BURN_FUNCTIONS[0])
        });
    }
    // proftop is stopped without a warning, and the terminal is resized meanwhile.
    terminal.keys(&["C-z"]);
    terminal.wait_for_shell();
    terminal.resize(100, 30);
    terminal.type_line("fg");
    terminal.wait("the whole screen", |screen| {
        screen.starts_with("proftop ")
            && screen
                .lines()
                .nth(29)
                .is_some_and(|line| line.contains("quit"))
    });
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn a_plain_terminal_gets_plain_characters() {
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    let burn = burning(2);
    terminal.type_line(&format!(
        "TERM=linux LC_ALL=C '{PROFTOP}' -F 499 -p {}",
        burn.pid()
    ));
    terminal.wait_for(BURN_FUNCTIONS[0]);
    for key in [
        "1", "4", "5", "8", "?", "Escape", "1", "/", "Escape", "Space",
    ] {
        terminal.keys(&[key]);
        let screen = terminal.screen();
        assert!(screen.is_ascii(), "after {key}:\n{screen}");
    }
    let screen = terminal.wait_for("FROZEN");
    assert!(screen.is_ascii(), "{screen}");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn where_no_screen_can_be_it_says_what_can() {
    // No terminal at all.
    let output = run(proftop(&[]).stdin(Stdio::null()));
    assert_eq!(output.status.code(), Some(4));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("not a terminal") && stderr.contains("proftop -b"),
        "{stderr}"
    );
    assert!(output.stdout.is_empty());
    // A terminal that cannot place text.
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    terminal.type_line(&format!("TERM=dumb '{PROFTOP}'; echo status $?."));
    let screen = terminal.wait_for("status 4.");
    assert!(
        screen.contains("TERM=dumb") && screen.contains("proftop --plain"),
        "{screen}"
    );
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    terminal.start("");
    let pid = pid_in(&terminal);
    drop(terminal);
    let path = format!("/proc/{}", pid.as_raw_nonzero());
    wait_until("proftop ends", || !std::path::Path::new(&path).exists());
}

/// Returns how often the thread that writes to the terminal has waited.
fn waits_of_writer(pid: u32) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .find(|status| status.starts_with("Name:\twriter\n"))?
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?
        .trim()
        .parse()
        .ok()
}

#[test]
fn a_terminal_that_takes_nothing_holds_nobody_up() {
    if !can_sample() {
        return;
    }
    // The test never reads from this terminal.
    let mut terminal = Pty::open(80, 24);
    let mut command = proftop(&["--no-mouse"]);
    terminal.attach(command.env("TERM", "xterm"));
    let mut proftop = Process::start(&mut command);
    wait_until("it draws", || waits_of_writer(proftop.pid()).is_some());
    // Each change to the help and back draws a whole screen.
    let (mut last, mut same) = (None, 0);
    wait_until("the terminal is full", || {
        terminal.press(b"?");
        let now = waits_of_writer(proftop.pid());
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same >= 50
    });
    proftop.signal(rustix::process::Signal::TERM);
    let status = wait_for("it ends", || proftop.try_wait().expect("ours"));
    assert_eq!(status.code(), Some(128 + 15));
}

#[test]
fn a_command_without_rights_gets_no_screen() {
    let has_setpriv = Command::new("setpriv").arg("--version").output().is_ok();
    if !rustix::process::geteuid().is_root() || !has_setpriv {
        skip("needs root and setpriv to give rights away");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let copy = folder.path().join("proftop");
    copy_program(PROFTOP, &copy);
    let Some(terminal) = Terminal::open(80, 24) else {
        return;
    };
    let copy = copy.to_str().expect("UTF-8");
    let setpriv = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    terminal.type_line(&format!("clear; {setpriv} {copy}; echo status $?."));
    let screen = terminal.wait_for("status 4.");
    assert!(
        screen.contains("cannot sample") && screen.contains("setcap"),
        "{screen}"
    );
    assert_eq!(terminal.property("#{alternate_on}"), "0");
}

#[test]
fn a_recording_is_shown_while_it_is_made() {
    let Some(terminal) = terminal(80, 24) else {
        return;
    };
    let burn = burning(2);
    let record = format!(
        "\"$PROFTOP\" record -F 499 -o - -p {} 2>/dev/null",
        burn.pid()
    );
    terminal.type_line(&format!("{record} | \"$PROFTOP\" open -"));
    let screen = terminal.wait("the first samples", |screen| {
        screen.contains("READING standard input") && screen.contains(BURN_FUNCTIONS[0])
    });
    let before = samples(&screen).expect("a count");
    terminal.wait("more of them", |screen| samples(screen) > Some(before));
    // Keys come from the terminal, though standard input is the pipe.
    terminal.keys(&["4"]);
    terminal.wait("the process", |screen| {
        selected(screen).is_some_and(|row| row.contains(" burn "))
    });
    terminal.keys(&["Enter"]);
    terminal.wait("its functions", |screen| {
        screen.contains("[1 Func]") && screen.contains("› burn[")
    });
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn what_is_no_recording_ends_with_a_sentence() {
    let Some(terminal) = Terminal::open(80, 24) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("hello"), "hello\n").expect("a file");
    fs::write(folder.path().join("empty"), "").expect("a file");
    let folded = "main;a 7\nmain;b 3\n";
    fs::write(folder.path().join("a.folded"), folded).expect("a file");
    terminal.type_line(&format!("cd {}", folder.path().display()));
    for (file, sentence, status) in [
        ("hello", "cannot read hello", 1),
        ("empty", "empty is empty", 5),
        ("nosuch", "cannot read nosuch: No such file", 1),
    ] {
        terminal.type_line(&format!("\"$PROFTOP\" open {file}; echo status $?"));
        terminal.wait_for(&format!("status {status}"));
        let screen = terminal.wait_for_shell();
        assert!(screen.contains(sentence), "{screen}");
        terminal.clear();
    }
    terminal.start("open a.folded");
    let screen = terminal.wait_for("FILE a.folded");
    assert_eq!(samples(&screen), Some(10));
    terminal.keys(&["5"]);
    terminal.wait_for("this file has no numbers of threads");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn what_is_on_the_screen_goes_to_a_file() {
    let Some(terminal) = Terminal::open(80, 24) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    terminal.type_line(&format!("cd {}", folder.path().display()));
    terminal.start("demo");
    terminal.wait_for("FILE demo.pft");
    let write = |name: &str, keys: &[&str]| {
        terminal.keys(&["w"]);
        terminal.wait_for("Format");
        terminal.keys(keys);
        terminal.keys(&["Tab", "C-u"]);
        terminal.keys(&[name]);
        terminal.keys(&["Enter"]);
    };
    write("all.pft", &[]);
    terminal.wait_for("wrote ");
    terminal.keys(&["j"]);
    write("screen.txt", &["Up"]);
    terminal.wait_for("screen.txt, ");
    let screen = fs::read_to_string(folder.path().join("screen.txt")).expect("a file");
    assert_eq!(screen.lines().count(), 24);
    assert!(screen.starts_with("proftop demo") && screen.contains("[1 Func]"));
    write("all.pft", &[]);
    terminal.wait_for("there is such a file");
    terminal.keys(&["C-o"]);
    terminal.wait_for("all.pft, ");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
    terminal.clear();
    terminal.start("open all.pft");
    terminal.wait_for("FILE all.pft");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}
