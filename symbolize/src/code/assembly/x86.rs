//! Instructions of x86, decoded by iced.

use super::{Dialect, OPERANDS_AT, column};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter};
use iced_x86::{Instruction, IntelFormatter};

/// Calls `each` with the offset of each instruction from the beginning of `bytes`, and the
/// instruction.
pub fn decode(bits: u32, bytes: &[u8], address: u64, mut each: impl FnMut(u64, Instruction)) {
    let mut decoder = Decoder::with_ip(bits, bytes, address, DecoderOptions::NONE);
    while decoder.can_decode() {
        let position = decoder.position();
        let mut decoded = decoder.decode();
        if decoded.is_invalid() {
            // A valid instruction may begin at the next byte.
            decoded.set_len(1);
            if decoder.set_position(position + 1).is_err() {
                break;
            }
            decoder.set_ip(address.wrapping_add(position as u64 + 1));
        }
        each(position as u64, decoded);
    }
}

/// Whether the instruction is a call, direct or indirect.
pub fn is_call(decoded: &Instruction) -> bool {
    let flow = decoded.flow_control();
    matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
}

/// Returns the address that the instruction calls or jumps to. `None` if it does not contain it.
pub fn branch(decoded: &Instruction) -> Option<u64> {
    let flow = decoded.flow_control();
    let is_near = matches!(
        flow,
        FlowControl::Call | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
    );
    let target = decoded.near_branch_target();
    (is_near && target != 0).then_some(target)
}

/// Returns the instruction as text, with the name of its target instead of the address.
pub fn text(decoded: &Instruction, dialect: Dialect, target: Option<&str>) -> String {
    match dialect {
        Dialect::Att => write(decoded, &mut GasFormatter::new(), target),
        Dialect::Intel => write(decoded, &mut IntelFormatter::new(), target),
    }
}

/// Writes an instruction, with operands in a column of their own and numbers as in `0x1f`.
fn write(decoded: &Instruction, formatter: &mut dyn Formatter, target: Option<&str>) -> String {
    let options = formatter.options_mut();
    options.set_uppercase_hex(false);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_small_hex_numbers_in_decimal(false);
    options.set_first_operand_char_index(OPERANDS_AT as u32);
    options.set_space_after_operand_separator(false);
    options.set_branch_leading_zeros(false);
    options.set_rip_relative_addresses(true);
    let mut text = String::new();
    match target {
        Some(target) => {
            formatter.format_mnemonic(decoded, &mut text);
            format!("{}{target}", column(&text))
        }
        None => {
            formatter.format(decoded, &mut text);
            text
        }
    }
}
