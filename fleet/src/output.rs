//! Prints to standard output, which may be closed early (`| head` is not an error), and writes files that a user
//! has named.

use crate::failure::{Failure, shown};
use crate::interrupt;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::path::Path;

/// Prints a text.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// Returns an error if a file cannot be written because there is no folder for it, or because something else is
/// there, which only `--force` replaces.
pub fn check_place(path: &Path, is_forced: bool) -> Result<(), Failure> {
    if !path.parent().is_none_or(is_folder) {
        return Err(Failure::usage(format!(
            "cannot write {}: there is no such folder",
            shown(path)
        )));
    }
    if !is_forced && path.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!(
            "{} is there already: choose another name, or --force",
            shown(path)
        )));
    }
    Ok(())
}

/// Whether a path is an existing folder; the empty path is the current folder.
fn is_folder(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

/// Writes a file under a temporary name, and renames it when it is complete.
pub fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), String>,
) -> Result<(), Failure> {
    let failed = |why: String| Failure::failed(format!("cannot write {}: {why}", shown(path)));
    let mut hidden = OsString::from(".");
    hidden.push(path.file_name().unwrap_or_default());
    hidden.push(format!(".{}", std::process::id()));
    let part = path.with_file_name(hidden);
    let file = File::options()
        .write(true)
        .create_new(true)
        .open(&part)
        .map_err(|error| failed(error.to_string()))?;
    let mut file = BufWriter::new(file);
    let written = fill(&mut file)
        .and_then(|()| file.flush().map_err(|error| error.to_string()))
        .map_err(failed)
        .and_then(|()| interrupt::check())
        .and_then(|()| fs::rename(&part, path).map_err(|error| failed(error.to_string())));
    if written.is_err() {
        // An incomplete file is useless; if it cannot be removed, the first error is still the one
        // to report.
        let _ = fs::remove_file(&part);
    }
    written
}
