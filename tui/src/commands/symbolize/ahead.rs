//! Makes tables ahead of time, with which addresses are answered without the files.

use super::modules;
use super::tables::SUFFIX;
use crate::commands::input;
use crate::failure::{Exit, Failure};
use crate::stderr;
use crate::user_files::UserFiles;
use std::path::Path;
use symbolize::{OpenError, Resolver};

/// Makes a table of each file, and prints a line about each. The exit status says whether any of
/// them failed.
pub fn build(directory: &Path, files: &[impl AsRef<Path>]) -> Result<Exit, Failure> {
    let made = UserFiles::current().make_folder(directory, 0o777);
    made.map_err(|error| {
        let directory = input::name(directory);
        Failure::failed(format!("cannot make the cache `{directory}`: {error}"))
    })?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut exit = Exit::Done;
    for file in files.iter().map(AsRef::as_ref) {
        let built = modules::open_file(file, None)
            .and_then(|resolver| build_one(directory, file, &resolver, threads));
        match built {
            Ok(line) => {
                super::super::print(&line)?;
            }
            Err(why) => {
                stderr::say(format_args!(
                    "cannot resolve `{}`: {why}",
                    input::name(file)
                ));
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}

/// Makes the table of one file. Returns the line to print.
fn build_one(
    directory: &Path,
    file: &Path,
    resolver: &Resolver,
    threads: usize,
) -> Result<String, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // Ids that are not build-ids have colons and slashes.
    let id: String = resolver.id().replace([':', '/'], "_");
    let name = format!("{name}.{id}.{SUFFIX}");
    let bytes = write(directory, &name, resolver, threads)?;
    let what = if resolver.has_lines() {
        "functions and lines"
    } else {
        "functions only: it has no debug information"
    };
    Ok(format!("{name}: {} KiB, {what}\n", bytes.div_ceil(1024)))
}

/// Writes a table and returns its size in bytes. The file gets its name when it is complete,
/// because other programs may read the directory meanwhile.
fn write(directory: &Path, name: &str, resolver: &Resolver, threads: usize) -> Result<u64, String> {
    let written = UserFiles::current()
        .write_with(&directory.join(name), |file| {
            resolver.write_table(threads, file)?;
            let metadata = file.metadata();
            metadata.map_err(|source| OpenError::Write { source })
        })
        .map_err(|refusal| format!("cannot write its table: {refusal}"))?;
    written
        .map(|metadata| metadata.len())
        .map_err(|error| error.to_string())
}
