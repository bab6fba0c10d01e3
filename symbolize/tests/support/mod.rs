//! Programs to read symbols from: built on the spot, or those of the machine.
#![allow(
    dead_code,
    reason = "each test binary uses its own part of this module"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Says that a test could not run here. Not by `eprintln`: the test harness
/// would keep it to itself.
pub fn skipped(why: &str) {
    use std::io::Write as _;
    _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Compiles a fixture, or says why not.
pub fn compile(directory: &Path, source: &str, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let compiler = if source.ends_with(".cpp") {
        "c++"
    } else {
        "cc"
    };
    let program = directory.join(name);
    let output = Command::new(compiler)
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(fixtures.join(source))
        .args(flags)
        .output();
    match output {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr);
            {
                use std::io::Write as _;
                // Not `eprintln`: the test harness would keep it to itself.
                _ = writeln!(
                    std::io::stderr(),
                    "skipped: {compiler} {flags:?} does not work here: {message}"
                );
            }
            None
        }
        Err(error) => {
            {
                use std::io::Write as _;
                // Not `eprintln`: the test harness would keep it to itself.
                _ = writeln!(
                    std::io::stderr(),
                    "skipped: no C compiler: {compiler}: {error}"
                );
            }
            None
        }
    }
}

/// Makes of an ELF file one without section headers.
pub fn forget_sections(bytes: &mut [u8]) {
    let is_wide = bytes[4] == 2;
    // e_shoff; e_shnum and e_shstrndx.
    let (offset, counts) = match is_wide {
        true => (40..48, 60..64),
        false => (32..36, 48..52),
    };
    bytes[offset].fill(0);
    bytes[counts].fill(0);
}

/// Flags that compile for each class of ELF files of this machine.
pub const CLASSES: [&[&str]; 2] = [&[], &["-m32"]];

/// A function as `nm` lists it.
#[derive(Debug)]
pub struct Listed {
    pub addr: u64,
    pub size: u64,
    pub name: String,
    pub kind: char,
}

/// `nm -S --defined-only`, the functions alone; `None`, loudly, without nm.
pub fn nm(program: &Path, flags: &[&str]) -> Option<Vec<Listed>> {
    let output = Command::new("nm")
        .args(["-S", "--defined-only"])
        .args(flags)
        .arg(program)
        .output();
    let Ok(output) = output else {
        {
            use std::io::Write as _;
            // Not `eprintln`: the test harness would keep it to itself.
            _ = writeln!(std::io::stderr(), "skipped: no nm");
        }
        return None;
    };
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

/// Numbers that look random and are the same each time (xorshift64*).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }
}
