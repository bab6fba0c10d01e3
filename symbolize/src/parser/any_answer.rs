//! Any bytes, decoded as answers of a parser or reader: for the fuzz target `answers`.

use super::answer;
use super::code_answer::CodeAnswer;
use super::jit_order::JitAnswer;
use super::lines_order::{read_lines, read_program};
use super::names::{PlaceName, SourceLine};
use super::run_time_order::RunTimeAnswer;
use super::{memory_order, packages_order, sites_answer, types_order};
use crate::code::{CodeFound, Dialect, FunctionCode, RunTimeFound};
use crate::packages::Distribution;
use crate::python::PythonFile;
use crate::{LinkAddr, Segment, Segments, object, sanitize};

/// Number of bytes of code that the checked answers may have.
const CODE_BYTES_MAX: u64 = 1 << 16;

/// Decodes bytes as each kind of answer. A parser reads untrusted files, which may have taken it
/// over, so that it may answer with any bytes; a reader reads their headers.
///
/// # Panics
///
/// If a text of an answer is not safe to print, if there is more in it than in the bytes, or if
/// what headers tell is encoded in another way than it was.
pub fn check_any_answer(bytes: &[u8]) {
    if let Some((names, _)) = answer::read(bytes) {
        assert!(names.places.len() <= bytes.len());
        for place in &names.places {
            if let PlaceName::Named { name, .. } = &place.name {
                check_text(name);
            }
            place.lines.iter().for_each(check_line);
        }
    }
    if let Some(lines) = read_lines(bytes) {
        assert!(lines.chains.len() <= bytes.len());
        lines.chains.iter().flatten().for_each(check_line);
    }
    _ = (read_program(bytes), PythonFile::from_bytes(bytes));
    if let Some(summary) = object::read_answer(bytes) {
        assert_eq!(object::write_answer(&summary), bytes);
    }
    if let Some(answer) = JitAnswer::read(bytes) {
        assert!(answer.names.len() <= bytes.len());
    }
    if let Some(answer) = CodeAnswer::read(bytes, CODE_BYTES_MAX)
        && let CodeFound::Function(code) = &answer.found
    {
        assert!(code.instructions.len() <= bytes.len());
        check_code(code);
    }
    if let Some(answer) = RunTimeAnswer::read(bytes, CODE_BYTES_MAX)
        && let RunTimeFound::Function(code) = &answer.found
    {
        assert!(code.instructions.len() <= bytes.len());
        check_code(code);
    }
    check_packages(bytes);
    check_sites(bytes);
    memory_order::check_any_answer(bytes);
}

/// Decodes bytes as an answer about the packages of two files.
fn check_packages(bytes: &[u8]) {
    let Some(found) = packages_order::read_answer(bytes, 2) else {
        return;
    };
    for owner in found.owners.iter().flatten() {
        check_text(&owner.package);
        check_text(&owner.version);
    }
    let distribution = found.distribution.as_ref();
    if let Some((line, _)) = distribution.and_then(Distribution::debug_archive) {
        check_text(&line);
    }
}

/// Decodes bytes as each kind of answer about functions that may be probed.
fn check_sites(bytes: &[u8]) {
    let check_all = |functions: &sites_answer::Functions| {
        assert!(functions.told.len() <= bytes.len());
        functions.told.iter().for_each(|one| check_text(&one.name));
    };
    if let Some(functions) = sites_answer::read_functions(bytes) {
        check_all(&functions);
    }
    if let Some(Some((_, functions))) = sites_answer::read_fitting(bytes) {
        check_all(&functions);
    }
    if let Some(Ok(function)) = sites_answer::read_at(bytes) {
        check_text(&function.name);
        let range = function.start.0..function.start.0.saturating_add(function.len);
        let placed = sites_answer::read_placed(bytes, [&function].into_iter(), &any_segments());
        for placed in placed.into_iter().flatten().flatten() {
            assert!(range.contains(&placed.entry.addr.0));
        }
    }
    if let Some(names) = sites_answer::read_names(bytes) {
        assert!(names.len() <= bytes.len());
        names.iter().for_each(|name| check_text(name));
    }
    for marker in sites_answer::read_markers(bytes).into_iter().flatten() {
        check_text(&marker.name);
        marker
            .arguments
            .iter()
            .for_each(|one| check_text(&one.text));
    }
    let addrs = [LinkAddr(0), LinkAddr(u64::MAX)];
    _ = sites_answer::read_marker_sites(bytes, &addrs, &any_segments());
    _ = (
        sites_answer::read_facts(bytes),
        sites_answer::read_needed(bytes),
        sites_answer::read_line(bytes),
        sites_answer::read_inlined(bytes),
        sites_answer::read_meant(bytes),
    );
    types_order::check_any_answer(bytes);
}

/// One segment that has everything.
fn any_segments() -> Segments {
    Segments::new(vec![Segment {
        offset: 0,
        vaddr: 0,
        filesz: u64::MAX,
        executable: true,
    }])
}

/// Checks that instructions are in order, and within the function.
fn check_code(code: &FunctionCode) {
    assert!(code.range.end - code.range.start <= CODE_BYTES_MAX);
    let mut end = code.range.start;
    for instruction in &code.instructions {
        assert!(instruction.offset >= end && instruction.len > 0);
        end = instruction.offset + u64::from(instruction.len);
        for dialect in [Dialect::Att, Dialect::Intel] {
            check_text(&instruction.text(dialect));
        }
        let texts = [&instruction.inlined, &instruction.target];
        texts
            .into_iter()
            .flatten()
            .for_each(|text| check_text(text));
        if let Some(place) = instruction.place {
            check_text(&code.files[place.file as usize]);
        }
    }
    assert!(end <= code.range.end);
}

fn check_line(line: &SourceLine) {
    check_text(&line.function);
    check_text(&line.file);
}

fn check_text(text: &str) {
    assert_eq!(sanitize(text.as_bytes()), text);
}
