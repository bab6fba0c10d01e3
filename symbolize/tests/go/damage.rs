//! Damaged tables: no panic, no endless loop, no memory out of proportion to the
//! file.

use std::sync::Arc;

use symbolize::{GoSymbols, LinkAddr};
use test_support::Random;

use crate::elf::{TEXT, object};
use crate::program::{END, LAYOUTS, elf};

/// Bytes that are most likely to change a length or a sign.
const TELLING: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];

#[test]
fn a_thousand_damaged_files_of_each_layout() {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    for layout in LAYOUTS {
        for with_section in [true, false] {
            let mut elf = elf(layout, with_section);
            elf.section_headers = with_section;
            let whole = elf.bytes();
            for _ in 0..1000 {
                let mut bytes = whole.clone();
                for _ in 0..1 << random.index(6) {
                    let at = random.index(bytes.len());
                    bytes[at] = TELLING[random.index(TELLING.len())];
                }
                bytes.truncate(bytes.len() - random.index(64) * random.index(2));
                check(bytes);
            }
        }
    }
}

fn check(bytes: Vec<u8>) {
    let len = bytes.len();
    let Ok(object) = object(bytes) else {
        return;
    };
    let Some(symbols) = GoSymbols::read(&Arc::new(object)) else {
        return;
    };
    assert!(symbols.heap_bytes() <= 2 * len);
    for addr in (0..u64::from(END) + 8).chain([0x1000, u64::MAX - TEXT]) {
        let chain = symbols.find(LinkAddr(TEXT + addr));
        assert!(chain.len() <= 65);
    }
}
