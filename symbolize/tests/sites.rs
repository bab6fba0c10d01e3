//! Functions to probe are the same, whether their file is read here or by a parser, and whichever
//! parser reads it.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use super::parser::Here;
use crate::support::compile;
use symbolize::dwarf::{Convention, Passed, Signature};
use symbolize::elf::Needed;
use symbolize::parser::{FileSites, FileTypes, Functions, LineFunctions, SitesFacts};
use symbolize::sites::spelling::Meant;
use symbolize::sites::{Ends, Fit, Function, Inlined, Marker, Placed, Refusal, Wish};
use symbolize::types::{Shape, Types as _};
use symbolize::{FileOffset, FileSource, Files, Reason, RemoteFiles, Symbolizer};
use test_support::Random;

fn open(symbolizer: &Symbolizer, path: &Path) -> Result<Arc<FileSites>, Reason> {
    let file = OwnedFd::from(File::open(path).unwrap());
    symbolizer.file_sites(FileSource {
        file: Some(&file),
        ..FileSource::new(path)
    })
}

/// Everything that can be asked about functions of a file, but for its types.
#[derive(Debug, PartialEq)]
struct All {
    facts: SitesFacts,
    has_exceptions: bool,
    needed: Result<Needed, Reason>,
    named: Result<Option<(Fit, Functions)>, Reason>,
    matching: Result<Functions, Reason>,
    at: Vec<Result<Result<Function, Refusal>, Reason>>,
    lines: Vec<Result<LineFunctions, Reason>>,
    inlined: Result<Option<Inlined>, Reason>,
    placed: Result<Vec<Result<Placed, Refusal>>, Reason>,
    markers: Vec<Marker>,
    containing: Vec<String>,
    meant: Meant,
}

fn all(file: &FileSites) -> All {
    let matching = file.matching("^(handle|made|main|_start)$");
    let functions = matching.clone().unwrap_or_default().told.into_iter();
    let wish = Wish {
        ends: Ends::AtReturns,
        ..Wish::default()
    };
    let wishes: Vec<_> = functions.map(|function| (function, wish)).collect();
    let starts = (0..0x4000).step_by(257).map(FileOffset);
    All {
        facts: file.facts().clone(),
        has_exceptions: file.has_exceptions(),
        needed: file.needed(),
        named: file.named("handle"),
        at: starts.map(|offset| file.at(offset)).collect(),
        lines: (1..12).map(|line| file.of_line("types.c", line)).collect(),
        inlined: file.inlined("handle"),
        placed: file.place(&wishes),
        matching,
        markers: file.markers(),
        containing: file.names_containing("ma"),
        meant: file.meant("hnadle"),
    }
}

#[test]
fn functions_to_probe_are_the_same_whoever_reads_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = compile(folder.path(), "types.c", "program", &["-g", "-O1"]) else {
        return;
    };
    let here = Arc::new(Here::default());
    let plain = Symbolizer::new().with_files(RemoteFiles::Skip);
    let parsed = Symbolizer::new().with_files(Files::by(here.clone()));
    let own = open(&plain, &path).unwrap();
    let right = all(&own);
    assert_eq!(right.meant.near, Some((2, "handle".into())));
    assert_eq!(right.named.as_ref().unwrap().as_ref().unwrap().1.all, 1);
    assert!(right.lines.iter().any(|line| matches!(
        line,
        Ok(LineFunctions::Known(Ok(functions))) if !functions.told.is_empty()
    )));
    let placed = right.placed.as_ref().unwrap();
    assert_eq!(placed.len(), 4);
    assert!(placed.contains(&Err(Refusal::StartCode)), "{placed:?}");
    assert_eq!(placed.iter().flatten().count(), 3);
    let others = open(&parsed, &path).unwrap();
    assert_eq!(all(&others), right);
    // Another parser knows nothing yet.
    here.another();
    assert_eq!(all(&others), right);
    let signature = |file: &FileSites| {
        let (_, functions) = file.named("handle").unwrap().unwrap();
        let types = FileTypes::of(file).unwrap().expect("it has some");
        let function = &functions.told[0];
        let at = types.signature_at(function.start, &function.raw, Convention::C);
        assert_eq!(types.signature_of(&function.raw, Convention::C), at);
        assert_eq!(types.left_out(), None);
        at.unwrap()
    };
    let told: Signature = signature(&own);
    assert_eq!(told.parameters[0].place, Passed::Argument(1));
    for _ in 0..2 {
        here.another();
        assert_eq!(signature(&others), told);
        let (own, others) = (
            FileTypes::of(&own).unwrap().unwrap(),
            FileTypes::of(&others).unwrap().unwrap(),
        );
        let kind = told.parameters[0].kind.unwrap();
        let Some(Shape::Pointer(Some(job))) = own.shape(kind) else {
            panic!("{:?}", own.shape(kind));
        };
        assert_eq!(others.shape(kind), own.shape(kind));
        assert_eq!(others.named("job"), own.named("job"));
        assert_eq!(others.variants(job), own.variants(job));
        for name in ["id", "x", "state", "bit", "nothing"] {
            assert_eq!(others.member(job, name), own.member(job, name), "{name}");
            let kind = own.member(job, name).map(|member| member.kind);
            let Ok(kind) = kind else { continue };
            assert_eq!(others.shape(kind), own.shape(kind), "{name}");
        }
    }
}

#[test]
fn of_a_file_that_is_not_understood_there_is_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "no ELF file").unwrap();
    let parsed = Symbolizer::new().with_files(Files::by(Arc::new(Here::default())));
    assert_eq!(open(&parsed, &text).err(), Some(Reason::Damaged));
    let Some(path) = compile(folder.path(), "types.c", "program", &["-g"]) else {
        return;
    };
    // Whatever is damaged, there is an answer or a reason, and every site is in its function.
    let original = fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged");
    let mut random = Random::new(11);
    for _ in 0..60 {
        let mut bytes = original.clone();
        for _ in 0..=random.index(4) {
            let at = random.index(bytes.len());
            bytes[at] = random.index(256) as u8;
        }
        fs::write(&damaged, &bytes).unwrap();
        let Ok(file) = open(&parsed, &damaged) else {
            continue;
        };
        let all = all(&file);
        for placed in all.placed.into_iter().flatten().flatten() {
            let addr = placed.entry.addr;
            assert_eq!(
                file.facts().segments.to_file(addr),
                Some(placed.entry.offset)
            );
        }
        if let Ok(Some(types)) = FileTypes::of(&file) {
            _ = types.named("job").map(|job| types.member(job, "x"));
        }
    }
}
