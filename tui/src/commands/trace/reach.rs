//! The target of a trace, as far as probes have to know it.

use super::Subject;
use crate::cli::Config;
use crate::commands::sampler;
use engine::probes::Reach;
use probe::child;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Returns the processes and files in which functions of this subject are probed.
pub fn of(config: &Config, subject: &Subject) -> Reach {
    let program = config.command.as_ref();
    Reach {
        program: program.and_then(|command| find_program(&command.program.to_string_lossy())),
        ..sampler::reach(&subject.target)
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
