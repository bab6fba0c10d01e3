//! Instructions of AArch64, decoded by yaxpeax-arm. The targets of branches are decoded here.

use super::column;
use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

/// The length of an instruction in bytes.
const BYTES: usize = 4;

/// An instruction, or the incomplete rest of one at the end of the code.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    bits: u32,
    /// Its link-time address.
    pub address: u64,
    /// Its length in bytes, which is less than 4 for an incomplete one.
    pub len: u64,
}

/// Calls `each` with the offset of each instruction from the beginning of `bytes`, and the
/// instruction.
pub fn decode(bytes: &[u8], address: u64, mut each: impl FnMut(u64, Word)) {
    for (number, chunk) in (0..).zip(bytes.chunks(BYTES)) {
        let mut word = [0; BYTES];
        word[..chunk.len()].copy_from_slice(chunk);
        let position = number * BYTES as u64;
        let word = Word {
            bits: u32::from_le_bytes(word),
            address: address.wrapping_add(position),
            len: chunk.len() as u64,
        };
        each(position, word);
    }
}

impl Word {
    /// Whether it is `bl`, `blr` or one of `blraa`, `blraaz`, … that check a signature.
    pub fn is_call(self) -> bool {
        self.is_whole()
            && (self.bits >> 26 == 0b10_0101 || matches!(self.bits >> 21, 0x6b1 | 0x6b9))
    }

    /// Returns the address that it calls or jumps to. `None` if the instruction does not contain it.
    pub fn branch(self) -> Option<u64> {
        let words = match self.bits {
            // b, bl
            bits if bits & 0x7c00_0000 == 0x1400_0000 => signed(bits, 0, 26),
            // b.cond
            bits if bits & 0xff00_0000 == 0x5400_0000 => signed(bits, 5, 19),
            // cbz, cbnz
            bits if bits & 0x7e00_0000 == 0x3400_0000 => signed(bits, 5, 19),
            // tbz, tbnz
            bits if bits & 0x7e00_0000 == 0x3600_0000 => signed(bits, 5, 14),
            _ => return None,
        };
        self.is_whole()
            .then(|| self.address.wrapping_add_signed(words * BYTES as i64))
    }

    /// Returns the instruction as text, with the name of its target instead of the address.
    pub fn text(self, target: Option<&str>) -> String {
        let Some(text) = self.decoded() else {
            let digits = 2 * self.len as usize;
            return format!(
                "{}{:#0width$x}",
                column(".inst"),
                self.bits,
                width = digits + 2
            );
        };
        let (mnemonic, operands) = text.split_once(' ').unwrap_or((&text, ""));
        if operands.is_empty() {
            return mnemonic.to_owned();
        }
        // yaxpeax-arm writes an address as a distance: `$+0x10`.
        let operands = match (operands.split_once('$'), self.relative_to()) {
            (Some((before, distance)), from) => match target {
                Some(target) => format!("{before}{target}"),
                None => match parse(distance) {
                    Some(distance) => format!("{before}{:#x}", from.wrapping_add_signed(distance)),
                    None => operands.to_owned(),
                },
            },
            (None, _) => operands.to_owned(),
        };
        format!("{}{operands}", column(mnemonic))
    }

    fn decoded(self) -> Option<String> {
        let bytes = self.bits.to_le_bytes();
        let decoded = InstDecoder::default().decode(&mut U8Reader::new(&bytes));
        let text = decoded.ok()?.to_string();
        // Invalid code is decoded as `udf`, an instruction that traps.
        (self.is_whole() && !text.starts_with("udf")).then_some(text)
    }

    /// Returns the address to which the distance is relative. For `adrp` it is the start of the
    /// page.
    fn relative_to(self) -> u64 {
        if self.bits & 0x9f00_0000 == 0x9000_0000 {
            self.address & !0xfff
        } else {
            self.address
        }
    }

    fn is_whole(self) -> bool {
        self.len == BYTES as u64
    }
}

/// Returns the signed number in `count` bits from bit `at` on.
fn signed(bits: u32, at: u32, count: u32) -> i64 {
    i64::from((bits << (32 - at - count)).cast_signed() >> (32 - count))
}

/// Parses a distance, as in `+0x10` or `-0x10`.
fn parse(distance: &str) -> Option<i64> {
    let (sign, digits) = match distance.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, distance.strip_prefix('+')?),
    };
    let number = i64::from_str_radix(digits.strip_prefix("0x")?, 16).ok()?;
    number.checked_mul(sign)
}
