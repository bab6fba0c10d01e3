//! Machine code as *instructions*. Only x86 is known here, of 64 and of 32 bits; of
//! other machines there is source text alone.

use super::Place;
use clap::ValueEnum;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, IntelFormatter};
use std::sync::Arc;

/// How many bytes of a function are decoded. The longest that people write have a tenth of
/// it.
pub const BYTES_MAX: u64 = 256 << 10;

/// How instructions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Syntax {
    /// AT&T
    #[default]
    #[value(alias = "at&t")]
    Att,
    /// Intel
    Intel,
}

impl Syntax {
    /// Returns the other one of the two.
    pub fn other(self) -> Self {
        match self {
            Syntax::Att => Syntax::Intel,
            Syntax::Intel => Syntax::Att,
        }
    }

    /// Returns the name as users know it.
    pub fn name(self) -> &'static str {
        match self {
            Syntax::Att => "AT&T",
            Syntax::Intel => "Intel",
        }
    }
}

/// An instruction, where it is, and what is known about it.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// Where it is in the file.
    pub offset: u64,
    decoded: iced_x86::Instruction,
    /// Its source line within the function.
    pub place: Option<Place>,
    /// The functions that were inlined there, innermost first, such as `add (math.h:12)`.
    pub inlined: Option<Arc<str>>,
    /// The name of where it calls or jumps to, if that has one.
    pub target: Option<Arc<str>>,
}

impl Instruction {
    /// Whether one of its bytes is at this offset in the file.
    pub fn contains(&self, offset: u64) -> bool {
        offset
            .checked_sub(self.offset)
            .is_some_and(|within| within < self.decoded.len().max(1) as u64)
    }

    /// Whether it is a call, direct or indirect.
    pub fn is_call(&self) -> bool {
        let flow = self.decoded.flow_control();
        matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
    }

    /// Returns the link-time address that it calls or jumps to. None if it does neither, or
    /// the address is in a register or in memory.
    pub fn branch(&self) -> Option<u64> {
        let flow = self.decoded.flow_control();
        let is_near = matches!(
            flow,
            FlowControl::Call | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        let target = self.decoded.near_branch_target();
        (is_near && target != 0).then_some(target)
    }

    /// Returns the offset in the file that it jumps to. None for calls, and where the
    /// address is in a register or in memory.
    pub fn jump(&self) -> Option<u64> {
        let target = self.branch().filter(|_| !self.is_call())?;
        let distance = target.wrapping_sub(self.decoded.ip());
        Some(self.offset.wrapping_add(distance))
    }

    /// Returns the instruction as an assembler would read it. The target of a jump or call
    /// is written by its name, if it has one.
    pub fn text(&self, syntax: Syntax) -> String {
        let mut text = String::new();
        match syntax {
            Syntax::Att => self.write(&mut GasFormatter::new(), &mut text),
            Syntax::Intel => self.write(&mut IntelFormatter::new(), &mut text),
        }
        text
    }

    /// Writes the instruction with its operands in a column of their own, numbers as
    /// `0x1f`. A target that has a name takes the place of the address.
    fn write(&self, formatter: &mut dyn Formatter, text: &mut String) {
        let options = formatter.options_mut();
        options.set_uppercase_hex(false);
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_small_hex_numbers_in_decimal(false);
        options.set_first_operand_char_index(7);
        options.set_space_after_operand_separator(false);
        options.set_branch_leading_zeros(false);
        options.set_rip_relative_addresses(true);
        match &self.target {
            Some(target) if self.branch().is_some() => {
                formatter.format_mnemonic(&self.decoded, text);
                let padding = 7usize.saturating_sub(text.len()).max(1);
                text.push_str(&" ".repeat(padding));
                text.push_str(target);
            }
            _ => formatter.format(&self.decoded, text),
        }
    }
}

/// In which mode a processor reads code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Bits32,
    Bits64,
}

impl Mode {
    /// Returns the mode for the `e_machine` of an ELF file. None for processors that we
    /// cannot decode.
    pub fn of_machine(machine: u16) -> Option<Self> {
        match machine {
            3 => Some(Mode::Bits32),
            62 => Some(Mode::Bits64),
            _ => None,
        }
    }
}

/// Decodes code that is at `offset` in its file and linked to `address`. A byte that begins
/// no valid instruction becomes an invalid one of one byte.
pub fn decode(mode: Mode, bytes: &[u8], offset: u64, address: u64) -> Vec<Instruction> {
    let bits = match mode {
        Mode::Bits32 => 32,
        Mode::Bits64 => 64,
    };
    let mut decoder = Decoder::with_ip(bits, bytes, address, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    while decoder.can_decode() {
        let position = decoder.position();
        let mut decoded = decoder.decode();
        if decoded.is_invalid() {
            // The next byte may begin a good one.
            decoded.set_len(1);
            if decoder.set_position(position + 1).is_err() {
                break;
            }
            decoder.set_ip(address.wrapping_add(position as u64 + 1));
        }
        instructions.push(Instruction {
            offset: offset.wrapping_add(position as u64),
            decoded,
            place: None,
            inlined: None,
            target: None,
        });
    }
    instructions
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let text = |syntax| code.iter().map(|i| i.text(syntax)).collect::<Vec<_>>();
        assert_eq!(
            text(Syntax::Att),
            [
                "mov    0x18(%rbx,%rax,4),%ecx",
                "test   $0x18000,%ecx",
                "jne    0x1040",
                "call   PinBuffer"
            ]
        );
        assert_eq!(text(Syntax::Intel)[0], "mov    ecx,[rbx+rax*4+0x18]");
        assert_eq!(text(Syntax::Intel)[3], "call   PinBuffer");
        assert_eq!(code[2].branch(), Some(0x1040));
        assert!(code[3].is_call() && !code[2].is_call());
        assert_eq!((code[2].jump(), code[3].jump()), (Some(0x40), None));
        assert!(code[1].contains(0x49) && !code[1].contains(0x4a));
    }

    #[test]
    fn code_of_32_bits() {
        // inc %esi, which is a prefix in 64 bits; jmp *0xc(%ebx); jne back.
        let bytes = [0x46, 0xff, 0xa3, 0x0c, 0, 0, 0, 0x75, 0xf7];
        let mode = Mode::of_machine(3).unwrap();
        let code = decode(mode, &bytes, 0x40, 0x804_9040);
        let text: Vec<_> = code.iter().map(|i| i.text(Syntax::Att)).collect();
        assert_eq!(
            text,
            ["inc    %esi", "jmpl   *0xc(%ebx)", "jne    0x8049040"]
        );
        assert_eq!(code[2].jump(), Some(0x40));
        let other = decode(Mode::Bits64, &bytes, 0x40, 0x804_9040);
        assert_ne!(other[0].text(Syntax::Att), text[0]);
    }

    proptest! {
        /// Whatever the bytes are, every one of them is in one instruction.
        #[test]
        fn any_bytes_are_decoded(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            offset in any::<u32>(),
            mode in prop::sample::select(vec![Mode::Bits32, Mode::Bits64]),
        ) {
            let code = decode(mode, &bytes, offset.into(), u64::MAX - 20);
            let mut next = u64::from(offset);
            for instruction in &code {
                prop_assert_eq!(instruction.offset, next);
                prop_assert!(instruction.contains(next));
                for syntax in [Syntax::Att, Syntax::Intel] {
                    prop_assert!(!instruction.text(syntax).is_empty());
                }
                next += instruction.decoded.len() as u64;
            }
            prop_assert_eq!(next, u64::from(offset) + bytes.len() as u64);
        }
    }
}
