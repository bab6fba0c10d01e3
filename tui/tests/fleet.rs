//! `proftop fleet` runs another program, or says how to get it; `proftop open` has that program fetch
//! what it shows. Scripts take the place of that program: its own tests are in `fleet/`.

use crate::common;

use common::dialog::Dialog;
use common::pty::Pty;
use common::{PROFTOP, run, text};
use profile::formats::pft;
use profile::{Ending, Frame, FrameKind, Limits, ModuleId, NameState, NewSample, ProcessId, Store};
use rustix::process::{Pid, test_kill_process};
use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use test_support::{Process, Scratch, copy_program, is_root_or_skip, wait_for, wait_until};

const ADDRESS: &str = "pyroscope+https://p.example/?q={service_name=\"api\"}";

/// Puts proftop into a folder without `proftop-fleet` beside it. A hard link is the same program
/// under another name; if the folder is on another filesystem, it is copied.
fn alone(directory: &Scratch) -> std::path::PathBuf {
    let program = directory.join("proftop");
    if std::fs::hard_link(PROFTOP, &program).is_err() {
        std::fs::copy(PROFTOP, &program).expect("ours");
    }
    program
}

fn stand_in(path: &Path, says: &str) {
    script(path, &format!("echo {says} \"$#\" \"$@\"\nexit 7\n"));
}

/// Puts a script into the place of proftop-fleet.
fn script(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
    let written = path.with_extension("text");
    fs::write(&written, format!("#!/bin/sh\n{body}\n")).expect("ours");
    fs::set_permissions(&written, Permissions::from_mode(0o755)).expect("ours");
    copy_program(&written, path);
}

fn fleet(program: &Path, path: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("fleet").args(words).env("PATH", path);
    command
}

#[test]
fn it_runs_the_program_beside_it_then_that_in_path_with_all_words() {
    let directory = Scratch::new();
    let program = alone(&directory);
    let path = directory.join("bin");
    let words = ["top", "a b", "--by", "version", "--help", "-V"];
    stand_in(&path.join("proftop-fleet"), "in PATH:");
    // The script needs a shell and no other program.
    let output = run(&mut fleet(&program, &path, &words));
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout),
        "in PATH: 6 top a b --by version --help -V\n"
    );
    stand_in(&directory.join("proftop-fleet"), "beside:");
    let output = run(&mut fleet(&program, &path, &["status"]));
    assert_eq!(text(&output.stdout), "beside: 1 status\n");
}

#[test]
fn without_the_program_it_says_how_to_get_it() {
    let directory = Scratch::new();
    let program = alone(&directory);
    let output = run(&mut fleet(&program, &directory.join("bin"), &["top", "x"]));
    assert_eq!(output.status.code(), Some(127));
    let said = text(&output.stderr);
    assert!(
        said.contains("cargo build --release -p proftop-fleet"),
        "{said}"
    );
    assert_eq!(text(&output.stdout), "");
    // A file that is there and cannot be run is another case.
    std::fs::write(directory.join("proftop-fleet"), "no program").expect("ours");
    let output = run(&mut fleet(&program, &directory.join("bin"), &["top"]));
    assert_eq!(output.status.code(), Some(126), "{}", text(&output.stderr));
}

#[test]
fn no_program_of_the_folder_where_the_user_is_runs() {
    let directory = Scratch::new();
    fs::create_dir(directory.join("here")).expect("ours");
    fs::create_dir(directory.join("other")).expect("ours");
    let program = alone(&directory);
    for place in ["here/proftop-fleet", "here/bin/proftop-fleet"] {
        script(&directory.join(place), "echo it runs\nexit 7");
    }
    let path = Path::new(":.:bin:../here").to_owned();
    for (words, status) in [(["fleet", "top"], 127), (["open", ADDRESS], 4)] {
        let mut command = Command::new(&program);
        command.args(words).arg("--plain").env("PATH", &path);
        let output = run(command.current_dir(directory.join("here")));
        assert_eq!(output.status.code(), Some(status), "{words:?}");
        assert!(
            text(&output.stderr).contains("neither beside proftop nor in a folder of PATH"),
            "{words:?}"
        );
        assert_eq!(text(&output.stdout), "");
    }
}

/// A folder with proftop, and a script beside it.
struct World {
    directory: Scratch,
    program: PathBuf,
}

impl World {
    fn new(body: &str) -> World {
        let directory = Scratch::new();
        let program = alone(&directory);
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/demo.pft");
        fs::copy(demo, directory.join("demo.pft")).expect("ours");
        script(&directory.join("proftop-fleet"), body);
        World { directory, program }
    }

    /// Returns the command that opens these addresses, in the folder.
    fn open(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("open").args(words);
        command
            .env("PROFTOP_CONFIG", "/dev/null")
            .env("XDG_STATE_HOME", "/dev/null")
            .env("TZ", "UTC")
            .current_dir(self.directory.path());
        command
    }

    /// Asks for the functions, and waits for the end of proftop.
    fn ask_top(&self, words: &[&str]) -> Output {
        let mut command = self.open(&["--plain", "--fresh"]);
        command.args(words).env("TERM", "dumb");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut input = child.stdin.take().expect("a pipe");
        // A failure that is known at once ends proftop before it reads.
        let _ = input.write_all(b"top\n");
        drop(input);
        let output = child.wait_with_output().expect("ours");
        println!("$ {command:?}\n{}", text(&output.stderr));
        output
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(name)).ok()
    }

    /// Returns the process of the script when it has begun.
    fn pid(&self) -> Pid {
        wait_for("the script", || {
            let text = self.read("pid")?;
            Pid::from_raw(text.strip_suffix('\n')?.parse().ok()?)
        })
    }
}

#[test]
fn what_the_program_sends_is_shown() {
    // It need not end before proftop.
    for body in [
        "printf '%s\\n' \"$@\" >told; exec cat demo.pft",
        "printf '%s\\n' \"$@\" >told; cat demo.pft; exec >&-; exec sleep 3600",
    ] {
        let world = World::new(body);
        let mut dialog =
            Dialog::of(world.open(&["--plain", "--fresh", ADDRESS, "--", "--token-file", "a b"]));
        let top = dialog.ask("top");
        assert!(top.contains("postgres"), "{top}");
        let status = dialog.ask("status");
        assert!(status.contains("pyroscope+https://p.example/"), "{status}");
        dialog.finish();
        let told = world.read("told").expect("it was told");
        assert_eq!(
            told,
            format!("open\n{ADDRESS}\n--output=-\n--token-file\na b\n")
        );
    }
    let world = World::new("printf '%s\\n' \"$@\" >told; echo 'a;b 7'");
    let output = world.ask_top(&["parquet+/mnt/a?since=1h"]);
    assert!(text(&output.stdout).contains("7"), "{output:?}");
    assert_eq!(
        world.read("told").expect("it was told"),
        "open\nparquet+/mnt/a?since=1h\n--output=-\n"
    );
}

/// Writes what proftop-fleet makes of a folder: each host is a machine, and each service a process.
fn recording_of_hosts(path: &Path) {
    let mut store = Store::new(Limits::default());
    store.begin(0);
    store.add_module(ModuleId(1), "api", "");
    let frame = |address| Frame {
        module: ModuleId(1),
        address,
        kind: FrameKind::User,
    };
    let (parse, send) = (frame(0x10), frame(0x20));
    for (id, host, service) in [
        (1, "db-01", "api"),
        (2, "db-01", "cache"),
        (3, "web-02", "api"),
    ] {
        store.add_process_of(Some(&host.into()), ProcessId(id), id, service);
    }
    for (id, frame, weight) in [
        (1, parse, 30),
        (1, send, 10),
        (2, send, 5),
        (3, send, 40),
        (3, parse, 2),
    ] {
        assert!(store.add_sample(NewSample {
            time_ns: 1_000_000_000,
            cpu: 0,
            process: ProcessId(id),
            tid: id,
            comm: "main",
            frames: &[frame],
            kernel_frames: 0,
            ending: Ending::Root,
            weight,
        }));
    }
    for (frame, name) in [(parse, "parse"), (send, "send")] {
        let place = store.find_frame(&frame).expect("it was sampled");
        store.set_name(place, NameState::Named(name.into()));
    }
    store.end(60_000_000_000);
    let mut bytes = Vec::new();
    pft::write(&store.view(), &mut bytes).expect("to memory");
    fs::write(path, bytes).expect("ours");
}

#[test]
fn hosts_of_a_fleet_are_told_apart() {
    let world = World::new("exec cat hosts.pft");
    recording_of_hosts(&world.directory.join("hosts.pft"));
    let mut dialog = Dialog::of(world.open(&["--plain", "--fresh", "parquet+/mnt/profiles"]));
    dialog.ask("unit samples");
    let processes = dialog.ask("processes");
    for process in ["api[1] on db-01", "cache[2] on db-01", "api[3] on web-02"] {
        assert!(processes.contains(process), "{process}: {processes}");
    }
    let machines = dialog.ask("machines");
    assert!(
        machines.contains("1  45 samples  db-01, 2 processes"),
        "{machines}"
    );
    assert!(
        machines.contains("2  42 samples  web-02, 1 process, most in send"),
        "{machines}"
    );
    // From a function to its hosts.
    dialog.ask("focus parse");
    let machines = dialog.ask("machines");
    assert!(
        machines.contains("1  30 samples  db-01, 1 process, most in parse"),
        "{machines}"
    );
    assert!(machines.contains("2  2 samples  web-02"), "{machines}");
    // And from there to one host: by the row, or by the filter.
    dialog.ask("scope 2");
    let top = dialog.ask("top");
    assert!(
        top.contains("2 samples self") && !top.contains("30 samples"),
        "{top}"
    );
    dialog.ask("back");
    dialog.ask("back");
    for (filter, samples) in [("host:web-02", 40), ("!host:web-02", 15), ("host~^web", 40)] {
        dialog.ask(&format!("filter {filter}"));
        let top = dialog.ask("top");
        assert!(
            top.contains(&format!("{samples} samples self")),
            "{filter}: {top}"
        );
        let machines = dialog.ask("machines");
        assert!(machines.contains("is of one machine"), "{machines}");
    }
    dialog.finish();
}

#[test]
fn whatever_goes_wrong_is_one_sentence() {
    let newer = "head -c 8 demo.pft; printf '\\011\\000\\000\\000'; tail -c +13 demo.pft";
    for (body, status, sentence) in [
        (
            "echo 'proftop-fleet: Pyroscope at https://p: 401' >&2; exit 1",
            1,
            "proftop: Pyroscope at https://p: 401\n",
        ),
        (
            "echo 'proftop-fleet: q is a selector' >&2; exit 2",
            2,
            "proftop: q is a selector\n",
        ),
        (
            "printf \"error: unexpected argument '--x' found\\n\\nUsage: more\\n\" >&2; exit 2",
            2,
            "proftop-fleet does not take the options behind the --: unexpected argument '--x' found\n",
        ),
        (
            "printf 'proftop-fleet: a\\033[2J\\033]0;b\\007c\\n' >&2; exit 1",
            1,
            "proftop: a",
        ),
        ("exit 3", 1, "ended without a word: exit status: 3\n"),
        ("kill -KILL $$", 1, "ended without a word: signal: 9"),
        ("exit 0", 5, "what proftop-fleet has sent is empty\n"),
        (
            "printf 'something\\000else'",
            1,
            "it is not a profile that proftop can read\n",
        ),
        (
            newer,
            1,
            "version 9 of the format, this one reads up to 2\n",
        ),
        // What it has sent before does not count.
        (
            "echo 'a;b 7'; echo 'proftop-fleet: the answer is cut off' >&2; exit 1",
            1,
            "proftop: the answer is cut off\n",
        ),
        // The dialog has begun meanwhile.
        (
            "sleep 1; echo 'proftop-fleet: the store is away' >&2; exit 1",
            1,
            "proftop: the store is away\n",
        ),
        // It never stops sending.
        (
            "exec cat /dev/zero",
            1,
            "it is not a profile that proftop can read\n",
        ),
    ] {
        let world = World::new(body);
        let output = world.ask_top(&[ADDRESS]);
        assert_eq!(output.status.code(), Some(status), "{body}");
        let said = text(&output.stderr);
        assert!(said.contains(sentence), "{body}: {said}");
        assert!(said.starts_with("proftop: "), "{body}: {said}");
        assert!(!said.contains('\u{1b}') && !said.contains('\u{7}'));
        let is_of_other_version = said.contains("install both in the same version");
        let is_unknown = sentence.contains("not a profile") || sentence.contains("version 9");
        assert_eq!(is_of_other_version, is_unknown, "{body}: {said}");
        assert_eq!(said.lines().count(), 1 + usize::from(is_unknown), "{said}");
    }
}

#[test]
fn a_wrong_line_starts_nothing() {
    let world = World::new("echo it runs >told");
    for words in [
        &[ADDRESS, "demo.pft"][..],
        &[ADDRESS, ADDRESS],
        &["demo.pft", "--", "--token-file", "x"],
    ] {
        let output = world.ask_top(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
    }
    // Without a terminal there is no screen.
    let output = run(world.open(&[ADDRESS]).stdin(Stdio::null()));
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(world.read("told"), None);
    // A file of such a name.
    fs::rename(
        world.directory.join("demo.pft"),
        world.directory.join("parquet+demo.pft"),
    )
    .expect("ours");
    let output = world.ask_top(&["./parquet+demo.pft"]);
    assert!(output.status.success());
}

#[test]
fn a_failure_closes_a_screen_that_is_open() {
    let world = World::new("sleep 1; echo 'proftop-fleet: the store is away' >&2; exit 1");
    let mut pty = Pty::open(80, 24);
    let mut command = world.open(&["--fresh", ADDRESS]);
    command.env("TERM", "xterm");
    pty.attach(&mut command);
    command.stderr(Stdio::piped());
    let mut proftop = Process::start(&mut command);
    pty.read_until(b"READING");
    // The end of the alternate screen.
    pty.read_until(b"\x1b[?1049l");
    assert_eq!(proftop.wait().expect("ours").code(), Some(1));
    let mut said = String::new();
    let mut errors = proftop.stderr.take().expect("a pipe");
    errors.read_to_string(&mut said).expect("text");
    assert_eq!(said, "proftop: the store is away\n");
}

#[test]
fn without_a_question_it_is_read_to_its_end() {
    for (body, status, said) in [
        ("sleep 1; cat demo.pft", 0, "samples in pyroscope+"),
        (
            "sleep 1; echo 'proftop-fleet: away' >&2; exit 1",
            1,
            "proftop: away\n",
        ),
    ] {
        let world = World::new(body);
        let mut command = world.open(&["--plain", "--fresh", ADDRESS]);
        let output = run(command.stdin(Stdio::null()));
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(all.contains(said) && !all.contains("proftop: 0 "), "{all}");
    }
}

#[test]
fn a_failure_after_some_samples_is_told_when_the_dialog_ends() {
    // What comes late is shown at once.
    let world =
        World::new("sleep 1; cat demo.pft; sleep 1; echo 'proftop-fleet: away' >&2; exit 1");
    for question in ["", "status\n"] {
        let mut command = world.open(&["--plain", "--fresh", ADDRESS]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(question.as_bytes()).expect("it reads");
        drop(input);
        let output = child.wait_with_output().expect("ours");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let (said, why) = (text(&output.stdout), text(&output.stderr));
        assert!(said.contains("samples in pyroscope+"), "{said}");
        assert!(said.contains(", as far as it was read"), "{said}");
        assert_eq!(why, "proftop: away\n");
    }
}

#[test]
fn leaving_waits_for_nothing() {
    let world = World::new(HANGS);
    let mut dialog = Dialog::of(world.open(&["--plain", "--fresh", ADDRESS]));
    let help = dialog.ask("help top");
    assert!(help.contains("the functions that take most"), "{help}");
    dialog.say("quit");
    dialog.finish();
}

/// A program that never answers, and starts another one.
const HANGS: &str = "echo $$ >pid.part; mv pid.part pid; sleep 3600 & wait";

#[test]
fn one_that_hangs_ends_when_the_user_leaves() {
    let world = World::new(HANGS);
    for leave in [&b"q"[..], b"\x03"] {
        let mut pty = Pty::open(80, 24);
        let mut command = world.open(&["--fresh", ADDRESS]);
        command.env("TERM", "xterm");
        pty.attach(&mut command);
        let mut proftop = Process::start(&mut command);
        let pid = world.pid();
        pty.read_until(b"READING");
        pty.press(leave);
        let status = proftop.wait().expect("ours");
        assert!(status.success(), "{status}");
        // What it has started is in its group.
        wait_until("it ends", || {
            rustix::process::test_kill_process_group(pid).is_err()
        });
        fs::remove_file(world.directory.join("pid")).expect("ours");
    }
}

#[test]
fn one_that_hangs_ends_when_proftop_is_killed() {
    let world = World::new("echo $$ >pid.part; mv pid.part pid; exec sleep 3600");
    let mut command = world.open(&["--plain", "--fresh", ADDRESS]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut proftop = Process::start(&mut command);
    let pid = world.pid();
    proftop.signal(rustix::process::Signal::KILL);
    proftop.wait().expect("ours");
    wait_until("it ends", || test_kill_process(pid).is_err());
}

#[test]
fn under_sudo_it_is_the_users() {
    if !is_root_or_skip("only root can be called by another user") {
        return;
    }
    // No account has this number.
    let uid = "4242424";
    let world = World::new("(id -u; id -g; id -G; echo $HOME) >told; cat demo.pft");
    fs::set_permissions(world.directory.path(), Permissions::from_mode(0o777)).expect("ours");
    let expected = format!("{uid}\n{uid}\n{uid}\n/nonexistent\n");
    for words in [
        &["open", "--plain", "--fresh", ADDRESS][..],
        &["fleet", "x"],
    ] {
        let mut command = Command::new(&world.program);
        command.args(words).current_dir(world.directory.path());
        command.env("PROFTOP_CONFIG", "/dev/null");
        command.env("SUDO_UID", uid).env("SUDO_GID", uid);
        let mut child = Process::start(command.stdin(Stdio::piped()).stdout(Stdio::null()));
        wait_until("it was told", || {
            world.read("told").is_some_and(|told| told == expected)
        });
        drop(child.stdin.take());
        child.wait().expect("ours");
        fs::remove_file(world.directory.join("told")).expect("ours");
    }
}
