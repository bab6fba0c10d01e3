//! Code of AArch64 that has no unwind information in any file: the stubs of the procedure linkage
//! table (linkers of x86-64 describe theirs), and the function to which signal handlers return, if
//! the kernel does not describe it.

use super::collect::Collector;
use super::machine::Machine;
use super::rule::{Linked, Saved, UnwindRule};
use crate::OpenError;
use crate::bytes::u32_in;
use crate::object::{Object, Section};

/// Maximum size of the stubs; each imported function has 16 bytes.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// Maximum size of code that is searched for the return of a signal: the vDSO has some KiB, the C
/// library of musl 0.6 MiB. Other files have it described, or do not have it.
const SEARCHED_BYTES_MAX: u64 = 1 << 20;

/// `mov x8, #139; svc #0`: the call `rt_sigreturn`.
const SIGNAL_RETURN: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// Bytes of an instruction.
const INSTRUCTION: u64 = 4;

/// Length of the first stub, which resolves functions.
const FIRST_BYTES: usize = 32;

/// `stp x16, x30, [sp, #-16]!`, the beginning of the first stub, possibly after a `bti c`.
const SAVE: u32 = 0xa9bf_7bf0;

/// Adds their rules, if there are any.
pub fn read(object: &Object, collector: &mut Collector) -> Result<(), OpenError> {
    if collector.machine != Machine::Aarch64 {
        return Ok(());
    }
    for section in object.sections() {
        let is_table = matches!(object.section_name(section), b".plt" | b".iplt");
        if is_table && section.is_executable() {
            linkage_table(object, section, collector)?;
        }
    }
    signal_return(object, collector)
}

/// Adds the stubs. They use no stack, and jump with an unchanged link register.
fn linkage_table(
    object: &Object,
    section: &Section,
    collector: &mut Collector,
) -> Result<(), OpenError> {
    let head = section.size.min(FIRST_BYTES as u64);
    let code = object.section_data(section, TABLE_BYTES_MAX, "linkage table");
    let (Ok(code), true) = (code, collector.open(section.addr, section.size)) else {
        return Ok(());
    };
    collector.add(section.addr, || frame(0, Saved::Not));
    let begin = code.get(..head as usize).unwrap_or_default();
    let saves = (0..8)
        .step_by(4)
        .find(|at| u32_in(begin, *at) == Some(SAVE));
    if let Some(at) = saves {
        let saved = section.addr + at as u64 + INSTRUCTION;
        collector.add(saved, || frame(16, Saved::AtCfa(-8)));
        collector.add(section.addr + head, || frame(0, Saved::Not));
    }
    collector.close()
}

/// Adds the return of a signal. Its range includes the instruction before, because handlers return
/// to its very first byte and the byte before is looked up, and the address after it, where a
/// thread would continue after the system call at its end.
fn signal_return(object: &Object, collector: &mut Collector) -> Result<(), OpenError> {
    let executable = object.segments().iter().filter(|code| code.executable);
    for code in executable {
        if code.filesz > SEARCHED_BYTES_MAX {
            continue;
        }
        let Ok(bytes) = object.source().read(code.offset, code.filesz, "code") else {
            continue;
        };
        for found in memchr::memmem::find_iter(&bytes, &SIGNAL_RETURN) {
            let at = code.vaddr.saturating_add(found as u64);
            let start = at.saturating_sub(INSTRUCTION);
            let length = INSTRUCTION + SIGNAL_RETURN.len() as u64 + 1;
            if at.is_multiple_of(INSTRUCTION) && collector.open(start, length) {
                collector.add(start, || UnwindRule::Signal);
                collector.close()?;
            }
        }
    }
    Ok(())
}

fn frame(offset: i32, x30: Saved) -> UnwindRule {
    UnwindRule::Linked(Linked::from_sp(offset, Saved::Not, x30))
}
