//! The limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

/// The limit before it was raised. It is not set as long as the limit was not raised.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit of open files of this process as far as it may: a source has some for each CPU
/// (or for each thread and CPU), and the usual limit of 1,024 is too low for a large machine.
pub(crate) fn raise_limit() {
    let before = *BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit {
        current: before.maximum,
        ..before
    };
    // If this fails, a source that needs more files says that it cannot open them.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Makes a command begin with the limit that this process had: there are programs that try every
/// number up to it, or that cannot use numbers above 1,024.
pub(crate) fn give_back_limit(command: &mut Command) {
    let Some(before) = BEFORE.get().copied() else {
        return;
    };
    // SAFETY: the closure makes one system call, and allocates nothing.
    unsafe { command.pre_exec(move || Ok(setrlimit(Resource::Nofile, before)?)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_begins_with_the_limit_that_was_raised_here() {
        raise_limit();
        let before = BEFORE.get().expect("it was read");
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -Sn"]);
        give_back_limit(&mut shell);
        let told = String::from_utf8(shell.output().expect("a shell").stdout).expect("text");
        let limit = before
            .current
            .map_or("unlimited".to_owned(), |limit| limit.to_string());
        assert_eq!(told.trim(), limit);
    }
}
