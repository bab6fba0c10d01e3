//! One step of unwinding from made-up registers and memory, by a rule and by
//! gimli. Two descriptions of a frame that mean the same give the same caller.

use gimli::{AArch64, CfaRule, Encoding, EvaluationResult, Location, Register, RegisterRule};
use gimli::{UnwindExpression, UnwindSection, Value, Vendor, X86_64};
use symbolize::object::Object;
use symbolize::unwind::{RbpRule, Saved, UnwindRule};

use super::oracle::{Bytes, Row};

/// The result of one step: values of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    pub cfa: u64,
    pub frame_pointer: u64,
    pub return_address: u64,
}

/// The DWARF numbers of the registers that unwinding finds.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    pub vendor: Vendor,
    pub frame_pointer: Register,
    pub stack_pointer: Register,
    pub return_address: Register,
}

impl Machine {
    pub fn of(object: &Object) -> Machine {
        match object.machine() {
            183 => Machine {
                vendor: Vendor::AArch64,
                frame_pointer: AArch64::X29,
                stack_pointer: AArch64::SP,
                return_address: AArch64::X30,
            },
            _ => Machine {
                vendor: Vendor::Default,
                frame_pointer: X86_64::RBP,
                stack_pointer: X86_64::RSP,
                return_address: X86_64::RA,
            },
        }
    }
}

/// Registers by DWARF number; x86-64 has 17, `rip` being the last, AArch64 32.
#[derive(Debug, Clone, Copy)]
pub struct Registers([u64; 32]);

impl Registers {
    /// Makes values that are so far apart that no small offset leads from one to another.
    pub fn with_rip(rip: u64) -> Registers {
        let mut registers = [0; 32];
        for (number, value) in (1..).zip(&mut registers) {
            *value = number << 40;
        }
        registers[16] = rip;
        Registers(registers)
    }

    fn get(&self, number: u16) -> Option<u64> {
        self.0.get(usize::from(number)).copied()
    }
}

/// The word at an address: any function of the address will do.
fn memory(addr: u64) -> u64 {
    (addr ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Makes a step by a rule. `None` if the rule leads to no caller.
pub fn by_rule(rule: UnwindRule, registers: &Registers) -> Option<Caller> {
    let rip = registers.0[16];
    let rsp = registers.get(X86_64::RSP.0)?;
    let rbp = registers.get(X86_64::RBP.0)?;
    let at = |addr: u64, offset: i32| memory(addr.wrapping_add_signed(offset.into()));
    match rule {
        UnwindRule::Frame { cfa, rbp: saved }
        | UnwindRule::FrameWithRbx {
            cfa, rbp: saved, ..
        } => {
            let base = registers.get(cfa.base as u16)?;
            let cfa = if cfa.deref {
                at(base, cfa.offset).wrapping_add_signed(cfa.addend.into())
            } else {
                base.wrapping_add_signed(cfa.offset.into())
            };
            Some(Caller {
                cfa,
                frame_pointer: match saved {
                    RbpRule::Same => rbp,
                    RbpRule::AtCfa(offset) => at(cfa, offset),
                    RbpRule::AtRbp(offset) => at(rbp, offset),
                },
                return_address: at(cfa, -8),
            })
        }
        UnwindRule::Plt { limit } => {
            let pushed = if rip & 15 >= limit.into() { 8 } else { 0 };
            let cfa = rsp + 8 + pushed;
            Some(Caller {
                cfa,
                frame_pointer: rbp,
                return_address: at(cfa, -8),
            })
        }
        // struct ucontext: uc_mcontext.rsp, .rbp, .rip
        UnwindRule::Signal => Some(Caller {
            cfa: at(rsp, 160),
            frame_pointer: at(rsp, 120),
            return_address: at(rsp, 168),
        }),
        UnwindRule::Linked(frame) => {
            let base = registers.get(frame.base.into())?;
            let cfa = base.wrapping_add_signed(frame.offset.into());
            let of = |saved, register: Register| match saved {
                Saved::Not => registers.get(register.0),
                Saved::AtCfa(offset) => Some(at(cfa, offset)),
            };
            Some(Caller {
                cfa,
                frame_pointer: of(frame.x29, AArch64::X29)?,
                return_address: of(frame.x30, AArch64::X30)?,
            })
        }
        UnwindRule::Hole
        | UnwindRule::LinkOnly
        | UnwindRule::EndOfStack
        | UnwindRule::Unsupported(_)
        | UnwindRule::ReturnInRegister { .. }
        | UnwindRule::StackSwitch
        | UnwindRule::CgoCall { .. }
        | UnwindRule::Goroutine(_) => None,
    }
}

/// Makes a step by gimli. `None` if there is no caller, or an expression fails.
pub fn by_gimli<'d, S: UnwindSection<Bytes<'d>>>(
    row: &Row,
    section: &S,
    encoding: Encoding,
    registers: &Registers,
    machine: &Machine,
) -> Option<Caller> {
    let evaluate = |expression: &UnwindExpression<usize>, cfa| {
        evaluate(expression, section, encoding, registers, cfa)
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            registers.get(register.0)?.wrapping_add_signed(*offset)
        }
        CfaRule::Expression(expression) => evaluate(expression, None)?,
    };
    let register = |register: Register| match row.register(register) {
        None | Some(RegisterRule::SameValue) => registers.get(register.0),
        Some(RegisterRule::Undefined) if register == machine.return_address => None,
        Some(RegisterRule::Undefined) => registers.get(register.0),
        Some(RegisterRule::Offset(offset)) => Some(memory(cfa.wrapping_add_signed(offset))),
        Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
        Some(RegisterRule::Register(other)) => registers.get(other.0),
        Some(RegisterRule::Expression(e)) => evaluate(&e, Some(cfa)).map(memory),
        Some(RegisterRule::ValExpression(e)) => evaluate(&e, Some(cfa)),
        Some(_) => None,
    };
    Some(Caller {
        cfa,
        frame_pointer: register(machine.frame_pointer)?,
        return_address: register(machine.return_address)?,
    })
}

fn evaluate<'d, S: UnwindSection<Bytes<'d>>>(
    expression: &UnwindExpression<usize>,
    section: &S,
    encoding: Encoding,
    registers: &Registers,
    initial: Option<u64>,
) -> Option<u64> {
    let mut evaluation = expression.get(section).ok()?.evaluation(encoding);
    evaluation.set_max_iterations(1000);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut state = evaluation.evaluate().ok()?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = registers.get(register.0)?;
                evaluation.resume_with_register(Value::Generic(value))
            }
            EvaluationResult::RequiresMemory {
                address, size: 8, ..
            } => evaluation.resume_with_memory(Value::Generic(memory(address))),
            _ => return None,
        }
        .ok()?;
    }
    match evaluation.result().first()?.location {
        Location::Address { address } => Some(address),
        _ => None,
    }
}
