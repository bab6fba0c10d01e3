//! Machine code as *instructions*, of 32 and 64 bit x86 and of AArch64.

mod aarch64;
mod x86;

use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of bytes of a function that are decoded: ten times the longest function that
/// people write.
pub const BYTES_MAX: u64 = 256 << 10;

/// How instructions are written, where there is more than one way: those of x86.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// AT&T
    Att,
    /// Intel
    Intel,
}

/// An instruction as text, its place, and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its offset in the file.
    pub offset: u64,
    /// Its length in bytes, which is at least 1.
    pub(crate) len: u8,
    /// Whether it is a call, direct or indirect.
    pub(crate) is_call: bool,
    /// The offset in the file that it jumps to.
    pub(crate) jump: Option<u64>,
    /// The instruction in assembly language, in each dialect.
    pub(crate) texts: [Arc<str>; 2],
    /// Its source line within the function.
    pub place: Option<BodyLine>,
    /// The functions that were inlined there, innermost first, such as `add (math.h:12)`.
    pub inlined: Option<Arc<str>>,
    /// The name of the function that it calls or jumps to, if that has one.
    pub target: Option<Arc<str>>,
}

/// A line in one of the files of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BodyLine {
    /// Number of the file in the list.
    pub file: u32,
    /// Number of the line, counted from 1.
    pub line: u32,
}

impl Instruction {
    /// Whether the byte at this offset in the file belongs to the instruction.
    pub fn contains(&self, offset: u64) -> bool {
        offset
            .checked_sub(self.offset)
            .is_some_and(|within| within < u64::from(self.len))
    }

    /// Whether it is a call, direct or indirect.
    pub fn is_call(&self) -> bool {
        self.is_call
    }

    /// Returns the offset in the file that the instruction jumps to. `None` for calls, and if the
    /// address is in a register or in memory.
    pub fn jump(&self) -> Option<u64> {
        self.jump
    }

    /// Returns the instruction in assembly language. The target of a jump or call is written by its
    /// name, if it has one.
    pub fn text(&self, dialect: impl Into<Dialect>) -> String {
        match dialect.into() {
            Dialect::Att => self.texts[0].to_string(),
            Dialect::Intel => self.texts[1].to_string(),
        }
    }
}

/// Texts of which many are the same, each in memory once.
#[derive(Debug, Default)]
pub struct Texts(HashSet<Arc<str>>);

impl Texts {
    /// Returns the text in shared memory.
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.into();
        self.0.insert(Arc::clone(&shared));
        shared
    }
}

/// A decoded instruction.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// Its offset in the file.
    pub offset: u64,
    code: MachineCode,
    /// The name of the function that it calls or jumps to, if that has one.
    pub target: Option<Arc<str>>,
}

impl Decoded {
    /// Returns the length in bytes, which is at least 1.
    fn len(&self) -> u64 {
        self.code.len()
    }

    /// Whether it is a call, direct or indirect.
    pub fn is_call(&self) -> bool {
        match &self.code {
            MachineCode::X86(code) => x86::is_call(code),
            MachineCode::Aarch64(code) => code.is_call(),
        }
    }

    /// Returns the link-time address that the instruction calls or jumps to. `None` if it does
    /// neither, or if the address is in a register or in memory.
    pub fn branch(&self) -> Option<u64> {
        match &self.code {
            MachineCode::X86(code) => x86::branch(code),
            MachineCode::Aarch64(code) => code.branch(),
        }
    }

    /// Returns the offset in the file that the instruction jumps to. `None` for calls, and if the
    /// address is in a register or in memory.
    fn jump(&self) -> Option<u64> {
        let target = self.branch().filter(|_| !self.is_call())?;
        let address = match &self.code {
            MachineCode::X86(code) => code.ip(),
            MachineCode::Aarch64(code) => code.address,
        };
        Some(self.offset.wrapping_add(target.wrapping_sub(address)))
    }

    /// Returns the instruction in assembly language. The target of a jump or call is written by its
    /// name, if it has one.
    fn text(&self, dialect: Dialect) -> String {
        let target = self.target.as_deref().filter(|_| self.branch().is_some());
        match &self.code {
            MachineCode::X86(code) => x86::text(code, dialect, target),
            MachineCode::Aarch64(code) => code.text(target),
        }
    }

    /// Writes the instruction in every dialect. Its line is not known yet.
    pub fn write(self, texts: &mut Texts) -> Instruction {
        Instruction {
            offset: self.offset,
            // The longest instruction of x86 has 15 bytes.
            len: self.len().min(u8::MAX.into()) as u8,
            is_call: self.is_call(),
            jump: self.jump(),
            texts: [Dialect::Att, Dialect::Intel].map(|dialect| texts.share(&self.text(dialect))),
            place: None,
            inlined: None,
            target: self.target,
        }
    }
}

/// An instruction of one of the processors.
#[derive(Debug, Clone)]
enum MachineCode {
    X86(iced_x86::Instruction),
    Aarch64(aarch64::Word),
}

impl MachineCode {
    /// Returns the length in bytes, which is at least 1.
    fn len(&self) -> u64 {
        match self {
            MachineCode::X86(code) => code.len().max(1) as u64,
            MachineCode::Aarch64(code) => code.len,
        }
    }
}

/// The column in which the operands of instructions begin.
const OPERANDS_AT: usize = 7;

/// Returns a mnemonic, padded up to the column of the operands.
fn column(mnemonic: &str) -> String {
    let padding = OPERANDS_AT.saturating_sub(mnemonic.len()).max(1);
    format!("{mnemonic}{}", " ".repeat(padding))
}

/// The instruction set by which code is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// x86 of 32 bits.
    Bits32,
    /// x86 of 64 bits.
    Bits64,
    /// ARM of 64 bits.
    Aarch64,
}

impl Mode {
    /// The mode of the running kernel.
    pub const KERNEL: Self = if cfg!(target_arch = "aarch64") {
        Mode::Aarch64
    } else {
        Mode::Bits64
    };

    /// Returns the mode for the `e_machine` of an ELF file. `None` for processors without a decoder
    /// here.
    pub fn of_machine(machine: u16) -> Option<Self> {
        match machine {
            3 => Some(Mode::Bits32),
            62 => Some(Mode::Bits64),
            183 => Some(Mode::Aarch64),
            _ => None,
        }
    }
}

/// Decodes code that is at `offset` in its file and linked to `address`. On x86, a byte at which no
/// valid instruction begins becomes an invalid instruction of one byte.
pub fn decode(mode: Mode, bytes: &[u8], offset: u64, address: u64) -> Vec<Decoded> {
    let mut instructions = Vec::new();
    let mut add = |position: u64, code| {
        instructions.push(Decoded {
            offset: offset.wrapping_add(position),
            code,
            target: None,
        });
    };
    match mode {
        Mode::Bits32 => x86::decode(32, bytes, address, |at, one| add(at, MachineCode::X86(one))),
        Mode::Bits64 => x86::decode(64, bytes, address, |at, one| add(at, MachineCode::X86(one))),
        Mode::Aarch64 => {
            aarch64::decode(bytes, address, |at, one| add(at, MachineCode::Aarch64(one)));
        }
    }
    instructions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanitize;
    use proptest::prelude::*;

    #[test]
    fn both_ways_of_writing() {
        // mov 0x18(%rbx,%rax,4),%ecx; test; jne back; call.
        let bytes = [
            0x8b, 0x4c, 0x83, 0x18, 0xf7, 0xc1, 0x00, 0x80, 0x01, 0x00, 0x75, 0xf4, 0xe8, 0, 0, 0,
            0,
        ];
        let mut code = decode(Mode::Bits64, &bytes, 0x40, 0x1040);
        code[3].target = Some("PinBuffer".into());
        let text = |dialect| code.iter().map(|i| i.text(dialect)).collect::<Vec<_>>();
        assert_eq!(
            text(Dialect::Att),
            [
                "mov    0x18(%rbx,%rax,4),%ecx",
                "test   $0x18000,%ecx",
                "jne    0x1040",
                "call   PinBuffer"
            ]
        );
        assert_eq!(text(Dialect::Intel)[0], "mov    ecx,[rbx+rax*4+0x18]");
        assert_eq!(text(Dialect::Intel)[3], "call   PinBuffer");
        assert_eq!(code[2].branch(), Some(0x1040));
        assert!(code[3].is_call() && !code[2].is_call());
        assert_eq!((code[2].jump(), code[3].jump()), (Some(0x40), None));
        let written = code[1].clone().write(&mut Texts::default());
        assert!(written.contains(0x49) && !written.contains(0x4a));
    }

    #[test]
    fn code_of_32_bits() {
        // inc %esi, which is a prefix in 64 bits; jmp *0xc(%ebx); jne back.
        let bytes = [0x46, 0xff, 0xa3, 0x0c, 0, 0, 0, 0x75, 0xf7];
        let mode = Mode::of_machine(3).unwrap();
        let code = decode(mode, &bytes, 0x40, 0x804_9040);
        let text: Vec<_> = code.iter().map(|i| i.text(Dialect::Att)).collect();
        assert_eq!(
            text,
            ["inc    %esi", "jmpl   *0xc(%ebx)", "jne    0x8049040"]
        );
        assert_eq!(code[2].jump(), Some(0x40));
        let other = decode(Mode::Bits64, &bytes, 0x40, 0x804_9040);
        assert_ne!(other[0].text(Dialect::Att), text[0]);
    }

    #[test]
    fn code_of_aarch64() {
        let mode = Mode::of_machine(183).unwrap();
        // stp x29, x30, [sp, #-32]!; cmp w0, #0; b.eq back; bl; adrp; ret; an invalid instruction;
        // half an instruction.
        let words = [
            0xa9be_7bfd_u32,
            0x7100_001f,
            0x54ff_ffc0,
            0x9400_0010,
            0xd000_0ba0,
            0xd65f_03c0,
            0x0000_ffff,
        ];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend([1, 2]);
        let mut code = decode(mode, &bytes, 0x40, 0x1040);
        let text: Vec<_> = code.iter().map(|i| i.text(Dialect::Att)).collect();
        assert_eq!(
            text,
            [
                "stp    x29, x30, [sp, #-0x20]!",
                "cmp    w0, #0x0",
                "b.eq   0x1040",
                "bl     0x108c",
                "adrp   x0, 0x177000",
                "ret",
                ".inst  0x0000ffff",
                ".inst  0x0201",
            ]
        );
        assert_eq!((code[2].jump(), code[2].is_call()), (Some(0x40), false));
        assert_eq!((code[3].branch(), code[3].jump()), (Some(0x108c), None));
        assert!(code[3].is_call() && code[5].branch().is_none());
        code[3].target = Some("qsort".into());
        assert_eq!(code[3].text(Dialect::Intel), "bl     qsort");
    }

    proptest! {
        /// Each byte is part of exactly one instruction, whatever the bytes are.
        #[test]
        fn any_bytes_are_decoded(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            offset in any::<u32>(),
            mode in prop::sample::select(vec![Mode::Bits32, Mode::Bits64, Mode::Aarch64]),
        ) {
            let code = decode(mode, &bytes, offset.into(), u64::MAX - 20);
            let mut next = u64::from(offset);
            let mut texts = Texts::default();
            for decoded in code {
                let len = decoded.len();
                let instruction = decoded.write(&mut texts);
                prop_assert_eq!(instruction.offset, next);
                prop_assert!(instruction.contains(next));
                for dialect in [Dialect::Att, Dialect::Intel] {
                    let text = instruction.text(dialect);
                    prop_assert!(!text.is_empty());
                    prop_assert_eq!(&*sanitize(text.as_bytes()), &*text, "safe to print");
                }
                next += len;
                prop_assert!(!instruction.contains(next));
            }
            prop_assert_eq!(next, u64::from(offset) + bytes.len() as u64);
        }
    }
}
