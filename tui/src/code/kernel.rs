//! Code of the *kernel*, its modules and BPF programs, read from memory.

use super::assembly::{self, Mode};
use super::pieces::cover_hits;
use super::{Body, Piece, Wanted};
use engine::shown;
use std::io::ErrorKind;
use symbolize::kernel::{KernelCore, KernelSymbols};

/// Adds the instructions of a function to its body. The error says why there are none.
pub fn disassemble(wanted: &Wanted, body: &mut Body) -> Result<(), String> {
    if wanted.is_recorded {
        return Err("the kernel's code is in no recording".into());
    }
    let core = KernelCore::open().map_err(|error| why_not(error.kind()))?;
    add_pieces(wanted, &KernelSymbols::load(), &core, body)
}

/// Returns why the code cannot be read, such as which right is missing.
fn why_not(error: ErrorKind) -> String {
    let why = match error {
        ErrorKind::NotFound => "this kernel was built without it (CONFIG_PROC_KCORE)",
        ErrorKind::PermissionDenied => {
            "that takes root with CAP_SYS_RAWIO, and a kernel that is not locked down"
        }
        _ => "what is there cannot be read",
    };
    format!("the kernel's code is read from /proc/kcore: {why}")
}

fn add_pieces(
    wanted: &Wanted,
    symbols: &KernelSymbols,
    core: &KernelCore,
    body: &mut Body,
) -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("only code of x86 is written out".into());
    }
    if symbols.is_hidden() {
        return Err("where the kernel's functions are is told only with CAP_SYSLOG".into());
    }
    cover_hits(wanted, body, |hit, left, _| {
        piece(hit.address, symbols, core, left)
    });
    match body.pieces.is_empty() {
        true => Err("/proc/kcore does not have this function: it may be gone by now".into()),
        false => Ok(()),
    }
}

fn piece(
    address: u64,
    symbols: &KernelSymbols,
    core: &KernelCore,
    bytes_max: u64,
) -> Option<Piece> {
    let extent = symbols.extent(address)?;
    let whole = extent.end - extent.start;
    let mut bytes = core.read(extent.start, whole.min(bytes_max)).ok()?;
    // Functions are apart by bytes that never run: `nop` before kernels of 2022, `int3` since.
    let padding = bytes.iter().rev().take_while(|byte| **byte == INT3).count();
    if padding < bytes.len() {
        bytes.truncate(bytes.len() - padding);
    }
    let range = extent.start..extent.start + bytes.len() as u64;
    let mut instructions = assembly::decode(Mode::Bits64, &bytes, extent.start, extent.start);
    for instruction in &mut instructions {
        let Some(target) = instruction.branch() else {
            continue;
        };
        let is_inside = range.contains(&target) && !instruction.is_call();
        instruction.target = match (is_inside, symbols.find(target)) {
            (true, _) => Some(format!("+{:#x}", target - extent.start).into()),
            (false, Ok(symbol)) if symbol.offset == 0 => Some(shown(symbol.name.as_bytes()).into()),
            (false, Ok(symbol)) => {
                let name = shown(symbol.name.as_bytes());
                Some(format!("{name}+{:#x}", symbol.offset).into())
            }
            (false, Err(_)) => None,
        };
    }
    Some(Piece {
        host: None,
        start: extent.start,
        cut: whole.saturating_sub(bytes_max),
        range,
        instructions,
    })
}

const INT3: u8 = 0xcc;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Hit;
    use crate::code::Syntax;
    use profile::FrameKind;
    use symbolize::kernel::made_up_core;
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
        let core = KernelCore::open_at(&file).expect("it is one");
        let text = b"ffffffff81000000 T vfs_read\nffffffff81000010 t copy\n\
                     ffffffff81000012 t next\n";
        let symbols = KernelSymbols::parse(text);
        let mut body = Body::default();
        let asked = wanted(&[TEXT + 6, TEXT + 0x11]);
        add_pieces(&asked, &symbols, &core, &mut body).expect("it is there");
        let lines: Vec<Vec<String>> = { body.pieces.iter() }
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
        // An address that no symbol has is known to have no code.
        let mut body = Body::default();
        let refused = add_pieces(&wanted(&[7]), &symbols, &core, &mut body);
        assert!(refused.is_err() && body.covers(7));
        let hidden = KernelSymbols::parse(b"0000000000000000 T vfs_read\n");
        let refused = add_pieces(&asked, &hidden, &core, &mut Body::default());
        assert!(refused.unwrap_err().contains("CAP_SYSLOG"));
    }

    #[test]
    fn what_is_missing_is_said() {
        assert!(why_not(ErrorKind::NotFound).contains("CONFIG_PROC_KCORE"));
        assert!(why_not(ErrorKind::PermissionDenied).contains("CAP_SYS_RAWIO"));
        let recorded = Wanted {
            is_recorded: true,
            ..wanted(&[TEXT])
        };
        let refused = disassemble(&recorded, &mut Body::default());
        assert!(refused.is_err_and(|why| why.contains("in no recording")));
    }
}
