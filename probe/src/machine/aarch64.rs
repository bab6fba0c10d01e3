//! AArch64.

use super::{Machine, PerfRegisters};
use probe_ebpf::registers::SCRATCH_REGISTERS;
use probe_ebpf::rule::aarch64::SCRATCH;

/// AArch64. The numbers of registers are those of `enum perf_event_arm_regs`: the general registers
/// first, then sp and pc.
pub const AARCH64: Machine = Machine {
    elf: 183,
    perf: PerfRegisters {
        ip: 32,
        sp: 31,
        bp: 29,
        scratch: {
            let mut numbers = [0; SCRATCH_REGISTERS];
            let mut index = 0;
            while index < SCRATCH_REGISTERS {
                numbers[index] = SCRATCH[index] as u32;
                index += 1;
            }
            numbers
        },
    },
    has_probes: false,
    walks_without_loop: false,
};
