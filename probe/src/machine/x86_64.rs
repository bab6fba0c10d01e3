//! x86-64.

use super::{Machine, PerfRegisters};

/// x86-64. The numbers of registers are those of `enum perf_event_x86_regs`.
pub const X86_64: Machine = Machine {
    elf: 62,
    perf: PerfRegisters {
        ip: 8,
        sp: 7,
        bp: 6,
        scratch: {
            let (rax, rbx, rcx, rdx, rsi, rdi) = (0, 1, 2, 3, 4, 5);
            let (r8, r9, r10, r11) = (16, 17, 18, 19);
            let (r12, r13, r14, r15) = (20, 21, 22, 23);
            [
                r10, rax, rcx, rsi, rdi, r8, r9, r11, r13, rdx, r12, r14, r15, rbx,
            ]
        },
    },
    has_probes: true,
    walks_without_loop: true,
};
