//! Instructions of AArch64, as far as they move the stack pointer, save registers, or change the
//! control flow (Arm Architecture Reference Manual, C4.1).

/// Length of an instruction in bytes.
pub const BYTES: u64 = 4;

/// The register number of `sp`, in instructions that can refer to it.
pub const SP: u8 = 31;

/// Where execution continues after an instruction. Distances are in bytes, relative to the
/// instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// At the next instruction.
    On,
    /// At the next instruction, or at this distance (conditional branch).
    Maybe(i64),
    /// At this distance (unconditional branch).
    Branch(i64),
    /// In the called function, which returns to the next instruction. The distance of the function;
    /// `None` if the address is in a register.
    Call(Option<i64>),
    /// At an address in a register.
    Jump,
    /// In the caller (return), or nowhere.
    End,
}

/// Returns where execution continues after an instruction.
pub fn flow(word: u32) -> Flow {
    let distance = |from: u32, bits: u32| signed(word >> from, bits) * BYTES as i64;
    match word >> 26 {
        0b000101 => return Flow::Branch(distance(0, 26)),
        0b100101 => return Flow::Call(Some(distance(0, 26))),
        _ => {}
    }
    let is = |mask: u32, value: u32| word & mask == value;
    if is(0xff00_0000, 0x5400_0000) || is(0x7e00_0000, 0x3400_0000) {
        Flow::Maybe(distance(5, 19)) // b.cond, cbz, cbnz
    } else if is(0x7e00_0000, 0x3600_0000) {
        Flow::Maybe(distance(5, 14)) // tbz, tbnz
    } else if is(0xfe00_0000, 0xd600_0000) {
        // br, blr, ret, and their variants that check a signature
        match word >> 21 & 7 {
            0 => Flow::Jump,
            1 => Flow::Call(None),
            _ => Flow::End,
        }
    } else if is(0xffe0_001f, 0xd420_0000) || is(0xffff_0000, 0) {
        Flow::End // brk, udf
    } else {
        Flow::On
    }
}

/// The effect of an instruction on the stack pointer, x29 and x30.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// No relevant effect.
    None,
    /// `register = of + amount`; one of the two registers is `sp`.
    Add { register: u8, of: u8, amount: i32 },
    /// `sp = sp ± register`: the register's value has to be found.
    AddRegister { register: u8, is_down: bool },
    /// `sp` becomes unknown.
    Lost,
    /// Registers are stored or loaded relative to `sp`, which may be moved before or after that.
    Memory(Memory),
}

/// A store or load relative to `sp`, of 64-bit general registers or of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The adjacent registers from there on; `None` for others than general registers.
    pub registers: [Option<u8>; 2],
    /// Offset from `sp` before the instruction.
    pub at: i32,
    /// How far `sp` is moved.
    pub moves: i32,
    /// Whether it loads, instead of storing.
    pub is_load: bool,
}

/// Returns the effect of an instruction.
pub fn effect(word: u32) -> Effect {
    let (to, of) = ((word & 31) as u8, (word >> 5 & 31) as u8);
    // add, sub with a constant
    if word & 0xbf80_0000 == 0x9100_0000 && (to == SP || of == SP) {
        let shift = if word >> 22 & 1 == 1 { 12 } else { 0 };
        let amount = ((word >> 10 & 0xfff) << shift) as i32;
        let amount = if word >> 30 & 1 == 1 { -amount } else { amount };
        return Effect::Add {
            register: to,
            of,
            amount,
        };
    }
    // add, sub with an extended register
    if word & 0xbfe0_0000 == 0x8b20_0000 && to == SP {
        let register = (word >> 16 & 31) as u8;
        return if of == SP {
            Effect::AddRegister {
                register,
                is_down: word >> 30 & 1 == 1,
            }
        } else {
            Effect::Lost
        };
    }
    // and with a constant
    if word & 0xff80_0000 == 0x9200_0000 && to == SP {
        return Effect::Lost;
    }
    if of != SP {
        return Effect::None;
    }
    memory(word).map_or(Effect::None, Effect::Memory)
}

/// Decodes stores and loads relative to `sp`.
fn memory(word: u32) -> Option<Memory> {
    if word >> 25 & 1 == 1 {
        return None;
    }
    let is_vector = word >> 26 & 1 == 1;
    let size = word >> 30;
    let first = Some((word & 31) as u8);
    if word >> 27 & 7 == 0b101 {
        // A pair.
        let scale = match (is_vector, size) {
            (true, size) => 2 + size,
            (false, 0 | 1) => 2,
            (false, _) => 3,
        };
        let is_general = !is_vector && size == 2;
        let distance = (signed(word >> 15, 7) << scale) as i32;
        let (at, moves) = match word >> 23 & 7 {
            1 => (0, distance),
            3 => (distance, distance),
            _ => (distance, 0),
        };
        let second = Some((word >> 10 & 31) as u8);
        return Some(Memory {
            registers: [first, second].map(|register| register.filter(|_| is_general)),
            at,
            moves,
            is_load: word >> 22 & 1 == 1,
        });
    }
    if word >> 27 & 7 != 0b111 {
        return None;
    }
    let is_general = !is_vector && size == 3 && word >> 23 & 1 == 0;
    let (at, moves) = match (word >> 24 & 3, word >> 21 & 1, word >> 10 & 3) {
        (1, _, _) => (((word >> 10 & 0xfff) << size) as i32, 0),
        (0, 0, mode) => {
            let distance = signed(word >> 12, 9) as i32;
            match mode {
                0 => (distance, 0),
                1 => (0, distance),
                3 => (distance, distance),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Memory {
        registers: [first.filter(|_| is_general), None],
        at,
        moves,
        is_load: word >> 22 & 1 == 1,
    })
}

/// Returns the constant that a register holds after these instructions, given in reverse order: the
/// value that one of them put into it by `mov`. Compilers do so shortly before they need it.
pub fn constant(before: impl Iterator<Item = u32>, register: u8) -> Option<i32> {
    const NEAR: usize = 8;
    let is_of_it = |word: &u32| (word & 31) as u8 == register && word >> 23 & 0x3f == 0b10_0101;
    let word = before.take(NEAR).find(is_of_it)?;
    let value = i32::try_from(u64::from(word >> 5 & 0xffff) << (16 * (word >> 21 & 3)));
    // The `mov` sets the whole register.
    let is_whole = word >> 29 & 3 == 0b10;
    value.ok().filter(|_| is_whole)
}

/// Whether it is padding between functions: `nop`, or zero.
pub fn is_padding(word: u32) -> bool {
    word == 0xd503_201f || word == 0
}

/// Whether it stores general registers and lowers `sp` to make room for them.
pub fn pushes(word: u32) -> bool {
    matches!(effect(word), Effect::Memory(memory)
        if memory.moves < 0 && !memory.is_load && memory.registers[0].is_some())
}

/// Whether compilers begin functions with this instruction: it makes a frame, signs the return
/// address, or is a landing pad for jumps.
pub fn begins_a_function(word: u32) -> bool {
    const PACIASP: u32 = 0xd503_233f;
    const BTI_C: u32 = 0xd503_245f;
    let goes_down = matches!(effect(word), Effect::Add { register: SP, of: SP, amount }
        if amount < 0);
    goes_down || pushes(word) || word == PACIASP || word == BTI_C
}

/// Returns the lowest bits of a word as a signed number.
fn signed(word: u32, bits: u32) -> i64 {
    let above = 32 - bits;
    i64::from((word << above) as i32 >> above)
}
