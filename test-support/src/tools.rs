//! Runs programs of the machine that a test needs, and that may be missing.

use crate::skip;
use std::path::Path;
use std::process::{Command, Output};

/// Runs a program of the machine to its end. `None` if it is missing or fails; then skips the test
/// with its output as the reason.
#[track_caller]
pub fn run_tool(command: &mut Command) -> Option<Output> {
    match run(command) {
        Ok(output) => Some(output),
        Err(why) => {
            skip(why);
            None
        }
    }
}

fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output();
    let name = command.get_program().display();
    match output {
        Ok(output) if output.status.success() => Ok(output),
        Ok(output) => {
            let printed = String::from_utf8_lossy(&output.stderr);
            Err(format!("{name}: {}\n{printed}", output.status))
        }
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// Compiles a source file into `program`: C with `cc`, C++ (`.cpp`) with `c++`, Rust (`.rs`) with
/// the compiler that Cargo uses. `None` if that is not possible here; then skips the test with the
/// reason.
///
/// Flags come after the source, where those of the linker belong.
#[track_caller]
pub fn compile<S: AsRef<std::ffi::OsStr>>(
    source: &Path,
    program: &Path,
    flags: impl IntoIterator<Item = S>,
) -> Option<()> {
    let kind = source.extension().and_then(|kind| kind.to_str());
    let mut compiler = match kind {
        Some("rs") => Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into())),
        Some("cpp") => Command::new("c++"),
        _ => Command::new("cc"),
    };
    // The variable may be set for measuring the tests; the compiler would then mangle
    // names differently from a released one.
    compiler.env_remove("RUSTC_BOOTSTRAP");
    compiler.arg("-o").arg(program).arg(source).args(flags);
    run_tool(&mut compiler).map(|_| ())
}

/// Copies a program that is to be run, with its permissions.
///
/// `cp` writes the copy instead of this process: a child that another test forks meanwhile would
/// hold the copy open for writing until its exec, and the kernel does not run a file that is open
/// for writing ("text file busy").
#[track_caller]
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let mut copy = Command::new("cp");
    copy.arg("-p").arg(from.as_ref()).arg(to.as_ref());
    if let Err(why) = run(&mut copy) {
        panic!("{why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn what_is_missing_or_fails_says_why() {
        let missing = run(&mut Command::new("/nonexistent/tool")).unwrap_err();
        assert!(
            missing.starts_with("/nonexistent/tool: No such"),
            "{missing}"
        );
        let failed = run(Command::new("sh").args(["-c", "echo because >&2; exit 3"]));
        assert_eq!(failed.unwrap_err(), "sh: exit status: 3\nbecause\n");
        let output = run(Command::new("sh").args(["-c", "echo hello"]));
        assert_eq!(output.unwrap().stdout, b"hello\n");
    }

    /// Other threads start programs all the time meanwhile.
    #[test]
    fn a_copy_can_be_run_at_once() {
        let scratch = Scratch::new();
        let others = std::thread::spawn(|| {
            for _ in 0..100 {
                Command::new("true").status().unwrap();
            }
        });
        for number in 0..50 {
            let program = scratch.path().join(number.to_string());
            copy_program("/bin/true", &program);
            assert!(Command::new(&program).status().unwrap().success());
        }
        others.join().unwrap();
    }

    #[test]
    fn programs_are_compiled_and_run() {
        let scratch = Scratch::new();
        for (name, source) in [
            ("a.c", "int main(void) { return 7; }"),
            ("a.rs", "fn main() { std::process::exit(7) }"),
        ] {
            let source = scratch.write(name, source);
            let program = source.with_extension("program");
            if compile(&source, &program, ["-g"]).is_some() {
                let status = Command::new(&program).status().unwrap();
                assert_eq!(status.code(), Some(7), "{name}");
            }
        }
    }
}
