//! Random instructions, run by us and by gimli.

use proptest::prelude::*;

use crate::cfi::{Cfi, Common};
use crate::elf::{Elf, TEXT};
use crate::oracle;

/// A register: one that is tracked, one that is not, or a special one.
fn register() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![6, 7, 16, 6, 7, 16, 0, 3, 10, 17])
}

/// An offset below 64, which is one byte of LEB128, signed or not.
fn offset() -> impl Strategy<Value = u8> {
    0u8..64
}

fn expression() -> impl Strategy<Value = Vec<u8>> {
    let base = (prop::sample::select(vec![0x70, 0x76, 0x77, 0x7a]), 0u8..128)
        .prop_map(|(register, offset)| vec![register, offset]);
    let operation = prop_oneof![
        Just(vec![0x06]),
        offset().prop_map(|n| vec![0x23, n]),
        offset().prop_map(|n| vec![0x08, n, 0x22]),
        (0u8..128).prop_map(|n| vec![0x11, n, 0x22]),
        Just(vec![0x38, 0x1c]),
    ];
    let plt = (0x30u8..0x40)
        .prop_map(|limit| vec![0x77, 8, 0x80, 0, 0x3f, 0x1a, limit, 0x2a, 0x33, 0x24, 0x22]);
    let sum = (base, prop::collection::vec(operation, 0..4))
        .prop_map(|(base, operations)| [base, operations.concat()].concat());
    prop_oneof![4 => sum, 1 => plt]
}

fn sized(code: &[u8], expression: &[u8]) -> Vec<u8> {
    [code, &[expression.len() as u8], expression].concat()
}

fn instruction() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        // advance_loc, advance_loc1, advance_loc2
        6 => (0u8..8).prop_map(|n| vec![0x40 | n]),
        1 => (0u8..32).prop_map(|n| vec![0x02, n]),
        1 => (0u8..32).prop_map(|n| vec![0x03, n, 0]),
        // def_cfa, def_cfa_sf, def_cfa_register, def_cfa_offset(_sf)
        2 => (register(), offset()).prop_map(|(r, n)| vec![0x0c, r, n]),
        1 => (register(), 0u8..128).prop_map(|(r, n)| vec![0x12, r, n]),
        1 => register().prop_map(|r| vec![0x0d, r]),
        2 => offset().prop_map(|n| vec![0x0e, n]),
        1 => (0u8..128).prop_map(|n| vec![0x13, n]),
        2 => expression().prop_map(|e| sized(&[0x0f], &e)),
        // offset, offset_extended, offset_extended_sf, val_offset(_sf)
        3 => (register(), offset()).prop_map(|(r, n)| vec![0x80 | r, n]),
        1 => (register(), offset()).prop_map(|(r, n)| vec![0x05, r, n]),
        1 => (register(), 0u8..128).prop_map(|(r, n)| vec![0x11, r, n]),
        1 => (register(), offset()).prop_map(|(r, n)| vec![0x14, r, n]),
        1 => (register(), 0u8..128).prop_map(|(r, n)| vec![0x15, r, n]),
        // undefined, same_value, register, expression, val_expression
        1 => register().prop_map(|r| vec![0x07, r]),
        1 => register().prop_map(|r| vec![0x08, r]),
        1 => (register(), register()).prop_map(|(r, s)| vec![0x09, r, s]),
        2 => (register(), expression()).prop_map(|(r, e)| sized(&[0x10, r], &e)),
        1 => (register(), expression()).prop_map(|(r, e)| sized(&[0x16, r], &e)),
        // restore, restore_extended, remember_state, restore_state
        2 => register().prop_map(|r| vec![0xc0 | r]),
        1 => register().prop_map(|r| vec![0x06, r]),
        2 => Just(vec![0x0a]),
        2 => Just(vec![0x0b]),
        // GNU_args_size, nop, and anything
        1 => offset().prop_map(|n| vec![0x2e, n]),
        1 => Just(vec![0]),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

fn program(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(instruction(), len).prop_map(|program| program.concat())
}

fn common() -> impl Strategy<Value = Common> {
    let code = prop::sample::select(vec![1, 1, 4]);
    let data = prop::sample::select(vec![-8, -8, 8, 1]);
    (code, data).prop_map(|(code_alignment, data_alignment)| Common {
        code_alignment,
        data_alignment,
        ..Common::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Functions have any addresses, so that they overlap, touch and leave gaps.
    #[test]
    fn programs_mean_what_gimli_thinks(
        common in common(),
        entry in program(0..4),
        functions in prop::collection::vec((0u64..200, 0u64..100, program(0..12)), 1..8),
    ) {
        let usual = [crate::cfi::ENTRY, &entry].concat();
        let cfi = Cfi::eh_frame().cie(common, &usual);
        let cfi = functions.iter().fold(cfi, |cfi, (start, len, program)| {
            cfi.fde(TEXT + start, *len, program)
        });
        let elf = Elf::new().with(".eh_frame", 0x2000, cfi.data);
        let object = elf.object();
        let table = elf.table().unwrap();
        let outcome = oracle::check(&object, &table).unwrap();
        prop_assert_eq!(outcome.wrong, 0, "{:?} {:?}", outcome.examples, table);
    }
}
