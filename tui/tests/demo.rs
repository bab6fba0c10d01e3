//! The screen on the recording that is built in: what any user sees, without any
//! rights, and what they may change.

use crate::common;

use common::pty::Pty;
use common::tmux::Terminal;
use common::{proftop, run, text};
use std::fs;
use test_support::Process;

#[test]
fn a_configuration_gives_other_keys_and_another_start() {
    let Some(terminal) = Terminal::open(120, 24) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.toml");
    fs::write(
        &file,
        "[view]\nstart = \"flame\"\n[keys]\nwrite = \"ctrl-s\"\nwrte = \"x\"\n",
    )
    .expect("a file");
    terminal.type_line(&format!("export PROFTOP_CONFIG={}", file.display()));
    terminal.start("demo");
    let screen = terminal.wait_for("configuration: ");
    assert!(screen.contains("[3 Flame]"), "{screen}");
    assert!(
        screen.contains("a.toml:5:1: there is no action 'wrte'"),
        "{screen}"
    );
    // Before the samples are loaded there is nothing to write.
    terminal.wait_for("4,473 samples");
    terminal.keys(&["C-s"]);
    terminal.wait_for("Format");
    terminal.keys(&["Escape"]);
    terminal.wait("the dialog is gone", |screen| !screen.contains("Format"));
    terminal.keys(&["q"]);
    // The error can be read after the screen was left.
    let screen = terminal.wait_for_shell();
    assert!(screen.contains("there is no action 'wrte'"), "{screen}");
}

#[test]
fn a_view_and_a_filter_can_be_asked_for() {
    let Some(terminal) = Terminal::open(80, 24) else {
        return;
    };
    terminal.start("demo --view processes --filter comm:postgres");
    terminal.wait("postgres alone", |screen| {
        screen.contains("[4 Proc]") && screen.contains("postgres") && !screen.contains("python3 ")
    });
    // The text is edited as if it had been typed.
    terminal.keys(&["BSpace"]);
    terminal.wait_for("python3");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn a_recording_is_held_against_another() {
    let Some(terminal) = Terminal::open(100, 24) else {
        return;
    };
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/demo.pft");
    terminal.start(&format!("demo --filter '!comm:postgres' --baseline {demo}"));
    // The filter holds for both sides: nothing differs.
    let screen = terminal.wait_for("DIFF to A");
    terminal.keys(&["BSpace"]);
    let after = terminal.wait("the difference is off", |screen| !screen.contains("DIFF"));
    assert_ne!(screen, after);
    terminal.keys(&["=", "4"]);
    let screen = terminal.wait("processes", |screen| {
        screen.contains("[4 Proc]") && screen.contains("DIFF to A")
    });
    assert!(
        !screen.contains('▲') && !screen.contains(" new "),
        "{screen}"
    );
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
    terminal.type_line("\"$PROFTOP\" demo --baseline /nowhere.pft");
    terminal.wait_for("cannot read /nowhere.pft");
}

#[test]
fn whatever_keys_do_has_a_name() {
    let Some(terminal) = Terminal::open(80, 24) else {
        return;
    };
    terminal.start("demo");
    terminal.wait_for("FILE demo.pft");
    terminal.keys(&[":"]);
    terminal.wait_for("Enter: do it");
    terminal.keys(&["call tree", "Enter"]);
    terminal.wait_for("[2 Tree]");
    terminal.keys(&[":", "quit", "Enter"]);
    terminal.wait_for_shell();
}

#[test]
fn a_configuration_to_begin_with_is_written_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/config.toml");
    let config = |task: &str| {
        let mut command = proftop(&["config", task]);
        run(command.env("PROFTOP_CONFIG", &path).env_remove("SUDO_UID"))
    };
    assert!(text(&config("path").stdout).contains("is not there"));
    assert_eq!(config("init").status.code(), Some(0));
    let written = fs::read_to_string(&path).expect("written");
    assert!(
        written.contains("# freeze = [\"space\", \"Z\"]"),
        "{written}"
    );
    let again = config("init");
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("it exists already"));
    assert!(text(&config("path").stdout).contains("is read"));
    fs::write(&path, "sample.rate = 499\nsample.keep = 3\n[theme\n").expect("written");
    let shown = config("show");
    assert!(text(&shown.stderr).contains("config.toml:3:"), "{shown:?}");
    fs::write(&path, "sample.rate = 499\n").expect("written");
    assert!(text(&config("show").stdout).contains("rate = 499"));
    fs::write(&path, "sample.rate = 49999999\n").expect("written");
    let output = run(proftop(&["-b", "-n", "1", "-p", "1"]).env("PROFTOP_CONFIG", &path));
    assert!(text(&output.stderr).contains(":1:15: rate: not a number"));
}

#[test]
fn what_a_terminal_says_of_itself_is_no_key() {
    let mut terminal = Pty::open(80, 24);
    let mut command = proftop(&["demo", "--no-mouse"]);
    for told in ["COLORFGBG", "NO_COLOR", "LC_ALL"] {
        command.env_remove(told);
    }
    command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    terminal.attach(&mut command);
    let mut proftop = Process::start(&mut command);
    terminal.read_until(b"\x1b]11;?\x1b\\");
    terminal.read_until(b"TOTAL%");
    // A late answer that the background is light. As keys, `b` and `]` would do something.
    terminal.press(b"\x1b]11;rgb:fbfb/fbfb/fbfb\x1b\\");
    let bytes = terminal.read_until(b"38;5;25");
    assert!(!String::from_utf8_lossy(&bytes).contains("are the baseline, A"));
    terminal.press(b"q");
    // Not all of it may have been read by then.
    terminal.read_until(b" samples in demo.pft");
    assert!(proftop.wait().expect("ours").success());
}

#[test]
fn it_opens_as_it_was_left() {
    let Some(terminal) = Terminal::open(80, 24) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().display();
    terminal.type_line(&format!("export XDG_STATE_HOME={home}/state"));
    // Starts proftop, waits for `opens`, presses keys, waits for what they show, and quits.
    let visit = |args: &str, opens: &str, keys: &[&str], shows: &str| {
        terminal.start(args);
        terminal.wait_for("FILE demo.pft");
        terminal.wait_for(opens);
        terminal.keys(keys);
        terminal.wait_for(shows);
        terminal.keys(&["q"]);
        terminal.wait_for_shell();
    };
    visit("demo", "[1 Func]", &["f", "2", "I"], "BOTTOM-UP");
    let kept =
        fs::read_to_string(folder.path().join("state/proftop/state.toml")).expect("it is kept");
    assert!(kept.contains("name = \"file demo.pft\""), "{kept}");
    // The functions open, with all samples: the state has no view and no filter. The tree
    // has callers first.
    visit("demo", "[1 Func]", &[], "4,473 samples");
    visit("demo", "[1 Func]", &["2"], "BOTTOM-UP");
    // Options win; --fresh ignores the saved state, and saves none.
    visit("demo --view threads", "[5 Thread]", &[], "[5 Thread]");
    visit("demo --fresh", "[1 Func]", &["2"], "TOP-DOWN");
    visit("demo", "[1 Func]", &["2"], "BOTTOM-UP");
}
