//! The DWARF expressions in unwind information. Compilers, assemblers and linkers write only a few
//! forms, so they are recognised instead of evaluated.

use gimli::{Encoding, EndianSlice, Expression, Format, LittleEndian, Operation};

/// Maximum length. The longest form has 11 bytes; numbers may be padded.
const BYTES_MAX: usize = 32;

/// The encoding is irrelevant for expressions in unwind information.
const ENCODING: Encoding = Encoding {
    address_size: 8,
    format: Format::Dwarf32,
    version: 4,
};

/// `(deref ? *(register + offset) : register + offset) + addend`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// DWARF number of the register.
    pub register: u16,
    /// Distance from the register in bytes.
    pub offset: i64,
    /// Whether the address is read from memory at `register + offset`.
    pub deref: bool,
    /// Distance of the result, in bytes, from the address that was read from memory.
    pub addend: i64,
}

/// Recognises
///
/// ```text
/// DW_OP_bregR N [plus M]... [DW_OP_deref [plus M]...]
/// ```
///
/// where plus is `DW_OP_plus_uconst M` or `DW_OP_const M; DW_OP_plus`.
pub fn address(bytes: &[u8]) -> Option<Address> {
    if bytes.len() > BYTES_MAX {
        return None;
    }
    let mut operations = Expression(EndianSlice::new(bytes, LittleEndian)).operations(ENCODING);
    let Operation::RegisterOffset {
        register, offset, ..
    } = operations.next().ok()??
    else {
        return None;
    };
    let mut address = Address {
        register: register.0,
        offset,
        deref: false,
        addend: 0,
    };
    while let Some(operation) = operations.next().ok()? {
        let plus = match operation {
            Operation::Deref {
                size: 8,
                space: false,
                ..
            } if !address.deref => {
                address.deref = true;
                continue;
            }
            Operation::PlusConstant { value } => value.cast_signed(),
            Operation::UnsignedConstant { value } => {
                plus_follows(operations.next()).then_some(value.cast_signed())?
            }
            Operation::SignedConstant { value } => {
                plus_follows(operations.next()).then_some(value)?
            }
            _ => return None,
        };
        let sum = if address.deref {
            &mut address.addend
        } else {
            &mut address.offset
        };
        *sum = sum.checked_add(plus)?;
    }
    Some(address)
}

fn plus_follows<R: gimli::Reader>(next: gimli::Result<Option<Operation<R>>>) -> bool {
    matches!(next, Ok(Some(Operation::Plus)))
}

/// Recognises the CFA of the stubs of x86-64's procedure linkage table (binutils,
/// `elf_x86_64_eh_frame_lazy_plt`) and returns its `limit`:
///
/// ```text
/// DW_OP_breg7 (rsp) 8; DW_OP_breg16 (rip) 0; DW_OP_lit15; DW_OP_and;
/// DW_OP_lit<limit>; DW_OP_ge; DW_OP_lit3; DW_OP_shl; DW_OP_plus
/// ```
pub fn plt_limit(bytes: &[u8]) -> Option<u8> {
    match *bytes {
        [
            0x77,
            8,
            0x80,
            0,
            0x3f,
            0x1a,
            literal @ 0x30..=0x3f,
            0x2a,
            0x33,
            0x24,
            0x22,
        ] => Some(literal - 0x30),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Option<(u16, i64, bool, i64)>) {
        let found = address(bytes).map(|a| (a.register, a.offset, a.deref, a.addend));
        assert_eq!(found, expected, "{bytes:x?}");
    }

    #[test]
    fn addresses() {
        // DW_OP_breg6 (rbp) -8; DW_OP_deref: GCC's realigned stack.
        check(&[0x76, 0x78, 0x06], Some((6, -8, true, 0)));
        // DW_OP_breg6 0: where it saves rbp.
        check(&[0x76, 0x00], Some((6, 0, false, 0)));
        // DW_OP_breg7 (rsp) 152; DW_OP_deref; DW_OP_plus_uconst 8: OpenSSL.
        check(
            &[0x77, 0x98, 0x01, 0x06, 0x23, 0x08],
            Some((7, 152, true, 8)),
        );
        // DW_OP_breg7 8; DW_OP_plus_uconst 16; DW_OP_deref; DW_OP_lit8; DW_OP_plus
        check(
            &[0x77, 8, 0x23, 16, 0x06, 0x38, 0x22],
            Some((7, 24, true, 8)),
        );
        // DW_OP_breg7 8; DW_OP_deref; DW_OP_const1s -8; DW_OP_plus
        check(&[0x77, 8, 0x06, 0x09, 0xf8, 0x22], Some((7, 8, true, -8)));
        // DW_OP_bregx 49, 8
        check(&[0x92, 49, 8], Some((49, 8, false, 0)));
    }

    #[test]
    fn other_forms() {
        check(&[], None);
        // DW_OP_lit8
        check(&[0x38], None);
        // Cut off.
        check(&[0x77], None);
        check(&[0x77, 8, 0x23], None);
        // DW_OP_deref twice.
        check(&[0x77, 8, 0x06, 0x06], None);
        // DW_OP_deref_size 4
        check(&[0x77, 8, 0x94, 4], None);
        // DW_OP_breg7 8; DW_OP_lit8; DW_OP_minus
        check(&[0x77, 8, 0x38, 0x1c], None);
        // DW_OP_breg7 8; DW_OP_lit8
        check(&[0x77, 8, 0x38], None);
        // Long but harmless.
        check(&[&[0x77, 8][..], &[0x23, 0].repeat(100)].concat(), None);
        // The sum overflows.
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        check(&[&[0x77, 8, 0x23][..], &huge].concat(), None);
    }

    #[test]
    fn linkage_table() {
        let mut plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(plt_limit(&plt), Some(11));
        plt[6] = 0x3a;
        assert_eq!(plt_limit(&plt), Some(10));
        plt[1] = 16;
        assert_eq!(plt_limit(&plt), None);
        assert_eq!(plt_limit(&plt[..10]), None);
    }
}
