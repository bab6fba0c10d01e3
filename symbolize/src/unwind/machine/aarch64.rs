//! Converts a row of call frame information of AArch64 to a rule (DWARF for the Arm 64-bit
//! Architecture).
//!
//! Whether a return address is signed is encoded by `DW_CFA_AARCH64_negate_ra_state`, which is
//! ignored: the walk removes the signature bits of every address.

use gimli::{AArch64, CfaRule, RegisterRule};

use super::{bytes, narrow};
use crate::unwind::expression;
use crate::unwind::program::{RowRules, Tracked};
use crate::unwind::rule::{Linked, Saved, Unsupported, UnwindRule};

/// The registers that rules are kept for.
pub const TRACKED: Tracked = Tracked {
    frame_pointer: AArch64::X29,
    // Its rule is never used.
    other_base: AArch64::X28,
    return_address: AArch64::X30,
};

/// Converts a row as described at [`Machine::rule`](super::Machine::rule).
pub fn rule(state: &RowRules, section: &[u8], signal: bool) -> UnwindRule {
    // All such frames have the same layout, and the rules in the vDSO do not lead to the registers
    // (arch/arm64/kernel/vdso/sigreturn.S).
    if signal {
        return UnwindRule::Signal;
    }
    frame(state, section).unwrap_or_else(UnwindRule::Unsupported)
}

fn frame(state: &RowRules, section: &[u8]) -> Result<UnwindRule, Unsupported> {
    let x30 = match state.return_address {
        None | Some(RegisterRule::SameValue | RegisterRule::Register(AArch64::X30)) => Saved::Not,
        Some(RegisterRule::Undefined) => return Ok(UnwindRule::EndOfStack),
        Some(RegisterRule::Offset(offset)) => Saved::AtCfa(narrow(offset)?),
        Some(_) => return Err(Unsupported::ReturnAddress),
    };
    let x29 = match state.frame_pointer {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Saved::Not,
        Some(RegisterRule::Offset(offset)) => Saved::AtCfa(narrow(offset)?),
        Some(RegisterRule::Expression(_)) => return Err(Unsupported::RbpExpression),
        Some(_) => return Err(Unsupported::RbpRule),
    };
    let (base, offset) = match state.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => (register.0, offset),
        CfaRule::Expression(expression) => {
            let address = expression::address(bytes(section, expression));
            let address = address
                .filter(|address| !address.deref)
                .ok_or(Unsupported::CfaExpression)?;
            (address.register, address.offset)
        }
    };
    let base = u8::try_from(base)
        .ok()
        .filter(|base| *base <= AArch64::SP.0 as u8);
    Ok(UnwindRule::Linked(Linked {
        base: base.ok_or(Unsupported::CfaRegister)?,
        offset: narrow(offset)?,
        x29,
        x30,
    }))
}
