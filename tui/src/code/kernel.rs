//! Code of the *kernel*, of its modules and of BPF programs, read from memory.

use super::pieces::cover_hits;
use super::{Body, BodyLine, Piece, Wanted};
use engine::shown;
use probe::{BpfPrograms, ask_kernel};
use std::io::ErrorKind;
use std::ops::Range;
use symbolize::code::assembly::{self, Decoded, Mode};
use symbolize::code::{Instruction, Texts};
use symbolize::kernel::{CurrentBpf, KernelCore, KernelSymbols};
use symbolize::sanitize;

/// Adds the instructions of a function to its body. The error says why there are none.
pub fn disassemble(wanted: &Wanted, body: &mut Body) -> Result<(), String> {
    if wanted.is_recorded {
        return Err("the kernel's code is in no recording".into());
    }
    let memory = Memory {
        core: ask_kernel::ask(KernelCore::open)
            .ok_or(ErrorKind::Other)
            .and_then(|core| core.map_err(|error| error.kind())),
        bpf: CurrentBpf::new(Box::new(BpfPrograms)),
    };
    add_pieces(wanted, &KernelSymbols::load(), &memory, body)
}

/// The sources of kernel code.
struct Memory {
    /// `/proc/kcore`, or why it cannot be read.
    core: Result<KernelCore, ErrorKind>,
    /// The BPF programs, with their extents and source lines.
    bpf: CurrentBpf,
}

/// The code of one function.
struct Code {
    start: u64,
    bytes: Vec<u8>,
    /// Number of bytes at its end that were not read.
    cut: u64,
    is_bpf: bool,
}

impl Memory {
    /// Returns the function that has an address: a BPF program as the kernel dumps it, any other
    /// function from the memory of the kernel.
    fn code(&self, address: u64, symbols: &KernelSymbols, bytes_max: u64) -> Option<Code> {
        if let Some(program) = self.bpf.code(address) {
            let mut bytes = program.bytes;
            let whole = bytes.len() as u64;
            bytes.truncate(bytes_max as usize);
            return Some(Code {
                start: program.start,
                bytes,
                cut: whole.saturating_sub(bytes_max),
                is_bpf: true,
            });
        }
        let Range { start, end } = symbols.extent(address)?;
        let core = self.core.as_ref().ok()?;
        let mut bytes = core.read(start, (end - start).min(bytes_max)).ok()?;
        // On x86, padding lies between functions: `nop` in kernels before 2022, `int3` since.
        let is_padding = |byte: &&u8| **byte == INT3 && Mode::KERNEL == Mode::Bits64;
        let padding = bytes.iter().rev().take_while(is_padding).count();
        if padding < bytes.len() {
            bytes.truncate(bytes.len() - padding);
        }
        Some(Code {
            start,
            bytes,
            cut: (end - start).saturating_sub(bytes_max),
            is_bpf: false,
        })
    }

    /// Says which right is missing to read the code, or what else prevents it.
    fn why_not(&self, is_bpf: bool) -> String {
        let core = match self.core {
            Ok(_) if is_bpf => return "this BPF program is no longer loaded".into(),
            Ok(_) => "it does not have this function, which may be gone by now",
            Err(ErrorKind::NotFound) => "this kernel was built without it (CONFIG_PROC_KCORE)",
            Err(ErrorKind::PermissionDenied) => {
                "that takes root with CAP_SYS_RAWIO, and a kernel that is not locked down"
            }
            Err(_) => "what is there cannot be read",
        };
        if is_bpf {
            "the kernel does not show this program: it was unloaded, or that takes root \
                     with CAP_SYS_ADMIN, CAP_BPF and CAP_SYSLOG"
                .into()
        } else {
            format!("the kernel's code is read from /proc/kcore: {core}")
        }
    }
}

/// Adds the pieces of code that were hit. If there are none, the error says which right is missing,
/// or what else.
fn add_pieces(
    wanted: &Wanted,
    symbols: &KernelSymbols,
    memory: &Memory,
    body: &mut Body,
) -> Result<(), String> {
    if symbols.is_hidden() {
        return Err("where the kernel's functions are is told only with CAP_SYSLOG".into());
    }
    cover_hits(wanted, body, |hit, left, body| {
        let code = memory.code(hit.address, symbols, left);
        Some(piece(code?, symbols, memory, body))
    });
    // The distance from the start of the function is known even without instructions.
    let known = body
        .unknown
        .iter()
        .filter_map(|at| Some((*at, symbols.find(*at).ok()?)));
    let known: Vec<_> = known.collect();
    let is_bpf = known.iter().any(|(_, symbol)| symbol.bpf);
    body.starts
        .extend(known.into_iter().map(|(at, symbol)| (at, symbol.start)));
    if body.pieces.is_empty() {
        Err(memory.why_not(is_bpf))
    } else {
        Ok(())
    }
}

/// Decodes the instructions of one function. Those of a BPF program get source lines if the program
/// was loaded with them; a line without a number is dropped.
fn piece(code: Code, symbols: &KernelSymbols, memory: &Memory, body: &mut Body) -> Piece {
    let start = code.start;
    let range = start..start + code.bytes.len() as u64;
    let mut texts = Texts::default();
    let write = |mut decoded: Decoded| {
        name_target(&mut decoded, &range, symbols);
        let mut instruction = decoded.write(&mut texts);
        let place = memory.bpf.find(instruction.offset);
        let place = place.filter(|place| code.is_bpf && place.line > 0);
        instruction.place = place.map(|place| BodyLine {
            file: body.file_number(&sanitize(&place.file)),
            line: place.line,
        });
        instruction
    };
    let decoded = assembly::decode(Mode::KERNEL, &code.bytes, start, start);
    let instructions: Vec<Instruction> = decoded.into_iter().map(write).collect();
    Piece {
        host: None,
        start,
        cut: code.cut,
        range,
        instructions,
    }
}

/// Names the target of a call or jump. A target inside the function is written as the distance from
/// its start.
fn name_target(decoded: &mut Decoded, range: &Range<u64>, symbols: &KernelSymbols) {
    let Some(target) = decoded.branch() else {
        return;
    };
    let is_inside = range.contains(&target) && !decoded.is_call();
    decoded.target = match (is_inside, symbols.find(target)) {
        (true, _) => Some(format!("+{:#x}", target - range.start).into()),
        (false, Ok(symbol)) if symbol.offset == 0 => Some(shown(symbol.name.as_bytes()).into()),
        (false, Ok(symbol)) => {
            let name = shown(symbol.name.as_bytes());
            Some(format!("{name}+{:#x}", symbol.offset).into())
        }
        (false, Err(_)) => None,
    };
}

/// The one-byte instruction with which x86 kernels fill the space between functions.
const INT3: u8 = 0xcc;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Hit;
    use crate::code::Syntax;
    use profile::FrameKind;
    use symbolize::kernel::{
        BpfCode, BpfExtent, BpfKernel, BpfProgramInfo, BpfTypes, made_up_core,
    };
    use test_support::Scratch;

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    fn wanted(addresses: &[u64]) -> Wanted {
        let hit = |address: &u64| Hit {
            address: *address,
            samples: 1,
            host: None,
            file: None,
            line: 0,
        };
        Wanted {
            function: "vfs_read".into(),
            module: "[kernel]".into(),
            module_path: "[kernel]".into(),
            build_id: [].into(),
            kind: FrameKind::Kernel,
            is_recorded: false,
            pids: Vec::new(),
            hits: addresses.iter().map(hit).collect(),
            visit: 0,
        }
    }

    #[test]
    fn a_function_of_the_kernel_is_read_from_its_memory() {
        // push %rbx; call copy; jne back; ret; then padding, and the next function.
        let mut memory = vec![0x53, 0xe8, 0x0a, 0, 0, 0, 0x75, 0xf8, 0xc3];
        memory.resize(16, INT3);
        memory.extend([0x90, 0xc3]);
        let scratch = Scratch::new();
        let file = scratch.write("kcore", made_up_core(&[(TEXT, &memory)]));
        let memory = Memory {
            core: Ok(KernelCore::open_at(&file).expect("it is one")),
            ..no_rights()
        };
        let text = b"ffffffff81000000 T vfs_read\nffffffff81000010 t copy\n\
                     ffffffff81000012 t next\n";
        let symbols = KernelSymbols::parse(text);
        let mut body = Body::default();
        let asked = wanted(&[TEXT + 6, TEXT + 0x11]);
        add_pieces(&asked, &symbols, &memory, &mut body).expect("it is there");
        let lines: Vec<Vec<String>> = body
            .pieces
            .iter()
            .map(|piece| {
                piece
                    .instructions
                    .iter()
                    .map(|i| i.text(Syntax::Att))
                    .collect()
            })
            .collect();
        assert_eq!(
            lines,
            [
                vec!["push   %rbx", "call   copy", "jne    +0x0", "ret"],
                vec!["nop", "ret"]
            ]
        );
        assert_eq!(body.pieces[0].range, TEXT..TEXT + 9);
        assert_eq!(body.find(TEXT + 6), Some((0, 2)), "where it was sampled");
        // An address without a symbol is remembered as having no code.
        let mut body = Body::default();
        let refused = add_pieces(&wanted(&[7]), &symbols, &memory, &mut body);
        assert!(refused.is_err() && body.covers(7));
        let hidden = KernelSymbols::parse(b"0000000000000000 T vfs_read\n");
        let refused = add_pieces(&asked, &hidden, &memory, &mut Body::default());
        assert!(refused.unwrap_err().contains("CAP_SYSLOG"));
    }

    #[test]
    fn what_is_missing_is_said() {
        let text = b"ffffffff81000000 T vfs_read\nffffffffc0000000 t bpf_prog_0123456789abcdef_hook\t[bpf]\n\
                     ffffffffc0001000 t next\t[bpf]\n";
        let symbols = KernelSymbols::parse(text);
        let why = |error, address: u64| {
            let memory = Memory {
                core: Err(error),
                ..no_rights()
            };
            let mut body = Body::default();
            let asked = wanted(&[address]);
            let refused = add_pieces(&asked, &symbols, &memory, &mut body);
            // The distance from the start of its function is known all the same.
            assert_eq!(body.starts.get(&address), Some(&(address & !0xfff)));
            refused.expect_err("no code")
        };
        let denied = ErrorKind::PermissionDenied;
        assert!(why(ErrorKind::NotFound, TEXT + 6).contains("CONFIG_PROC_KCORE"));
        assert!(why(denied, TEXT + 6).contains("CAP_SYS_RAWIO"));
        assert!(why(denied, 0xffff_ffff_c000_0010).contains("CAP_SYS_ADMIN, CAP_BPF"));
        let recorded = Wanted {
            is_recorded: true,
            ..wanted(&[TEXT])
        };
        let refused = disassemble(&recorded, &mut Body::default());
        assert!(refused.is_err_and(|why| why.contains("in no recording")));
    }

    #[test]
    fn a_bpf_program_has_instructions_and_lines() {
        let memory = Memory {
            core: Err(ErrorKind::PermissionDenied),
            bpf: CurrentBpf::new(Box::new(OneProgram)),
        };
        let text = b"ffffffff81000000 T vfs_read\nffffffffc0000000 t bpf_prog_0123456789abcdef_hook\t[bpf]\n";
        let symbols = KernelSymbols::parse(text);
        let mut body = Body::default();
        let asked = wanted(&[PROGRAM + 1]);
        add_pieces(&asked, &symbols, &memory, &mut body).expect("it is loaded");
        let lines: Vec<String> = body.pieces[0]
            .instructions
            .iter()
            .map(|i| i.text(Syntax::Att))
            .collect();
        assert_eq!(lines, ["push   %rbp", "jmp    +0x0", "ret"]);
        assert_eq!(body.find(PROGRAM + 1), Some((0, 1)));
    }

    const PROGRAM: u64 = 0xffff_ffff_c000_0000;

    /// Returns the memory as seen by a user without rights.
    fn no_rights() -> Memory {
        Memory {
            core: Err(ErrorKind::PermissionDenied),
            bpf: CurrentBpf::new(Box::new(NoPrograms)),
        }
    }

    #[derive(Debug)]
    struct NoPrograms;

    impl BpfKernel for NoPrograms {
        fn next_program(&self, _: u32) -> Option<u32> {
            None
        }

        fn extents(&self, _: u32) -> Option<Vec<BpfExtent>> {
            None
        }

        fn program(&self, _: u32) -> Option<BpfProgramInfo> {
            None
        }

        fn code(&self, _: u32) -> Option<Vec<BpfCode>> {
            None
        }

        fn types(&self, _: u32) -> Option<BpfTypes> {
            None
        }
    }

    /// push %rbp; jmp back; ret.
    const CODE: [u8; 4] = [0x55, 0xeb, 0xfd, 0xc3];

    #[derive(Debug)]
    struct OneProgram;

    impl BpfKernel for OneProgram {
        fn next_program(&self, after: u32) -> Option<u32> {
            (after < 5).then_some(5)
        }

        fn extents(&self, _: u32) -> Option<Vec<BpfExtent>> {
            let len = CODE.len() as u32;
            Some(vec![BpfExtent {
                start: PROGRAM,
                len,
            }])
        }

        fn program(&self, _: u32) -> Option<BpfProgramInfo> {
            None
        }

        fn code(&self, _: u32) -> Option<Vec<BpfCode>> {
            let bytes = CODE.to_vec();
            Some(vec![BpfCode {
                start: PROGRAM,
                bytes,
            }])
        }

        fn types(&self, _: u32) -> Option<BpfTypes> {
            None
        }
    }
}
