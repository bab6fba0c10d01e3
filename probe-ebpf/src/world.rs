//! What a walk reads: a thread's memory, its mappings, and unwind tables.

use crate::rule::{Extended, Rule};
use crate::table::{Mapping, Words};

/// The source of all that a walk reads.
pub trait World {
    /// A piece of the unwind tables.
    type Chunk: Words;

    /// Reads the word at `address` of the thread's memory. Returns None if it cannot be read.
    fn read(&mut self, address: u64) -> Option<u64>;
    /// Like `read`, but returns 0 where nothing can be read: for words that are judged together
    /// afterwards. Each branch in between would cost the verifier another path.
    fn read_or_zero(&mut self, address: u64) -> u64 {
        self.read(address).unwrap_or(0)
    }
    /// Reads two words, the lower first.
    fn read_pair(&mut self, address: u64) -> Option<(u64, u64)>;
    /// Returns where a mapping begins, by its number in the list of all mappings.
    fn mapping_start(&self, number: u32) -> u64;
    /// Reads the mapping with this number in the list of all mappings.
    fn load_mapping(&self, number: u32, into: &mut Mapping);
    /// Returns the chunk that holds the word with this number. Returns None if there is none.
    fn chunk(&self, number: u32) -> Option<Self::Chunk>;
    /// Returns the rule with this number.
    fn rule(&self, index: u16) -> Rule;
    /// Returns the extended rule with this number.
    fn extended(&self, index: u32) -> Extended;
}

/// A world for tests: a stack and nothing else.
#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::rule::special;

    /// A stack of words from 0x7000 upwards, and rules by pc instead of tables.
    pub struct Stack<'a> {
        pub words: &'a [u64],
        pub extended: Extended,
    }

    impl<'a> Stack<'a> {
        pub const BASE: u64 = 0x7000;

        pub fn new(words: &'a [u64]) -> Self {
            Self {
                words,
                extended: Extended::default(),
            }
        }
    }

    pub struct NoChunk;

    impl Words for NoChunk {
        fn word(&self, _: u32) -> u32 {
            0
        }
    }

    impl World for Stack<'_> {
        type Chunk = NoChunk;

        fn read(&mut self, address: u64) -> Option<u64> {
            let offset = address.checked_sub(Self::BASE)?;
            self.words.get((offset / 8) as usize).copied()
        }

        fn read_pair(&mut self, address: u64) -> Option<(u64, u64)> {
            Some((self.read(address)?, self.read(address + 8)?))
        }

        fn mapping_start(&self, _: u32) -> u64 {
            0
        }

        fn load_mapping(&self, _: u32, _: &mut Mapping) {}

        fn chunk(&self, _: u32) -> Option<NoChunk> {
            None
        }

        fn rule(&self, _: u16) -> Rule {
            Rule::special(special::UNSUPPORTED)
        }

        fn extended(&self, _: u32) -> Extended {
            self.extended
        }
    }
}
