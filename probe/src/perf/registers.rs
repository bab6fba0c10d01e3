//! The user registers that are requested from the kernel, and how they are read.

use crate::bytes::u64_at;
use crate::machine::{PerfRegisters, THIS};
use probe_ebpf::Registers;
use probe_ebpf::registers::SCRATCH_REGISTERS;

/// The value of `Attributes::user_registers`.
pub const MASK: u64 = mask(&THIS.perf);

/// Number of words with registers in a record.
pub const COUNT: usize = MASK.count_ones() as usize;

/// Reads the registers from their words, which come in the order of their numbers.
pub fn read(words: &[u8]) -> Option<(Registers, [u64; SCRATCH_REGISTERS])> {
    read_of(&THIS.perf, words)
}

const fn mask(numbers: &PerfRegisters) -> u64 {
    let mut mask = 1 << numbers.ip | 1 << numbers.sp | 1 << numbers.bp;
    let mut index = 0;
    while index < SCRATCH_REGISTERS {
        mask |= 1 << numbers.scratch[index];
        index += 1;
    }
    mask
}

fn read_of(numbers: &PerfRegisters, words: &[u8]) -> Option<(Registers, [u64; SCRATCH_REGISTERS])> {
    let mask = mask(numbers);
    let register = |number: u32| {
        let place = (mask & ((1 << number) - 1)).count_ones() as usize;
        u64_at(words, 8 * place)
    };
    let mut scratch = [0; SCRATCH_REGISTERS];
    for (value, number) in scratch.iter_mut().zip(numbers.scratch) {
        *value = register(number)?;
    }
    let named = Registers {
        ip: register(numbers.ip)?,
        sp: register(numbers.sp)?,
        bp: register(numbers.bp)?,
    };
    Some((named, scratch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{AARCH64, X86_64};

    fn words() -> Vec<u8> {
        (1..=17u64).flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn each_register_of_x86_64_is_at_its_place() {
        // rax rbx rcx rdx rsi rdi rbp rsp rip r8 to r15
        let (named, scratch) = read_of(&X86_64.perf, &words()).unwrap();
        assert_eq!((named.bp, named.sp, named.ip), (7, 8, 9));
        assert_eq!(scratch, [12, 1, 3, 5, 6, 10, 11, 13, 15, 4, 14, 16, 17, 2]);
        assert_eq!(read_of(&X86_64.perf, &words()[1..]), None);
    }

    #[test]
    fn each_register_of_aarch64_is_at_its_place() {
        // x8 to x17 x19 x20 x28 x29 x30 sp pc
        let (named, scratch) = read_of(&AARCH64.perf, &words()).unwrap();
        assert_eq!((named.bp, named.sp, named.ip), (14, 16, 17));
        assert_eq!(scratch, [15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(read_of(&AARCH64.perf, &words()[1..]), None);
    }
}
