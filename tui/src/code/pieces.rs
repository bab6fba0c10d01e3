//! The *pieces* of a function's code: its own code, and the instructions of functions into which it
//! was inlined.

use super::assembly::{BYTES_MAX, Mode};
use super::lines::{Frame, LineSource};
use super::{Body, BodyLine, Hit, Piece, Wanted, assembly};
use engine::shown;
use profile::few;
use std::ops::Range;
use std::sync::Arc;
use symbolize::{ElfSymbols, FileOffset, LinkAddr};

/// Adds the functions that were hit to the body, the hottest first, up to [`BYTES_MAX`].
pub fn add_pieces(
    wanted: &Wanted,
    symbols: &ElfSymbols,
    lines: &LineSource,
    body: &mut Body,
) -> Result<(), String> {
    let machine = symbols.object().machine();
    let Some(mode) = Mode::of_machine(machine) else {
        let name = match machine {
            40 => "Arm".to_owned(),
            243 => "RISC-V".to_owned(),
            number => format!("the machine with ELF number {number}"),
        };
        return Err(format!(
            "code of {name} is not written out, only that of x86 and AArch64"
        ));
    };
    cover_hits(wanted, body, |hit, left, body| {
        piece(mode, wanted, hit, symbols, lines, left, body)
    });
    if body.pieces.is_empty() && !body.unknown.is_empty() {
        Err(format!(
            "{} does not tell where the function is",
            wanted.module
        ))
    } else {
        Ok(())
    }
}

/// Adds the piece of code at each hit, the hottest first, up to [`BYTES_MAX`]. `find` gets the hit
/// and the number of bytes that are left.
pub(super) fn cover_hits(
    wanted: &Wanted,
    body: &mut Body,
    mut find: impl FnMut(&Hit, u64, &mut Body) -> Option<Piece>,
) {
    let mut hits: Vec<&Hit> = wanted.hits.iter().collect();
    // The function's own code comes first: otherwise the piece of another function could cover it.
    few::sort_by_key(&mut hits, |hit| {
        (hit.host.is_some(), std::cmp::Reverse(hit.samples))
    });
    let mut left = BYTES_MAX;
    for hit in hits {
        if body.covers(hit.address) {
            continue;
        }
        let piece = find(hit, left, body);
        match piece.filter(|piece| piece.range.contains(&hit.address)) {
            Some(piece) => {
                left -= piece.range.end - piece.range.start;
                body.pieces.push(piece);
            }
            None => {
                body.unknown.insert(hit.address);
            }
        }
    }
    few::sort_by_key(&mut body.pieces, |piece| piece.range.start);
}

/// Returns the function at an address, as instructions with their lines and targets. If the wanted
/// function was inlined into it, only the inlined instructions are kept. None if no symbol says
/// where the function begins and ends, or if its bytes cannot be read.
///
/// There are two kinds of addresses here: hits and lines have offsets in the file, symbols and
/// targets of jumps have link-time addresses.
fn piece(
    mode: Mode,
    wanted: &Wanted,
    hit: &Hit,
    symbols: &ElfSymbols,
    lines: &LineSource,
    bytes_max: u64,
    body: &mut Body,
) -> Option<Piece> {
    let segments = symbols.segments();
    let addr = segments.to_link(FileOffset(hit.address))?;
    let Range { start, end } = symbols.extent(addr)?;
    let FileOffset(offset) = segments.to_file(start)?;
    let len = (end.0 - start.0).min(bytes_max);
    let bytes = symbols.read_code(start, len).ok()?;
    let mut instructions = assembly::decode(mode, &bytes, offset, start.0);
    instructions.retain_mut(|instruction| {
        // The functions at this instruction, innermost first. `at` is the wanted one: those before
        // it were inlined into it, those behind it contain it.
        let mut chain = lines.find(symbols, FileOffset(instruction.offset));
        let at = match hit.host {
            Some(_) => chain.iter().position(|f| f.function == *wanted.function),
            None => chain.len().checked_sub(1),
        };
        let Some(at) = at else {
            // In the code of another function, only instructions of the wanted one are kept.
            return hit.host.is_none();
        };
        let own = &chain[at];
        instruction.place = (own.line > 0).then(|| BodyLine {
            file: body.file_number(&own.file),
            line: own.line,
        });
        chain.truncate(at);
        instruction.inlined = (!chain.is_empty()).then(|| inlined(&chain).into());
        true
    });
    for instruction in &mut instructions {
        let target = instruction.branch().map(LinkAddr);
        instruction.target = target.and_then(|target| {
            let is_inside = (start.0..end.0).contains(&target.0);
            if is_inside && !instruction.is_call() {
                Some(format!("+{:#x}", target.0 - start.0).into())
            } else {
                name_at(wanted, symbols, target)
            }
        });
    }
    Some(Piece {
        host: hit.host.clone(),
        range: offset..offset + len,
        start: offset,
        instructions,
        cut: end.0 - start.0 - len,
    })
}

/// Returns inlined functions as text, such as `add (math.h:12), in sum (math.h:30)`.
fn inlined(chain: &[Frame]) -> String {
    let frame = |frame: &Frame| {
        let file = frame.file.rsplit('/').next().unwrap_or(&frame.file);
        match frame.line {
            0 => frame.function.clone(),
            line => format!("{} ({file}:{line})", frame.function),
        }
    };
    chain.iter().map(frame).collect::<Vec<_>>().join(", in ")
}

/// Returns the name for an address, in the form that the profile uses.
fn name_at(wanted: &Wanted, symbols: &ElfSymbols, addr: LinkAddr) -> Option<Arc<str>> {
    let named = symbols
        .find_link(addr)
        .ok()
        .map(|symbol| (shown(symbol.name), symbol.start.0))
        // Stripped Go programs still have the names in the tables of the Go runtime.
        .or_else(|| {
            let go = symbols.go()?;
            let name = go.name_at(addr)?;
            Some((shown(&name), go.extent(addr)?.start))
        });
    let Some((name, start)) = named else {
        let FileOffset(offset) = symbols.segments().to_file(addr)?;
        return Some(format!("{}+{offset:#x}", wanted.module).into());
    };
    Some(match addr.0 - start {
        0 => name.into(),
        within => format!("{name}+{within:#x}").into(),
    })
}
