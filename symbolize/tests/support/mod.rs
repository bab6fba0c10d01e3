//! Programs from which symbols are read: compiled by the tests, or those of the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a fixture; `None`, with a message, if that is not possible.
pub fn compile(directory: &Path, source: &str, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let program = directory.join(name);
    let flags = ["-O1"].iter().chain(flags);
    test_support::compile(&fixtures.join(source), &program, flags)?;
    Some(program)
}

/// Removes the section headers from an ELF file.
pub fn forget_sections(bytes: &mut [u8]) {
    let is_wide = bytes[4] == 2;
    // e_shoff; e_shnum and e_shstrndx.
    let (offset, counts) = if is_wide {
        (40..48, 60..64)
    } else {
        (32..36, 48..52)
    };
    bytes[offset].fill(0);
    bytes[counts].fill(0);
}

/// Flags of the compiler for each class of ELF files that this machine runs.
pub const CLASSES: [&[&str]; 2] = [&[], &["-m32"]];

/// A function as `nm` lists it.
#[derive(Debug)]
pub struct Listed {
    pub addr: u64,
    pub size: u64,
    pub name: String,
    pub kind: char,
}

/// Returns the functions that `nm -S --defined-only` lists; `None`, with a message, without nm.
pub fn nm(program: &Path, flags: &[&str]) -> Option<Vec<Listed>> {
    let mut nm = Command::new("nm");
    nm.args(["-S", "--defined-only"]).args(flags).arg(program);
    let output = test_support::run_tool(&mut nm)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    let listed = text.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let first = fields.next()?;
        let addr = number(first)?;
        let second = fields.next()?;
        let (size, kind) = match number(second).filter(|_| second.len() == first.len()) {
            Some(size) => (size, fields.next()?),
            None => (0, second),
        };
        Some(Listed {
            addr,
            size,
            kind: kind.chars().next()?,
            name: fields.next()?.to_string(),
        })
    });
    Some(listed.filter(|l| "tTwWiu".contains(l.kind)).collect())
}
