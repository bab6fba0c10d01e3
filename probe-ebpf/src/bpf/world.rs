//! What a walk reads in BPF: the memory of the current task, and the maps.

use super::maps::{CHUNKS, EXTENDED, MAPPINGS, MAPPINGS_PARTS, RULES};
use aya_ebpf::helpers::generated as helpers;
use core::ffi::c_void;
use probe_ebpf::rule::{Extended, Rule, special};
use probe_ebpf::table::{
    CHUNK_SHIFT, CHUNK_WORDS, EXTENDED_MAX, MAPPINGS_MAX, Mapping, RULES_MAX, Words,
};
use probe_ebpf::world::World;

/// The current task's memory, and the tables in maps.
pub struct Current;

impl World for Current {
    type Chunk = ChunkWords;

    #[inline(always)]
    fn read(&mut self, address: u64) -> Option<u64> {
        let mut word = 0u64;
        // SAFETY: the helper checks the address and writes 8 bytes to `word`.
        let result = unsafe {
            helpers::bpf_probe_read_user(&raw mut word as *mut c_void, 8, address as *const c_void)
        };
        if result == 0 { Some(word) } else { None }
    }

    #[inline(always)]
    fn read_or_zero(&mut self, address: u64) -> u64 {
        let mut word = 0u64;
        // SAFETY: the helper checks the address and writes 8 bytes to `word`,
        // zeroes where it cannot read.
        unsafe {
            helpers::bpf_probe_read_user(&raw mut word as *mut c_void, 8, address as *const c_void)
        };
        word
    }

    #[inline(always)]
    fn read_pair(&mut self, address: u64) -> Option<(u64, u64)> {
        let mut words = [0u64; 2];
        // SAFETY: the helper checks the address and writes 16 bytes to `words`.
        let result = unsafe {
            helpers::bpf_probe_read_user(
                &raw mut words as *mut c_void,
                16,
                address as *const c_void,
            )
        };
        if result == 0 {
            Some((words[0], words[1]))
        } else {
            None
        }
    }

    #[inline(always)]
    fn mapping_start(&self, number: u32) -> u64 {
        match mapping(number) {
            // SAFETY: inside the map's value, by the mask.
            Some(words) => unsafe { *words },
            None => 0,
        }
    }

    #[inline(always)]
    fn load_mapping(&self, number: u32, into: &mut Mapping) {
        let Some(words) = mapping(number) else {
            return;
        };
        // SAFETY: inside the map's value, by the mask; word by word, because a
        // copy of the whole becomes a loop over bytes.
        unsafe {
            into.start = *words;
            into.end = *words.add(1);
            into.bias = *words.add(2);
            let table = *words.add(3);
            into.table = table as u32;
            into.first_page = (table >> 32) as u32;
            into.pages = *words.add(4) as u32;
        }
    }

    #[inline(always)]
    fn chunk(&self, number: u32) -> Option<ChunkWords> {
        // Not `&0`: that constant would be shared with a global.
        let first = 0u32;
        CHUNKS
            .get_value_ptr_mut(number >> CHUNK_SHIFT, &first)
            .map(|chunk| ChunkWords(chunk as *const u32))
    }

    #[inline(always)]
    fn rule(&self, index: u16) -> Rule {
        let Some(rules) = RULES.get_ptr(0) else {
            return Rule::special(special::UNSUPPORTED);
        };
        // SAFETY: the map has a value for every 16-bit number.
        Rule(unsafe { *(rules as *const u32).add(index as usize & (RULES_MAX - 1)) })
    }

    #[inline(always)]
    fn extended(&self, index: u32) -> Extended {
        let mut rule = Extended::default();
        if let Some(rules) = EXTENDED.get_ptr(0) {
            // SAFETY: inside the map's value, by the mask.
            let words =
                unsafe { (rules as *const u32).add((index as usize & (EXTENDED_MAX - 1)) * 4) };
            // SAFETY: the four words of one rule.
            let (head, offset, addend, rbp_offset) =
                unsafe { (*words, *words.add(1), *words.add(2), *words.add(3)) };
            rule.base = head as u8;
            rule.deref = (head >> 8) as u8;
            rule.caller_rbp = (head >> 16) as u8;
            rule.caller_rbx = (head >> 24) as u8;
            rule.offset = offset as i32;
            rule.addend = addend as i32;
            rule.rbp_offset = rbp_offset as i32;
        }
        rule
    }
}

#[inline(always)]
fn mapping(number: u32) -> Option<*const u64> {
    const PART: usize = MAPPINGS_MAX / MAPPINGS_PARTS;
    let part = if MAPPINGS_PARTS == 1 {
        0
    } else {
        number / PART as u32
    };
    let mappings = MAPPINGS.get_ptr(part)?;
    // SAFETY: the mask keeps the number inside the map's value.
    Some(unsafe { (mappings as *const u64).add((number as usize & (PART - 1)) * 5) })
}

/// The words of one chunk: the mask is the bounds check.
pub struct ChunkWords(*const u32);

impl Words for ChunkWords {
    #[inline(always)]
    fn word(&self, number: u32) -> u32 {
        // SAFETY: the mask keeps the number inside the map's value.
        unsafe { *self.0.add(number as usize & (CHUNK_WORDS - 1)) }
    }
}
