//! The screen with the code of a function, on programs that are compiled for it.

use crate::common;

use common::tmux::{PROMPT, Terminal};
use common::{can_sample, proftop, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use test_support::{Process, compile, is_root_or_skip, wait_until};

/// A program that spends nearly all of its time in one line.
const SOURCE: &str = r#"
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) unsigned divide(const unsigned *table, unsigned count)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += table[i & 1023] / (i | 1); /* the hot line */
    return sum;
}

int main(int count, char **words)
{
    static unsigned table[1024];
    /* Of CPU time: a busy machine gives as many samples, later. */
    clock_t end = (clock_t)CLOCKS_PER_SEC * (count > 1 ? atoi(words[1]) : 60);
    unsigned sum = 0;
    while (clock() < end)
        sum += divide(table, 1 << 24);
    return sum == 1;
}
"#;
const HOT: &str = "/* the hot line */";

struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    /// Compiles the program. Returns None where there is no compiler, and prints that.
    fn new(flags: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("hot.c"), SOURCE).expect("written");
        let program = Program { folder };
        let flags = [&["-O2"], flags].concat();
        compile(&program.path("hot.c"), &program.path("hot"), flags)?;
        Some(program)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }
}

fn parts(flags: &[&str]) -> Option<(Terminal, Program)> {
    let program = Program::new(flags)?;
    can_sample().then(|| Some((Terminal::open(100, 30)?, program)))?
}

fn selected(screen: &str) -> &str {
    let row = screen.lines().find(|line| line.starts_with('>'));
    row.unwrap_or_default()
}

/// Options of a live screen: a rate, and a window in which the program gets enough samples
/// even if a busy machine gives it little CPU time.
const LIVE: &str = "--window 5m -F 499";

/// Starts proftop, and opens the code of the function that burns.
fn open_code(terminal: &Terminal, arguments: &str) {
    terminal.start(arguments);
    terminal.wait("samples", |screen| {
        let header = screen.lines().nth(2).unwrap_or_default();
        let count = header
            .split(' ')
            .next()
            .unwrap_or_default()
            .replace(',', "");
        count.parse::<u64>().is_ok_and(|count| count > 300) && !header.contains('⟳')
    });
    terminal.keys(&["a"]);
    terminal.wait_for("[7 Code]");
}

#[test]
fn the_hot_line_is_selected_and_has_its_instructions() {
    let Some((terminal, program)) = parts(&["-g"]) else {
        return;
    };
    open_code(&terminal, &format!("{LIVE} -- {} 60", program.text("hot")));
    let screen = terminal.wait("the hot line", |screen| selected(screen).contains(HOT));
    let share = selected(&screen)[1..].split_whitespace().next();
    let share: f64 = share.and_then(|share| share.parse().ok()).expect("a share");
    assert!(share > 60.0, "{screen}");
    assert!(screen.contains("│ div "), "{screen}");
    assert!(screen.contains("source: disk"), "{screen}");
    assert!(screen.contains("› divide"), "the way here: {screen}");
    // The hardware cursor is on the line, for screen readers. Rows move while samples come.
    terminal.wait("the cursor on the line", |screen| {
        let line = screen.lines().position(|line| line.starts_with('>'));
        line.is_some() && line == terminal.property("#{cursor_y}").parse().ok()
    });

    terminal.keys(&["o", "o", "A"]);
    terminal.wait("Intel", |screen| {
        screen.contains("o: asm") && screen.contains("div    r") && !screen.contains(HOT)
    });
    terminal.keys(&["BSpace"]);
    terminal.wait("the functions", |screen| {
        screen.contains("[1 Func]") && selected(screen).contains("divide")
    });
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn what_is_missing_is_said() {
    let Some((terminal, program)) = parts(&["-g"]) else {
        return;
    };
    let moved = program.path("moved");
    fs::create_dir(&moved).expect("made");
    fs::rename(program.path("hot.c"), moved.join("hot.c")).expect("moved");
    let start = format!("{LIVE} -- {} 60", program.text("hot"));
    open_code(&terminal, &start);
    let screen = terminal.wait_for("no source text");
    let words: String = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("not there; --source-map FROM=TO"),
        "{screen}"
    );
    assert!(screen.contains("│ div "), "{screen}");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();

    let map = format!("{}={}", program.folder.path().display(), moved.display());
    open_code(&terminal, &format!("--source-map {map} {start}"));
    let screen = terminal.wait("the hot line", |screen| selected(screen).contains(HOT));
    assert!(screen.contains("source: source map"), "{screen}");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
    drop(terminal);

    // A program without debug information, and without symbols.
    let Some((terminal, program)) = parts(&["-s"]) else {
        return;
    };
    open_code(&terminal, &format!("{LIVE} -- {} 60", program.text("hot")));
    let screen = terminal.wait_for("no debug information");
    assert!(
        screen.contains(" div ") && screen.contains("o: asm"),
        "{screen}"
    );
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn an_editor_opens_the_line_and_the_screen_comes_back() {
    let Some((terminal, program)) = parts(&["-g"]) else {
        return;
    };
    // The editor reads a line from the terminal; proftop must not read it.
    let editor = program.path("an editor");
    let told = program.path("told");
    let script = format!(
        "#!/bin/sh\necho \"$@\" > '{0}'\necho editing\nread stop\nkill -TSTP 0\necho again\n\
         read answer\necho \"$answer\" >> '{0}'\n",
        told.display()
    );
    let link = program.path("editor");
    fs::write(&editor, script).expect("written");
    let mut mode = fs::metadata(&editor).expect("there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs::set_permissions(&editor, mode).expect("set");
    std::os::unix::fs::symlink(&editor, &link).expect("linked");
    let hot = program.text("hot");
    terminal.type_line(&format!("export VISUAL= EDITOR={}", link.display()));
    open_code(&terminal, &format!("{LIVE} -- {hot} 60"));
    terminal.wait("the hot line", |screen| selected(screen).contains(HOT));
    terminal.keys(&["e"]);
    terminal.wait_for("editing");
    // Like ^Z in an editor: the shell is back, and fg continues.
    terminal.keys(&["z", "Enter"]);
    terminal.wait("the shell", |screen| {
        screen.trim_end().ends_with(PROMPT.trim_end())
    });
    terminal.type_line("fg");
    terminal.wait_for("again");
    terminal.keys(&["q", "u", "i", "t", "Enter"]);
    terminal.wait("the screen", |screen| selected(screen).contains(HOT));
    let line = SOURCE.lines().position(|line| line.contains(HOT));
    let line = line.expect("it has one") + 1;
    let expected = format!("+{line} {}\nquit\n", program.text("hot.c"));
    assert_eq!(fs::read_to_string(told).expect("it was told"), expected);

    // The screen gets the keys again.
    terminal.keys(&["8"]);
    terminal.wait_for("[8 Health]");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

/// The command that proftop watches runs as the user, too.
#[test]
fn under_sudo_the_editor_is_the_users() {
    let Some((terminal, program)) = parts(&["-g"]) else {
        return;
    };
    if !is_root_or_skip("only root can be called by another user") {
        return;
    }
    // No account has this number.
    let uid = "4242424";
    let mode = |path: &Path, mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(path, mode).expect("set");
    };
    let (editor, told) = (program.path("editor"), program.path("told"));
    let script = format!(
        "#!/bin/sh\n(id -u; id -g; id -G; echo $HOME) > '{}'\n",
        told.display()
    );
    fs::write(&editor, script).expect("written");
    mode(&editor, 0o755);
    mode(editor.parent().expect("a folder"), 0o777);
    terminal.type_line(&format!(
        "export VISUAL= EDITOR={} SUDO_UID={uid} SUDO_GID={uid}",
        editor.display()
    ));
    open_code(&terminal, &format!("{LIVE} -- {} 60", program.text("hot")));
    terminal.wait("the hot line", |screen| selected(screen).contains(HOT));
    terminal.keys(&["e"]);
    let lines = || fs::read_to_string(&told).unwrap_or_default();
    wait_until("the editor ran", || lines().lines().count() == 4);
    assert_eq!(lines(), format!("{uid}\n{uid}\n{uid}\n/nonexistent\n"));
    terminal.wait("the screen", |screen| selected(screen).contains(HOT));
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn a_recording_shows_the_same_build_alone() {
    let Some((terminal, program)) = parts(&["-g", "-Wl,--build-id"]) else {
        return;
    };
    let (hot, file) = (program.text("hot"), program.text("a.pft"));
    let mut record = proftop(&["record", "-F", "499", "-o", &file, "--", &hot, "3"]);
    assert!(run(&mut record).status.success());
    open_code(&terminal, &format!("open {file}"));
    let screen = terminal.wait("the hot line", |screen| selected(screen).contains(HOT));
    assert!(screen.contains("│ div "), "{screen}");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();

    rebuild(&program.path("hot.c"), &program.path("hot"));
    open_code(&terminal, &format!("open {file}"));
    let screen = terminal.wait_for("another build than the one that was recorded");
    assert!(!screen.contains("│ div "), "{screen}");
    // The recording itself contains the lines.
    assert!(selected(&screen).contains(HOT), "{screen}");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn what_runs_is_shown_not_what_lies_at_its_path() {
    let Some((terminal, program)) = parts(&["-g"]) else {
        return;
    };
    let hot = program.path("hot");
    let mut command = Command::new(&hot);
    let process = Process::start_load(command.arg("60"));
    std::fs::remove_file(&hot).expect("removed");
    rebuild(&program.path("hot.c"), &hot);
    open_code(&terminal, &format!("{LIVE} -p {}", process.pid()));
    let screen = terminal.wait("the hot line", |screen| selected(screen).contains(HOT));
    assert!(screen.contains("│ div "), "{screen}");
    assert!(!screen.contains("no instructions"), "{screen}");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

/// Compiles the same source to another program.
fn rebuild(source: &Path, program: &Path) {
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-Wl,--build-id", "-o"]);
    let status = compiler.arg(program).arg(source).status();
    assert!(status.expect("it compiled before").success());
}
