//! Finds the program `proftop-fleet`. It is taken from no place that depends on where the user is:
//! somebody else may have put a program of this name into that folder.

use crate::failure::{Exit, Failure};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const PROGRAM: &str = "proftop-fleet";

/// Returns the absolute path of proftop-fleet: the one beside proftop, which was installed together
/// with it, in the same version, else the first one in the folders of `PATH`. Relative folders are
/// left out.
pub fn find() -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut in_path = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(PROGRAM));
    // What is beside proftop is taken even if it cannot be run: then the user has to know.
    let beside = beside().filter(|program| program.is_file());
    beside
        .or_else(|| in_path.find(|program| is_executable(program)))
        .ok_or_else(missing)
}

/// Returns the path that proftop-fleet has beside this program. None if our own path is not known.
fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.join(PROGRAM))
}

fn is_executable(program: &Path) -> bool {
    let found = program.metadata();
    found.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

fn missing() -> Failure {
    let message = "proftop-fleet is neither beside proftop nor in a folder of PATH";
    Failure::new(Exit::CommandNotFound, message)
        .detail("it is a program of its own, with an SQL engine that proftop does not need")
        .remedy(
            "cargo build --release -p proftop-fleet",
            "in a copy of the repository; then copy target/release/proftop-fleet beside proftop",
        )
}
