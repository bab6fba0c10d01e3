//! Text with addresses inside: each is answered in place, behind it, and the
//! rest stays as it is.
//!
//! | found | is |
//! |---|---|
//! | `FILE+0x1234`, `FILE(+0x1234)` | an address in that file as the linker wrote it: sanitizers, backtrace_symbols, systemd |
//! | the same at the end of a line of `perf script -F +dsoff` | an offset in that file |
//! | `0x55d2c0a1b2c3`, or 12 digits and more without `0x` | an address in the process or file of the command line, if there is code |

use super::format::{self, Style};
use super::modules::Modules;
use super::{Place, SymbolFormat};
use regex::bytes::{Captures, Regex};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::LazyLock;
use symbolize::resolver::Resolved;
use symbolize::{FileOffset, LinkAddr};

/// A file and an address in it, or an address.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?-u)(?P<file>[^\s()\[\]]+)\s?(?:\(\+|\+\s?)0x(?P<offset>[0-9a-fA-F]{1,16})\b\)?|\b0x(?P<marked>[0-9a-fA-F]{3,16})\b|\b(?P<bare>[0-9a-fA-F]{12,16})\b",
    )
    .expect("a constant")
});

/// `    7f1c2a3b name+0x10 (/lib/libc.so.6+0x123)`: how perf prints a frame.
static PERF_FRAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?-u)^\s+[0-9a-f]+ .*\(/.*\)$").expect("a constant"));

/// Answers the addresses of one line.
pub fn line(
    line: &[u8],
    place: &Place,
    modules: &Modules,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let is_perf = PERF_FRAME.is_match(line);
    let mut written = 0;
    for found in ADDRESS.captures_iter(line) {
        let whole = found.get(0).expect("it was found");
        let Some(resolved) = resolve(&found, is_perf, place, modules) else {
            continue;
        };
        out.write_all(&line[written..whole.end()])?;
        written = whole.end();
        let style = Style {
            format: SymbolFormat::Text,
            ..style
        };
        format::in_place(&resolved, style, out)?;
    }
    out.write_all(&line[written..])?;
    out.write_all(b"\n")
}

fn resolve(
    found: &Captures<'_>,
    is_perf: bool,
    place: &Place,
    modules: &Modules,
) -> Option<Resolved> {
    let group = |name| Some(std::str::from_utf8(found.name(name)?.as_bytes()).ok());
    let number = |digits: Option<&str>| u64::from_str_radix(digits?, 16).ok();
    let resolved = if let Some(file) = found.name("file") {
        let offset = number(group("offset")?)?;
        let module = modules.find(Path::new(OsStr::from_bytes(file.as_bytes())))?;
        let addr = match is_perf {
            true => module.segments().to_link(FileOffset(offset))?,
            false => LinkAddr(offset),
        };
        module.resolve(addr)
    } else {
        let digits = group("marked").or_else(|| group("bare"))?;
        let addr = number(digits).filter(|addr| place.has_code_at(*addr))?;
        place.resolve(addr, modules)?
    };
    let is_known = resolved.symbol.is_ok() || !resolved.frames.is_empty();
    is_known.then_some(resolved)
}
