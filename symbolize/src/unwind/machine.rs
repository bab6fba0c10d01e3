//! The machines whose unwind information is supported, and the meaning of a row of call frame
//! information on each.

mod aarch64;
mod x86_64;

use gimli::{UnwindExpression, Vendor};
use object::elf;

use super::program::{RowRules, Tracked};
use super::rule::{Unsupported, UnwindRule};
use crate::object::Object;

/// A machine whose unwind information is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Machine {
    /// 64-bit x86.
    #[default]
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Machine {
    /// Returns the machine of a file; `None` if it is not supported.
    pub fn of(object: &Object) -> Option<Machine> {
        match elf::Machine(object.machine()) {
            elf::EM_X86_64 => Some(Machine::X86_64),
            elf::EM_AARCH64 => Some(Machine::Aarch64),
            _ => None,
        }
    }

    /// The vendor whose extensions of DWARF's instructions are used.
    pub fn vendor(self) -> Vendor {
        match self {
            Machine::X86_64 => Vendor::Default,
            Machine::Aarch64 => Vendor::AArch64,
        }
    }

    /// The registers that rules are kept for.
    pub fn tracked(self) -> Tracked {
        match self {
            Machine::X86_64 => x86_64::TRACKED,
            Machine::Aarch64 => aarch64::TRACKED,
        }
    }

    /// Converts a row to a rule. `section` contains the expressions. `signal` is the CIE's
    /// augmentation `S`. `with_rbx` requests the place of rbx as well, if the machine has it.
    pub fn rule(
        self,
        state: &RowRules,
        section: &[u8],
        signal: bool,
        with_rbx: bool,
    ) -> UnwindRule {
        match self {
            Machine::X86_64 => x86_64::rule(state, section, signal, with_rbx),
            Machine::Aarch64 => aarch64::rule(state, section, signal),
        }
    }
}

fn narrow(offset: i64) -> Result<i32, Unsupported> {
    offset.try_into().map_err(|_| Unsupported::Offset)
}

/// Returns the bytes of an expression; empty, which is no known form, if it is outside of the
/// section.
fn bytes(section: &[u8], expression: UnwindExpression<usize>) -> &[u8] {
    let rest = section.get(expression.offset..).unwrap_or_default();
    rest.get(..expression.length).unwrap_or_default()
}
