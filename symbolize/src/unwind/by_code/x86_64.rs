//! Code of x86-64. A call pushes the return address. Instructions have different lengths, and are
//! decoded one after the other from known starts.

mod frame;

use frame::Frame;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind,
    Register,
};

use crate::unwind::rule::UnwindRule;
use std::collections::{BTreeSet, HashMap};

/// Maximum number of functions of a section that are found by calls; more are found while others
/// are followed.
const CALLED_MAX: usize = 1 << 20;

/// Maximum number of different frames in a section. Large programs have some hundreds.
const FRAMES_MAX: usize = 8192;

/// Compilers let functions begin at multiples of this, if they leave room between functions.
const ALIGNMENT: u64 = 16;

/// `mov $15, %rax; syscall` and `mov $15, %eax; syscall`: the call `rt_sigreturn`.
const SIGNAL_RETURNS: [&[u8]; 2] = [
    &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05],
    &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05],
];

/// Returns the targets of calls in this code. All of it is decoded in one go: after data between
/// functions the decoder is in step again within a few instructions.
pub fn called(code: &[u8], start: u64) -> BTreeSet<u64> {
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let calls = decoder
        .into_iter()
        .filter(|instruction| instruction.is_call_near());
    calls
        .map(|instruction| instruction.near_branch_target())
        .take(CALLED_MAX)
        .collect()
}

/// Returns the rules of a piece of code at `start`, by address, from its first byte on. `begins` are
/// the known starts of functions in it, and `first` is that of the program's first function.
pub fn rows(
    code: &[u8],
    start: u64,
    begins: impl Iterator<Item = u64>,
    first: Option<u64>,
) -> Vec<(u64, UnwindRule)> {
    let mut scan = Scan::of(code, start, first);
    let begins = begins.map(|address| address.wrapping_sub(start) as usize);
    scan.begin(begins.filter(|at| *at < code.len()).collect());
    scan.sweep(true);
    scan.sweep(false);
    scan.rows()
}

/// Code that is being followed. Places are offsets from its beginning.
struct Scan<'c> {
    code: &'c [u8],
    start: u64,
    /// Address of the program's first function, which has no caller.
    first: Option<u64>,
    decoder: Decoder<'c>,
    info: InstructionInfoFactory,
    /// Number of the frame at each instruction's first byte, from 1 on; 0 if nothing has led there.
    frames: Vec<u16>,
    /// Length of the instruction that begins at each byte.
    lengths: Vec<u8>,
    different: Vec<Frame>,
    numbers: HashMap<Frame, u16>,
    /// Where functions begin.
    begins: BTreeSet<usize>,
    /// Instructions that are still to be followed, with their frames.
    open: Vec<(usize, Frame)>,
}

impl<'c> Scan<'c> {
    fn of(code: &'c [u8], start: u64, first: Option<u64>) -> Self {
        Self {
            code,
            start,
            first,
            decoder: Decoder::with_ip(64, code, start, DecoderOptions::NONE),
            info: InstructionInfoFactory::new(),
            frames: vec![0; code.len()],
            lengths: vec![0; code.len()],
            different: Vec::new(),
            numbers: HashMap::new(),
            begins: BTreeSet::new(),
            open: Vec::new(),
        }
    }

    /// Decodes the instruction at a place; `None` if it is not valid.
    fn instruction(&mut self, at: usize) -> Option<Instruction> {
        self.decoder.set_position(at).ok()?;
        self.decoder.set_ip(self.start.wrapping_add(at as u64));
        let instruction = self.decoder.decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// Follows the functions that begin at these places.
    fn begin(&mut self, starts: Vec<usize>) {
        self.begins.extend(&starts);
        for at in starts {
            let entry = self.entry(at);
            self.open.push((at, entry));
        }
        self.drain();
    }

    /// Returns the frame at the start of a function.
    fn entry(&self, at: usize) -> Frame {
        let is_signal_return = |code: &&[u8]| self.code[at..].starts_with(code);
        if self.first == Some(self.start.wrapping_add(at as u64)) {
            Frame::First
        } else if SIGNAL_RETURNS.iter().any(is_signal_return) {
            Frame::SignalReturn
        } else {
            Frame::ENTRY
        }
    }

    /// Follows the code that nothing has led to, from the first instruction on. With `only_aligned`,
    /// only code at the addresses at which compilers let functions begin: the parts of functions
    /// that are seldom executed are elsewhere, often before all others, and are led to from these.
    fn sweep(&mut self, only_aligned: bool) {
        // The frame at the last jump by a table, of the preceding function.
        let mut by_table: Option<Frame> = None;
        let mut at = 0;
        while at < self.code.len() {
            let Some(instruction) = self.instruction(at) else {
                at += 1;
                continue;
            };
            let is_candidate = !only_aligned || instruction.ip().is_multiple_of(ALIGNMENT);
            if self.frames[at] == 0 && is_candidate && !is_padding(&instruction) {
                let frame = by_table.filter(|_| !begins_a_function(&instruction));
                if frame.is_none() {
                    self.begins.insert(at);
                }
                self.open
                    .push((at, frame.unwrap_or_else(|| self.entry(at))));
                self.drain();
            }
            if self.begins.contains(&at) {
                by_table = None;
            }
            if instruction.flow_control() == FlowControl::IndirectBranch {
                by_table = self.frame(at).or(by_table);
            }
            at += instruction.len();
        }
    }

    /// Returns the frame at an instruction; `None` if nothing has led there.
    fn frame(&self, at: usize) -> Option<Frame> {
        let number = usize::from(self.frames[at]);
        Some(self.different[number.checked_sub(1)?])
    }

    fn drain(&mut self) {
        while let Some((at, frame)) = self.open.pop() {
            self.follow(at, frame);
        }
    }

    /// Follows the code from an instruction on, until an instruction that was already followed, or
    /// until control leaves.
    fn follow(&mut self, mut at: usize, mut frame: Frame) {
        let entry = at;
        // Whether only padding came since a call, and whether any came.
        let (mut has_called, mut has_padding) = (false, false);
        while at < self.code.len() && self.frames[at] == 0 {
            let Some(instruction) = self.instruction(at) else {
                return;
            };
            // A call that does not return may be a function's last instruction. But padding comes
            // before loops as well.
            let is_aligned = instruction.ip().is_multiple_of(ALIGNMENT);
            let may_begin = has_called && has_padding && is_aligned;
            let is_next = may_begin && begins_a_function(&instruction);
            if at != entry && (is_next || self.begins.contains(&at)) {
                return;
            }
            let Some(number) = self.number(frame) else {
                return;
            };
            self.frames[at] = number;
            self.lengths[at] = instruction.len() as u8;
            let flow = instruction.flow_control();
            has_padding = is_padding(&instruction);
            has_called = matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
                || has_called && has_padding;
            let after = frame.after(&instruction, &mut self.info);
            if after == Frame::First && frame != Frame::First {
                // Only the new thread goes on here. What both threads reach is of the function.
                self.open.insert(0, (at + instruction.len(), after));
                return;
            }
            frame = after;
            match flow {
                FlowControl::ConditionalBranch => self.branch(&instruction, frame),
                FlowControl::UnconditionalBranch => return self.branch(&instruction, frame),
                FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Exception => {
                    return;
                }
                FlowControl::Interrupt if instruction.mnemonic() == Mnemonic::Int3 => return,
                _ if instruction.mnemonic() == Mnemonic::Hlt => return,
                _ => {}
            }
            at += instruction.len();
        }
    }

    fn branch(&mut self, instruction: &Instruction, frame: Frame) {
        if instruction.op0_kind() != OpKind::NearBranch64 {
            return;
        }
        let to = instruction.near_branch_target().wrapping_sub(self.start);
        let to = usize::try_from(to).ok();
        if let Some(to) =
            to.filter(|to| self.frames.get(*to) == Some(&0) && !self.begins.contains(to))
        {
            self.open.push((to, frame));
        }
    }

    fn number(&mut self, frame: Frame) -> Option<u16> {
        if let Some(number) = self.numbers.get(&frame) {
            return Some(*number);
        }
        if self.different.len() == FRAMES_MAX {
            return None;
        }
        self.different.push(frame);
        let number = self.different.len() as u16;
        self.numbers.insert(frame, number);
        Some(number)
    }

    fn rows(&self) -> Vec<(u64, UnwindRule)> {
        let mut rows: Vec<(u64, UnwindRule)> = Vec::new();
        let mut at = 0;
        while at < self.code.len() {
            let frame = self.frame(at);
            let rule = frame.map_or(UnwindRule::Hole, |frame| frame.rule());
            let mut address = self.start.wrapping_add(at as u64);
            if frame == Some(Frame::SignalReturn) {
                // Handlers return to its first byte, and the rule of a return address is that of the
                // byte before it, which is padding.
                let padding = |(_, rule): &mut (u64, UnwindRule)| *rule == UnwindRule::Hole;
                if let Some((from, _)) = rows.pop_if(padding) {
                    address -= 1;
                    if from < address {
                        rows.push((from, UnwindRule::Hole));
                    }
                }
            }
            if rows.last().is_none_or(|(_, last)| *last != rule) {
                rows.push((address, rule));
            }
            at += usize::from(self.lengths[at].max(1));
        }
        rows
    }
}

/// Whether it is padding between functions: `nop` of any length, `int3`, or zeros, which are decoded
/// as an `add`.
fn is_padding(instruction: &Instruction) -> bool {
    let is_zero = instruction.code() == iced_x86::Code::Add_rm8_r8
        && instruction.memory_base() == Register::RAX
        && instruction.op1_register() == Register::AL
        && instruction.len() == 2;
    is_zero || matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}

/// Whether compilers begin functions with this instruction: it makes a frame, saves a register that
/// belongs to the caller, or is a landing pad for jumps.
fn begins_a_function(instruction: &Instruction) -> bool {
    let to = instruction.op0_register();
    match instruction.mnemonic() {
        Mnemonic::Push => matches!(
            to,
            Register::RBX
                | Register::RBP
                | Register::R12
                | Register::R13
                | Register::R14
                | Register::R15
        ),
        Mnemonic::Sub => to == Register::RSP,
        mnemonic => mnemonic == Mnemonic::Endbr64,
    }
}

#[cfg(test)]
mod compilers;
#[cfg(test)]
mod tests;
