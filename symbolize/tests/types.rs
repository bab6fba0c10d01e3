//! Types and parameters from debug information, undamaged and damaged.

use std::path::Path;

use crate::support::compile;
use symbolize::debug_file::DebugFiles;
use symbolize::dwarf::{Convention, DebugTypes, NoSignature, Passed, Signature};
use symbolize::object::Object;
use symbolize::sites::{self, Function};
use symbolize::source::Source;
use symbolize::types::{NoMember, Shape, Types as _};
use symbolize::{ElfSymbols, FileSource, RemoteFiles};
use test_support::Random;

const BYTES_MAX: u64 = 64 << 20;

fn types(bytes: Vec<u8>) -> Option<DebugTypes> {
    let object = Object::from_source(Source::Memory(bytes.into())).ok()?;
    let files = DebugFiles::of(&FileSource::new(Path::new("/nothing")), RemoteFiles::Skip);
    DebugTypes::of_file(&object, files, BYTES_MAX).ok()?
}

fn function(symbols: &ElfSymbols, name: &str) -> Function {
    let found = sites::functions(symbols, sites::Wanted::Named(name));
    found
        .ok()
        .and_then(|mut found| found.pop())
        .expect("a function")
}

fn at(types: &DebugTypes, function: &Function) -> Result<Signature, NoSignature> {
    types.signature_at(function.start, &function.raw, Convention::C)
}

#[test]
fn members_lie_where_the_compiler_put_them() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "types.c", "types", &["-g"]) else {
        return;
    };
    let bytes = std::fs::read(path).unwrap();
    let object = Object::from_source(Source::Memory(bytes.clone().into())).unwrap();
    let symbols = ElfSymbols::from_object(object).unwrap();
    let types = types(bytes).unwrap();
    let handle = function(&symbols, "handle");
    let told = at(&types, &handle).unwrap();
    let names: Vec<&str> = told.parameters.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["job", "wide", "weight", "n"]);
    let places: Vec<Passed> = told.parameters.iter().map(|it| it.place).collect();
    let expected = [
        Passed::Argument(1),
        Passed::Stack(8),
        Passed::Float,
        Passed::Argument(2),
    ];
    assert_eq!(places, expected);
    assert_eq!(
        types.signature_of(&handle.raw, Convention::C),
        Ok(told.clone())
    );

    let pointer = types.shape(told.parameters[0].kind.unwrap());
    let Some(Shape::Pointer(Some(job))) = pointer else {
        panic!("{pointer:?}");
    };
    let offset = |name: &str| types.member(job, name).map(|member| member.offset);
    assert_eq!(offset("id"), Ok(0));
    assert_eq!(
        (offset("x"), offset("y"), offset("z")),
        (Ok(8), Ok(12), Ok(12))
    );
    assert_eq!((offset("next"), offset("tag")), (Ok(16), Ok(24)));
    assert_eq!(offset("nothing"), Err(NoMember::NoSuchName));
    let bits = types.member(job, "bit").unwrap().bits.unwrap();
    assert_eq!((bits.skip, bits.count), (0, 3));
    let tag = types.member(job, "tag").unwrap();
    assert_eq!(types.shape(tag.kind), Some(Shape::Letters(8)));
    let state = types.shape(types.member(job, "state").unwrap().kind);
    let Some(Shape::Number {
        bytes: 4, names, ..
    }) = state
    else {
        panic!("{state:?}");
    };
    assert_eq!(names, [(0, "IDLE".to_string()), (5, "BUSY".to_string())]);
    for name in ["job", "job_t"] {
        let named = types.named(name).expect(name);
        assert_eq!(
            types.member(named, "tag").map(|member| member.offset),
            Ok(24)
        );
    }
    assert_eq!(types.named("nothing"), None);

    // The first argument register has the address of the result.
    let made = at(&types, &function(&symbols, "made")).unwrap();
    assert_eq!(made.parameters[0].place, Passed::Argument(2));
    // A copy of a function that the compiler made without some parameters is another function.
    let copy = Function {
        raw: b"handle.constprop.0".to_vec(),
        ..handle
    };
    assert_eq!(
        types.signature_of(&copy.raw, Convention::C),
        Err(NoSignature::IsChanged)
    );
    let other = Function {
        raw: b"nothing".to_vec(),
        ..copy
    };
    assert_eq!(
        types.signature_of(&other.raw, Convention::C),
        Err(NoSignature::NoSuchFunction)
    );
}

#[test]
fn damaged_ones_are_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(0x7e5);
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let Some(path) = compile(directory.path(), "types.c", "types", &[version]) else {
            return;
        };
        let whole = std::fs::read(path).unwrap();
        let object = Object::from_source(Source::Memory(whole.clone().into())).unwrap();
        let parts: Vec<(usize, usize)> = [&b".debug_info"[..], b".debug_abbrev", b".debug_str"]
            .iter()
            .filter_map(|name| object.section_by_name(name))
            .map(|section| (section.offset as usize, section.size as usize))
            .collect();
        let symbols = ElfSymbols::from_object(object).unwrap();
        let functions = ["handle", "made", "main"].map(|name| function(&symbols, name));
        for _ in 0..400 {
            let mut bytes = whole.clone();
            for _ in 0..=random.index(6) {
                let (start, len) = parts[random.index(parts.len())];
                bytes[start + random.index(len)] = random.byte();
            }
            let Some(types) = types(bytes) else { continue };
            for function in &functions {
                let told = [
                    at(&types, function),
                    types.signature_of(&function.raw, Convention::C),
                ];
                told.into_iter()
                    .flatten()
                    .for_each(|told| ask(&types, &told));
            }
            for name in ["job", "job_t", "state"] {
                let named = types.named(name);
                _ = named.map(|named| (types.shape(named), types.member(named, "z")));
            }
            let anywhere = (random.index(1 << 16) as u64) << random.index(48);
            _ = (types.shape(anywhere), types.member(anywhere, "tag"));
        }
    }
}

/// Makes every kind of query about a function's parameters.
fn ask(types: &DebugTypes, told: &Signature) {
    let kinds = told
        .parameters
        .iter()
        .filter_map(|parameter| parameter.kind);
    for kind in kinds.chain(told.returns) {
        let mut next = Some(kind);
        for _ in 0..4 {
            let Some(kind) = next else { break };
            next = match types.shape(kind) {
                Some(Shape::Pointer(to)) => to,
                _ => None,
            };
            for name in ["id", "y", "next", "state", "nothing"] {
                let member = types.member(kind, name);
                _ = member.map(|member| types.shape(member.kind));
            }
        }
    }
}
