//! Reads the output of a task iterator: what its program writes for each thread.

use crate::bpf_call::bpf;
use crate::bytes::{field_at, u32_at, u64_at};
use aya::programs::ProgramFd;
use probe_ebpf::Registers;
use probe_ebpf::record::COMM_LEN;
use probe_ebpf::registers::SCRATCH_REGISTERS;
use probe_ebpf::waits::{self, WAIT_KERNEL_FRAMES_MAX};
use std::fs::File;
use std::io::{self, Read as _};
use std::mem::offset_of;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};

/// A wait that is not over, as the kernel side reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWait {
    /// When it began, in nanoseconds on `CLOCK_MONOTONIC`.
    pub since_ns: u64,
    pub tid: u32,
    pub tgid: u32,
    /// A [`probe_ebpf::waits::state`].
    pub state: u32,
    /// The thread's name, padded with zeros.
    pub comm: [u8; COMM_LEN],
    /// The user registers with which the thread entered the kernel.
    pub registers: Registers,
    /// The other user registers that the walk needs.
    pub scratch: [u64; SCRATCH_REGISTERS],
    /// Kernel frames, innermost first.
    pub kernel: Vec<u64>,
}

/// `union bpf_attr` of BPF_LINK_CREATE (uapi/linux/bpf.h), the used fields.
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
    iter_info: u64,
    iter_info_len: u32,
    zero: u32,
}

/// `union bpf_attr` of BPF_ITER_CREATE.
#[repr(C)]
struct IterCreate {
    link_fd: u32,
    flags: u32,
}

/// Runs the program once for each thread, and returns what it wrote.
pub fn read(program: &ProgramFd) -> io::Result<Vec<OpenWait>> {
    const LINK_CREATE: u32 = 28;
    const ITER_CREATE: u32 = 33;
    const TRACE_ITER: u32 = 28;

    let mut link = LinkCreate {
        prog_fd: program.as_fd().as_raw_fd().cast_unsigned(),
        target_fd: 0,
        attach_type: TRACE_ITER,
        flags: 0,
        iter_info: 0,
        iter_info_len: 0,
        zero: 0,
    };
    // SAFETY: the arm of that command, with no address in it.
    let link = unsafe { bpf(LINK_CREATE, &mut link) }?;
    // SAFETY: a descriptor that the kernel has just made for us.
    let link = unsafe { OwnedFd::from_raw_fd(link) };
    let mut iterator = IterCreate {
        link_fd: link.as_raw_fd().cast_unsigned(),
        flags: 0,
    };
    // SAFETY: the arm of that command, with no address in it.
    let file = unsafe { bpf(ITER_CREATE, &mut iterator) }?;
    // SAFETY: as above.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(file) });
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let records = bytes.chunks_exact(size_of::<waits::OpenWait>());
    Ok(records.filter_map(parse).collect())
}

/// Decodes a record; `None` if it is malformed.
fn parse(record: &[u8]) -> Option<OpenWait> {
    let word = |at: usize| u64_at(record, at);
    let frames = u32_at(record, offset_of!(waits::OpenWait, kernel_frames))? as usize;
    let frames = frames.min(WAIT_KERNEL_FRAMES_MAX);
    let registers = offset_of!(waits::OpenWait, registers);
    let mut scratch = [0; SCRATCH_REGISTERS];
    for (index, register) in scratch.iter_mut().enumerate() {
        *register = word(offset_of!(waits::OpenWait, scratch) + 8 * index)?;
    }
    let kernel = (0..frames).map(|index| word(offset_of!(waits::OpenWait, kernel) + 8 * index));
    Some(OpenWait {
        since_ns: word(offset_of!(waits::OpenWait, since_ns))?,
        tid: u32_at(record, offset_of!(waits::OpenWait, tid))?,
        tgid: u32_at(record, offset_of!(waits::OpenWait, tgid))?,
        state: u32_at(record, offset_of!(waits::OpenWait, state))?,
        comm: field_at(record, offset_of!(waits::OpenWait, comm))?,
        registers: Registers {
            ip: word(registers + offset_of!(Registers, ip))?,
            sp: word(registers + offset_of!(Registers, sp))?,
            bp: word(registers + offset_of!(Registers, bp))?,
        },
        scratch,
        kernel: kernel.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_from_its_bytes() {
        let mut record = vec![0; size_of::<waits::OpenWait>()];
        let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
        put(offset_of!(waits::OpenWait, since_ns), &5u64.to_le_bytes());
        put(offset_of!(waits::OpenWait, tid), &8u32.to_le_bytes());
        put(offset_of!(waits::OpenWait, tgid), &7u32.to_le_bytes());
        put(
            offset_of!(waits::OpenWait, kernel_frames),
            &2u32.to_le_bytes(),
        );
        put(offset_of!(waits::OpenWait, comm), b"worker");
        put(offset_of!(waits::OpenWait, registers), &1u64.to_le_bytes());
        put(
            offset_of!(waits::OpenWait, scratch) + 13 * 8,
            &9u64.to_le_bytes(),
        );
        put(offset_of!(waits::OpenWait, kernel) + 8, &3u64.to_le_bytes());
        let told = parse(&record).unwrap();
        assert_eq!((told.since_ns, told.tid, told.tgid), (5, 8, 7));
        assert_eq!((told.registers.ip, told.scratch[13]), (1, 9));
        assert_eq!((told.kernel, &told.comm[..6]), (vec![0, 3], &b"worker"[..]));
        assert_eq!(parse(&record[1..]), None, "it is too short");
        // More frames than there is room for are not read.
        record[offset_of!(waits::OpenWait, kernel_frames) + 3] = 0xff;
        assert_eq!(parse(&record).unwrap().kernel.len(), WAIT_KERNEL_FRAMES_MAX);
    }
}
