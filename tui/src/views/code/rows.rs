//! The rows of code. What lies outside of the shown lines of the file, or has no known line, is
//! summed up in rows of its own: the rows of a layout add up to all samples.

use super::row::CodeRow;
use super::{CodeAnswer, Layout, Spot, words};
use crate::code::{Body, BodyLine, Syntax};
use std::collections::BTreeMap;

/// At most this many lines of a file are shown: a longer function was written by a program.
const LINES_MAX: u32 = 2_000;

/// What is shown of a file before the function's first line, and after its last.
const LINES_BEFORE: u32 = 3;
const LINES_AFTER: u32 = 2;

/// If a line has at most this many instructions, all of them are shown, hit or not.
const QUIET_MAX: usize = 6;

/// At most this many callees are named below a line.
const CALLS_MAX: usize = 3;

/// A line is hot if it has at least one in this many of all samples.
const HOT_PART: u64 = 20;

/// Returns the layout that can be drawn: the chosen one, but instructions if no source file is
/// known, and source text instead of both if there are no instructions.
pub fn possible(layout: Layout, body: &Body) -> Layout {
    let has_code = body.instructions() > 0;
    let has_lines = body.main_file().is_some();
    match (layout, has_lines, has_code) {
        (Layout::Both | Layout::Source, false, _) => Layout::Assembly,
        (Layout::Both, true, false) => Layout::Source,
        (layout, ..) => layout,
    }
}

/// Returns the rows of the code in a layout, or in the layout that is possible instead; no rows
/// if no sample hit the function's own code.
pub fn rows(answer: &CodeAnswer, layout: Layout) -> Vec<CodeRow> {
    if answer.code.addresses.is_empty() {
        return Vec::new();
    }
    let body = &*answer.body;
    let mut rows = Vec::new();
    match (possible(layout, body), body.main_file()) {
        (Layout::Both, Some(file)) => add_lines(answer, file, &by_line(body, file), &mut rows),
        (Layout::Source, Some(file)) => add_lines(answer, file, &BTreeMap::new(), &mut rows),
        _ => add_code(answer, &mut rows),
    }
    rows
}

/// Returns the first and the last line of the function in a file: of all its instructions, and
/// of all lines that were hit. If that is too long it is a window around the hottest line; None
/// if no line is known.
fn window(answer: &CodeAnswer, file: u32) -> Option<(u32, u32)> {
    let instructions = answer
        .body
        .pieces
        .iter()
        .flat_map(|piece| &piece.instructions);
    let places = instructions.filter_map(|instruction| instruction.place);
    let hit = answer.lines.iter().filter(|(place, _)| place.file == file);
    let hit_lines = hit.clone().map(|(place, _)| place.line);
    let lines = places
        .filter(|place| place.file == file)
        .map(|place| place.line)
        .chain(hit_lines);
    let (first, last) = lines.fold((u32::MAX, 0), |(a, b), line| (a.min(line), b.max(line)));
    if first > last {
        return None;
    }
    if last - first <= LINES_MAX {
        return Some((first, last));
    }
    let (hottest, _) = hit.max_by_key(|(_, spot)| spot.samples)?;
    let start = hottest.line.saturating_sub(LINES_MAX / 2).max(first);
    Some((start, start.saturating_add(LINES_MAX).min(last)))
}

/// For each line of a file its instructions, by piece and number, in the order of
/// addresses.
type CodeByLine = BTreeMap<u32, Vec<(usize, usize)>>;

/// Adds the lines of the function and some around it, each with its instructions or calls
/// below it, and at the end what is on other lines.
fn add_lines(answer: &CodeAnswer, file: u32, code: &CodeByLine, rows: &mut Vec<CodeRow>) {
    let body = &*answer.body;
    let (first, last) = window(answer, file).unwrap_or((1, 0));
    let text_end = body.text.as_ref().map_or(0, |text| text.len() as u32);
    let start = match text_end {
        0 => first,
        _ => first.saturating_sub(LINES_BEFORE).max(1),
    };
    // Lines that were hit are shown even behind the end of the text: the file may have
    // changed.
    let end = last.max(last.saturating_add(LINES_AFTER).min(text_end));
    for line in start..=end {
        let place = BodyLine { file, line };
        let spot = answer.lines.get(&place);
        if line > text_end && spot.is_none() {
            continue;
        }
        let (samples, before) = counts(spot);
        rows.push(CodeRow::Line {
            place,
            samples,
            before,
        });
        if let Some(spot) = spot {
            match code.get(&line) {
                Some(code) => add_code_of_line(answer, code, rows),
                None => add_calls(line, spot, rows),
            }
        }
    }
    // What has no row of its own is summed up below, so that the rows add up to all
    // samples.
    let is_shown = |place: &BodyLine| place.file == file && (start..=end).contains(&place.line);
    add_others(answer, file, is_shown, rows);
}

/// The instructions of each line of a file.
fn by_line(body: &Body, file: u32) -> CodeByLine {
    let mut lines = CodeByLine::new();
    for (number, piece) in body.pieces.iter().enumerate() {
        for (at, instruction) in piece.instructions.iter().enumerate() {
            if let Some(place) = instruction.place.filter(|place| place.file == file) {
                lines.entry(place.line).or_default().push((number, at));
            }
        }
    }
    lines
}

/// Adds the instructions of a line. If there are more than [`QUIET_MAX`], only those are added
/// that were hit, and one before and after each; the others become a row with their number.
fn add_code_of_line(answer: &CodeAnswer, code: &[(usize, usize)], rows: &mut Vec<CodeRow>) {
    let is_hit = |number: Option<usize>| {
        let at = number.and_then(|number| code.get(number));
        at.is_some_and(|at| answer.instructions.contains_key(at))
    };
    let mut gap = 0;
    for (number, at) in code.iter().enumerate() {
        let near = [Some(number), number.checked_sub(1), Some(number + 1)];
        if code.len() > QUIET_MAX && !near.into_iter().any(is_hit) {
            gap += 1;
            continue;
        }
        if gap > 0 {
            rows.push(CodeRow::Gap(std::mem::take(&mut gap)));
        }
        rows.extend(instruction(answer, *at, true));
    }
    if gap > 0 {
        rows.push(CodeRow::Gap(gap));
    }
}

/// Returns a spot's samples now and in the baseline; 0 and 0 if there is no spot.
fn counts(spot: Option<&Spot>) -> (u64, u64) {
    spot.map_or((0, 0), |spot| (spot.samples, spot.before))
}

/// Returns the row of an instruction with its samples. None if there is no such
/// instruction.
fn instruction(answer: &CodeAnswer, at: (usize, usize), below_line: bool) -> Option<CodeRow> {
    let (samples, before) = counts(answer.instructions.get(&at));
    Some(CodeRow::Instruction {
        at,
        offset: answer.body.instruction(at)?.offset,
        samples,
        before,
        below_line,
    })
}

/// Adds what was called from a line, for layouts that do not show its instructions.
fn add_calls(line: u32, spot: &Spot, rows: &mut Vec<CodeRow>) {
    for (callee, samples) in spot.calls.iter().take(CALLS_MAX) {
        rows.push(CodeRow::Call {
            line,
            callee: *callee,
            samples: *samples,
        });
    }
}

/// Adds the sums of what has no row of its own, so that all rows add up to all samples:
/// 1. lines of the main file outside of the shown window,
/// 2. lines of other files, one row for each file,
/// 3. samples at addresses without a known line.
fn add_others(
    answer: &CodeAnswer,
    main: u32,
    is_shown: impl Fn(&BodyLine) -> bool,
    rows: &mut Vec<CodeRow>,
) {
    let mut others: BTreeMap<u32, (usize, u64, u64)> = BTreeMap::new();
    for (place, spot) in answer.lines.iter().filter(|(place, _)| !is_shown(place)) {
        let other = others.entry(place.file).or_default();
        other.0 += 1;
        other.1 += spot.samples;
        other.2 += spot.before;
    }
    if let Some((lines, samples, before)) = others.remove(&main) {
        rows.push(CodeRow::OtherLines {
            lines,
            samples,
            before,
        });
    }
    for (file, (lines, samples, before)) in others {
        rows.push(CodeRow::OtherFile {
            file,
            lines,
            samples,
            before,
        });
    }
    let unplaced = &answer.unplaced;
    if unplaced.total + unplaced.before > 0 {
        rows.push(CodeRow::Unplaced {
            samples: unplaced.samples,
            before: unplaced.before,
        });
    }
}

/// Adds the instructions of all pieces, with a head for each if there are several, and then
/// the addresses for which there are no instructions.
fn add_code(answer: &CodeAnswer, rows: &mut Vec<CodeRow>) {
    let pieces = &answer.body.pieces;
    for (number, piece) in pieces.iter().enumerate() {
        if pieces.len() > 1 || piece.host.is_some() {
            rows.push(CodeRow::Piece(number));
        }
        let all = 0..piece.instructions.len();
        rows.extend(all.filter_map(|at| instruction(answer, (number, at), false)));
    }
    for (address, spot) in &answer.addresses {
        rows.push(CodeRow::Address {
            address: *address,
            samples: spot.samples,
            before: spot.before,
        });
    }
}

/// Returns the numbers of the rows with many samples, as `samples` counts those of a row: lines,
/// or instructions where there are no lines. A row is hot from max(1, min(all samples /
/// [`HOT_PART`], samples of the hottest row)) on, so that the hottest row always is if it was hit.
pub fn hot(rows: &[CodeRow], samples: impl Fn(&CodeRow) -> u64) -> Vec<usize> {
    let whole = || rows.iter().enumerate().filter(|(_, row)| !row.is_part());
    let all: u64 = whole().map(|(_, row)| samples(row)).sum();
    let most = whole().map(|(_, row)| samples(row)).max().unwrap_or(0);
    let least = (all / HOT_PART).min(most).max(1);
    let hot = whole().filter(|(_, row)| samples(row) >= least && row.key().is_some());
    hot.map(|(at, _)| at).collect()
}

/// Returns the line of the shown file that a row belongs to; None if it belongs to none.
pub fn line_of(row: &CodeRow, answer: &CodeAnswer) -> Option<u32> {
    let file = answer.body.main_file()?;
    let place = match row {
        CodeRow::Line { place, .. } => Some(*place),
        CodeRow::Call { line, .. } => return Some(*line),
        CodeRow::Instruction { at, .. } => answer.body.instruction(*at)?.place,
        _ => None,
    };
    place.filter(|place| place.file == file).map(|p| p.line)
}

/// Returns which of `rows` shows the same place as a row of another layout:
/// 1. the row with the same key,
/// 2. of the rows of the same source line, the one with most samples, the first of equals,
/// 3. None.
pub fn same_place(row: &CodeRow, answer: &CodeAnswer, rows: &[CodeRow]) -> Option<usize> {
    let same = rows.iter().position(|other| other.key() == row.key());
    same.or_else(|| {
        let line = line_of(row, answer)?;
        let is_there = |other: &CodeRow| line_of(other, answer) == Some(line);
        // `rev`, as `max_by_key` returns the last of equals.
        let found = rows.iter().enumerate().filter(|(_, row)| is_there(row));
        let (at, _) = found.rev().max_by_key(|(_, row)| row.samples())?;
        Some(at)
    })
}

/// Returns what a row says, without its numbers; None for most of the rows that are sums.
pub fn text(row: &CodeRow, answer: &CodeAnswer, syntax: Syntax) -> Option<String> {
    let body = &*answer.body;
    match row {
        CodeRow::Line { place, .. } => {
            let line = body.text.as_ref()?.line(place.line)?;
            Some(line.to_owned())
        }
        CodeRow::Instruction { at, .. } => Some(body.instruction(*at)?.text(syntax)),
        CodeRow::Call { callee, .. } => Some(answer.functions.get(callee)?.name.to_string()),
        CodeRow::Address { address, .. } => Some(words::address(answer, *address)),
        CodeRow::OtherFile { file, .. } => Some(body.files.get(*file as usize)?.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_only_waits_in_what_it_calls_is_hot_where_that_is_counted() {
        let line = |line, samples| CodeRow::Line {
            place: BodyLine { file: 0, line },
            samples,
            before: 0,
        };
        let rows = [line(1, 0), line(2, 7), line(3, 0)];
        assert_eq!(hot(&rows, CodeRow::samples), [1]);
        let waited = |row: &CodeRow| match row {
            CodeRow::Line { place, .. } if place.line == 3 => 900,
            row => row.samples(),
        };
        assert_eq!(hot(&rows, waited), [2]);
        assert!(hot(&rows, |_| 0).is_empty());
    }
}
