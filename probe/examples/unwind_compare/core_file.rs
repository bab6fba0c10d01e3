//! Makes a core file that contains only the registers and the stack of one thread.

use object::elf;
use probe::KeptWalk;

const HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
/// `struct elf_prstatus` of x86-64, and where its registers are: 27 words, as in
/// `struct user_regs_struct`.
const STATUS: usize = 336;
const STATUS_REGISTERS: usize = 112;
const STATUS_PID: usize = 32;
const BP: usize = 4;
const IP: usize = 16;
const CS: usize = 17;
const SP: usize = 19;
const SS: usize = 20;

pub fn bytes(walk: &KeptWalk) -> Vec<u8> {
    let stack = stack(walk);
    let note = note(walk);
    let note_at = HEADER + 2 * PROGRAM_HEADER;
    let stack_at = note_at + note.len() as u64;
    let mut core = header();
    program_header(&mut core, elf::PT_NOTE.0, 0, note_at, 0, note.len());
    let readable = elf::PF_R.0 | elf::PF_W.0;
    program_header(
        &mut core,
        elf::PT_LOAD.0,
        readable,
        stack_at,
        walk.registers.sp,
        stack.len(),
    );
    core.extend(note);
    core.extend(stack);
    core
}

/// Returns the copied stack, from the stack pointer on.
fn stack(walk: &KeptWalk) -> Vec<u8> {
    (0..)
        .step_by(8)
        .map_while(|offset| walk.stack.word(offset))
        .flat_map(u64::to_le_bytes)
        .collect()
}

fn header() -> Vec<u8> {
    let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0];
    header.extend([0; 8]);
    for half in [4, 62] {
        header.extend(u16::to_le_bytes(half)); // ET_CORE, EM_X86_64
    }
    header.extend(1u32.to_le_bytes());
    for word in [0, HEADER, 0] {
        header.extend(u64::to_le_bytes(word)); // entry, program headers, sections
    }
    header.extend(0u32.to_le_bytes());
    for half in [HEADER as u16, PROGRAM_HEADER as u16, 2, 0, 0, 0] {
        header.extend(half.to_le_bytes());
    }
    header
}

fn program_header(core: &mut Vec<u8>, kind: u32, flags: u32, at: u64, address: u64, size: usize) {
    core.extend(kind.to_le_bytes());
    core.extend(flags.to_le_bytes());
    for word in [at, address, 0, size as u64, size as u64, 1] {
        core.extend(word.to_le_bytes());
    }
}

fn note(walk: &KeptWalk) -> Vec<u8> {
    let mut status = vec![0; STATUS];
    status[STATUS_PID..][..4].copy_from_slice(&walk.pid.to_le_bytes());
    let registers = walk.registers;
    for (which, value) in [
        (BP, registers.bp),
        (IP, registers.ip),
        (SP, registers.sp),
        // The values of user code in 64-bit mode.
        (CS, 0x33),
        (SS, 0x2b),
    ] {
        status[STATUS_REGISTERS + which * 8..][..8].copy_from_slice(&value.to_le_bytes());
    }
    let mut note = Vec::new();
    for word in [5, STATUS as u32, 1] {
        note.extend(u32::to_le_bytes(word)); // name's length, status' length, NT_PRSTATUS
    }
    note.extend(b"CORE\0\0\0\0");
    note.extend(status);
    note
}
