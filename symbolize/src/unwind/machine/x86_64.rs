//! Converts a row of call frame information of x86-64 to a rule.

use gimli::{CfaRule, RegisterRule, X86_64};

use super::{bytes, narrow};
use crate::unwind::expression;
use crate::unwind::program::{RowRules, Tracked};
use crate::unwind::rule::{Cfa, RbpRule, RbxRule, Register, Unsupported, UnwindRule};

/// The registers that rules are kept for.
pub const TRACKED: Tracked = Tracked {
    frame_pointer: X86_64::RBP,
    other_base: X86_64::RBX,
    return_address: X86_64::RA,
};

/// Offset of the interrupted `rsp` in the `struct ucontext` that the kernel pushes
/// (arch/x86/include/uapi/asm/sigcontext.h).
const UCONTEXT_RSP: i64 = 160;

/// Converts a row to a rule. `section` contains the expressions. `signal` is the CIE's augmentation
/// `S`. `with_rbx` requests the place of rbx as well.
pub fn rule(state: &RowRules, section: &[u8], signal: bool, with_rbx: bool) -> UnwindRule {
    let rule = if signal {
        signal_frame(state, section)
    } else {
        frame(state, section)
    };
    match rule.unwrap_or_else(UnwindRule::Unsupported) {
        UnwindRule::Frame { cfa, rbp } if with_rbx => UnwindRule::FrameWithRbx {
            cfa,
            rbp,
            rbx: rbx(state.other_base.as_ref()),
        },
        rule => rule,
    }
}

fn rbx(rule: Option<&RegisterRule<usize>>) -> RbxRule {
    match rule {
        None | Some(RegisterRule::SameValue) => RbxRule::Same,
        Some(RegisterRule::Offset(offset)) => narrow(*offset).map_or(RbxRule::Lost, RbxRule::AtCfa),
        Some(_) => RbxRule::Lost,
    }
}

fn frame(state: &RowRules, section: &[u8]) -> Result<UnwindRule, Unsupported> {
    match state.return_address {
        Some(RegisterRule::Offset(-8)) => {}
        Some(RegisterRule::Undefined) => return Ok(UnwindRule::EndOfStack),
        Some(RegisterRule::Register(register)) => return return_in(register, state),
        _ => return Err(Unsupported::ReturnAddress),
    }
    let rbp = rbp(state.frame_pointer.as_ref(), section)?;
    let cfa = match state.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Cfa {
            base: base(register.0)?,
            deref: false,
            offset: narrow(offset)?,
            addend: 0,
        },
        CfaRule::Expression(expression) => {
            let bytes = bytes(section, expression);
            if let (Some(limit), RbpRule::Same) = (expression::plt_limit(bytes), rbp) {
                return Ok(UnwindRule::Plt { limit });
            }
            cfa(bytes)?
        }
    };
    Ok(UnwindRule::Frame { cfa, rbp })
}

/// Accepts a return address in a register only if everything else has its simplest form.
fn return_in(register: gimli::Register, state: &RowRules) -> Result<UnwindRule, Unsupported> {
    let is_same = matches!(
        state.frame_pointer,
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue)
    );
    match (Register::from_dwarf(register.0), state.cfa()) {
        (
            Some(register),
            CfaRule::RegisterAndOffset {
                register: X86_64::RSP,
                offset,
            },
        ) if is_same => Ok(UnwindRule::ReturnInRegister {
            register,
            offset: narrow(offset)?,
        }),
        _ => Err(Unsupported::ReturnAddress),
    }
}

fn cfa(bytes: &[u8]) -> Result<Cfa, Unsupported> {
    let address = expression::address(bytes).ok_or(Unsupported::CfaExpression)?;
    Ok(Cfa {
        base: base(address.register)?,
        deref: address.deref,
        offset: narrow(address.offset)?,
        addend: narrow(address.addend)?,
    })
}

fn rbp(rule: Option<&RegisterRule<usize>>, section: &[u8]) -> Result<RbpRule, Unsupported> {
    match rule {
        // A function may leave rbp unchanged without saying so. One that overwrites it says
        // "undefined"; its callers then have their CFA from rsp.
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Ok(RbpRule::Same),
        Some(RegisterRule::Offset(offset)) => Ok(RbpRule::AtCfa(narrow(*offset)?)),
        Some(RegisterRule::Expression(expression)) => {
            let address = expression::address(bytes(section, *expression));
            let address = address
                .filter(|address| address.register == X86_64::RBP.0 && !address.deref)
                .ok_or(Unsupported::RbpExpression)?;
            Ok(RbpRule::AtRbp(narrow(address.offset)?))
        }
        Some(_) => Err(Unsupported::RbpRule),
    }
}

/// In the C library's `__restore_rt` all registers have expressions that find them in the `struct
/// ucontext`. The one of `rsp` identifies it.
fn signal_frame(state: &RowRules, section: &[u8]) -> Result<UnwindRule, Unsupported> {
    let CfaRule::Expression(expression) = state.cfa() else {
        return Err(Unsupported::SignalFrame);
    };
    let rsp = expression::Address {
        register: X86_64::RSP.0,
        offset: UCONTEXT_RSP,
        deref: true,
        addend: 0,
    };
    if expression::address(bytes(section, expression)) == Some(rsp) {
        Ok(UnwindRule::Signal)
    } else {
        Err(Unsupported::SignalFrame)
    }
}

fn base(register: u16) -> Result<Register, Unsupported> {
    Register::from_dwarf(register).ok_or(Unsupported::CfaRegister)
}
