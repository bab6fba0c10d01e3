//! Compares the rules that are derived from code with those that compilers wrote for the same code:
//! as if a file had no unwind information.
//!
//! `PROFTOP_X86_64_FILES=FILE:FILE cargo test -p symbolize by_code::x86_64::compilers -- --nocapture`
//! compares other files than a static program.

use super::*;
use crate::OpenError;
use crate::object::Object;
use crate::unwind::by_code::compared::{Compared, files};
use crate::unwind::by_code::{CODE_BYTES_MAX, symbols};
use crate::unwind::collect::Collector;
use crate::unwind::machine::Machine;
use crate::unwind::rule::RbpRule;
use crate::unwind::{eh_frame, flatten};
use std::fs::File;
use std::path::Path;
use test_support::Scratch;

#[test]
fn the_code_says_what_compilers_say() {
    let scratch = Scratch::new();
    for file in files("PROFTOP_X86_64_FILES", "cc", &scratch).unwrap_or_default() {
        // Differences are mostly in parts of functions that are seldom executed, whose functions
        // were not found, and after calls that do not return. Where exceptions are caught, code that
        // only the tables for these lead to is taken for functions: such files have `.eh_frame`.
        compare(&file).unwrap().check(&file, 98);
    }
}

fn compare(path: &Path) -> Result<Compared, OpenError> {
    let object = Object::read(&File::open(path).unwrap())?;
    let mut compiled = Collector::of(Machine::X86_64);
    eh_frame::read(&object, &mut compiled)?;
    let known = flatten::flatten(compiled.take());
    let rules = compiled.rules.into_list();
    let text = object.section_by_name(b".text").unwrap();
    let code = object.section_data(text, CODE_BYTES_MAX, "code")?;
    let mut starts = called(&code, text.addr);
    symbols::add_functions(&object, &mut starts);
    let by_code = rows(
        &code,
        text.addr,
        starts.range(text.addr..text.end()).copied(),
        None,
    );
    let mut compared = Compared::default();
    let mut decoder = Decoder::with_ip(64, &code, text.addr, DecoderOptions::NONE);
    while decoder.can_decode() {
        let at = decoder.ip();
        let instruction = decoder.decode();
        let row = known.partition_point(|row| u64::from(row.start) <= at);
        let Some(row) = row.checked_sub(1) else {
            continue;
        };
        let expected = rules[usize::from(known[row].rule.0)];
        if expected == UnwindRule::Hole || is_padding(&instruction) {
            continue;
        }
        let row = by_code.partition_point(|(start, _)| *start <= at) - 1;
        let found = by_code[row].1;
        if is_same(&found, &expected) {
            compared.same += 1;
        } else if found == UnwindRule::Hole {
            compared.holes += 1;
        } else {
            compared.differs(|| format!("{at:#x}: {found:?}, and not {expected:?}"));
        }
    }
    Ok(compared)
}

/// The two may use different base registers, so that their CFAs cannot be compared. Where rbp was
/// loaded already, compilers may say that it is on the stack still, below the stack pointer.
fn is_same(found: &UnwindRule, expected: &UnwindRule) -> bool {
    let (
        UnwindRule::Frame { cfa, rbp },
        UnwindRule::Frame {
            cfa: expected_cfa,
            rbp: expected_rbp,
        },
    ) = (found, expected)
    else {
        return found == expected;
    };
    // They may also say later that it was saved, as long as it is unchanged.
    let is_saved = *expected_rbp == RbpRule::Same;
    let is_loaded = matches!(expected_rbp, RbpRule::AtCfa(at) if -at > cfa.offset);
    let is_same_rbp = rbp == expected_rbp || is_saved || *rbp == RbpRule::Same && is_loaded;
    cfa.base != expected_cfa.base || cfa == expected_cfa && is_same_rbp
}
