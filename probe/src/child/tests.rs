use super::*;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn hold(argv: &[&str], user: Option<&InvokingUser>) -> HeldCommand {
    try_hold(argv, user).unwrap()
}

fn try_hold(argv: &[&str], user: Option<&InvokingUser>) -> Result<HeldCommand, StartError> {
    let args = argv[1..].iter().map(OsString::from).collect();
    hold_command(argv[0].into(), args, user, Streams::Captured)
}

/// Runs a command to its end; returns its standard output and exit code.
fn run(argv: &[&str], user: Option<&InvokingUser>) -> (String, u8) {
    let mut running = hold(argv, user).release().unwrap();
    let (mut out, _err) = running.take_output().unwrap();
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    (text, exit_code(running.wait().unwrap()))
}

fn start_error(argv: &[&str]) -> StartError {
    let started = try_hold(argv, None).and_then(HeldCommand::release);
    started.unwrap_err()
}

fn nobody() -> Option<InvokingUser> {
    if !test_support::is_root_or_skip("needs root") {
        return None;
    }
    Some(InvokingUser {
        uid: 65534,
        gid: 65534,
        groups: vec![65534, 100],
        name: "nobody".into(),
        home: PathBuf::from("/nonexistent"),
    })
}

fn state_of(pid: u32) -> Option<char> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("State:"))?;
    line.trim().chars().next()
}

#[test]
fn nothing_runs_before_release() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("ran");
    let held = hold(&["touch", mark.to_str().unwrap()], None);
    let comm = std::fs::read_to_string(format!("/proc/{}/comm", held.pid())).unwrap();
    assert_ne!(comm.trim(), "touch", "it is still a copy of us");
    assert!(!mark.exists());

    let pid = held.pid();
    let mut running = held.release().unwrap();
    assert_eq!(running.pid(), pid, "exec keeps the pid");
    assert_eq!(exit_code(running.wait().unwrap()), 0);
    assert!(mark.exists());
}

#[test]
fn a_dropped_command_never_ran_and_is_no_zombie() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("ran");
    let held = hold(&["touch", mark.to_str().unwrap()], None);
    let pid = held.pid();
    drop(held);
    assert_eq!(state_of(pid), None);
    assert!(!mark.exists());
}

#[test]
fn exit_status_and_signal_become_codes() {
    assert_eq!(run(&["sh", "-c", "exit 7"], None).1, 7);
    assert_eq!(run(&["sh", "-c", "kill -SEGV $$"], None).1, 128 + 11);
    assert_eq!(
        run(&["sh", "-c", "echo hello"], None),
        ("hello\n".into(), 0)
    );
}

#[test]
fn missing_is_127_and_not_executable_is_126() {
    let missing = start_error(&["/nonexistent/program"]);
    assert_eq!(missing.exit_code(), 127);
    assert_eq!(
        missing.to_string(),
        "command not found: /nonexistent/program"
    );
    // The exit code is not always 127: with a directory in PATH that we may not search it is 126.
    let unknown = "proftop-no-such-command";
    let env = Command::new("env").arg(unknown).output().unwrap();
    assert_eq!(start_error(&[unknown]).exit_code(), exit_code(env.status));

    let directory = start_error(&["/"]);
    assert_eq!(directory.exit_code(), 126);
    assert!(
        directory.to_string().starts_with("cannot run /: "),
        "{directory}"
    );
}

#[test]
fn a_file_without_the_x_bit_is_126() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let plain = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(file.path(), plain).unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(start_error(&[path]).exit_code(), 126);
}

#[test]
fn runs_as_the_invoking_user() {
    let Some(nobody) = nobody() else { return };
    let script = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME; grep CapEff /proc/self/status";
    let (text, code) = run(&["sh", "-c", script], Some(&nobody));
    assert_eq!(code, 0);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "65534",
            "65534",
            "65534 100",
            "/nonexistent nobody nobody",
            "CapEff:\t0000000000000000"
        ]
    );
}

#[test]
fn files_only_root_may_run_are_refused_to_the_user() {
    let Some(nobody) = nobody() else { return };
    let dir = tempfile::tempdir().unwrap();
    let tool = dir.path().join("tool");
    std::fs::copy("/bin/true", &tool).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o700)).unwrap();
    let error = hold(&[tool.to_str().unwrap()], Some(&nobody))
        .release()
        .unwrap_err();
    assert_eq!(error.exit_code(), 126);
}

#[test]
fn no_descriptor_of_ours_reaches_the_command() {
    // The process that started the tests may have left some descriptors open: any child inherits
    // those.
    let plain = Command::new("ls").arg("/proc/self/fd").output().unwrap();
    let (held, _) = run(&["ls", "/proc/self/fd"], None);
    assert_eq!(held, String::from_utf8(plain.stdout).unwrap());
}

#[test]
fn a_captured_command_has_no_terminal_and_ends_as_a_group() {
    let (text, _) = run(
        &["sh", "-c", "(exec </dev/tty) 2>/dev/null || echo none"],
        None,
    );
    assert_eq!(text, "none\n");

    let mut running = hold(&["sh", "-c", "sleep 600 & echo $!; wait"], None)
        .release()
        .unwrap();
    let (mut out, _err) = running.take_output().unwrap();
    let mut digits = Vec::new();
    let mut byte = [0];
    while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        digits.push(byte[0]);
    }
    running.terminate().unwrap();
    assert_eq!(exit_code(running.wait().unwrap()), 128 + 15);
    // The pipe ends when the last writer ends: the sleeping process is gone as well.
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    running.terminate().unwrap();
}
