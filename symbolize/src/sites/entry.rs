//! Chooses the instruction that stands for a call of its function.

use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};

use super::code::{Code, can_be_probed, class_of, is_call, written};
use super::{Class, Ends, Kind, Refusal, Site, Wish};
use crate::ElfSymbols;

/// Maximum number of instructions from the start that are considered.
const LOOKED_AT: usize = 32;

const RSP: u16 = 1 << 4;

/// The chosen instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Index of the instruction in the function.
    pub number: usize,
    /// Bytes between the stack pointer here and at the function's entry.
    pub pushed: u32,
    kind: Kind,
    unless_taken: bool,
}

impl Entry {
    /// Converts it to a site in the file.
    pub fn site(self, symbols: &ElfSymbols, code: &Code) -> Result<Site, Refusal> {
        Ok(Site {
            unless_taken: self.unless_taken,
            // In Go a branch to the start is how the function starts again with a larger stack.
            repeats: !self.unless_taken && code.begins_with_a_loop(),
            ..code.site(symbols, self.number, self.kind, self.pushed)?
        })
    }
}

/// Chooses the first emulated instruction that runs exactly once per call and satisfies `wish`;
/// without one, the first such instruction that the kernel single-steps.
pub fn choose(code: &Code, wish: Wish) -> Option<Entry> {
    let mut info = InstructionInfoFactory::new();
    let mut pushed = 0;
    let mut stepped = None;
    for (number, instruction) in code.instructions.iter().enumerate().take(LOOKED_AT) {
        // 1. If control can come back here, a call would be counted again.
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
        // 2. Not every call passes an instruction after a branch.
        if instruction.flow_control() != FlowControl::Next {
            break;
        }
        // 3. The wished registers must be unchanged.
        let changed = written(instruction, &mut info);
        if changed & wish.whole & !RSP != 0 {
            break;
        }
        // 4. The return address must be where it was at the entry, or at a known distance.
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

/// Whether control cannot reach the instruction from elsewhere. A jump with an unknown target could
/// lead anywhere, but not to a `push` of the prologue: then the stack would not match the epilogue.
fn is_sure(code: &Code, number: usize) -> bool {
    let instruction = &code.instructions[number];
    number == 0 || !code.has_indirect_jumps || instruction.mnemonic() == Mnemonic::Push
}

/// Returns by how much an instruction makes the stack grow; `None` if unknown.
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

/// Finds the branch after the stack check with which most functions of Go begin:
///
/// ```text
/// cmp  0x10(%r14),%rsp        lea  -0x40(%rsp),%r12
/// jbe  morestack              cmp  0x10(%r14),%r12
///                             jbe  morestack
/// ```
///
/// It is emulated. It runs a second time if the stack had to be enlarged: then the branch was taken
/// the first time.
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
