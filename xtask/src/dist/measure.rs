//! Checks the limits of the program: its size, and that it needs no libraries. Prints how long it
//! takes to start.

use anyhow::{Result, bail};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The maximum size of the program, in bytes.
const BYTES_MAX: u64 = 12_000_000;
/// The intended maximum of the time to start.
const START_MAX: Duration = Duration::from_millis(30);
/// How often it is started; the median is printed.
const STARTS: usize = 21;

/// Checks the program. Returns an error if it is too large or needs a library of the machine.
pub fn check(program: &Path) -> Result<()> {
    let bytes = fs::read(program)?;
    if let Some(loader) = loader(&bytes)? {
        bail!("the program is not static: it wants {loader}");
    }
    let start = start(program)?;
    let is_slow = if start > START_MAX {
        ": slower than the aim"
    } else {
        ""
    };
    println!("no library of the machine is needed");
    println!("starts in {start:.1?} (median of {STARTS}; the aim is {START_MAX:?}){is_slow}");
    println!("{} bytes (the aim is {BYTES_MAX})", bytes.len());
    if bytes.len() as u64 > BYTES_MAX {
        bail!("the program is too large");
    }
    Ok(())
}

/// Returns the loader that the program requires. Returns None if it is static.
fn loader(bytes: &[u8]) -> Result<Option<String>> {
    let file = ElfFile64::<Endianness>::parse(bytes)?;
    let endian = file.endian();
    let segments = file.elf_header().program_headers(endian, bytes)?;
    let wants = segments
        .iter()
        .find(|segment| segment.p_type(endian) == elf::PT_INTERP);
    Ok(match wants {
        None => None,
        Some(segment) => {
            let name = segment.data(endian, bytes).unwrap_or_default();
            Some(
                String::from_utf8_lossy(name)
                    .trim_end_matches('\0')
                    .to_owned(),
            )
        }
    })
}

/// Returns how long the program takes to start, do almost nothing, and end.
fn start(program: &Path) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let status = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .status()?;
        times.push(begun.elapsed());
        if !status.success() {
            bail!("proftop --version ended with {status}");
        }
    }
    times.sort();
    Ok(times[STARTS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_wants_a_loader_is_told() {
        // This test itself is linked dynamically.
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let loader = loader(&own).unwrap().expect("it is not static");
        assert!(loader.contains("ld-"), "{loader}");
    }
}
