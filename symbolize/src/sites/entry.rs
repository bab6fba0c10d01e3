//! The instruction that stands for a call of its function.

use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};

use super::code::{Code, can_be_probed, class_of, is_call, written};
use super::{Class, Ends, Kind, Refusal, Site, Wish};
use crate::ElfSymbols;

/// How far behind the start a site may be.
const LOOKED_AT: usize = 32;

const RSP: u16 = 1 << 4;

/// Which instruction was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub number: usize,
    pub pushed: u32,
    kind: Kind,
    unless_taken: bool,
}

impl Entry {
    /// The place of it in the file.
    pub fn site(self, symbols: &ElfSymbols, code: &Code) -> Result<Site, Refusal> {
        Ok(Site {
            unless_taken: self.unless_taken,
            // In Go that is how it goes on with a larger stack.
            repeats: !self.unless_taken && code.begins_with_a_loop(),
            ..code.site(symbols, self.number, self.kind, self.pushed)?
        })
    }
}

/// The first emulated instruction that runs exactly once a call, with what is wished
/// still as the caller left it; else the first such that the kernel runs by a step.
pub fn choose(code: &Code, wish: Wish) -> Option<Entry> {
    let mut info = InstructionInfoFactory::new();
    let mut pushed = 0;
    let mut stepped = None;
    for (number, instruction) in code.instructions.iter().enumerate().take(LOOKED_AT) {
        // 1. Whoever comes back here would be counted again.
        if code.is_reached_again(number) {
            break;
        }
        let is_spared = wish.spares_calls && is_call(instruction);
        if can_be_probed(instruction) && is_sure(code, number) && !is_spared {
            let entry = Entry {
                number,
                pushed,
                kind: if number == 0 {
                    Kind::Entry
                } else {
                    Kind::AfterPrologue
                },
                unless_taken: false,
            };
            if class_of(instruction) == Class::Emulated {
                return Some(entry);
            }
            stepped = stepped.or(Some(entry));
        }
        // 2. Behind a branch not every call comes by.
        if instruction.flow_control() != FlowControl::Next {
            break;
        }
        // 3. What is wished has to be there still.
        let changed = written(instruction, &mut info);
        if changed & wish.whole & !RSP != 0 {
            break;
        }
        // 4. The return address has to be where it was, or known to be.
        if changed & RSP != 0 {
            let is_free = wish.ends != Ends::Replaced;
            let Some(bytes) = grown(instruction).filter(|_| is_free) else {
                break;
            };
            pushed += bytes;
        }
    }
    stepped
}

/// A jump whose target is not written in it could lead anywhere, but not to a
/// `push` of the prologue: the stack would not be what the epilogue takes off.
fn is_sure(code: &Code, number: usize) -> bool {
    let instruction = &code.instructions[number];
    number == 0 || !code.has_indirect_jumps || instruction.mnemonic() == Mnemonic::Push
}

/// By how much an instruction makes the stack grow, if it says so.
fn grown(instruction: &Instruction) -> Option<u32> {
    match instruction.mnemonic() {
        Mnemonic::Push => Some(8),
        Mnemonic::Sub if instruction.op0_register() == Register::RSP => {
            let is_number = !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory);
            let bytes = is_number.then(|| instruction.immediate(1))?;
            u32::try_from(bytes).ok()
        }
        _ => None,
    }
}

/// The branch behind the check of the stack with which most functions of Go begin:
///
/// ```text
/// cmp  0x10(%r14),%rsp        lea  -0x40(%rsp),%r12
/// jbe  morestack              cmp  0x10(%r14),%r12
///                             jbe  morestack
/// ```
///
/// It is emulated, and runs a second time when the stack had to be made larger: then the
/// branch was taken the first time.
pub fn behind_stack_check(code: &Code, wish: Wish) -> Option<Entry> {
    let mut info = InstructionInfoFactory::new();
    let first = code.instructions.iter().take(4);
    let number = first
        .clone()
        .position(|instruction| instruction.flow_control() != FlowControl::Next)?;
    let branch = &code.instructions[number];
    let check = &code.instructions[number.checked_sub(1)?];
    let is_check = check.mnemonic() == Mnemonic::Cmp
        && check.memory_base() == Register::R14
        && check.memory_displacement64() == 0x10;
    let is_branch = branch.condition_code() == ConditionCode::be;
    let before = code.instructions[..number].iter();
    let changed = before.fold(0, |all, instruction| all | written(instruction, &mut info));
    (is_check && is_branch && changed & (wish.whole | RSP) == 0).then_some(Entry {
        number,
        pushed: 0,
        kind: Kind::Go,
        unless_taken: true,
    })
}
