//! Compressed symbol tables inside of programs (`.gnu_debugdata`): a process of its own unpacks
//! them, and may be killed by that.

use crate::common;

use common::memory_group::MemoryGroup;
use common::{proftop, run, text};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use test_support::{compile, is_root_or_skip, run_tool};

/// Makes a stripped program with such a table.
fn program(folder: &Path, name: &str, packed: &Path) -> Option<PathBuf> {
    let (source, program) = (folder.join("spin.c"), folder.join(name));
    fs::write(
        &source,
        "void hidden(void) {} int main(void) { hidden(); return 0; }",
    )
    .unwrap();
    compile(&source, &program, [""; 0])?;
    run_tool(Command::new("strip").arg("-s").arg(&program))?;
    let section = format!("--add-section=.gnu_debugdata={}", packed.display());
    run_tool(Command::new("objcopy").arg(section).arg(&program))?;
    Some(program)
}

/// Unpacks a file with `xz`.
fn unpacked(packed: &[u8], to: &Path) -> Option<()> {
    let from = to.with_extension("xz.xz");
    fs::write(&from, packed).unwrap();
    let unpacked = run_tool(Command::new("xz").arg("-dc").arg(from))?;
    fs::write(to, unpacked.stdout).unwrap();
    Some(())
}

#[test]
fn names_come_out_of_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = path("named.c");
    fs::write(
        &source,
        "void hidden(void) {} int main(void) { hidden(); return 0; }",
    )
    .unwrap();
    let made = compile(&source, &path("named"), [""; 0])
        .and_then(|()| run_tool(Command::new("xz").arg("-k").arg(path("named"))));
    let Some(program) = made.and_then(|_| program(folder.path(), "program", &path("named.xz")))
    else {
        return;
    };
    let Some(listed) = run_tool(Command::new("nm").arg(path("named"))) else {
        return;
    };
    let listed = text(&listed.stdout);
    let hidden = listed.lines().find(|line| line.ends_with(" hidden"));
    let address = hidden
        .and_then(|line| line.split(' ').next())
        .expect("nm lists it");
    let mut command = proftop(&["symbolize", program.to_str().unwrap()]);
    let output = run(command.arg(format!("0x{address}")));
    assert!(
        text(&output.stdout).contains("hidden"),
        "{}",
        text(&output.stdout)
    );
}

/// 468,672 bytes that unpack to 3 GiB. Once, a proftop that looked at them was killed.
#[test]
fn three_gigabytes_in_a_group_of_128_mb_are_survived() {
    if !is_root_or_skip("control groups are made by root") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("bomb");
    let bomb = include_bytes!("programs/three_gigabytes.xz.xz");
    let made = unpacked(bomb, &packed);
    let Some(program) = made.and_then(|()| program(folder.path(), "bombed", &packed)) else {
        return;
    };
    let Some(memory) = MemoryGroup::of(128 << 20) else {
        return;
    };
    let mut command = proftop(&["symbolize", program.to_str().unwrap(), "0x1139"]);
    memory.holds(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut running = test_support::Process::start(&mut command);
    let mut said = String::new();
    let output = running.stdout.as_mut().expect("a pipe");
    output.read_to_string(&mut said).expect("text");
    let status = running.wait().expect("ours");
    assert!(status.code().is_some(), "{status}");
    assert!(said.contains("stripped"), "{said}");
}
