//! The machines whose unwind information is read: what a row of call frame information means
//! on each.

mod aarch64;
mod x86_64;

use gimli::{UnwindExpression, Vendor};
use object::elf;

use super::program::{RowRules, Tracked};
use super::rule::{Unsupported, UnwindRule};
use crate::object::Object;

/// A machine whose unwind information is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Machine {
    #[default]
    X86_64,
    Aarch64,
}

impl Machine {
    /// That of a file; `None` for one that is not known.
    pub fn of(object: &Object) -> Option<Machine> {
        match elf::Machine(object.machine()) {
            elf::EM_X86_64 => Some(Machine::X86_64),
            elf::EM_AARCH64 => Some(Machine::Aarch64),
            _ => None,
        }
    }

    /// Whose instructions stand among those of DWARF.
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

    /// A row as a rule. `section` is where the expressions are. `signal` is the CIE's
    /// augmentation `S`. `with_rbx` asks for rbx as well, where there is one.
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

/// Empty, and so no known form, where it is not in the section.
fn bytes(section: &[u8], expression: UnwindExpression<usize>) -> &[u8] {
    let rest = section.get(expression.offset..).unwrap_or_default();
    rest.get(..expression.length).unwrap_or_default()
}
