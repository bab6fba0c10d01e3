use super::*;
use crate::rule::{Extended, kind};
use crate::table::Words;
use std::vec;
use std::vec::Vec;

/// A pool that begins with a page index, with its page block right behind it.
struct Pool(Vec<u32>);

#[derive(Clone)]
struct PoolWords(Vec<u32>);

impl Words for PoolWords {
    fn word(&self, number: u32) -> u32 {
        self.0[number as usize]
    }
}

impl World for Pool {
    type Chunk = PoolWords;

    fn read(&mut self, _: u64) -> Option<u64> {
        None
    }

    fn read_pair(&mut self, _: u64) -> Option<(u64, u64)> {
        None
    }

    fn mapping_start(&self, _: u32) -> u64 {
        0x10_0000
    }

    fn load_mapping(&self, _: u32, into: &mut Mapping) {
        *into = Mapping {
            start: 0x10_0000,
            end: 0x14_0000,
            bias: 0x10_0000,
            table: 1,
            first_page: 0,
            pages: 2,
            reserved: 0,
        };
    }

    fn chunk(&self, _: u32) -> Option<PoolWords> {
        Some(PoolWords(self.0.clone()))
    }

    fn rule(&self, index: u16) -> Rule {
        Rule::new(kind::SP, u32::from(index), 0, 0)
    }

    fn extended(&self, _: u32) -> Extended {
        Extended::default()
    }
}

#[test]
fn a_table_at_the_very_beginning_of_the_pool() {
    // Word 0 is never used; 1 and 2 are the index; the block is at 3.
    let mut words = vec![0, 3, crate::table::NO_BLOCK];
    words.extend([1; crate::table::BLOCKS as usize]);
    words.push(crate::table::row(0, 7));
    let pool = Pool(words);
    let mut walk = Walk {
        length: 1,
        ..Walk::default()
    };
    let rule = |walk: &mut Walk, pc| rule_for(walk, &pool, pc);
    assert_eq!(
        rule(&mut walk, 0x10_1234),
        Some(Rule::new(kind::SP, 7, 0, 0))
    );
    // A page without rows, pages that the index does not have, no mapping.
    let no_information = Some(Rule::special(special::FRAME_POINTER));
    assert_eq!(rule(&mut walk, 0x11_0000), no_information);
    assert_eq!(rule(&mut walk, 0x12_0000), no_information);
    assert_eq!(rule(&mut walk, 0x14_0000), None);
}
