//! The file that is read: its name, its bytes, and what it may take in memory.

use crate::failure::Failure;
use profile::Limits;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

/// What a file may take in memory: more than a million samples of the largest
/// stacks. What is older than fits is left out.
const MEMORY_MAX: usize = 2 << 30;

/// A recording's bytes.
pub fn input(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if is_stdin(path) {
        return Ok(Box::new(io::stdin()));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => {
            let name = name(path);
            Err(Failure::failed(format!("cannot read {name}: {error}")))
        }
    }
}

pub fn limits() -> Limits {
    Limits {
        keep: Duration::from_secs(u64::MAX / 4),
        memory_bytes: MEMORY_MAX,
    }
}

pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What a file is called in a sentence.
pub fn name(path: &Path) -> String {
    match is_stdin(path) {
        true => "standard input".to_string(),
        false => symbolize::sanitize(path.to_string_lossy().as_bytes()).into_owned(),
    }
}
