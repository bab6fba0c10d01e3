//! The limit of open files.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files of this process as far as it may: a source has some for each CPU
/// (or for each thread and CPU), and the usual limit of 1,024 is too low for a large machine.
pub(crate) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, a source that needs more files says that it cannot open them.
    let _ = setrlimit(Resource::Nofile, limit);
}
