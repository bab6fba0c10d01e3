//! Opening the input file, and its limits in memory.

use crate::failure::{Exit, Failure};
use crate::user_files::UserFiles;
use probe::privilege::UserRights;
use profile::Limits;
use profile::formats::{FormatError, pft};
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::Path;
use std::time::Duration;

/// The maximum number of bytes in memory for the samples of a file: enough for more than a million
/// samples with the deepest stacks. Beyond it, the oldest are left out.
const MEMORY_MAX: usize = 2 << 30;

/// Opens a recording with the rights of the user who called proftop; `-` is standard input.
///
/// A file that the user may not read is opened with the rights of proftop, but only if it is a
/// .pft, such as one that the recorder has written as root. The lines of any other file could be
/// shown as if they were names.
pub fn input(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if is_stdin(path) {
        return Ok(Box::new(io::stdin()));
    }
    let opened = UserRights::current().run(|| File::open(path));
    let opened = match opened {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            own_recording(path).ok_or(error)
        }
        opened => opened,
    };
    match opened {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Opens a file with our own rights. None if it cannot be opened or is not a recording of proftop.
fn own_recording(path: &Path) -> Option<File> {
    let mut file = UserFiles::of(&UserRights::own())
        .open(path, u64::MAX)
        .ok()?;
    let mut start = [0; pft::MAGIC.len()];
    file.read_exact(&mut start).ok()?;
    file.rewind().ok()?;
    (start == pft::MAGIC).then_some(file)
}

/// Returns an error if nothing exists at the path, without opening it: it may be a pipe, whose
/// writer would see a reader come and go.
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

/// Returns the failure of a run that cannot read the file of this name.
pub fn unread(name: &str, error: &FormatError) -> Failure {
    match error {
        FormatError::Empty => Failure::new(Exit::NoSamples, format!("{name} is empty")),
        FormatError::Io(error) if error.kind() == io::ErrorKind::IsADirectory => {
            Failure::failed(format!("cannot read {name}: it is a folder"))
        }
        error => Failure::failed(format!("cannot read {name}: {error}")),
    }
}

/// Returns the limits for the samples of a file: one of memory, none of time.
pub fn limits() -> Limits {
    Limits {
        keep: Duration::from_secs(u64::MAX / 4),
        memory_bytes: MEMORY_MAX,
    }
}

/// Whether the path is `-`, which means standard input or output.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the path for a message, without characters that a terminal acts on.
pub fn name(path: &Path) -> String {
    if is_stdin(path) {
        "standard input".to_string()
    } else {
        symbolize::sanitize(path.to_string_lossy().as_bytes()).into_owned()
    }
}
