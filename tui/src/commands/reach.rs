//! The target of a run with a command, as far as probes have to know it.

use super::sampler;
use crate::cli::Config;
use crate::target::Target;
use engine::probes::Reach;
use probe::child;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Returns the processes and files in which functions of this target are probed.
pub fn of(config: &Config, target: &Target) -> Reach {
    let program = config.command.as_ref();
    Reach {
        program: program.and_then(|command| find_program(&command.program.to_string_lossy())),
        ..sampler::reach(target)
    }
}

/// Finds a program as a shell does, by `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return fs::canonicalize(name).ok();
    }
    let candidates = child::candidates(name.as_ref());
    let is_executable = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    fs::canonicalize(candidates.into_iter().find(is_executable)?).ok()
}
