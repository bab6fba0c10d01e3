//! Compares the rules that are derived from code with those that compilers wrote for the same code:
//! as if a file had no unwind information.
//!
//! `PROFTOP_AARCH64_FILES=FILE:FILE cargo test -p symbolize by_code::aarch64::compilers -- --nocapture`
//! compares other files than a static program.

use super::*;
use crate::OpenError;
use crate::object::Object;
use crate::unwind::by_code::CODE_BYTES_MAX;
use crate::unwind::by_code::compared::{Compared, files};
use crate::unwind::collect::Collector;
use crate::unwind::machine::Machine;
use crate::unwind::rule::{Linked, Saved};
use crate::unwind::{eh_frame, flatten};
use std::fs::File;
use std::path::Path;
use test_support::Scratch;

#[test]
fn the_code_says_what_compilers_say() {
    let scratch = Scratch::new();
    for file in
        files("PROFTOP_AARCH64_FILES", "aarch64-linux-gnu-gcc", &scratch).unwrap_or_default()
    {
        // Differences are after calls that do not return, where nothing shows that another function
        // begins.
        compare(&file).unwrap().check(&file, 97);
    }
}

fn compare(path: &Path) -> Result<Compared, OpenError> {
    let object = Object::read(&File::open(path).unwrap())?;
    let mut compiled = Collector::of(Machine::Aarch64);
    eh_frame::read(&object, &mut compiled)?;
    let known = flatten::flatten(compiled.take());
    let rules = compiled.rules.into_list();
    let text = object.section_by_name(b".text").unwrap();
    let code = object.section_data(text, CODE_BYTES_MAX, "code")?;
    let called = called(&code, text.addr);
    let by_code = rows(&code, text.addr, called.into_iter());
    let mut compared = Compared::default();
    let mut saved = Saved::Not;
    for at in (text.addr..text.end()).step_by(BYTES as usize) {
        let row = known.partition_point(|row| u64::from(row.start) <= at);
        let Some(row) = row.checked_sub(1) else {
            continue;
        };
        let UnwindRule::Linked(expected) = rules[usize::from(known[row].rule.0)] else {
            continue;
        };
        let row = by_code.partition_point(|(start, _)| *start <= at) - 1;
        let rule = by_code[row].1;
        match rule {
            UnwindRule::Linked(found) if is_same(&found, &expected, saved) => compared.same += 1,
            UnwindRule::Linked(found) => {
                compared.differs(|| format!("{at:#x}: {found:?}, and not {expected:?}"));
            }
            _ => compared.holes += 1,
        }
        if let UnwindRule::Linked(Linked {
            x30: place @ Saved::AtCfa(_),
            ..
        }) = rule
        {
            saved = place;
        }
    }
    Ok(compared)
}

/// The two may use different base registers, so that their CFAs cannot be compared. Where x29 and
/// x30 were just loaded, compilers may say that they are on the stack until `sp` is raised: they
/// still are.
fn is_same(found: &Linked, expected: &Linked, saved: Saved) -> bool {
    let is_same_base = found.base == expected.base;
    let is_same_link = found.x29 == expected.x29 && found.x30 == expected.x30;
    let is_loaded = found.x30 == Saved::Not && expected.x30 == saved;
    (is_same_link || is_loaded) && (!is_same_base || found.offset == expected.offset)
}
