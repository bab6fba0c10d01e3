//! Tables made ahead of time, to answer without the files they are of.

use super::modules;
use super::tables::SUFFIX;
use crate::failure::{Exit, Failure};
use std::fs::{self, File};
use std::path::Path;
use symbolize::{OpenError, Resolver};

/// Tells of each file what became of it; fails if one could not be resolved.
pub fn build(directory: &Path, files: &[impl AsRef<Path>]) -> Result<Exit, Failure> {
    fs::create_dir_all(directory).map_err(|error| {
        let directory = directory.display();
        Failure::failed(format!("cannot make the cache `{directory}`: {error}"))
    })?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut exit = Exit::Done;
    for file in files.iter().map(AsRef::as_ref) {
        let built = modules::open_file(file)
            .and_then(|resolver| build_one(directory, file, &resolver, threads));
        match built {
            Ok(line) => {
                super::super::print(&line)?;
            }
            Err(why) => {
                eprintln!("proftop: cannot resolve `{}`: {why}", file.display());
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}

fn build_one(
    directory: &Path,
    file: &Path,
    resolver: &Resolver,
    threads: usize,
) -> Result<String, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // Ids of other kinds have colons and slashes.
    let id: String = resolver.id().replace([':', '/'], "_");
    let name = format!("{name}.{id}.{SUFFIX}");
    let bytes = write(directory, &name, resolver, threads).map_err(|error| error.to_string())?;
    let what = match resolver.has_lines() {
        true => "functions and lines",
        false => "functions only: it has no debug information",
    };
    Ok(format!("{name}: {} KiB, {what}\n", bytes.div_ceil(1024)))
}

/// A whole file, or none: another may read while this one writes. How long it is.
fn write(
    directory: &Path,
    name: &str,
    resolver: &Resolver,
    threads: usize,
) -> Result<u64, OpenError> {
    let unfinished = directory.join(format!(".unfinished-{}", std::process::id()));
    let failed = |source| OpenError::Write { source };
    let write = || {
        let mut file = File::create(&unfinished).map_err(failed)?;
        resolver.write_table(threads, &mut file)?;
        fs::rename(&unfinished, directory.join(name)).map_err(failed)?;
        Ok(file.metadata().map_err(failed)?.len())
    };
    let written = write();
    if written.is_err() {
        _ = fs::remove_file(&unfinished);
    }
    written
}
