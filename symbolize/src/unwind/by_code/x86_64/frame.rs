//! A function's frame at one of its instructions.

use iced_x86::{
    Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind,
    Register,
};

use crate::unwind::rule::{self, RbpRule, UnwindRule};

/// Maximum size of a frame, far more than compilers allow.
const FRAME_BYTES_MAX: i64 = 1 << 24;

/// A function's frame before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Frame {
    /// The frame of a function that was called.
    Called(Called),
    /// The frame of the first function of a process or a thread.
    First,
    /// The function to which signal handlers return.
    SignalReturn,
}

/// The frame of a function that was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Called {
    /// Distance of rsp below the CFA; `None` if unknown.
    sp: Option<i32>,
    /// Distance of rbp below the CFA; `None` if it does not point into the frame.
    bp: Option<i32>,
    callers_rbp: CallersRbp,
    /// Whether the function has called the kernel: it may be `clone`, which returns into the new
    /// thread.
    has_called_kernel: bool,
}

/// Where the caller's rbp is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CallersRbp {
    /// In rbp.
    Kept,
    /// At this distance below the CFA.
    Saved(i32),
    /// It was overwritten.
    Lost,
}

impl Frame {
    /// The frame before the first instruction: the return address was pushed.
    pub const ENTRY: Frame = Frame::Called(Called {
        sp: Some(8),
        bp: None,
        callers_rbp: CallersRbp::Kept,
        has_called_kernel: false,
    });

    /// Returns the rule for leaving the frame.
    pub fn rule(&self) -> UnwindRule {
        match self {
            Frame::Called(called) => called.rule(),
            Frame::First => UnwindRule::EndOfStack,
            Frame::SignalReturn => UnwindRule::Signal,
        }
    }

    /// Returns the frame after an instruction.
    pub fn after(self, instruction: &Instruction, info: &mut InstructionInfoFactory) -> Frame {
        let Frame::Called(mut called) = self else {
            return self;
        };
        // A new thread sets rbp to zero, as the ABI asks for, and has nothing to save.
        let has_caller = called.callers_rbp != CallersRbp::Kept || !called.has_called_kernel;
        if clears_rbp(instruction) && !has_caller {
            return Frame::First;
        }
        called.apply(instruction, info);
        Frame::Called(called)
    }
}

impl Called {
    fn rule(&self) -> UnwindRule {
        let rbp = match self.callers_rbp {
            CallersRbp::Saved(below) => RbpRule::AtCfa(-below),
            // The callers of a function that overwrites it have their CFA from rsp.
            CallersRbp::Kept | CallersRbp::Lost => RbpRule::Same,
        };
        match (self.sp, self.bp) {
            (Some(below), _) => UnwindRule::frame(rule::Register::Rsp, below, rbp),
            (None, Some(below)) => UnwindRule::frame(rule::Register::Rbp, below, rbp),
            (None, None) => UnwindRule::Hole,
        }
    }

    fn apply(&mut self, instruction: &Instruction, info: &mut InstructionInfoFactory) {
        match instruction.mnemonic() {
            // A called function leaves both registers as they were.
            Mnemonic::Call => {}
            Mnemonic::Syscall => self.has_called_kernel = true,
            Mnemonic::Push => {
                self.sp = moved(self.sp, instruction.stack_pointer_increment().into());
                if instruction.op0_register() == Register::RBP {
                    self.save(self.sp);
                }
            }
            Mnemonic::Pop => {
                let from = self.sp;
                self.sp = moved(from, instruction.stack_pointer_increment().into());
                match instruction.op0_register().full_register() {
                    Register::RBP => self.load(from),
                    Register::RSP => self.sp = None,
                    _ => {}
                }
            }
            Mnemonic::Leave => {
                let from = self.bp;
                self.sp = moved(from, 8);
                self.load(from);
            }
            Mnemonic::Enter => (self.sp, self.bp) = (None, None),
            Mnemonic::Mov if self.is_store(instruction) => {
                self.save(self.place(instruction));
            }
            _ => {
                let at = moved(self.sp, instruction.stack_pointer_increment().into());
                let (sp, bp) = (
                    self.written(instruction, info, Register::RSP),
                    self.written(instruction, info, Register::RBP),
                );
                self.sp = if sp { self.value(instruction) } else { at };
                if bp {
                    self.set_rbp(instruction);
                }
            }
        }
    }

    /// Whether an instruction changes a register.
    fn written(
        &self,
        instruction: &Instruction,
        info: &mut InstructionInfoFactory,
        register: Register,
    ) -> bool {
        let is_it = |operand: u32| {
            instruction.op_kind(operand) == OpKind::Register
                && instruction.op_register(operand).full_register() == register
        };
        let operands = 0..instruction.op_count().min(2);
        if !operands.clone().any(is_it) {
            return false;
        }
        let info = info.info_options(instruction, InstructionInfoOptions::NO_MEMORY_USAGE);
        let changes = |operand: u32| {
            !matches!(
                info.op_access(operand),
                OpAccess::None | OpAccess::NoMemAccess | OpAccess::Read | OpAccess::CondRead
            )
        };
        let mut own = operands.filter(|operand| is_it(*operand));
        own.any(changes)
    }

    /// Returns the distance below the CFA of the value that an instruction puts into its first
    /// operand; `None` if it is not in the frame, or unknown.
    fn value(&self, instruction: &Instruction) -> Option<i32> {
        let to = instruction.op0_register();
        match (instruction.mnemonic(), instruction.op1_kind()) {
            (Mnemonic::Mov, OpKind::Register) => self.distance(instruction.op1_register()),
            (Mnemonic::Lea, OpKind::Memory) => self.place(instruction),
            (Mnemonic::Add | Mnemonic::Sub, kind) if is_immediate(kind) => {
                // Immediates have 32 bits at most.
                let amount = instruction.immediate(1) as i64;
                let is_down = instruction.mnemonic() == Mnemonic::Sub;
                let amount = if is_down { -amount } else { amount };
                moved(self.distance(to), amount)
            }
            _ => None,
        }
    }

    fn set_rbp(&mut self, instruction: &Instruction) {
        let is_load =
            instruction.mnemonic() == Mnemonic::Mov && instruction.op1_kind() == OpKind::Memory;
        if is_load {
            return self.load(self.place(instruction));
        }
        self.bp = self.value(instruction);
        if self.callers_rbp == CallersRbp::Kept {
            self.callers_rbp = CallersRbp::Lost;
        }
    }

    /// Returns the distance of a register below the CFA.
    fn distance(&self, register: Register) -> Option<i32> {
        match register {
            Register::RSP => self.sp,
            Register::RBP => self.bp,
            _ => None,
        }
    }

    /// Returns the distance below the CFA of an instruction's operand in memory.
    fn place(&self, instruction: &Instruction) -> Option<i32> {
        let base = self.distance(instruction.memory_base())?;
        let is_plain = instruction.memory_index() == Register::None;
        let offset = instruction.memory_displacement64() as i64;
        is_plain.then(|| moved(Some(base), offset)).flatten()
    }

    /// Whether an instruction stores rbp in memory.
    fn is_store(&self, instruction: &Instruction) -> bool {
        instruction.op0_kind() == OpKind::Memory && instruction.op1_register() == Register::RBP
    }

    /// Handles that rbp is written to memory at this distance below the CFA.
    fn save(&mut self, below: Option<i32>) {
        if self.callers_rbp == CallersRbp::Kept
            && let Some(below) = below
        {
            self.callers_rbp = CallersRbp::Saved(below);
        }
    }

    /// Handles that rbp is read from memory at this distance below the CFA.
    fn load(&mut self, below: Option<i32>) {
        self.bp = None;
        let saved = below.map(CallersRbp::Saved);
        if self.callers_rbp == CallersRbp::Kept {
            self.callers_rbp = CallersRbp::Lost;
        } else if saved == Some(self.callers_rbp) {
            self.callers_rbp = CallersRbp::Kept;
        }
    }
}

/// Whether an instruction sets rbp to zero in the way that compilers do.
fn clears_rbp(instruction: &Instruction) -> bool {
    let is_rbp = |operand: u32| {
        instruction.op_kind(operand) == OpKind::Register
            && matches!(
                instruction.op_register(operand),
                Register::RBP | Register::EBP
            )
    };
    instruction.mnemonic() == Mnemonic::Xor && is_rbp(0) && is_rbp(1)
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(kind, OpKind::Immediate8to64 | OpKind::Immediate32to64)
}

/// Returns the new distance below the CFA after adding `amount`. It is never above the CFA.
fn moved(below: Option<i32>, amount: i64) -> Option<i32> {
    let below = i64::from(below?).checked_sub(amount)?;
    (0..FRAME_BYTES_MAX)
        .contains(&below)
        .then_some(below as i32)
}
