//! Opening a recording, whatever its format: told by its first bytes, not by
//! its name.

use crate::failure::Failure;
use profile::formats::{self, FormatError};
use profile::{Limits, View};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

/// What a file may take in memory: more than a million samples of the largest
/// stacks. What is older than fits is left out.
const MEMORY_MAX: usize = 2 << 30;

/// A recording, and what is missing of it in sentences.
pub struct Opened {
    pub view: View,
    pub notes: Vec<String>,
}

pub fn open(path: &Path) -> Result<Opened, Failure> {
    let name = match path.as_os_str() == "-" {
        true => "standard input".to_string(),
        false => symbolize::sanitize(path.to_string_lossy().as_bytes()).into_owned(),
    };
    let failed = |error: FormatError| Failure::failed(format!("cannot read {name}: {error}"));
    let input: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).map_err(|error| failed(error.into()))?),
    };
    let limits = Limits {
        keep: Duration::from_secs(u64::MAX / 4),
        memory_bytes: MEMORY_MAX,
    };
    let opened = formats::read(input, limits).map_err(failed)?;
    let (store, mut notes) = (opened.store, opened.notes);
    let stats = store.stats();
    if stats.refused_late + stats.refused_memory > 0 {
        let left_out = stats.refused_late + stats.refused_memory;
        notes.push(format!("{left_out} samples did not fit into memory"));
    }
    Ok(Opened {
        view: store.view(),
        notes,
    })
}
