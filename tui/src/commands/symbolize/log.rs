//! Text that contains addresses: the answer to each is inserted behind it, and the rest is
//! unchanged.
//!
//! | text | meaning |
//! |---|---|
//! | `FILE+0x1234`, `FILE(+0x1234)`, `FILE + 0x1234` | a link-time address in that file: sanitizers, backtrace_symbols, systemd |
//! | `pc 00001234  FILE` | the same, on Android |
//! | the first at the end of a line of `perf script -F +dsoff` | an offset in that file |
//! | `name+0x10 (FILE)` there, as perf script prints without `+dsoff` | an address in the only function of that name |
//! | `0x55d2c0a1b2c3`, or at least 12 digits without `0x` | an address in the process or file of the command line, if there is code |
//! | `(BuildId: 0ab1c2d3e4)` behind one of the first two | the build-id of that file |
//! | `Module FILE with build-id 0ab1c2d3e4`, a line of `perf buildid-list` | the build-id of that file in all lines that follow |

use super::find::{self, Address, Addresses};
use super::format::Style;
use super::modules::Modules;
use super::tables::ID_DIGITS_MIN;
use super::{LookupScope, SymbolFormat, format};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use symbolize::resolver::Resolved;
use symbolize::{FileOffset, LinkAddr};

/// Answers the addresses of one line.
pub fn line(
    line: &[u8],
    place: &LookupScope,
    modules: &Modules,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    hear_build(line, modules);
    let perf = find::perf_frame(line);
    let is_perf = perf.is_some();
    // For all frames but the first of a stack, perf prints the return address. The call is the
    // instruction before it.
    let back = u64::from(modules.follows_frame(is_perf) && is_perf);
    if let Some(resolved) = perf.and_then(|frame| by_function(frame, back, modules)) {
        out.write_all(line)?;
        format::in_place(&resolved, in_text(style), out)?;
        return out.write_all(b"\n");
    }
    let mut written = 0;
    for found in Addresses::of(line) {
        let Some(resolved) = resolve(&found, is_perf.then_some(back), place, modules) else {
            continue;
        };
        out.write_all(&line[written..found.end])?;
        written = found.end;
        format::in_place(&resolved, in_text(style), out)?;
    }
    out.write_all(&line[written..])?;
    out.write_all(b"\n")
}

fn in_text(style: Style) -> Style {
    Style {
        format: SymbolFormat::Text,
        ..style
    }
}

/// Returns lines and inlined functions of a frame that perf has printed by name.
fn by_function(frame: &[u8], back: u64, modules: &Modules) -> Option<Resolved> {
    let found = find::perf_function(frame)?;
    let module = modules.find(path(found.file), None)?;
    let start = module.function(found.name)?;
    let offset = find::number(found.offset)?;
    let addr = start.0.checked_add(offset)?.checked_sub(back)?;
    let resolved = module.resolve(LinkAddr(addr));
    (!resolved.frames.is_empty()).then_some(resolved)
}

/// Remembers the build-id if a line has one for a file.
fn hear_build(line: &[u8], modules: &Modules) {
    if let Some((file, id)) = find::build(line) {
        modules.tell_build(path(file), &text(id).to_lowercase());
    }
}

fn path(found: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(found))
}

/// Returns the text of a match, which must be ASCII, as numbers are.
fn text(found: &[u8]) -> &str {
    std::str::from_utf8(found).unwrap_or_default()
}

fn resolve(
    found: &Address<'_>,
    perf: Option<u64>,
    place: &LookupScope,
    modules: &Modules,
) -> Option<Resolved> {
    let addr = find::number(found.digits)?;
    let resolved = if let Some(file) = found.file {
        let build = found.build.map(|id| text(id).to_lowercase());
        let build = build.filter(|build| build.len() >= ID_DIGITS_MIN);
        let module = modules.find(path(file), build.as_deref())?;
        modules.prepare(&module, file);
        let addr = match perf {
            Some(back) => {
                let at = module.segments().to_link(FileOffset(addr))?;
                LinkAddr(at.0.checked_sub(back)?)
            }
            None => LinkAddr(addr),
        };
        module.resolve(addr)
    } else {
        let addr = place.has_code_at(addr).then_some(addr)?;
        place.resolve(addr, modules)?
    };
    let is_known = resolved.symbol.is_ok() || !resolved.frames.is_empty();
    is_known.then_some(resolved)
}
