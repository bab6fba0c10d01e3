//! The file that is read: its name, its bytes, and what it may take in memory.

use crate::failure::{Exit, Failure};
use profile::Limits;
use profile::formats::FormatError;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

/// How many bytes of memory a file may take: enough for more than a million samples with
/// the deepest stacks. If there are more, the oldest are left out.
const MEMORY_MAX: usize = 2 << 30;

/// Opens a recording; `-` is standard input.
pub fn input(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if is_stdin(path) {
        return Ok(Box::new(io::stdin()));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Returns an error if there is nothing at the path, without opening it: what is there may
/// be a pipe, whose writer would see that a reader came and went.
pub fn check_is_there(path: &Path) -> Result<(), Failure> {
    if is_stdin(path) {
        return Ok(());
    }
    let found = std::fs::metadata(path);
    found.map(drop).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot read {}: {error}", name(path)))
}

/// Returns how a run ends that cannot read the file of this name.
pub fn unread(name: &str, error: &FormatError) -> Failure {
    match error {
        FormatError::Empty => Failure::new(Exit::NoSamples, format!("{name} is empty")),
        FormatError::Io(error) if error.kind() == io::ErrorKind::IsADirectory => {
            Failure::failed(format!("cannot read {name}: it is a folder"))
        }
        error => Failure::failed(format!("cannot read {name}: {error}")),
    }
}

/// Returns the limits for samples that are read from a file: no limit of time, only one of
/// memory.
pub fn limits() -> Limits {
    Limits {
        keep: Duration::from_secs(u64::MAX / 4),
        memory_bytes: MEMORY_MAX,
    }
}

/// Whether the path is `-`, which stands for standard input or output.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the path for a message, without what a terminal would act on.
pub fn name(path: &Path) -> String {
    if is_stdin(path) {
        "standard input".to_string()
    } else {
        symbolize::sanitize(path.to_string_lossy().as_bytes()).into_owned()
    }
}
