//! The BPF programs in the kernel, our own and others, as the kernel describes them to processes
//! with CAP_SYS_ADMIN. proftop reads from them the names and lines of functions, and changes no program.

use crate::ask_kernel::ask;
use crate::bpf_call::bpf;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use symbolize::kernel::{BpfCode, BpfExtent, BpfKernel, BpfProgramInfo, BpfTypes};

/// Commands as in uapi/linux/bpf.h.
const PROG_GET_NEXT_ID: u32 = 11;
const PROG_GET_FD_BY_ID: u32 = 13;
const OBJ_GET_INFO_BY_FD: u32 = 15;
const BTF_GET_FD_BY_ID: u32 = 19;

/// Maximum number of instructions of a program, and so of lines or functions.
const ENTRIES_MAX: u32 = 1_000_000;

/// Maximum size of BTF, the kernel's limit (BTF_MAX_SIZE).
const BTF_BYTES_MAX: u32 = 16 << 20;

/// Maximum size of code, more than a million instructions become on any processor.
const CODE_BYTES_MAX: u32 = 64 << 20;

/// Maximum size of a record. Records have 8 and 16 bytes; newer kernels may extend them.
const RECORD_BYTES_MAX: u32 = 64;

/// The running kernel, queried through the [kernel thread](crate::ask_kernel).
#[derive(Debug, Clone, Copy, Default)]
pub struct BpfPrograms;

impl BpfKernel for BpfPrograms {
    fn next_program(&self, after: u32) -> Option<u32> {
        ask(move || next_program(after)).flatten()
    }

    fn extents(&self, program: u32) -> Option<Vec<BpfExtent>> {
        ask(move || extents(program).ok()).flatten()
    }

    fn program(&self, number: u32) -> Option<BpfProgramInfo> {
        ask(move || program(number).ok()).flatten()
    }

    fn code(&self, program: u32) -> Option<Vec<BpfCode>> {
        ask(move || code(program).ok()).flatten()
    }

    fn types(&self, number: u32) -> Option<BpfTypes> {
        ask(move || types(number).ok()).flatten()
    }
}

fn next_program(after: u32) -> Option<u32> {
    let mut request = ById {
        id: after,
        ..ById::default()
    };
    // SAFETY: the arm of that command; it has no addresses.
    unsafe { bpf(PROG_GET_NEXT_ID, &mut request) }.ok()?;
    Some(request.next_id)
}

fn extents(program: u32) -> io::Result<Vec<BpfExtent>> {
    let file = open(PROG_GET_FD_BY_ID, program)?;
    let counts = program_info(&file, ProgramInfo::default())?;
    read_extents(&file, &counts)
}

fn program(number: u32) -> io::Result<BpfProgramInfo> {
    let file = open(PROG_GET_FD_BY_ID, number)?;
    let counts = program_info(&file, ProgramInfo::default())?;
    let mut info = read_lines(&file, &counts)?;
    info.extents = read_extents(&file, &counts)?;
    if counts.btf_id != 0 {
        info.btf = types(counts.btf_id).unwrap_or_default().bytes;
    }
    Ok(info)
}

fn code(program: u32) -> io::Result<Vec<BpfCode>> {
    let file = open(PROG_GET_FD_BY_ID, program)?;
    let counts = program_info(&file, ProgramInfo::default())?;
    read_code(&file, &counts)
}

fn types(number: u32) -> io::Result<BpfTypes> {
    read_types(&open(BTF_GET_FD_BY_ID, number)?)
}

/// `union bpf_attr` of the commands that take an id.
#[repr(C)]
#[derive(Default)]
struct ById {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

/// `union bpf_attr` of BPF_OBJ_GET_INFO_BY_FD.
#[repr(C)]
struct InfoByFd {
    fd: u32,
    len: u32,
    info: u64,
}

/// `struct bpf_prog_info`, as far as Linux 5.0 has it: newer kernels accept the shorter size.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct ProgramInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_prog_len: u32,
    xlated_prog_len: u32,
    jited_prog_insns: u64,
    xlated_prog_insns: u64,
    load_time: u64,
    created_by_uid: u32,
    nr_map_ids: u32,
    map_ids: u64,
    name: [u8; 16],
    ifindex: u32,
    gpl_compatible: u32,
    netns_dev: u64,
    netns_ino: u64,
    nr_jited_ksyms: u32,
    nr_jited_func_lens: u32,
    jited_ksyms: u64,
    jited_func_lens: u64,
    btf_id: u32,
    func_info_rec_size: u32,
    func_info: u64,
    nr_func_info: u32,
    nr_line_info: u32,
    line_info: u64,
    jited_line_info: u64,
    nr_jited_line_info: u32,
    line_info_rec_size: u32,
    jited_line_info_rec_size: u32,
    nr_prog_tags: u32,
    prog_tags: u64,
}

const _: () = assert!(size_of::<ProgramInfo>() == 192);

/// `struct bpf_btf_info`.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct TypesInfo {
    btf: u64,
    btf_size: u32,
    id: u32,
    name: u64,
    name_len: u32,
    kernel_btf: u32,
}

const _: () = assert!(size_of::<TypesInfo>() == 32);

fn read_extents(file: &OwnedFd, counts: &ProgramInfo) -> io::Result<Vec<BpfExtent>> {
    // The kernel leaves addresses 0 for processes without the right to see them.
    let mut starts = vec![0u64; counts.nr_jited_ksyms.min(ENTRIES_MAX) as usize];
    let mut lens = vec![0u32; counts.nr_jited_func_lens.min(ENTRIES_MAX) as usize];
    let wanted = ProgramInfo {
        nr_jited_ksyms: starts.len() as u32,
        jited_ksyms: address_of(&mut starts),
        nr_jited_func_lens: lens.len() as u32,
        jited_func_lens: address_of(&mut lens),
        ..ProgramInfo::default()
    };
    program_info(file, wanted)?;
    let extents = starts
        .into_iter()
        .zip(lens)
        .filter(|(start, _)| *start != 0);
    Ok(extents
        .map(|(start, len)| BpfExtent { start, len })
        .collect())
}

/// Reads the code of all functions; the kernel writes them one after the other, in the order of
/// their addresses and lengths (`bpf_prog_get_info_by_fd` in kernel/bpf/syscall.c).
fn read_code(file: &OwnedFd, counts: &ProgramInfo) -> io::Result<Vec<BpfCode>> {
    let mut bytes = vec![0u8; counts.jited_prog_len.min(CODE_BYTES_MAX) as usize];
    let mut starts = vec![0u64; counts.nr_jited_ksyms.min(ENTRIES_MAX) as usize];
    let mut lens = vec![0u32; counts.nr_jited_func_lens.min(ENTRIES_MAX) as usize];
    let wanted = ProgramInfo {
        jited_prog_len: bytes.len() as u32,
        jited_prog_insns: address_of(&mut bytes),
        nr_jited_ksyms: starts.len() as u32,
        jited_ksyms: address_of(&mut starts),
        nr_jited_func_lens: lens.len() as u32,
        jited_func_lens: address_of(&mut lens),
        ..ProgramInfo::default()
    };
    // Processes without the right to see addresses get no code: the kernel clears the pointer.
    if program_info(file, wanted)?.jited_prog_insns == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut rest = &bytes[..];
    let mut code = Vec::with_capacity(starts.len());
    for (start, len) in starts.into_iter().zip(lens) {
        let (function, behind) = rest.split_at(rest.len().min(len as usize));
        rest = behind;
        code.push(BpfCode {
            start,
            bytes: function.to_vec(),
        });
    }
    Ok(code)
}

/// Reads everything except where the functions are, and the names.
fn read_lines(file: &OwnedFd, counts: &ProgramInfo) -> io::Result<BpfProgramInfo> {
    // The kernel's own record sizes: it refuses others.
    let (function_bytes, line_bytes) = (counts.func_info_rec_size, counts.line_info_rec_size);
    if function_bytes.max(line_bytes) > RECORD_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let room = |count: u32, bytes: u32| vec![0u8; count.min(ENTRIES_MAX) as usize * bytes as usize];
    let mut functions = room(counts.nr_func_info, function_bytes);
    let mut lines = room(counts.nr_line_info, line_bytes);
    let mut line_addrs = vec![0u64; counts.nr_jited_line_info.min(ENTRIES_MAX) as usize];
    let wanted = ProgramInfo {
        nr_func_info: counts.nr_func_info.min(ENTRIES_MAX),
        func_info_rec_size: function_bytes,
        func_info: address_of(&mut functions),
        nr_line_info: counts.nr_line_info.min(ENTRIES_MAX),
        line_info_rec_size: line_bytes,
        line_info: address_of(&mut lines),
        nr_jited_line_info: line_addrs.len() as u32,
        jited_line_info_rec_size: size_of::<u64>() as u32,
        jited_line_info: address_of(&mut line_addrs),
        ..ProgramInfo::default()
    };
    program_info(file, wanted)?;
    Ok(BpfProgramInfo {
        functions,
        function_bytes,
        lines,
        line_bytes,
        line_addrs,
        ..BpfProgramInfo::default()
    })
}

fn read_types(file: &OwnedFd) -> io::Result<BpfTypes> {
    let mut name = [0u8; 64];
    let mut counts = TypesInfo {
        name: address_of(&mut name),
        name_len: name.len() as u32,
        ..TypesInfo::default()
    };
    // Kernels before 5.11 tell no name, and refuse to be asked for one. All of their types are those
    // of programs.
    if info(file, &mut counts).is_err() {
        counts = TypesInfo::default();
        info(file, &mut counts)?;
    }
    let mut bytes = vec![0u8; counts.btf_size.min(BTF_BYTES_MAX) as usize];
    let mut wanted = TypesInfo {
        btf: address_of(&mut bytes),
        btf_size: bytes.len() as u32,
        ..TypesInfo::default()
    };
    info(file, &mut wanted)?;
    let len = name.iter().position(|byte| *byte == 0);
    Ok(BpfTypes {
        name: name[..len.unwrap_or(name.len())].to_vec(),
        is_kernel: counts.kernel_btf != 0,
        bytes,
    })
}

fn open(command: u32, id: u32) -> io::Result<OwnedFd> {
    let mut request = ById {
        id,
        ..ById::default()
    };
    // SAFETY: the arm of these commands; it has no addresses.
    let fd = unsafe { bpf(command, &mut request) }?;
    // SAFETY: the call made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn program_info(file: &OwnedFd, mut wanted: ProgramInfo) -> io::Result<ProgramInfo> {
    info(file, &mut wanted)?;
    Ok(wanted)
}

fn info<T>(file: &OwnedFd, wanted: &mut T) -> io::Result<()> {
    let mut request = InfoByFd {
        fd: file.as_raw_fd().cast_unsigned(),
        len: size_of::<T>() as u32,
        info: std::ptr::from_mut(wanted) as u64,
    };
    // SAFETY: the arm of that command. It points to `wanted`, and `wanted` to rooms of
    // the callers with as many entries as it says.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut request) }.map(drop)
}

fn address_of<T>(room: &mut [T]) -> u64 {
    room.as_mut_ptr() as u64
}

#[cfg(test)]
mod tests;
