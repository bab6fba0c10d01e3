//! Runs call frame instructions to get rows (DWARF 5, 6.4.2).
//!
//! Only a part of each row is kept: the CFA, and where the frame pointer, another base of CFAs and
//! the return address were saved. A CIE's instructions are run once and not again for each of its
//! functions. The cost of instructions and of remembered states is limited.

use gimli::UnwindExpression;
use gimli::{CallFrameInstruction, CallFrameInstructionIter, CfaRule, Error, RegisterRule};

use super::Bytes;

/// Maximum depth of remembered states. Compilers use two.
const REMEMBERED_MAX: usize = 64;

/// The registers that rules are kept for.
#[derive(Debug, Clone, Copy)]
pub struct Tracked {
    /// `rbp` or `x29`.
    pub frame_pointer: gimli::Register,
    /// A register that some code uses as base of the CFA.
    pub other_base: gimli::Register,
    /// The column of the return address: a number of its own on x86-64, that of `x30` on AArch64.
    pub return_address: gimli::Register,
}

/// A row without its address: how to compute the CFA, and where the caller's value of each tracked
/// register is. A rule that is None was never given: its meaning depends on the architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRules {
    cfa_register: gimli::Register,
    cfa_offset: i64,
    /// The CFA as an expression; while it is set, register and offset are not used.
    cfa_expression: Option<UnwindExpression<usize>>,
    pub frame_pointer: Option<RegisterRule<usize>>,
    pub other_base: Option<RegisterRule<usize>>,
    pub return_address: Option<RegisterRule<usize>>,
}

impl RowRules {
    /// The rule for the CFA, with its expression if it has one.
    pub fn cfa(&self) -> CfaRule<usize> {
        match self.cfa_expression {
            Some(expression) => CfaRule::Expression(expression),
            None => CfaRule::RegisterAndOffset {
                register: self.cfa_register,
                offset: self.cfa_offset,
            },
        }
    }
}

impl Default for RowRules {
    fn default() -> RowRules {
        RowRules {
            cfa_register: gimli::Register(0),
            cfa_offset: 0,
            cfa_expression: None,
            frame_pointer: None,
            other_base: None,
            return_address: None,
        }
    }
}

/// What the CIE contributes to its FDEs.
#[derive(Debug, Clone)]
pub struct Common {
    pub tracked: Tracked,
    /// Factor of the distances between addresses in instructions.
    pub code_alignment: u64,
    /// Factor of the offsets from the CFA in instructions.
    pub data_alignment: i64,
    /// The state that FDEs start from and `DW_CFA_restore` goes back to. `None` while the CIE's own
    /// instructions are run.
    pub initial: Option<RowRules>,
    /// States that the CIE remembered and did not restore. No tool writes such, but other readers
    /// pass them to the FDE.
    pub remembered: Vec<RowRules>,
}

/// Runs the instructions of one entry.
#[derive(Debug)]
pub struct Runner<'c> {
    common: &'c Common,
    state: RowRules,
    address: u64,
    remembered: Vec<RowRules>,
}

impl<'c> Runner<'c> {
    /// Starts at `address`, where the first row begins, with the rules that the CIE gives.
    pub fn new(common: &'c Common, address: u64) -> Runner<'c> {
        Runner {
            common,
            state: common.initial.clone().unwrap_or_default(),
            address,
            remembered: common.remembered.clone(),
        }
    }

    /// Calls `on_row` with the address and the state of each row. Addresses never decrease. A row
    /// may be empty: then the next one has the same address.
    pub fn run(
        &mut self,
        mut instructions: CallFrameInstructionIter<'_, Bytes<'_>>,
        mut on_row: impl FnMut(u64, &RowRules),
    ) -> gimli::Result<()> {
        while let Some(instruction) = instructions.next()? {
            if let Some(next) = self.step(instruction)? {
                on_row(self.address, &self.state);
                self.address = next;
            }
        }
        on_row(self.address, &self.state);
        Ok(())
    }

    /// Ends the CIE's own instructions; the result is where its FDEs start.
    pub fn into_common(self) -> Common {
        Common {
            initial: Some(self.state),
            remembered: self.remembered,
            ..*self.common
        }
    }

    /// Runs an instruction; returns the address of the next row if it completes this one.
    fn step(&mut self, instruction: CallFrameInstruction<usize>) -> gimli::Result<Option<u64>> {
        use CallFrameInstruction as I;
        match instruction {
            I::SetLoc { address } if address >= self.address => return Ok(Some(address)),
            I::SetLoc { address } => return Err(Error::InvalidCfiSetLoc(address)),
            I::AdvanceLoc { delta } => {
                let delta = u64::from(delta).wrapping_mul(self.common.code_alignment);
                let next = self.address.checked_add(delta);
                return next.map(Some).ok_or(Error::AddressOverflow);
            }

            I::DefCfa { register, offset } => {
                self.set_cfa_register(register);
                self.state.cfa_offset = offset.cast_signed();
            }
            I::DefCfaSf {
                register,
                factored_offset,
            } => {
                self.set_cfa_register(register);
                self.state.cfa_offset = self.factored(factored_offset);
            }
            // After an expression these two are not allowed, but libgcrypt's assembler code has
            // them, and libgcc and gdb interpret them like this.
            I::DefCfaRegister { register } => self.set_cfa_register(register),
            I::DefCfaOffset { offset } => self.state.cfa_offset = offset.cast_signed(),
            I::DefCfaOffsetSf { factored_offset } => {
                self.state.cfa_offset = self.factored(factored_offset);
            }
            I::DefCfaExpression { expression } => {
                self.state.cfa_expression = Some(expression);
            }

            I::Undefined { register } => self.set(register, RegisterRule::Undefined),
            I::SameValue { register } => self.set(register, RegisterRule::SameValue),
            I::Offset {
                register,
                factored_offset,
            } => {
                let offset = self.factored(factored_offset.cast_signed());
                self.set(register, RegisterRule::Offset(offset));
            }
            I::OffsetExtendedSf {
                register,
                factored_offset,
            } => {
                let offset = self.factored(factored_offset);
                self.set(register, RegisterRule::Offset(offset));
            }
            I::ValOffset {
                register,
                factored_offset,
            } => {
                let offset = self.factored(factored_offset.cast_signed());
                self.set(register, RegisterRule::ValOffset(offset));
            }
            I::ValOffsetSf {
                register,
                factored_offset,
            } => {
                let offset = self.factored(factored_offset);
                self.set(register, RegisterRule::ValOffset(offset));
            }
            I::Register {
                dest_register,
                src_register,
            } => self.set(dest_register, RegisterRule::Register(src_register)),
            I::Expression {
                register,
                expression,
            } => self.set(register, RegisterRule::Expression(expression)),
            I::ValExpression {
                register,
                expression,
            } => self.set(register, RegisterRule::ValExpression(expression)),
            I::Restore { register } => self.restore(register)?,

            I::RememberState if self.remembered.len() < REMEMBERED_MAX => {
                self.remembered.push(self.state.clone());
            }
            I::RememberState => return Err(Error::StackFull),
            I::RestoreState => {
                let state = self.remembered.pop();
                self.state = state.ok_or(Error::PopWithEmptyStack)?;
            }

            I::ArgsSize { .. } | I::NegateRaState | I::Nop => {}
        }
        Ok(None)
    }

    fn set_cfa_register(&mut self, register: gimli::Register) {
        self.state.cfa_register = register;
        self.state.cfa_expression = None;
    }

    fn set(&mut self, register: gimli::Register, rule: RegisterRule<usize>) {
        if let Some(slot) = slot(&mut self.state, self.common.tracked, register) {
            *slot = Some(rule);
        }
    }

    fn restore(&mut self, register: gimli::Register) -> gimli::Result<()> {
        let initial = self
            .common
            .initial
            .as_ref()
            .ok_or(Error::CfiInstructionInInvalidContext)?;
        let tracked = self.common.tracked;
        if register == tracked.frame_pointer {
            self.state.frame_pointer.clone_from(&initial.frame_pointer);
        } else if register == tracked.other_base {
            self.state.other_base.clone_from(&initial.other_base);
        } else if register == tracked.return_address {
            self.state
                .return_address
                .clone_from(&initial.return_address);
        }
        Ok(())
    }

    fn factored(&self, offset: i64) -> i64 {
        offset.wrapping_mul(self.common.data_alignment)
    }
}

fn slot(
    state: &mut RowRules,
    tracked: Tracked,
    register: gimli::Register,
) -> Option<&mut Option<RegisterRule<usize>>> {
    if register == tracked.frame_pointer {
        Some(&mut state.frame_pointer)
    } else if register == tracked.other_base {
        Some(&mut state.other_base)
    } else if register == tracked.return_address {
        Some(&mut state.return_address)
    } else {
        None
    }
}
