//! `_init` and `_fini`, which the C library's start files put together from pieces that have no
//! unwind information, and the first instruction of the dynamic linker, which has none either. They
//! consist of a few instructions, always the same: these are recognised, everything else is
//! ignored.

mod aarch64;
mod x86_64;

use super::collect::Collector;
use super::machine::Machine;
use super::rule::UnwindRule;
use crate::OpenError;
use crate::object::Object;

/// Maximum length: longer ones contain pieces of other origin.
const BYTES_MAX: u64 = 64;

/// Adds their rules, if they have the expected form.
pub fn read(object: &Object, collector: &mut Collector) -> Result<(), OpenError> {
    first_instruction(object, collector)?;
    for name in [b".init".as_slice(), b".fini"] {
        let Some(section) = object.section_by_name(name) else {
            continue;
        };
        // Without bytes, as in debug files, or of an unexpected form.
        if section.is_compressed() || section.size > BYTES_MAX {
            continue;
        }
        let Ok(code) = object.section_data(section, BYTES_MAX, ".init") else {
            continue;
        };
        let rows = match collector.machine {
            Machine::X86_64 => x86_64::rows(&code),
            Machine::Aarch64 => aarch64::rows(&code),
        };
        let Some(rows) = rows else {
            continue;
        };
        if collector.open(section.addr, code.len() as u64) {
            for (at, rule) in rows {
                collector.add(section.addr.saturating_add(at), || rule);
            }
            collector.close()?;
        }
    }
    Ok(())
}

/// Adds a rule for the first instruction alone: its caller would be found by the frame pointer,
/// which is zero there.
fn first_instruction(object: &Object, collector: &mut Collector) -> Result<(), OpenError> {
    let first = first_function(object, collector.machine);
    if let Some(first) = first.filter(|first| collector.open(*first, 1)) {
        collector.add(first, || UnwindRule::EndOfStack);
        collector.close()?;
    }
    Ok(())
}

/// Returns the address of the program's first function, if the entry point is one: the entry point of
/// a library is just the first byte of its code.
pub fn first_function(object: &Object, machine: Machine) -> Option<u64> {
    let (entry, segments) = (object.entry(), object.segments());
    let offset = segments.to_file(entry);
    let offset = offset.filter(|_| segments.is_executable(entry))?;
    let mut code = [0; 8];
    let read = object.source().read_some(offset.0, &mut code);
    let begins_a_program = match machine {
        Machine::X86_64 => x86_64::begins_a_program,
        Machine::Aarch64 => aarch64::begins_a_program,
    };
    begins_a_program(&code[..read]).then_some(entry.0)
}
