//! The *pieces* of a function's code: its own code, and the instructions of functions into which it
//! was inlined.

use super::{Body, Hit, Piece, Wanted};
use profile::few;
use symbolize::code::assembly::BYTES_MAX;
use symbolize::code::{CodeFound, CodeQuestion, FunctionCode, NoLines};
use symbolize::parser::FileCode;
use symbolize::{FileOffset, Reason};

/// What is said of a file on which a part of this program has panicked.
pub const NEW_DAMAGE: &str = "the file is damaged in a way that is new to us";

/// Why a file gave no instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCode {
    /// Code for a processor without a decoder, given by the number of its machine in ELF files.
    Machine(u16),
    /// Nothing says where the function is.
    Nowhere,
    /// The file could not be read, or not to the end.
    Unreadable(Reason),
}

impl NoCode {
    /// Says it in words.
    pub fn words(self, wanted: &Wanted) -> String {
        let (module, path) = (&wanted.module, &wanted.module_path);
        match self {
            NoCode::Machine(machine) => {
                let name = match machine {
                    40 => "Arm".to_owned(),
                    243 => "RISC-V".to_owned(),
                    number => format!("the machine with ELF number {number}"),
                };
                format!("code of {name} is not written out, only that of x86 and AArch64")
            }
            NoCode::Nowhere => format!("{module} does not tell where the function is"),
            NoCode::Unreadable(Reason::Refused) => format!(
                "{path} could not be understood within the bounds of time and memory; \
                 opened again in a minute, it is tried once more"
            ),
            NoCode::Unreadable(Reason::Mistake) => NEW_DAMAGE.to_owned(),
            NoCode::Unreadable(reason) => {
                format!("{path}: {}", reason.explain().trim_end_matches('.'))
            }
        }
    }
}

/// What was found in a file, besides its instructions.
#[derive(Debug, Default)]
pub struct FilePieces {
    /// Why there are no instructions; `None` if there are.
    pub no_code: Option<NoCode>,
    /// Why the lines of instructions are not known; `None` if they are.
    pub no_lines: Option<NoLines>,
}

/// Adds the functions that were hit to the body, the hottest first, up to [`BYTES_MAX`]. If one of
/// them cannot be read, there are none.
pub fn add_pieces(wanted: &Wanted, code: &FileCode, body: &mut Body) -> FilePieces {
    let mut found = FilePieces::default();
    cover_hits(wanted, body, |hit, left, body| {
        // A reason that is about the whole file holds for the other addresses as well.
        let is_final = !matches!(found.no_code, None | Some(NoCode::Nowhere));
        if is_final || left == 0 {
            return None;
        }
        let answer = code.find(&CodeQuestion {
            function: &wanted.function,
            module: &wanted.module,
            address: FileOffset(hit.address),
            is_inlined: hit.host.is_some(),
            bytes_max: left,
        });
        let why = match answer {
            Ok(answer) => {
                found.no_lines = answer.no_lines;
                match answer.found {
                    CodeFound::Function(code) => return Some(piece(code, hit, body)),
                    CodeFound::Unknown => NoCode::Nowhere,
                    CodeFound::Machine(machine) => NoCode::Machine(machine),
                }
            }
            Err(reason) => NoCode::Unreadable(reason),
        };
        found.no_code = Some(why);
        None
    });
    if let Some(NoCode::Unreadable(_)) = found.no_code {
        let hits = wanted.hits.iter().map(|hit| hit.address);
        body.unknown.extend(hits);
        body.pieces.clear();
        body.files.clear();
    }
    let is_nowhere = body.pieces.is_empty() && !body.unknown.is_empty();
    FilePieces {
        no_code: is_nowhere.then_some(found.no_code.unwrap_or(NoCode::Nowhere)),
        ..found
    }
}

/// Makes a piece of the code at a hit. The files of its lines get their numbers in the body.
fn piece(mut code: FunctionCode, hit: &Hit, body: &mut Body) -> Piece {
    let numbers: Vec<u32> = code
        .files
        .iter()
        .map(|file| body.file_number(file))
        .collect();
    for instruction in &mut code.instructions {
        if let Some(place) = &mut instruction.place {
            place.file = numbers[place.file as usize];
        }
    }
    Piece {
        host: hit.host.clone(),
        start: code.range.start,
        range: code.range,
        instructions: code.instructions,
        cut: code.cut,
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
