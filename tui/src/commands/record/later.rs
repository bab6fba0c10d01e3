//! Formats that can be written only when all samples are there.
//!
//! Until then samples are in a .pft without a name, beside the wanted file. So memory stays small
//! however long the recording is, and the file is the same as `export` would make it. If it cannot
//! be written (the disk may be full), the .pft gets a name, so that nothing is lost.

use crate::cli::RecordConfig;
use crate::commands::{export, open_file};
use crate::failure::Failure;
use crate::output::Output;
use crate::stderr;
use crate::user_files::{NewFile, Refusal, UserFiles};
use profile::formats::Format;
use profile::{Cancel, Limits, Query, Store};
use std::fs::File;
use std::io::Seek as _;
use std::path::{Path, PathBuf};

/// A recording in a format that is written at the end: the samples so far in a .pft without a name,
/// and the output for the wanted file.
pub struct Later {
    output: Output,
    format: Format,
    /// The path of the wanted file. Its extension says whether the file is compressed.
    path: PathBuf,
    /// The name that the .pft gets if the wanted file cannot be written.
    kept_path: PathBuf,
    kept: NewFile,
}

impl Later {
    /// Creates the .pft without a name, and also returns it, for writing samples.
    pub fn begin(record: &RecordConfig, output: Output) -> Result<(Self, File), Failure> {
        let format = record.format;
        export::say_what_is_lost(format, &Store::new(Limits::default()).view());
        let path = record.file.clone().unwrap_or_else(|| "-".into());
        let (kept_path, mut kept) = begin_kept(&path)?;
        let file = kept.file().try_clone().map_err(|error| unkept(&error))?;
        let later = Later {
            output,
            format,
            path,
            kept_path,
            kept,
        };
        Ok((later, file))
    }

    /// Converts the .pft and writes the wanted file. Returns its size in bytes.
    pub fn write(mut self) -> Result<u64, Failure> {
        let written = match self.encode() {
            Ok(bytes) => self.output.write(&bytes).map(|_| bytes.len() as u64),
            Err(failure) => Err(failure),
        };
        written.map_err(|failure| self.keep(failure))
    }

    fn encode(&mut self) -> Result<Vec<u8>, Failure> {
        let failed = |why: &dyn std::fmt::Display| Failure::failed(format!("cannot write: {why}"));
        let mut file = self
            .kept
            .file()
            .try_clone()
            .map_err(|error| failed(&error))?;
        file.rewind().map_err(|error| failed(&error))?;
        let opened = open_file::read_all(Box::new(file)).map_err(|error| failed(&error))?;
        for note in &opened.notes {
            stderr::say(note);
        }
        let selection = opened
            .view
            .select(&Query::default(), &Cancel::new())
            .expect("nobody cancels it");
        let mut bytes = Vec::new();
        let format = self.format;
        let written = format.write_as(&self.path, false, &selection, &mut bytes);
        written.map_err(|error| failed(&error))?;
        Ok(bytes)
    }

    /// Gives the .pft a name, so that its samples are not lost, and adds the name to the failure.
    pub fn keep(self, failure: Failure) -> Failure {
        let name = symbolize::sanitize(self.kept_path.to_string_lossy().as_bytes()).into_owned();
        match UserFiles::current().publish(self.kept) {
            Ok(()) => failure.detail(format!("the samples are in {name}")),
            Err(Refusal::Exists) => failure.detail(format!(
                "the samples cannot be kept either: {name} exists already"
            )),
            Err(refusal) => failure.detail(format!(
                "the samples cannot be kept in {name} either: {refusal}"
            )),
        }
    }
}

/// Creates a file without a name in the folder of the wanted file or, if that fails, in the folder
/// for temporary files. Also returns the name that it can get.
fn begin_kept(path: &Path) -> Result<(PathBuf, NewFile), Failure> {
    let files = UserFiles::current();
    let mut beside = path.as_os_str().to_owned();
    beside.push(".pft");
    let is_file = path.as_os_str() != "-";
    if let Some(new) = files.begin(Path::new(&beside)).ok().filter(|_| is_file) {
        return Ok((beside.into(), new));
    }
    let elsewhere = std::env::temp_dir().join(format!("proftop-{}.pft", std::process::id()));
    match files.begin(&elsewhere) {
        Ok(new) => Ok((elsewhere, new)),
        Err(refusal) => Err(unkept(&refusal)),
    }
}

fn unkept(why: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!(
        "there is no place for samples until the end: {why}; -o x.pft needs none"
    ))
}
