//! One step from a frame to its caller along the chain of frame pointers.
//!
//! Code that keeps frame pointers begins with `push %rbp; mov %rsp,%rbp` on x86-64, with
//! `stp x29,x30,[sp,#-N]!; mov x29,sp` on AArch64: then `*bp` is the caller's and
//! `*(bp + 8)` the return address. Code that does not keep them uses the register for
//! anything, so every value is checked for being plausible, and an implausible one ends the
//! walk with its cause.

use crate::limits::{FRAME_BYTES_MAX, LOWEST_ADDRESS, USER_SPACE_END};
use crate::registers::Registers;
use crate::status;
use crate::world::World;

/// Takes one step: `(ip, sp, bp) = (*(bp + 8) & address_bits, bp + 16, *bp)`. The new `sp` is the
/// caller's stack pointer on x86-64; on AArch64 the caller's may also be above it.
#[inline(always)]
pub fn step<W: World>(registers: &mut Registers, address_bits: u64, world: &mut W) -> u32 {
    let bp = registers.bp;
    if bp == 0 {
        return status::CHAIN_END;
    }
    if bp & 7 != 0 || bp < registers.sp || bp.wrapping_sub(registers.sp) > FRAME_BYTES_MAX {
        return status::IMPLAUSIBLE;
    }
    let Some((caller_bp, return_address)) = world.read_pair(bp) else {
        return status::READ_FAULT;
    };
    let return_address = return_address & address_bits;
    if return_address == 0 {
        return status::CHAIN_END;
    }
    if !(LOWEST_ADDRESS..USER_SPACE_END).contains(&return_address) {
        return status::IMPLAUSIBLE;
    }
    registers.ip = return_address;
    registers.sp = bp.wrapping_add(16);
    registers.bp = caller_bp;
    status::CALLER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::tests::Stack;

    fn check(words: &[u64], registers: Registers, expected: u32) -> Registers {
        let mut after = registers;
        assert_eq!(step(&mut after, u64::MAX, &mut Stack::new(words)), expected);
        if expected != status::CALLER {
            assert_eq!(after, registers, "a failed step changes nothing");
        }
        after
    }

    #[test]
    fn a_frame_leads_to_its_caller() {
        // sp -> local, local, saved rbp, return address, caller's locals
        let words = [1, 2, 0x7030, 0x40_1234, 3, 4, 0, 0];
        let after = check(
            &words,
            Registers {
                ip: 0x40_1000,
                sp: 0x7000,
                bp: 0x7010,
            },
            status::CALLER,
        );
        assert_eq!(
            after,
            Registers {
                ip: 0x40_1234,
                sp: 0x7020,
                bp: 0x7030
            }
        );
    }

    #[test]
    fn zero_ends_the_chain() {
        check(
            &[0; 4],
            Registers {
                ip: 1,
                sp: 0x7000,
                bp: 0,
            },
            status::CHAIN_END,
        );
        // main was entered with rbp = 0, and nothing returns to address 0.
        check(
            &[0; 4],
            Registers {
                ip: 1,
                sp: 0x7000,
                bp: 0x7000,
            },
            status::CHAIN_END,
        );
    }

    #[test]
    fn a_pointer_below_the_stack_pointer_is_refused() {
        check(
            &[0x7030, 0x40_1234],
            Registers {
                ip: 1,
                sp: 0x7010,
                bp: 0x7000,
            },
            status::IMPLAUSIBLE,
        );
    }

    #[test]
    fn an_odd_pointer_is_refused() {
        check(
            &[0; 4],
            Registers {
                ip: 1,
                sp: 0x7000,
                bp: 0x7004,
            },
            status::IMPLAUSIBLE,
        );
    }

    #[test]
    fn a_pointer_far_away_is_refused() {
        let bp = 0x7000 + FRAME_BYTES_MAX + 8;
        check(
            &[0; 4],
            Registers {
                ip: 1,
                sp: 0x7000,
                bp,
            },
            status::IMPLAUSIBLE,
        );
    }

    #[test]
    fn a_return_address_that_is_data_is_refused() {
        for address in [1, 0xfff, USER_SPACE_END, u64::MAX] {
            check(
                &[0x7030, address],
                Registers {
                    ip: 1,
                    sp: 0x7000,
                    bp: 0x7000,
                },
                status::IMPLAUSIBLE,
            );
        }
    }

    #[test]
    fn a_signature_is_no_part_of_the_address() {
        let mut registers = Registers {
            ip: 1,
            sp: 0x7000,
            bp: 0x7000,
        };
        let words = [0x7030, 0x7f_0000_0040_1234];
        let bits = (1 << 48) - 1;
        let status = step(&mut registers, bits, &mut Stack::new(&words));
        assert_eq!((status, registers.ip), (status::CALLER, 0x40_1234));
    }

    #[test]
    fn unreadable_memory_is_a_fault() {
        check(
            &[],
            Registers {
                ip: 1,
                sp: 0x7000,
                bp: 0x7000,
            },
            status::READ_FAULT,
        );
    }

    #[test]
    fn every_step_moves_up_so_that_a_loop_is_impossible() {
        // A stack in which every word is its own address.
        let words: [u64; 64] = core::array::from_fn(|i| 0x7000 + 8 * i as u64);
        let mut registers = Registers {
            ip: 0x40_0000,
            sp: 0x7000,
            bp: 0x7000,
        };
        let mut memory = Stack::new(&words);
        let mut steps = 0;
        while step(&mut registers, u64::MAX, &mut memory) == status::CALLER {
            steps += 1;
            assert!(steps <= words.len());
        }
    }
}
