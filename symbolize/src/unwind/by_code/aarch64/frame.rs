//! A function's frame at one of its instructions.

use super::instruction::{Effect, Memory, SP, constant, effect};
use crate::unwind::rule::{Linked, Saved, UnwindRule};

const X29: u8 = 29;
const X30: u8 = 30;

/// Maximum size of a frame, far more than compilers allow.
const FRAME_BYTES_MAX: i32 = 1 << 24;

/// A function's frame before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Distance of `sp` below the CFA; `None` if unknown.
    sp: Option<i32>,
    /// Distance of x29 below the CFA, if it points to where x29 and x30 were saved.
    record: Option<i32>,
    x29: Saved,
    x30: Saved,
}

impl Frame {
    /// The frame before the first instruction.
    pub const ENTRY: Frame = Frame {
        sp: Some(0),
        record: None,
        x29: Saved::Not,
        x30: Saved::Not,
    };

    /// Whether the return address was saved.
    pub fn has_link(&self) -> bool {
        self.x30 != Saved::Not
    }

    /// Returns the rule for leaving the frame.
    pub fn rule(&self) -> UnwindRule {
        let (base, offset) = match (self.sp, self.record) {
            (Some(below), _) => (SP, below),
            (None, Some(below)) => (X29, below),
            (None, None) => return UnwindRule::Hole,
        };
        UnwindRule::Linked(Linked {
            base,
            offset,
            x29: self.x29,
            x30: self.x30,
        })
    }

    /// Returns the frame after an instruction; `before` are the preceding instructions, the last
    /// one first.
    pub fn after(self, word: u32, before: impl Iterator<Item = u32>) -> Frame {
        let mut frame = self;
        match effect(word) {
            Effect::None => {}
            Effect::Lost => frame.sp = None,
            Effect::Add {
                register: SP,
                of: SP,
                amount,
            } => frame.sp = moved(self.sp, amount),
            Effect::Add {
                register: SP,
                of,
                amount,
            } => {
                let record = self.record.filter(|_| of == X29);
                frame.sp = moved(record, amount);
            }
            Effect::Add {
                register, amount, ..
            } => {
                if register == X29 {
                    frame.record = moved(self.sp, amount).filter(|at| self.is_record(*at));
                }
            }
            Effect::AddRegister { register, is_down } => {
                let amount = constant(before, register);
                let amount = amount.map(|amount| if is_down { -amount } else { amount });
                frame.sp = amount.and_then(|amount| moved(self.sp, amount));
            }
            Effect::Memory(memory) => frame.transfer(memory),
        }
        frame
    }

    /// Whether x29 and x30 were saved at that distance below the CFA.
    fn is_record(&self, below: i32) -> bool {
        self.x29 == Saved::AtCfa(-below) && self.x30 == Saved::AtCfa(8 - below)
    }

    fn transfer(&mut self, memory: Memory) {
        for (register, offset) in memory.registers.into_iter().zip([0, 8]) {
            let place = match register {
                Some(X29) => &mut self.x29,
                Some(X30) => &mut self.x30,
                _ => continue,
            };
            let Some(below) = self.sp else {
                // x29 may be the caller's from here on.
                self.record = self.record.filter(|_| !memory.is_load);
                continue;
            };
            let at = Saved::AtCfa(memory.at.wrapping_sub(below).wrapping_add(offset));
            // A register that was already saved, or is loaded from elsewhere, has another purpose
            // here.
            if memory.is_load && *place == at {
                *place = Saved::Not;
                self.record = None;
            } else if !memory.is_load && *place == Saved::Not {
                *place = at;
            }
        }
        if memory.moves != 0 {
            self.sp = moved(self.sp, memory.moves);
        }
    }
}

/// Returns the new distance; `sp` is never above the CFA.
fn moved(below: Option<i32>, amount: i32) -> Option<i32> {
    let below = below?.checked_sub(amount)?;
    (0..FRAME_BYTES_MAX).contains(&below).then_some(below)
}
