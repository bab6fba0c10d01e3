//! A function's instructions, decoded from its start.

use std::collections::BTreeSet;

use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, Register,
};

use super::{Class, Kind, Refusal, Site};
use crate::{ElfSymbols, LinkAddr};

/// Maximum length of a function that is decoded. Handwritten ones have at most a tenth of it;
/// generated parsers and interpreters come close.
const BYTES_MAX: u64 = 1 << 20;

/// The instructions of one function.
pub struct Code {
    /// All instructions in the order of their addresses, up to the first invalid one.
    pub instructions: Vec<Instruction>,
    /// Targets of its own direct branches.
    targets: BTreeSet<u64>,
    /// Whether it has jumps whose targets are not encoded in them.
    pub has_indirect_jumps: bool,
    /// Whether all of it is instructions, and the last one ends at the function's end.
    is_whole: bool,
}

impl Code {
    /// Reads and decodes the code from `start` on.
    pub fn read(symbols: &ElfSymbols, start: LinkAddr, len: u64) -> Result<Code, Refusal> {
        let len = len.min(BYTES_MAX);
        let bytes = symbols.read_code(start, len);
        Code::decode(&bytes.map_err(|_| Refusal::Unreadable)?, start)
    }

    /// Decodes the bytes of a function whose link address is `start`.
    pub fn decode(bytes: &[u8], start: LinkAddr) -> Result<Code, Refusal> {
        let mut decoder = Decoder::with_ip(64, bytes, start.0, DecoderOptions::NONE);
        let mut code = Code {
            instructions: Vec::new(),
            targets: BTreeSet::new(),
            has_indirect_jumps: false,
            is_whole: true,
        };
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                // What follows may be data, or begin anywhere.
                code.is_whole = false;
                break;
            }
            code.note(&instruction);
            code.instructions.push(instruction);
        }
        if code.instructions.is_empty() {
            return Err(Refusal::NoCode);
        }
        Ok(code)
    }

    fn note(&mut self, instruction: &Instruction) {
        match instruction.flow_control() {
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
                self.targets.insert(instruction.near_branch_target());
            }
            FlowControl::IndirectBranch if !leaves_by_table(instruction) => {
                self.has_indirect_jumps = true;
            }
            _ => {}
        }
    }

    /// Whether a branch of the function leads to a place after its start, up to the instruction
    /// with that index.
    pub fn is_reached_again(&self, number: usize) -> bool {
        let first = self.instructions[0].ip();
        let here = self.instructions[number].ip();
        here > first && self.targets.range(first + 1..=here).next().is_some()
    }

    /// Whether a branch of the function leads back to its first instruction.
    pub fn begins_with_a_loop(&self) -> bool {
        self.targets.contains(&self.instructions[0].ip())
    }

    /// Returns the index of the instruction at `addr`.
    pub fn position(&self, addr: LinkAddr) -> Option<usize> {
        let found = self.instructions.binary_search_by_key(&addr.0, |i| i.ip());
        found.ok()
    }

    /// Makes a site at the instruction with that index.
    pub fn site(
        &self,
        symbols: &ElfSymbols,
        number: usize,
        kind: Kind,
        pushed: u32,
    ) -> Result<Site, Refusal> {
        let instruction = &self.instructions[number];
        let addr = LinkAddr(instruction.ip());
        Ok(Site {
            addr,
            offset: symbols.segments().to_file(addr).ok_or(Refusal::NoCode)?,
            kind,
            class: class_of(instruction),
            pushed,
            unless_taken: false,
            repeats: false,
        })
    }

    /// Makes a site at each `ret`, and at each jump that leaves the function. An error unless all
    /// of the code is proven to be instructions: a `ret` byte may be part of another instruction. A
    /// call that ends in a tail jump ends at the jump, before its target runs.
    pub fn ends(&self, symbols: &ElfSymbols) -> Result<Vec<Site>, Refusal> {
        if !self.is_whole {
            return Err(Refusal::NotAllCode);
        }
        let numbers = (0..self.instructions.len()).filter(|number| self.is_end(*number));
        numbers
            .map(|number| self.site(symbols, number, Kind::Inside, 0))
            .collect()
    }

    fn is_end(&self, number: usize) -> bool {
        let instruction = &self.instructions[number];
        match instruction.flow_control() {
            FlowControl::Return => can_be_probed(instruction),
            // Code that was split off continues with the same frame, and returns to the function.
            FlowControl::UnconditionalBranch => {
                let target = instruction.near_branch_target();
                !self.is_inside(target) && self.is_frame_gone(number)
            }
            FlowControl::IndirectBranch => {
                leaves_by_table(instruction) && self.is_frame_gone(number)
            }
            _ => false,
        }
    }

    fn is_inside(&self, addr: u64) -> bool {
        let first = self.instructions.first().map(|i| i.ip());
        let end = self.instructions.last().map(|i| i.next_ip());
        first.is_some_and(|first| first <= addr) && end.is_some_and(|end| addr < end)
    }

    /// Whether the instruction before removes the frame, as before a `ret`, or the function has no
    /// frame at all.
    fn is_frame_gone(&self, number: usize) -> bool {
        let before = number
            .checked_sub(1)
            .map(|before| &self.instructions[before]);
        let takes_down = |i: &Instruction| match i.mnemonic() {
            Mnemonic::Pop | Mnemonic::Leave => true,
            Mnemonic::Add => i.op0_register() == Register::RSP,
            _ => false,
        };
        let is_frame = |i: &Instruction| match i.mnemonic() {
            Mnemonic::Push => true,
            Mnemonic::Sub => i.op0_register() == Register::RSP,
            _ => false,
        };
        before.is_some_and(takes_down) || !self.instructions.iter().any(is_frame)
    }
}

/// Whether it jumps to the address in one fixed word of memory, such as a function of another file
/// (`jmp *x@GOTPCREL(%rip)`). Jumps that choose among places of the function use a register.
fn leaves_by_table(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::IndirectBranch
        && instruction.is_ip_rel_memory_operand()
}

/// Whether the kernel accepts a breakpoint on the instruction: `is_prefix_bad` and `good_insns_64`
/// of Linux's arch/x86/kernel/uprobes.c. The kernel checks that only when the file is mapped, and
/// does not report a refusal.
pub fn can_be_probed(instruction: &Instruction) -> bool {
    let has_bad_segment = matches!(
        instruction.segment_prefix(),
        Register::ES | Register::CS | Register::SS | Register::DS
    );
    let is_bad = instruction.is_privileged()
        || matches!(
            instruction.flow_control(),
            FlowControl::Interrupt | FlowControl::Exception
        );
    !instruction.has_lock_prefix() && !has_bad_segment && !is_bad
}

/// Whether it pushes a return address.
pub fn is_call(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}

/// Returns how the kernel handles an instruction under a breakpoint: `push_setup_ops` and
/// `branch_setup_ops` of Linux's arch/x86/kernel/uprobes.c.
pub fn class_of(instruction: &Instruction) -> Class {
    let is_emulated = match instruction.mnemonic() {
        // The only allowed prefix is the one for the upper registers.
        Mnemonic::Push => instruction.code() == Opcode::Push_r64 && instruction.len() <= 2,
        Mnemonic::Nop => true,
        _ => match instruction.flow_control() {
            FlowControl::ConditionalBranch => instruction.is_jcc_short_or_near(),
            FlowControl::UnconditionalBranch => instruction.is_jmp_short_or_near(),
            FlowControl::Call => instruction.is_call_near(),
            _ => false,
        },
    };
    if is_emulated {
        Class::Emulated
    } else {
        Class::Stepped
    }
}

/// Returns the general registers that an instruction writes, one bit each.
pub fn written(instruction: &Instruction, info: &mut InstructionInfoFactory) -> u16 {
    let writes = |access| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let used = info.info(instruction).used_registers();
    let written = used.iter().filter(|register| writes(register.access()));
    written
        .map(|register| bit_of(register.register().full_register()))
        .fold(0, |all, bit| all | bit)
}

fn bit_of(register: Register) -> u16 {
    if register.is_gpr64() {
        1 << register.number()
    } else {
        0
    }
}
