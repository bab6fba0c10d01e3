//! `proftop fleet` runs another program, or says how to get it.

use crate::common;

use common::{PROFTOP, run, text};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use test_support::Scratch;

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
    let script = format!("#!/bin/sh\necho {says} \"$#\" \"$@\"\nexit 7\n");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
    std::fs::write(path, script).expect("ours");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("ours");
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
