//! The user registers that the kernel is asked for, and which is which.

use crate::bytes::u64_at;
use probe_ebpf::Registers;
use probe_ebpf::registers::SCRATCH_REGISTERS;

/// Numbers of `enum perf_event_x86_regs`.
#[cfg(target_arch = "x86_64")]
mod number {
    use super::SCRATCH_REGISTERS;

    pub const IP: u32 = 8;
    pub const SP: u32 = 7;
    pub const BP: u32 = 6;
    /// In the order in which the walk keeps them.
    pub const SCRATCH: [u32; SCRATCH_REGISTERS] = {
        let (rax, rbx, rcx, rdx, rsi, rdi) = (0, 1, 2, 3, 4, 5);
        let (r8, r9, r10, r11) = (16, 17, 18, 19);
        let (r12, r13, r14, r15) = (20, 21, 22, 23);
        [
            r10, rax, rcx, rsi, rdi, r8, r9, r11, r13, rdx, r12, r14, r15, rbx,
        ]
    };
}

/// Numbers of `enum perf_event_arm_regs`. The walk has no rules for this
/// architecture yet: by frame pointers only.
#[cfg(target_arch = "aarch64")]
mod number {
    use super::SCRATCH_REGISTERS;

    pub const IP: u32 = 32;
    pub const SP: u32 = 31;
    pub const BP: u32 = 29;
    pub const SCRATCH: [u32; SCRATCH_REGISTERS] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
}

/// What `Attributes::user_registers` asks for.
pub const MASK: u64 = {
    let mut mask = 1 << number::IP | 1 << number::SP | 1 << number::BP;
    let mut index = 0;
    while index < SCRATCH_REGISTERS {
        mask |= 1 << number::SCRATCH[index];
        index += 1;
    }
    mask
};

/// How many words come.
pub const COUNT: usize = MASK.count_ones() as usize;

/// The registers from their words, which come in the order of their numbers.
pub fn read(words: &[u8]) -> Option<(Registers, [u64; SCRATCH_REGISTERS])> {
    let register = |number: u32| {
        let place = (MASK & ((1 << number) - 1)).count_ones() as usize;
        u64_at(words, 8 * place)
    };
    let mut scratch = [0; SCRATCH_REGISTERS];
    for (value, number) in scratch.iter_mut().zip(number::SCRATCH) {
        *value = register(number)?;
    }
    let named = Registers {
        ip: register(number::IP)?,
        sp: register(number::SP)?,
        bp: register(number::BP)?,
    };
    Some((named, scratch))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn each_register_is_at_its_place() {
        // rax rbx rcx rdx rsi rdi rbp rsp rip r8 to r15
        let words: Vec<u8> = (1..=17u64).flat_map(u64::to_le_bytes).collect();
        let (named, scratch) = read(&words).unwrap();
        assert_eq!((named.bp, named.sp, named.ip), (7, 8, 9));
        assert_eq!(scratch, [12, 1, 3, 5, 6, 10, 11, 13, 15, 4, 14, 16, 17, 2]);
        assert_eq!(read(&words[..words.len() - 1]), None);
    }
}
