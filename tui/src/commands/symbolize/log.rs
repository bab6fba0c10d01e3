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

use super::format::Style;
use super::modules::Modules;
use super::tables::ID_DIGITS_MIN;
use super::{LookupScope, SymbolFormat, format};
use regex::bytes::{Captures, Match, Regex};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::LazyLock;
use symbolize::resolver::Resolved;
use symbolize::{FileOffset, LinkAddr};

/// Matches a file with an address in it, or an address alone.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x-u)
        (?P<there>
            (?P<file>[^\s()\[\]]+)\s?(?:\(\+|\+\s?)0x(?P<offset>[0-9a-fA-F]{1,16})\b\)?
          | \bpc\ (?P<pc>[0-9a-f]{8,16})\s+(?P<pc_file>/[^\s()]+)
        )
        (?:\s*\([^()\s]*\))?
        (?:\s*\(BuildId:\s*(?P<build>[0-9a-fA-F]+)\))?
      | \b0x(?P<marked>[0-9a-fA-F]{3,16})\b
      | \b(?P<bare>[0-9a-fA-F]{12,16})\b",
    )
    .expect("a constant")
});

/// Matches a file with its build-id.
static BUILD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x-u)
        \bModule\ (?P<module>\S+)\ with\ build-id\ (?P<id>[0-9a-f]{8,64})\b
      | ^(?P<listed>[0-9a-f]{16,64})\ (?P<path>/.+)$",
    )
    .expect("a constant")
});

/// Matches a frame as perf prints it: `    7f1c2a3b name+0x10 (/lib/libc.so.6+0x123)`.
static PERF_FRAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?-u)^\s+[0-9a-f]+ .*\(/.*\)$").expect("a constant"));

/// Matches a frame without the offset in the file: `    7f1c2a3b name+0x10 (/lib/libc.so.6)`.
static PERF_FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?-u)^\s+[0-9a-f]+ (?P<name>.+)\+0x(?P<offset>[0-9a-f]{1,8}) \((?P<file>/[^()+]+)\)$",
    )
    .expect("a constant")
});

/// Answers the addresses of one line.
pub fn line(
    line: &[u8],
    place: &LookupScope,
    modules: &Modules,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    hear_build(line, modules);
    let is_perf = PERF_FRAME.is_match(line);
    // For all frames but the first of a stack, perf prints the return address. The call is the
    // instruction before it.
    let back = u64::from(modules.follows_frame(is_perf) && is_perf);
    if let Some(resolved) = by_function(line, back, modules) {
        out.write_all(line)?;
        format::in_place(&resolved, in_text(style), out)?;
        return out.write_all(b"\n");
    }
    let mut written = 0;
    for found in ADDRESS.captures_iter(line) {
        let there = found
            .name("there")
            .or_else(|| found.get(0))
            .expect("it was found");
        let Some(resolved) = resolve(&found, is_perf.then_some(back), place, modules) else {
            continue;
        };
        out.write_all(&line[written..there.end()])?;
        written = there.end();
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
fn by_function(line: &[u8], back: u64, modules: &Modules) -> Option<Resolved> {
    let found = PERF_FUNCTION.captures(line)?;
    let offset = u64::from_str_radix(text(found.name("offset")?), 16).ok()?;
    let module = modules.find(path(found.name("file")?), None)?;
    let start = module.function(found.name("name")?.as_bytes())?;
    let addr = start.0.checked_add(offset)?.checked_sub(back)?;
    let resolved = module.resolve(LinkAddr(addr));
    (!resolved.frames.is_empty()).then_some(resolved)
}

/// Remembers the build-id if a line has one for a file.
fn hear_build(line: &[u8], modules: &Modules) {
    let Some(found) = BUILD.captures(line) else {
        return;
    };
    let named = found.name("module").zip(found.name("id"));
    let told = named.or_else(|| found.name("path").zip(found.name("listed")));
    if let Some((file, id)) = told {
        modules.tell_build(path(file), &text(id).to_lowercase());
    }
}

fn path(found: Match<'_>) -> &Path {
    Path::new(OsStr::from_bytes(found.as_bytes()))
}

/// Returns the text of a match, which must be ASCII, as numbers are.
fn text(found: Match<'_>) -> &str {
    std::str::from_utf8(found.as_bytes()).unwrap_or_default()
}

fn resolve(
    found: &Captures<'_>,
    perf: Option<u64>,
    place: &LookupScope,
    modules: &Modules,
) -> Option<Resolved> {
    let number = |name| u64::from_str_radix(text(found.name(name)?), 16).ok();
    let file = found.name("file").or_else(|| found.name("pc_file"));
    let resolved = if let Some(file) = file {
        let offset = number("offset").or_else(|| number("pc"))?;
        let build = found.name("build").map(|id| text(id).to_lowercase());
        let build = build.filter(|build| build.len() >= ID_DIGITS_MIN);
        let module = modules.find(path(file), build.as_deref())?;
        let addr = match perf {
            Some(back) => {
                let at = module.segments().to_link(FileOffset(offset))?;
                LinkAddr(at.0.checked_sub(back)?)
            }
            None => LinkAddr(offset),
        };
        module.resolve(addr)
    } else {
        let addr = number("marked").or_else(|| number("bare"))?;
        let addr = place.has_code_at(addr).then_some(addr)?;
        place.resolve(addr, modules)?
    };
    let is_known = resolved.symbol.is_ok() || !resolved.frames.is_empty();
    is_known.then_some(resolved)
}
